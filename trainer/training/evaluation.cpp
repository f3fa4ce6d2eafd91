#include "trainer/training/evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "metrics/metric_table.h"

namespace petlab::trainer {
namespace {

// Enough rows for the matrix products to run at full speed, few enough to stay in the caches.
constexpr std::int64_t kTokensABatch = 2048;

}  // namespace

void sort_by_length(const TokenisedSplit& split, std::vector<std::int64_t>& examples) {
  std::stable_sort(examples.begin(), examples.end(), [&](std::int64_t a, std::int64_t b) {
    return split.tokens(a) < split.tokens(b);
  });
}

Predictions predict(TrialModel& model, std::size_t task, const TokenisedSplit& split,
                    const std::atomic<bool>& stop) {
  const at::NoGradGuard no_grad;
  Predictions predictions;
  predictions.outputs = model.head(task).outputs();
  const bool regression = predictions.outputs == 1;
  predictions.logits.resize(static_cast<std::size_t>(split.size() * predictions.outputs));
  (regression ? predictions.scores.resize(static_cast<std::size_t>(split.size()))
              : predictions.classes.resize(static_cast<std::size_t>(split.size())));
  std::vector<std::int64_t> order(static_cast<std::size_t>(split.size()));
  std::iota(order.begin(), order.end(), 0);
  sort_by_length(split, order);
  std::size_t from = 0;
  while (from < order.size()) {
    if (stop) throw Interrupted();
    std::size_t to = from;
    std::int64_t tokens = 0;
    while (to < order.size() && (to == from || tokens + split.tokens(order[to]) <= kTokensABatch)) {
      tokens += split.tokens(order[to++]);
    }
    const PackedBatch batch = pack(split, {order.data() + from, to - from});
    const Tensor logits = model.logits(task, batch.input, nullptr);
    if (!at::isfinite(logits).all().item<bool>()) {
      throw NotFinite("a prediction is not finite");
    }
    const Tensor outputs = logits.to(at::kFloat).contiguous();
    const Tensor answers = regression ? logits.squeeze(1).to(at::kDouble) : logits.argmax(1);
    for (std::size_t i = from; i < to; ++i) {
      const auto example = static_cast<std::size_t>(order[i]);
      std::copy_n(outputs.const_data_ptr<float>() +
                      static_cast<std::int64_t>(i - from) * predictions.outputs,
                  predictions.outputs, predictions.logits.begin() + order[i] * predictions.outputs);
      if (regression) {
        predictions.scores[example] = answers.const_data_ptr<double>()[i - from];
      } else {
        predictions.classes[example] = answers.const_data_ptr<std::int64_t>()[i - from];
      }
    }
    from = to;
  }
  return predictions;
}

Scores score(const sweeps::TaskDeclaration& task, const TokenisedSplit& split,
             const Predictions& predictions) {
  Scores scores;
  const std::vector<std::int64_t> classes(split.classes.begin(), split.classes.end());
  const std::vector<double> targets(split.scores.begin(), split.scores.end());
  for (const std::string& name : task.metrics) {
    const metrics::MetricRow& metric = metrics::metric_named(name);
    std::optional<double> value;
    if (metric.of_labels != nullptr) {
      value = metric.of_labels(metrics::Confusion(classes, predictions.classes,
                                                  static_cast<std::int64_t>(task.classes.size())));
    } else if (metric.of_scores != nullptr) {
      value = metric.of_scores(targets, predictions.scores);
    } else {
      throw std::invalid_argument("task " + task.name + ": metric " + name +
                                  " compares texts, which a classifier does not write");
    }
    scores.metrics.emplace_back(name, value);
  }
  for (const std::string& name : task.select_by) {
    for (const auto& [metric, value] : scores.metrics) {
      if (metric == name) scores.selected.push_back({name, value});
    }
  }
  return scores;
}

}  // namespace petlab::trainer
