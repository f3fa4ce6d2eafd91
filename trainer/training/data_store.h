#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/training/recently_used.h"
#include "trainer/training/task_run.h"

namespace petlab::trainer {

/// Everything that tokenised data depend on.
struct DataKey {
  std::string tasks;  // their declarations as JSON
  sweeps::DataConfig config;
  std::map<std::string, std::string> data;  // digests, by task
  std::string backbone;                     // digest, which covers the tokenizer
  bool operator==(const DataKey&) const = default;
};

/// Keeps tokenised data between trials, as RecentlyUsed.
class DataStore {
 public:
  using Key = DataKey;
  using Tasks = std::shared_ptr<const std::vector<TaskRun>>;

  explicit DataStore(std::int64_t most_bytes = kMostKeptBytes) : kept_(most_bytes) {}

  /// Returns the tasks for the key. Calls `load` if they are not kept; if it throws, keeps nothing
  /// new.
  Tasks get(const Key& key, const std::function<std::vector<TaskRun>()>& load);
  /// The size of the kept data, without those of the last call.
  std::int64_t bytes_of_others() const { return kept_.bytes_of_others(); }

 private:
  RecentlyUsed<Key, std::vector<TaskRun>> kept_;
};

}  // namespace petlab::trainer
