#pragma once

#include <filesystem>
#include <string>

namespace petlab::cli {

/// True if the value of `--task` is a data file (ending in tsv, csv or jsonl) rather than a task.
bool is_data_file(const std::string& name);

/// A starter declaration of a task for a data file.
struct TaskStarter {
  std::string name;  ///< task name: the file's name without the training data marker
  std::string text;  ///< the declaration with comments, in the format of docs/reference/tasks.md
};

/// Inspects a file of training data: its columns, its labels or scores, and whether validation and
/// test data are next to it. Paths in the declaration are relative to `folder`, its future
/// location. Throws base::Error if the file cannot be read or its lines are malformed, and
/// std::invalid_argument if no column contains texts, labels or scores.
TaskStarter starter_task(const std::filesystem::path& data, const std::filesystem::path& folder);

}  // namespace petlab::cli
