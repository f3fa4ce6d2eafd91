#pragma once

#include <string>
#include <vector>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/data/examples.h"
#include "trainer/data/rows.h"

namespace petlab::trainer {

/// The rows of a task as the three splits of its SplitRule (sweeps/task.h), each cut to the
/// config's max_*_examples. Permutations are torch's with seed 42. Throws Error naming file and
/// line: an unknown label, a target that is no finite number or outside the task's bounds; naming
/// the file: a split without any example.
TaskData load_task_data(const sweeps::TaskDeclaration& task, const sweeps::TaskFiles& files,
                        const sweeps::DataConfig& config);

/// Which rows a split rule gives to each split, before anything is left out. Row numbers of the
/// file that the split comes from.
struct SplitRows {
  std::vector<std::int64_t> train;       // of the train file
  std::vector<std::int64_t> validation;  // of the train file, or (glue_small, given) its own
  std::vector<std::int64_t> test;        // of the train file, the validation file or its own
};
/// `train_rows` … are the numbers of rows of the files, 0 where the rule needs no such file.
SplitRows split_rows(sweeps::SplitRule rule, std::int64_t train_rows, std::int64_t validation_rows,
                     std::int64_t test_rows);

}  // namespace petlab::trainer
