#pragma once

#include <filesystem>
#include <string>

namespace petlab::cli {

/// True if `--task` names a file of data (by its ending: tsv, csv, jsonl) and not a task.
bool is_data_file(const std::string& name);

/// A declaration of the task in a data file.
struct TaskStarter {
  std::string name;  ///< of the task: the file's, without what marks it as training data
  std::string text;  ///< the declaration with comments, as docs/reference/tasks.md describes it
};

/// Inspects a file of training data: its columns, its labels or scores, and whether validation and
/// test data are next to it. `folder` is where the declaration will be, so paths in it are relative
/// to it. Throws base::Error if the file cannot be read or its lines are malformed, and
/// std::invalid_argument if no column holds texts, labels or scores.
TaskStarter starter_task(const std::filesystem::path& data, const std::filesystem::path& folder);

}  // namespace petlab::cli
