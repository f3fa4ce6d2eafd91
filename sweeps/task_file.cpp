#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/file_problems.h"
#include "base/files.h"
#include "base/shown.h"
#include "base/yaml_tree.h"
#include "metrics/metric_table.h"
#include "sweeps/catalog.h"
#include "sweeps/task.h"

namespace petlab::sweeps {
namespace {

constexpr std::array kTaskKeys = {"task",          "about",     "source",      "files",
                                  "split",         "format",    "header",      "skip_short_rows",
                                  "extra_columns", "columns",   "labels",      "score",
                                  "metrics",       "select_by", "text_to_text"};

std::string one_of(const std::vector<std::string>& known, const std::string& word) {
  return with_nearest(fmt::format("one of {}", fmt::join(known, ", ")), word, known);
}

class TaskReader {
 public:
  TaskReader(const std::filesystem::path& file, base::FileProblems& problems)
      : problems_(problems) {
    task_.folder = std::filesystem::absolute(file).parent_path().lexically_normal();
  }

  TaskDeclaration read(const base::YamlNode& root) {
    if (!root.is_map()) {
      if (problems_.empty()) problems_.add(root.line, "the file", base::shown(root), "a task");
      return std::move(task_);
    }
    check_keys("a task", root, {kTaskKeys.begin(), kTaskKeys.end()});
    task_.name = text(root, "task", true);
    check_name(root);
    task_.help = text(root, "about", false);
    task_.source = text(root, "source", false);
    read_columns(root);
    read_split_and_files(root);
    flag(root, "header", layout_.header);
    flag(root, "skip_short_rows", layout_.skip_short_rows);
    read_extra_columns(root);
    check_rows(root);
    read_labels(root);
    read_score(root);
    read_metrics(root);
    read_text_to_text(root);
    task_.layouts = {std::move(layout_)};
    return std::move(task_);
  }

 private:
  void check_keys(const std::string& what, const base::YamlNode& map,
                  const std::vector<std::string>& known) {
    for (const auto& [key, line] : map.keys) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      problems_.add(line, what, "the key " + base::in_quotes(key), one_of(known, key));
    }
  }

  std::string text(const base::YamlNode& map, const std::string& key, bool needed,
                   const std::string& where = "") {
    const base::YamlNode* const node = map.find(key);
    const bool absent = node == nullptr || node->is_null();
    if (absent && !needed) return "";
    if (absent || !node->is_scalar() || (needed && node->text.empty())) {
      problems_.add(node == nullptr ? map.line : node->line, where + key,
                    absent ? "nothing" : base::shown(*node), "text");
      return "";
    }
    return node->text;
  }

  // Reads a text or a list of texts.
  std::vector<std::string> texts(const std::string& name, const base::YamlNode& node) {
    std::vector<std::string> list;
    const std::vector<base::YamlNode> one{node.is_sequence() ? base::YamlNode() : node};
    for (const base::YamlNode& item : node.is_sequence() ? node.items : one) {
      if (item.is_scalar()) {
        list.push_back(item.text);
      } else {
        problems_.add(item.line, name, base::shown(item), "text");
      }
    }
    return list;
  }

  void flag(const base::YamlNode& map, const std::string& key, bool& target) {
    const base::YamlNode* const node = map.find(key);
    if (node == nullptr) return;
    const nlohmann::json value = to_json(*node);
    if (value.is_boolean()) {
      target = value.get<bool>();
    } else {
      problems_.add(node->line, key, base::shown(*node), "true or false");
    }
  }

  void read_extra_columns(const base::YamlNode& root) {
    const base::YamlNode* const node = root.find("extra_columns");
    if (node == nullptr) return;
    layout_.ignore_extra_columns = node->text == "ignore";
    if (!layout_.ignore_extra_columns && node->text != "refuse") {
      problems_.add(node->line, "extra_columns", base::shown(*node), "ignore or refuse");
    }
  }

