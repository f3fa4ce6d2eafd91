#include "trainer/training/data_store.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace petlab::trainer {
namespace {

template <typename T>
std::int64_t bytes_in(const std::vector<T>& numbers) {
  return static_cast<std::int64_t>(numbers.size() * sizeof(T));
}

std::int64_t bytes_in(const TokenisedSplit& split) {
  std::int64_t bytes = bytes_in(split.ids) + bytes_in(split.type_ids) + bytes_in(split.offsets) +
                       bytes_in(split.classes) + bytes_in(split.scores) +
                       bytes_in(split.target_ids) + bytes_in(split.target_offsets) +
                       bytes_in(split.references);
  for (const std::string& text : split.references) bytes += static_cast<std::int64_t>(text.size());
  return bytes;
}

}  // namespace

DataStore::Tasks DataStore::get(const Key& key, const std::function<std::vector<TaskRun>()>& load) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.key == key; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    auto loaded = std::make_shared<const std::vector<TaskRun>>(load());
    std::int64_t bytes = 0;
    for (const TaskRun& task : *loaded) {
      bytes += bytes_in(task.train) + bytes_in(task.validation) + bytes_in(task.test);
    }
    kept_.push_front({key, std::move(loaded), bytes});
  }
  while (bytes_of_others() > most_bytes_) kept_.pop_back();
  return kept_.front().tasks;
}

std::int64_t DataStore::bytes_of_others() const {
  if (kept_.empty()) return 0;
  return std::accumulate(std::next(kept_.begin()), kept_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Kept& one) { return sum + one.bytes; });
}

}  // namespace petlab::trainer
