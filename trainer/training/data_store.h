#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/training/task_run.h"

namespace petlab::trainer {

/// Caches tokenised data between trials. Always keeps the data used last; of the others, keeps the
/// most recently used, up to `most_bytes` in total. Not thread-safe.
class DataStore {
 public:
  /// Everything that the tokenised data depend on.
  struct Key {
    std::string tasks;  // their declarations as JSON
    sweeps::DataConfig config;
    std::map<std::string, std::string> data;  // digests, by task
    std::string backbone;                     // digest, which covers the tokenizer
    bool operator==(const Key&) const = default;
  };
  using Tasks = std::shared_ptr<const std::vector<TaskRun>>;

  static constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
  explicit DataStore(std::int64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// Returns the tasks for the key. Calls `load` if they are not cached; if it throws, caches
  /// nothing.
  Tasks get(const Key& key, const std::function<std::vector<TaskRun>()>& load);
  /// The size of the cached data, without those of the last call.
  std::int64_t bytes_of_others() const;

 private:
  struct Kept {
    Key key;
    Tasks tasks;
    std::int64_t bytes;
  };
  std::int64_t most_bytes_;
  std::list<Kept> kept_;  // most recently used first
};

}  // namespace petlab::trainer