  const base::YamlNode* group(const base::YamlNode& map, const std::string& key, bool needed,
                              const std::string& wanted) {
    const base::YamlNode* const node = map.find(key);
    if (node != nullptr && node->is_map()) return node;
    if (node != nullptr) {
      problems_.add(node->line, key, base::shown(*node), wanted);
    } else if (needed) {
      problems_.add(map.line, key, "nothing", wanted);
    }
    return nullptr;
  }

  void check_name(const base::YamlNode& root) {
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.';
    };
    const std::string& name = task_.name;
    if (name.empty()) return;
    const int line = root.find("task")->line;
    if (!std::all_of(name.begin(), name.end(), allowed) || name.size() > 100) {
      problems_.add(line, "task", base::shown(*root.find("task")),
                    "at most 100 letters, digits, '-', '_' and '.'");
    } else if (find_task(name) != nullptr) {
      problems_.add(line, "task", base::shown(*root.find("task")), "a name of no built-in task");
    }
  }

  void read_columns(const base::YamlNode& root) {
    const base::YamlNode* const columns =
        group(root, "columns", true, "{text: …, label: …} (or score, sign or target, for label)");
    if (columns == nullptr) return;
    check_keys("columns", *columns, {"text", "label", "score", "sign", "target"});
    if (const base::YamlNode* const node = columns->find("text")) {
      layout_.text_columns = texts("columns.text", *node);
    }
    if (layout_.text_columns.empty() || layout_.text_columns.size() > 2) {
      problems_.add(columns->line, "columns.text",
                    fmt::format("{} columns", layout_.text_columns.size()), "one column or two");
    }
    int targets = 0;
    for (const TargetRule rule :
         {TargetRule::label, TargetRule::score, TargetRule::sign, TargetRule::text}) {
      const std::string key = rule == TargetRule::text ? "target" : std::string(to_string(rule));
      if (columns->find(key) == nullptr) continue;
      ++targets;
      task_.target = rule;
      layout_.target_column = text(*columns, key, true, "columns.");
    }
    if (targets != 1) {
      problems_.add(columns->line, "columns",
                    fmt::format("{} of label, score, sign and target", targets), "one of them");
    }
    task_.kind = task_.target == TargetRule::score  ? TaskKind::regression
                 : task_.target == TargetRule::text ? TaskKind::text
                                                    : TaskKind::classification;
  }

  void read_split_and_files(const base::YamlNode& root) {
    if (const base::YamlNode* const node = root.find("split")) {
      bool known = false;
      for (const SplitRule rule :
           {SplitRule::given, SplitRule::glue_small, SplitRule::glue_large, SplitRule::one_file}) {
        if (node->text != to_string(rule)) continue;
        task_.split = rule;
        known = true;
      }
      if (!known) {
        problems_.add(node->line, "split", base::shown(*node),
                      "given, glue_small, glue_large or one_file");
      }
    }
    const base::YamlNode* const files =
        group(root, "files", true, "{train: …, validation: …, test: …}");
    if (files == nullptr) return;
    check_keys("files", *files, {"train", "validation", "test"});
    const bool wants_validation = task_.split != SplitRule::one_file;
    const bool wants_test = task_.split == SplitRule::given;
    layout_.train = text(*files, "train", true, "files.");
    layout_.validation = text(*files, "validation", wants_validation, "files.");
    layout_.test = text(*files, "test", wants_test, "files.");
    for (const auto& [key, wanted] :
         {std::pair("validation", wants_validation), std::pair("test", wants_test)}) {
      const base::YamlNode* const node = files->find(key);
      if (wanted || node == nullptr || node->is_null()) continue;
      problems_.add(node->line, fmt::format("files.{}", key), base::shown(*node),
                    fmt::format("no value with split {}", to_string(task_.split)));
    }
    read_format(root, *files);
  }

