#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::sweeps {

/// The answer that a task requires: one of a few classes, a number, or free text.
enum class TaskKind { classification, regression, text };

/// How a row's target text is converted to the example's target.
enum class TargetRule {
  label,  ///< classification: class_of() of the text
  sign,   ///< classification of a number: < 0 is class 0, > 0 is class 1, exact zeros are skipped
  score,  ///< regression: the number
  text,   ///< text: the target text unchanged
};

/// How rows are split into columns. Always UTF-8, LF or CRLF; a byte order mark is skipped.
enum class FileFormat {
  tsv,      ///< tabs, no quoting (a double quote is a character like any other)
  csv,      ///< RFC 4180: commas, double quotes around a field, doubled inside
  jsonl,    ///< one JSON object per line; columns are its keys, or else dotted paths
            ///< ("translation.ro")
  aligned,  ///< one file of lines per column, all of equal length; columns are file endings: name
            ///< "x" with columns ro and en is x.ro and x.en
};

/// How examples are assigned to training, validation and test data. Permutations are torch's CPU
/// randperm with seed 42 for every trial (reference/method.md, "GLUE protocol").
enum class SplitRule {
  given,       ///< the three files unchanged
  glue_small,  ///< train = train file; validation file permuted: first half (floor) = validation,
               ///< the rest = test
  glue_large,  ///< train file permuted: first 1,000 = validation, the rest = train; validation file
               ///< = test (a train file with fewer than 2,000 rows gives half of them, floor)
  one_file,    ///< train file's n rows permuted: first h = validation, next h = test, the rest =
             ///< train, with h = min(1,000, n / 5 rounded down). Rows are permuted before zeros are
             ///< left out, so that tasks over one file never train on each other's test rows
};

/// A possible layout of a task's data on disk. Built-in tasks may have several for the same data in
/// other formats; the first with an existing train file counts.
struct TaskLayout {
  FileFormat format = FileFormat::tsv;
  /// The first row names the columns (tsv, csv). Without it, columns are numbers from "0".
  bool header = true;
  /// Relative to the task's folder or to a data folder. Empty if the split rule needs no such file.
  std::string train;
  std::string validation;
  std::string test;
  /// One or two columns: the text, or the two texts of a pair.
  std::vector<std::string> text_columns;
  std::string target_column;
  /// Skip rows with missing columns (QQP's official files have some); otherwise they are errors.
  bool skip_short_rows = false;
  /// Ignore columns beyond those of the header (without one, of the first row); otherwise they are
  /// errors.
  bool ignore_extra_columns = false;
  bool operator==(const TaskLayout&) const = default;
};

/// The task's form for text-to-text backbones.
struct TextToText {
  /// Template in which `{text1}` and `{text2}` are replaced: "mnli premise: {text1} hypothesis:
  /// {text2}".
  std::string source;
  /// One target text per class. If empty: the class's number, the score rounded to one decimal, or
  /// the text itself.
  std::vector<std::string> targets;
  bool operator==(const TextToText&) const = default;
};

/// A data set with its metrics: a row of the catalog, or a user's file (docs/reference/tasks.md).
struct TaskDeclaration {
  std::string name;
  /// One line for listings. Not part of the identity.
  std::string help;
  /// Origin of the files, for the message when one is missing. Not part of the identity.
  std::string source;
  TaskKind kind = TaskKind::classification;
  TargetRule target = TargetRule::label;
  /// Names of the classes, in the order of their numbers; empty for scores and texts.
  std::vector<std::string> classes;
  /// Inclusive bounds of the score; numbers outside are errors. Absent: any finite number.
  std::optional<double> score_min;
  std::optional<double> score_max;
  SplitRule split = SplitRule::given;
  /// At least one, except for a task of a worker's catalog, whose data only the worker knows.
  std::vector<TaskLayout> layouts;
  /// Names in metrics/metric_table.h; all are reported.
  std::vector<std::string> metrics;
  /// The metrics whose mean on the validation data selects the best checkpoint; a subset of
  /// `metrics`. The first is the task's primary metric.
  std::vector<std::string> select_by;
  TextToText text_to_text;
  /// For a user's task, the absolute folder of its declaration, searched before the data folders.
  /// Not part of the identity.
  std::filesystem::path folder;
  bool operator==(const TaskDeclaration&) const = default;
};

/// The files on disk for one of a layout's names: the name itself, or for aligned files one per
/// text column, then one for the target.
std::vector<std::string> file_parts(const TaskLayout& layout, const std::string& name);

std::string_view to_string(TaskKind kind);
std::string_view to_string(TargetRule rule);
std::string_view to_string(FileFormat format);
std::string_view to_string(SplitRule rule);

/// The class of a label in a file: the number of the class with that name. A JSON number
/// (`is_number`, "1" or "1.0") is compared with the names if any of them is an integer; otherwise
/// it is the class's number. std::nullopt if there is no such class.
std::optional<std::size_t> class_of(const TaskDeclaration& task, std::string_view text,
                                    bool is_number = false);

/// "sha256:…" of everything that defines the task: all members above not marked otherwise, and only
/// the first layout. Part of a trial's identity.
std::string task_digest(const TaskDeclaration& task);

/// The declaration in `trial.json`. task_from_json reads the output of to_json; it throws
/// std::invalid_argument naming the key for unknown keys and wrong types.
nlohmann::ordered_json to_json(const TaskDeclaration& task);
TaskDeclaration task_from_json(const nlohmann::json& json);

/// Reads a user's declaration (YAML, docs/reference/tasks.md). Throws base::FileProblemsError
/// (sweeps/sweep_file.h) with all problems, each `file:line: found …, expected …`.
TaskDeclaration load_task(const std::filesystem::path& file);
/// Like load_task() for text in memory. `file` is used in messages, and its folder is the task's.
TaskDeclaration read_task_text(std::string_view text, const std::filesystem::path& file);

/// The existing files of a task (for aligned files, their common prefix). Paths are empty if the
/// split rule does not need them.
struct TaskFiles {
  std::size_t layout = 0;  // index into TaskDeclaration::layouts
  std::filesystem::path train;
  std::filesystem::path validation;
  std::filesystem::path test;
};

/// Searches the task's folder, then each of `data_folders`. The first complete layout counts.
/// Throws sweeps::Error naming the missing file, the searched folders and the origin of the file.
TaskFiles find_task_files(const TaskDeclaration& task,
                          std::span<const std::filesystem::path> data_folders);

}  // namespace petlab::sweeps
