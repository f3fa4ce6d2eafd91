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

/// What a task asks for: one of a few classes, a number, or a text of its own.
enum class TaskKind { classification, regression, text };

/// How a row's target text becomes the example's target.
enum class TargetRule {
  label,  ///< classification: class_of() of the text
  sign,   ///< classification of a number: < 0 is class 0, > 0 is class 1, exact zeros are left out
  score,  ///< regression: the number itself
  text,   ///< text: the target as it is
};

/// How a file's rows are cut into columns. UTF-8 throughout, LF or CRLF, a byte-order mark skipped.
enum class FileFormat {
  tsv,      ///< tabs, no quoting (a double quote is a character like any other)
  csv,      ///< RFC 4180: commas, double quotes around a field, doubled inside
  jsonl,    ///< one JSON object a line; columns are its keys, and where there is none of that name,
            ///< dotted ones reach into objects ("translation.ro")
  aligned,  ///< a file of lines for each column, all with as many: columns are the files' endings,
            ///< "x" with the columns ro and en is x.ro and x.en
};

/// Which examples become training, validation and test data. Every permutation is torch's CPU
/// randperm with seed 42 whatever the trial's seed (reference/method.md, "GLUE protocol").
enum class SplitRule {
  given,       ///< the three files as they are
  glue_small,  ///< train = train file; validation file permuted: first half (floor) = validation,
               ///< the rest = test
  glue_large,  ///< train file permuted: first 1,000 = validation, the rest = train; validation file
               ///< = test (a train file with fewer than 2,000 rows gives half of them, floor)
  one_file,    ///< train file's n rows permuted: first h = validation, next h = test, the rest =
             ///< train, with h = min(1,000, n / 5 rounded down). Rows are permuted before zeros are
             ///< left out, so that tasks over one file never train on each other's test rows
};

/// One way in which a task's data may lie on disk. Built-in tasks may have several that say the
/// same in other formats: the first whose train file is there counts.
struct TaskLayout {
  FileFormat format = FileFormat::tsv;
  /// The first row names the columns (tsv, csv). Without it, columns are numbers from "0".
  bool header = true;
  /// Relative to the task's own folder or to a data folder. Empty where the split rule needs none.
  std::string train;
  std::string validation;
  std::string test;
  /// One or two columns: the text, or the first and the second of a pair.
  std::vector<std::string> text_columns;
  std::string target_column;
  /// Rows with fewer columns than needed are left out (QQP's official files have some), else
  /// refused.
  bool skip_short_rows = false;
  /// Columns of a row beyond those of the header, or of the first row without one, are ignored,
  /// else refused.
  bool ignore_extra_columns = false;
  bool operator==(const TaskLayout&) const = default;
};

/// How a text-to-text backbone sees the task.
struct TextToText {
  /// `{text1}` and `{text2}` stand for the texts: "mnli premise: {text1} hypothesis: {text2}".
  std::string source;
  /// One target text a class. Empty: the class's number, the score rounded to one decimal, or the
  /// text itself.
  std::vector<std::string> targets;
  bool operator==(const TextToText&) const = default;
};

/// A data set with its metrics: a row of the catalog, or a user's own file
/// (docs/reference/tasks.md).
struct TaskDeclaration {
  std::string name;
  /// One line for listings. Not part of the identity.
  std::string help;
  /// Where the files come from, for the message when one is missing. Not part of the identity.
  std::string source;
  TaskKind kind = TaskKind::classification;
  TargetRule target = TargetRule::label;
  /// Names of the classes, in the order of their numbers; empty for scores and texts.
  std::vector<std::string> classes;
  /// Bounds of the score, inclusive; a number outside is refused. Absent: any finite number.
  std::optional<double> score_min;
  std::optional<double> score_max;
  SplitRule split = SplitRule::given;
  /// At least one.
  std::vector<TaskLayout> layouts;
  /// Names of rows of metrics/metric_table.h, all reported.
  std::vector<std::string> metrics;
  /// The metrics whose mean on the validation data selects the best checkpoint; a subset of
  /// `metrics`. The first is the task's primary metric.
  std::vector<std::string> select_by;
  TextToText text_to_text;
  /// A user's own task: the absolute folder of its declaration, searched before the data folders.
  /// Not part of the identity.
  std::filesystem::path folder;
  bool operator==(const TaskDeclaration&) const = default;
};

/// The files on disk that one of a layout's names stands for: itself, or where the format is
/// aligned one for each text column and then one for the target.
std::vector<std::string> file_parts(const TaskLayout& layout, const std::string& name);

std::string_view to_string(TaskKind kind);
std::string_view to_string(TargetRule rule);
std::string_view to_string(FileFormat format);
std::string_view to_string(SplitRule rule);

/// The class of a label as a file writes it: the number of the class with that name. A JSON number
/// (`is_number`, "1" or "1.0") is compared with the names where one of these is a whole number, and
/// is the class's number otherwise. std::nullopt: no such class.
std::optional<std::size_t> class_of(const TaskDeclaration& task, std::string_view text,
                                    bool is_number = false);

/// "sha256:…" of all that decides what the task is: everything above but what says otherwise, and
/// of the layouts only the first. Part of the trial's identity.
std::string task_digest(const TaskDeclaration& task);

/// The declaration as `trial.json` carries it. task_from_json reads what to_json wrote; it throws
/// std::invalid_argument naming the key for unknown keys and wrong types.
nlohmann::ordered_json to_json(const TaskDeclaration& task);
TaskDeclaration task_from_json(const nlohmann::json& json);

/// Reads a user's own declaration (YAML, docs/reference/tasks.md). Throws base::FileProblemsError
/// (sweeps/sweep_file.h) with every problem, each `file:line: found …, expected …`.
TaskDeclaration load_task(const std::filesystem::path& file);
/// The same for text that was read already; `file` gives messages their name and the task its
/// folder.
TaskDeclaration read_task_text(std::string_view text, const std::filesystem::path& file);

/// The files of a task, found (where the format is aligned, what their names begin with). Empty
/// paths where the split rule needs none.
struct TaskFiles {
  std::size_t layout = 0;  // index into TaskDeclaration::layouts
  std::filesystem::path train;
  std::filesystem::path validation;
  std::filesystem::path test;
};

/// Looks in the task's folder, then in each of `data_folders`. The first layout that is complete
/// counts. Throws sweeps::Error naming the missing file, where it was looked for and where it comes
/// from.
TaskFiles find_task_files(const TaskDeclaration& task,
                          std::span<const std::filesystem::path> data_folders);

}  // namespace petlab::sweeps