  void read_format(const base::YamlNode& root, const base::YamlNode& files) {
    const base::YamlNode* const node = root.find("format");
    const std::size_t dot = layout_.train.rfind('.');
    const std::string word = node != nullptr            ? node->text
                             : dot == std::string::npos ? ""
                                                        : layout_.train.substr(dot + 1);
    for (const FileFormat format :
         {FileFormat::tsv, FileFormat::csv, FileFormat::jsonl, FileFormat::aligned}) {
      if (word != to_string(format)) continue;
      if (format == FileFormat::aligned && node == nullptr)
        break;  // the name only happens to end so
      layout_.format = format;
      return;
    }
    if (node == nullptr && layout_.train.empty()) return;  // reported
    problems_.add(
        node == nullptr ? files.line : node->line, "format",
        node == nullptr ? fmt::format("none, and the file {}", layout_.train) : base::shown(*node),
        "tsv, csv, jsonl or aligned");
  }

  // Line files have no rows with columns, and objects have no extra columns.
  void check_rows(const base::YamlNode& root) {
    const bool aligned = layout_.format == FileFormat::aligned;
    const bool has_columns = layout_.format == FileFormat::tsv || layout_.format == FileFormat::csv;
    for (const auto& [key, has_it] :
         {std::pair("header", !aligned), std::pair("skip_short_rows", !aligned),
          std::pair("extra_columns", has_columns)}) {
      const base::YamlNode* const node = root.find(key);
      if (node == nullptr || has_it) continue;
      problems_.add(node->line, key, base::shown(*node),
                    fmt::format("no value with format {}", to_string(layout_.format)));
    }
  }

  void read_labels(const base::YamlNode& root) {
    const base::YamlNode* const node = root.find("labels");
    if (task_.kind != TaskKind::classification) {
      if (node != nullptr) {
        problems_.add(node->line, "labels", base::shown(*node),
                      fmt::format("no value with columns.{}",
                                  task_.kind == TaskKind::text ? "target" : "score"));
      }
      return;
    }
    if (node != nullptr) {
      task_.classes = texts("labels", *node);
    } else if (task_.target == TargetRule::sign) {
      task_.classes = {"negative", "positive"};
    }
    const bool is_sign = task_.target == TargetRule::sign;
    const std::size_t most = is_sign ? 2 : 1000;
    const int line = node == nullptr ? root.line : node->line;
    if (task_.classes.size() < 2 || task_.classes.size() > most) {
      problems_.add(line, "labels", fmt::format("{} labels", task_.classes.size()),
                    is_sign ? "two" : "2 to 1000");
    }
    std::vector<std::string> sorted = task_.classes;
    std::sort(sorted.begin(), sorted.end());
    if (const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
        repeated != sorted.end()) {
      problems_.add(line, "labels", base::in_quotes(*repeated) + " twice", "each label once");
    }
  }

  void read_score(const base::YamlNode& root) {
    const base::YamlNode* const score = root.find("score");
    if (score == nullptr) return;
    const bool has_number = task_.target == TargetRule::score || task_.target == TargetRule::sign;
    if (!has_number || !score->is_map()) {
      problems_.add(score->line, "score", base::shown(*score),
                    !score->is_map()               ? "{min: NUMBER, max: NUMBER}"
                    : task_.kind == TaskKind::text ? "no value with columns.target"
                                                   : "no value with columns.label");
      return;
    }
    check_keys("score", *score, {"min", "max"});
    for (auto& [key, bound] :
         {std::pair("min", &task_.score_min), std::pair("max", &task_.score_max)}) {
      const base::YamlNode* const node = score->find(key);
      if (node == nullptr) continue;
      const nlohmann::json value = to_json(*node);
      if (value.is_number()) {
        *bound = value.get<double>();
      } else {
        problems_.add(node->line, fmt::format("score.{}", key), base::shown(*node), "a number");
      }
    }
    if (task_.score_min && task_.score_max && *task_.score_min >= *task_.score_max) {
      problems_.add(score->line, "score",
                    fmt::format("min {} and max {}", *task_.score_min, *task_.score_max),
                    "min < max");
    }
  }

