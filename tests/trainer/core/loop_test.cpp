// The training loop, compared with an independent implementation
// (tests/golden/training/make_training.py), and in edge cases.
#include "trainer/training/loop.h"

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/golden.h"
#include "tests/trainer/core/golden_tensors.h"
#include "trainer/files/error.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::read_json;

namespace {

// In float64 only the order of sums differs.
constexpr double kTolerance = 1e-7;

bool near(double found, double wanted) {
  return std::abs(found - wanted) <= kTolerance * std::max(1.0, std::abs(wanted));
}

TokenisedSplit split_of(const nlohmann::json& split, bool regression) {
  TokenisedSplit tokenised;
  tokenised.kind = regression ? sweeps::TaskKind::regression : sweeps::TaskKind::classification;
  tokenised.offsets.push_back(0);
  for (const auto& ids : split.at("ids")) {
    for (const std::int32_t id : ids) tokenised.ids.push_back(id);
    tokenised.offsets.push_back(static_cast<std::int64_t>(tokenised.ids.size()));
  }
  tokenised.type_ids.assign(tokenised.ids.size(), 0);
  if (regression) {
    tokenised.scores = split.at("targets").get<std::vector<float>>();
  } else {
    tokenised.classes = split.at("targets").get<std::vector<std::int32_t>>();
  }
  return tokenised;
}

TaskRun task_of(const nlohmann::json& task) {
  TaskRun run;
  run.declaration.name = task.at("name");
  run.declaration.classes = task.at("classes").get<std::vector<std::string>>();
  const bool regression = run.declaration.classes.empty();
  if (regression) run.declaration.kind = sweeps::TaskKind::regression;
  run.declaration.metrics = task.at("metrics").get<std::vector<std::string>>();
  run.declaration.select_by = task.at("select_by").get<std::vector<std::string>>();
  run.train = split_of(task.at("splits").at("train"), regression);
  run.validation = split_of(task.at("splits").at("validation"), regression);
  run.test = split_of(task.at("splits").at("test"), regression);
  return run;
}

/// A golden run: its configuration, tasks and expected results.
struct GoldenRun {
  sweeps::TrialConfig config;
  std::vector<TaskRun> tasks;
  nlohmann::json wanted;

  explicit GoldenRun(const std::string& name) {
    const nlohmann::json file = read_json(folder() / (name + ".json"));
    config = sweeps::trial_config_from_json(file.at("config"));
    for (const auto& task : file.at("tasks")) tasks.push_back(task_of(task));
    wanted = file.at("wanted");
  }
  static std::filesystem::path folder() { return testing::own_golden() / "training"; }
  static Encoder backbone() {
    return Encoder::load(folder() / "backbone", Placement::all_in(at::kDouble));
  }
};

std::map<std::string, double> norms_of(TrainingLoop& loop) {
  std::map<std::string, double> norms;
  for (const auto& [name, tensor] : loop.tensors()) {
    if (name.starts_with("best.") || name.starts_with("optimizer.")) continue;
    norms[name] = at::linalg_vector_norm(tensor).item<double>();
  }
  return norms;
}

/// A run's metrics in the order of reporting, and the last step of its best epoch.
struct Report {
  std::vector<protocol::Metric> metrics;
  std::int64_t best_step = 0;

  std::vector<std::optional<double>> values(const std::string& split,
                                            const std::string& name) const {
    std::vector<std::optional<double>> all;
    for (const protocol::Metric& metric : metrics) {
      if (metric.split == split && metric.name == name) all.push_back(metric.value);
    }
    return all;
  }
};

/// Trains from the initial values; `prepare` may change them first.
Report train_steps(const GoldenRun& golden,
                   const std::function<void(const NamedTensors&)>& prepare = nullptr) {
  const Encoder backbone = GoldenRun::backbone();
  Report report;
  LoopObserver observer;
  observer.on_metric = [&](const protocol::Metric& metric) { report.metrics.push_back(metric); };
  TrainingLoop loop(golden.config, golden.tasks, backbone, observer);
  if (prepare) prepare(loop.tensors());
  loop.run(std::atomic<bool>{false});
  report.best_step = *loop.state().best_step;
  return report;
}

void check_metric(const protocol::Metric& found, const nlohmann::json& wanted) {
  INFO(wanted.dump());
  CHECK(found.step == wanted.at(0).get<std::int64_t>());
  CHECK(found.split == wanted.at(1).get<std::string>());
  CHECK(found.task == wanted.at(2).get<std::string>());
  CHECK(found.name == wanted.at(3).get<std::string>());
  REQUIRE(found.value.has_value() == !wanted.at(4).is_null());
  if (found.value) CHECK(near(*found.value, wanted.at(4)));
}

void check_run(const std::string& name) {
  INFO(name);
  const GoldenRun golden(name);
  const auto& steps = golden.wanted.at("steps");
  const Encoder backbone = GoldenRun::backbone();
  std::vector<protocol::Metric> metrics;
  TrainingLoop* running = nullptr;
  LoopObserver observer;
  observer.on_metric = [&](const protocol::Metric& metric) { metrics.push_back(metric); };
  observer.on_step = [&](std::int64_t step, std::int64_t of, double loss) {
    const auto& wanted = steps.at(static_cast<std::size_t>(step - 1));
    INFO("step " << step);
    REQUIRE(of == static_cast<std::int64_t>(steps.size()));
    CHECK(near(loss, wanted.at("loss")));
    CHECK(near(schedule_factor(step - 1, of, warmup_of(golden.config.training, of)),
               wanted.at("rate_factor")));
    const auto norms = norms_of(*running);
    REQUIRE(norms.size() == wanted.at("norms").size());
    for (const auto& [parameter, norm] : norms) {
      INFO(parameter);
      CHECK(near(norm, wanted.at("norms").at(parameter)));
    }
  };
  TrainingLoop loop(golden.config, golden.tasks, backbone, observer);
  running = &loop;
  REQUIRE(loop.steps() == static_cast<std::int64_t>(steps.size()));
  loop.run(std::atomic<bool>{false});
  CHECK(*loop.state().best_step == golden.wanted.at("best_step").get<std::int64_t>());
  REQUIRE(metrics.size() == golden.wanted.at("metrics").size());
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    check_metric(metrics[i], golden.wanted.at("metrics")[i]);
  }
}

}  // namespace

