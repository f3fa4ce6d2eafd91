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

/// Keeps the tokenised data of trials from one to the next: those used last, and of the others, the
/// most recently used first, as many as have at most `most_bytes` together. For one thread.
class DataStore {
 public:
  /// What tokenised data are made of.
  struct Key {
    std::string tasks;  // their declarations as JSON
    sweeps::DataConfig config;
    std::map<std::string, std::string> data;  // digests by task
    std::string backbone;                     // digest, of the tokenizer among others
    bool operator==(const Key&) const = default;
  };
  using Tasks = std::shared_ptr<const std::vector<TaskRun>>;

  static constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
  explicit DataStore(std::int64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// The tasks of that key. Calls `load` for those that are not kept, and keeps nothing where it
  /// throws.
  Tasks get(const Key& key, const std::function<std::vector<TaskRun>()>& load);
  /// What is kept without those of the last call.
  std::int64_t bytes_of_others() const;

 private:
  struct Kept {
    Key key;
    Tasks tasks;
    std::int64_t bytes;
  };
  std::int64_t most_bytes_;
  std::list<Kept> kept_;  // the most recently used first
};

}  // namespace petlab::trainer