  void read_metrics(const base::YamlNode& root) {
    const metrics::MetricInput input =
        task_.kind == TaskKind::classification ? metrics::MetricInput::labels
        : task_.kind == TaskKind::regression   ? metrics::MetricInput::scores
                                               : metrics::MetricInput::text;
    std::vector<std::string> known;
    for (const metrics::MetricRow& row : metrics::metric_table()) {
      if (row.input == input) known.emplace_back(row.name);
    }
    const auto read = [&](const char* key, const std::vector<std::string>& allowed,
                          const base::YamlNode& node) {
      std::vector<std::string> list = texts(key, node);
      for (const std::string& name : list) {
        if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
        problems_.add(node.line, key, base::in_quotes(name), one_of(allowed, name));
      }
      if (list.empty()) problems_.add(node.line, key, "no metric", "at least one");
      return list;
    };
    const base::YamlNode* const listed = root.find("metrics");
    if (listed == nullptr) {
      problems_.add(root.line, "metrics", "nothing", "a list of metrics");
      return;
    }
    task_.metrics = read("metrics", known, *listed);
    const base::YamlNode* const chosen = root.find("select_by");
    task_.select_by = chosen == nullptr ? task_.metrics : read("select_by", task_.metrics, *chosen);
    if (!task_.metrics.empty() && task_.classes.size() > 2) {
      check_binary(*listed);
    }
  }

  // F1 is the score of the second class, so it is undefined for three.
  void check_binary(const base::YamlNode& node) {
    if (std::find(task_.metrics.begin(), task_.metrics.end(), "f1") == task_.metrics.end()) return;
    problems_.add(node.line, "metrics", fmt::format("f1 with {} labels", task_.classes.size()),
                  "two labels, or other metrics");
  }

  void read_text_to_text(const base::YamlNode& root) {
    const base::YamlNode* const node = root.find("text_to_text");
    if (node == nullptr) {
      task_.text_to_text.source = task_.name;
      for (std::size_t i = 0; i < layout_.text_columns.size(); ++i) {
        const std::string& column = layout_.text_columns[i];
        // The last part of "translation.ro": the enclosing objects give its place, not its meaning.
        const bool inner = task_.kind == TaskKind::text && layout_.format == FileFormat::jsonl;
        const std::size_t dot = inner ? column.rfind('.') : std::string::npos;
        task_.text_to_text.source += fmt::format(
            " {}: {{text{}}}", dot == std::string::npos ? column : column.substr(dot + 1), i + 1);
      }
      return;
    }
    if (!node->is_map()) {
      problems_.add(node->line, "text_to_text", base::shown(*node), "{source: …, targets: […]}");
      return;
    }
    check_keys("text_to_text", *node, {"source", "targets"});
    task_.text_to_text.source = text(*node, "source", true, "text_to_text.");
    for (std::size_t i = 0; i < layout_.text_columns.size(); ++i) {
      const std::string place = fmt::format("{{text{}}}", i + 1);
      if (task_.text_to_text.source.find(place) != std::string::npos) continue;
      problems_.add(node->line, "text_to_text.source", fmt::format("no {}", place),
                    "a place for every text column");
    }
    const base::YamlNode* const targets = node->find("targets");
    if (targets == nullptr) return;
    task_.text_to_text.targets = texts("text_to_text.targets", *targets);
    if (task_.kind != TaskKind::classification) {
      problems_.add(targets->line, "text_to_text.targets", base::shown(*targets),
                    "no value without labels");
      return;
    }
    if (task_.text_to_text.targets.size() != task_.classes.size()) {
      problems_.add(targets->line, "text_to_text.targets",
                    fmt::format("{} targets", task_.text_to_text.targets.size()),
                    fmt::format("{}, one per label", task_.classes.size()));
    }
  }

  base::FileProblems& problems_;
  TaskDeclaration task_;
  TaskLayout layout_;
};

}  // namespace

TaskDeclaration load_task(const std::filesystem::path& file) {
  return read_task_text(base::read_file(file, 4 * base::kMaxYamlBytes), file);
}

TaskDeclaration read_task_text(std::string_view text, const std::filesystem::path& file) {
  base::FileProblems problems(file);
  const base::YamlNode root = base::parse_yaml(text, problems);
  TaskDeclaration task = TaskReader(file, problems).read(root);
  problems.throw_if_any();
  return task;
}

}  // namespace petlab::sweeps