TEST_CASE("full fine-tuning matches torch step by step", "[trainer]") {
  check_run("full_finetuning");
}

TEST_CASE("training a shared adapter with learned masks matches torch step by step", "[trainer]") {
  check_run("propetl_adapter");
}

TEST_CASE("training a shared adapter with random masks matches torch step by step", "[trainer]") {
  check_run("random_adapter");
}

TEST_CASE("training LoRA with learned masks on scores matches torch step by step", "[trainer]") {
  check_run("lora");
}

TEST_CASE("training several tasks matches torch step by step", "[trainer]") {
  check_run("several_tasks");
  check_run("several_tasks_random");
}

TEST_CASE("the first of equally good epochs is the best", "[trainer]") {
  GoldenRun golden("full_finetuning");
  golden.config.training.learning_rate = 1e-30;
  const Report report = train_steps(golden);
  const auto values = report.values("validation", "accuracy");
  REQUIRE(values.size() == 4);
  CHECK((values == std::vector(4, values[0])));
  CHECK(report.best_step == 3);
  CHECK(report.metrics.back().step == 3);
}

TEST_CASE("an epoch without a value is the best only until another epoch has one", "[trainer]") {
  GoldenRun golden("lora");
  // Each epoch has one step and the first step's learning rate is 0, so `prepare` determines the
  // first epoch's predictions.
  golden.config.training.batch_size = golden.tasks[0].train.size();
  golden.config.training.warmup_ratio = 0.25;
  const auto all_alike = [](const NamedTensors& tensors) {
    tensors.find("head.0.out_proj.weight")->second.zero_();
  };
  SECTION("the best value so far is below zero") {
    // Makes the correlation negative.
    for (float& score : golden.tasks[0].validation.scores) score = -score;
    const Report report = train_steps(golden, all_alike);
    const auto values = report.values("validation", "pearson");
    REQUIRE(values.size() == 4);
    CHECK(!values[0]);
    std::optional<double> best;
    std::int64_t best_step = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      REQUIRE(values[i]);
      if (best && *values[i] <= *best) continue;
      best = values[i];
      best_step = static_cast<std::int64_t>(i) + 1;
    }
    CHECK(report.best_step == best_step);
  }
  SECTION("no epoch has a value") {
    for (float& score : golden.tasks[0].validation.scores) score = 1;
    CHECK(train_steps(golden, all_alike).best_step == 1);
  }
}

TEST_CASE("clipping keeps the direction of gradients and leaves small ones unchanged",
          "[trainer]") {
  const auto clipped = [](double max_norm, double& norm) {
    Parameter a{"a", at::zeros({2}), at::tensor({3.0F, 0.0F}), Rate::module, true};
    Parameter b{"b", at::zeros({1}), at::tensor({-4.0F}), Rate::scores, true};
    AdamW optimizer({a, b}, {});
    norm = optimizer.clip(max_norm).item<double>();
    return std::vector<double>{a.gradient[0].item<double>(), a.gradient[1].item<double>(),
                               b.gradient[0].item<double>()};
  };
  double norm = 0;
  CHECK((clipped(6, norm) == std::vector<double>{3, 0, -4}));
  CHECK(norm == 5);
  CHECK((clipped(0, norm) == std::vector<double>{3, 0, -4}));
  CHECK(norm == 5);
  const auto found = clipped(1, norm);
  CHECK(norm == 5);
  CHECK(found[0] == Approx(0.6).epsilon(1e-5));
  CHECK(found[1] == 0);
  CHECK(found[2] == Approx(-0.8).epsilon(1e-5));
}

TEST_CASE("the learning rate rises over the warm-up steps, rounded up, and then falls to the end",
          "[trainer]") {
  const auto factors = [](std::int64_t steps, double ratio) {
    std::vector<double> all;
    sweeps::TrainingConfig training;
    training.warmup_ratio = ratio;
    for (std::int64_t step = 0; step < steps; ++step) {
      all.push_back(schedule_factor(step, steps, warmup_of(training, steps)));
    }
    return all;
  };
  CHECK((factors(4, 0) == std::vector<double>{1, 0.75, 0.5, 0.25}));
  CHECK((factors(5, 0.2) == std::vector<double>{0, 1, 0.75, 0.5, 0.25}));
  // 1.1 steps of warm-up round up to 2.
  CHECK((factors(11, 0.1) == std::vector<double>{0, 0.5, 1, 8.0 / 9, 7.0 / 9, 6.0 / 9, 5.0 / 9,
                                                 4.0 / 9, 3.0 / 9, 2.0 / 9, 1.0 / 9}));
  CHECK((factors(1, 0.1) == std::vector<double>{0}));
}
