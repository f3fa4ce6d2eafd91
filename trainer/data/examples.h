#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/task.h"

namespace petlab::trainer {

/// An example as read from its file.
struct Example {
  std::string text;
  std::optional<std::string> pair;
  std::int32_t label = 0;   // index of the class among the task's labels; 0 for regression
  float score = 0;          // the target of regression
  std::string target = {};  // the target text, for text tasks; else empty
  bool operator==(const Example&) const = default;
};

/// The examples of one split, in the order of the split.
struct Split {
  std::vector<Example> examples;
  sweeps::TaskKind kind = sweeps::TaskKind::classification;
};

/// The three splits of a task.
struct TaskData {
  Split train;
  Split validation;
  Split test;
  std::vector<std::string> labels;  // names of the classes; empty for regression and text tasks
};

}  // namespace petlab::trainer
