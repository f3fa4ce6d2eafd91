#pragma once

#include <string>
#include <vector>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/data/examples.h"
#include "trainer/data/rows.h"

namespace petlab::trainer {

/// Divides the rows of a task into three splits by its SplitRule (sweeps/task.h), each limited to
/// the config's max_*_examples. Permutations are torch's with seed 42. Throws Error, naming file
/// and line, for an unknown label or a target that is not finite or is outside the task's bounds,
/// and, naming the file, for a split without examples.
TaskData load_task_data(const sweeps::TaskDeclaration& task, const sweeps::TaskFiles& files,
                        const sweeps::DataConfig& config);

/// The row numbers that a split rule assigns to each split, before any rows are left out. They
/// refer to the file that the split comes from.
struct SplitRows {
  std::vector<std::int64_t> train;       // of the train file
  std::vector<std::int64_t> validation;  // of the train or (glue_small, given) validation file
  std::vector<std::int64_t> test;        // of the train, validation or test file
};
/// `train_rows` … are the numbers of rows of the files; 0 for a file that the rule does not need.
SplitRows split_rows(sweeps::SplitRule rule, std::int64_t train_rows, std::int64_t validation_rows,
                     std::int64_t test_rows);

}  // namespace petlab::trainer
