#include "orchestrator/running/best_metric.h"

#include "tests/support/catch.h"

using namespace petlab;
using orchestrator::BestMetric;

namespace {

sweeps::TaskDeclaration task_of(const std::string& name, std::vector<std::string> select_by) {
  sweeps::TaskDeclaration task;
  task.name = name;
  task.select_by = std::move(select_by);
  return task;
}

protocol::Metric validation(std::int64_t step, const char* task, const char* name,
                            std::optional<double> value) {
  return {step, "validation", task, name, value};
}

}  // namespace

TEST_CASE("The best score is the mean over all metrics of all tasks", "[orchestrator]") {
  const auto cola = task_of("cola", {"matthews"});
  const auto mrpc = task_of("mrpc", {"accuracy", "f1"});
  BestMetric best({&cola, &mrpc});
  best.add(validation(1, "cola", "matthews", 0.5));
  best.add(validation(1, "mrpc", "accuracy", 0.9));
  CHECK_FALSE(best.value());
  best.add(validation(1, "mrpc", "f1", 0.7));
  CHECK(best.value() == Approx(0.7));  // the mean of the tasks' means would be 0.65
  best.add(validation(2, "mrpc", "f1", 0.1));
  best.add(validation(2, "cola", "matthews", 0.1));
  best.add(validation(2, "mrpc", "accuracy", 0.1));
  CHECK(best.value() == Approx(0.7));
  best.add(validation(3, "cola", "matthews", std::nullopt));
  best.add(validation(3, "mrpc", "accuracy", 1.0));
  best.add(validation(3, "mrpc", "f1", 1.0));
  CHECK(best.value() == Approx(0.7));
}

TEST_CASE("The best value of a metric to minimize is the lowest", "[orchestrator]") {
  const auto task = task_of("translation", {"ter"});
  BestMetric best({&task});
  best.add(validation(1, "translation", "ter", 60.0));
  best.add(validation(2, "translation", "ter", 40.0));
  best.add(validation(3, "translation", "ter", 50.0));
  CHECK(best.value() == -40.0);
}

TEST_CASE("An unknown metric has no best score", "[orchestrator]") {
  const auto task = task_of("mine", {"smile"});
  BestMetric best({&task});
  best.add(validation(1, "mine", "smile", 0.5));
  CHECK_FALSE(best.value());
}
