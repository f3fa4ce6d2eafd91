#include "trainer/training/data_store.h"

#include <memory>

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
  Tasks tasks = kept_.find(key);
  if (!tasks) {
    tasks = std::make_shared<const std::vector<TaskRun>>(load());
    std::int64_t bytes = 0;
    for (const TaskRun& task : *tasks) {
      bytes += bytes_in(task.train) + bytes_in(task.validation) + bytes_in(task.test);
    }
    kept_.add(key, tasks, bytes);
  }
  kept_.remove_surplus();
  return tasks;
}

}  // namespace petlab::trainer
