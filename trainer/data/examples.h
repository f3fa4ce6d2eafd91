#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/task.h"

namespace petlab::trainer {

/// One example as its file has it.
struct Example {
  std::string text;
  std::optional<std::string> pair;
  std::int32_t label = 0;   // class, by the order of the task's labels; 0 for a score
  float score = 0;          // the target of regression
  std::string target = {};  // what is to be written, of a task that asks for texts; else empty
  bool operator==(const Example&) const = default;
};

/// The examples of one split, in the order of the split.
struct Split {
  std::vector<Example> examples;
  sweeps::TaskKind kind = sweeps::TaskKind::classification;
};

/// What a trial trains on, selects by and reports.
struct TaskData {
  Split train;
  Split validation;
  Split test;
  std::vector<std::string> labels;  // names of the classes; empty for scores and texts
};

}  // namespace petlab::trainer
