#include "trainer/training/evaluation.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace petlab::trainer {
namespace {

// Enough rows for matrix products at full speed, few enough to stay in the caches.
constexpr std::int64_t kTokensABatch = 2048;
// GPUs need more rows, and each batch ends with a wait for the device.
constexpr std::int64_t kTokensABatchOnDevice = 8192;

}  // namespace

void sort_by_length(const TokenisedSplit& split, std::vector<std::int64_t>& examples) {
  std::stable_sort(examples.begin(), examples.end(), [&](std::int64_t a, std::int64_t b) {
    return split.tokens(a) < split.tokens(b);
  });
}

Predictions predict(TrialModel& model, std::size_t task, const TokenisedSplit& split,
                    const std::atomic<bool>& stop) {
  const at::NoGradGuard no_grad;
  const Objective& objective = model.objective(task);
  Predictions predictions = objective.empty_predictions(split.size());
  std::vector<std::int64_t> order(static_cast<std::size_t>(split.size()));
  std::iota(order.begin(), order.end(), 0);
  sort_by_length(split, order);
  const bool on_cpu = model.backbone().placement().device.is_cpu();
  const std::int64_t most = on_cpu ? kTokensABatch : kTokensABatchOnDevice;
  std::size_t from = 0;
  while (from < order.size()) {
    if (stop) throw Interrupted();
    std::size_t to = from;
    std::int64_t tokens = 0;
    const auto with = [&](std::int64_t example) { return tokens + split.tokens(example); };
    while (to < order.size() && (to == from || with(order[to]) <= most)) {
      tokens = with(order[to++]);
    }
    const std::span<const std::int64_t> examples(order.data() + from, to - from);
    objective.predict(model.pass(nullptr), pack(split, examples), predictions);
    from = to;
  }
  return predictions;
}

}  // namespace petlab::trainer
