#include "trainer/training/evaluation.h"

#include <algorithm>
#include <numeric>

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
  const Objective& objective = model.objective(task);
  Predictions predictions = objective.empty_predictions(split.size());
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
    objective.predict(model.pass(nullptr), batch, {&predictions, 1});
    from = to;
  }
  return predictions;
}

}  // namespace petlab::trainer
