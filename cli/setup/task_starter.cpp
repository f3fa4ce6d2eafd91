#include "cli/setup/task_starter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/line_ends.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/table_text.h"
#include "base/utf8.h"
#include "cli/setup/yaml_text.h"
#include "sweeps/catalog.h"

namespace petlab::cli {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 28;
constexpr std::size_t kMostLabels = 1000;  // in a declaration
constexpr std::size_t kMostNumbers = 20;   // with more distinct numbers, a column holds scores
constexpr std::size_t kLabelsShown = 20;   // listed with their counts in the comment

// Usual names of the target column, most specific first.
constexpr std::array<std::string_view, 14> kTargetNames = {
    "label",  "labels", "class", "category", "sentiment", "rating", "stars",
    "target", "score",  "gold",  "answer",   "polarity",  "y",      "similarity"};
constexpr std::array<std::string_view, 4> kNumberingNames = {"id", "idx", "index", "row"};

struct DataColumn {
  std::string name;
  std::map<std::string, std::size_t> counts;  // by value
  std::size_t values = 0;
  std::size_t numbers = 0;
  std::size_t fractions = 0;  // numbers that are not integers
  std::size_t with_spaces = 0;
  std::size_t bytes = 0;
  double smallest = HUGE_VAL;
  double largest = -HUGE_VAL;

  bool is_numeric() const { return values > 0 && numbers == values; }
  // True for running text: most values have several words, and few repeat.
  bool is_text() const {
    return !is_numeric() && 2 * with_spaces > values && 2 * counts.size() > values;
  }
  // True for a small set of repeated values.
  bool is_labels() const {
    return fractions == 0 && counts.size() >= 2 &&
           counts.size() <= (is_numeric() ? kMostNumbers : kMostLabels) &&
           2 * counts.size() <= values;
  }
  bool is_scores() const {
    return is_numeric() && counts.size() >= 2 && (fractions > 0 || counts.size() > kMostNumbers);
  }
};

struct Table {
  std::string format;
  bool header = true;
  std::size_t rows = 0;
  std::vector<DataColumn> columns;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

void add_value(DataColumn& column, const std::string& value) {
  ++column.values;
  ++column.counts[value];
  column.bytes += value.size();
  column.with_spaces += value.find(' ') == std::string::npos ? 0 : 1;
  if (const std::optional<double> number = number_in(value)) {
    ++column.numbers;
    column.fractions += *number == std::trunc(*number) ? 0 : 1;
    column.smallest = std::min(column.smallest, *number);
    column.largest = std::max(column.largest, *number);
  }
}

std::string format_of(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  return ending.empty() ? ending : ending.substr(1);
}

// True unless the first row looks like the others: it contains a number, or a value that occurs
// again in its column.
bool is_header(const std::vector<base::TableRecord>& records) {
  const std::vector<std::string>& first = records.front().fields;
  std::set<std::string> names;
  for (std::size_t at = 0; at < first.size(); ++at) {
    if (first[at].empty() || number_in(first[at]) || !names.insert(first[at]).second) return false;
    for (std::size_t row = 1; row < records.size(); ++row) {
      const std::vector<std::string>& fields = records[row].fields;
      if (at < fields.size() && fields[at] == first[at]) return false;
    }
  }
  return true;
}

Table read_delimited(std::string_view text, const std::string& format, const std::string& file) {
  const auto refuse = [&](std::int64_t line, const std::string& what) {
    throw base::Error(fmt::format("{}:{}: {}", file, line, what));
  };
  const std::vector<base::TableRecord> records =
      format == "csv" ? base::cut_csv(text, refuse) : base::cut_tsv(text);
  if (records.empty()) throw base::Error(file + ": is empty, expected examples");
  Table table;
  table.header = is_header(records);
  for (std::size_t at = 0; at < records.front().fields.size(); ++at) {
    table.columns.emplace_back().name =
        table.header ? records.front().fields[at] : std::to_string(at);
  }
  for (const base::TableRecord& record : std::span(records).subspan(table.header ? 1 : 0)) {
    if (record.fields.size() != table.columns.size()) {
      refuse(record.line, fmt::format("found {} columns, expected {}", record.fields.size(),
                                      table.columns.size()));
    }
    for (std::size_t at = 0; at < table.columns.size(); ++at) {
      add_value(table.columns[at], record.fields[at]);
    }
    ++table.rows;
  }
  return table;
}

// Collects texts and numbers, also from nested objects: {"a": {"b": 1}} has the column a.b.
void add_values(Table& table, const std::string& before, const nlohmann::ordered_json& object) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = before + key;
    if (value.is_object()) add_values(table, name + ".", value);
    if (!value.is_string() && !value.is_number()) continue;
    auto column = std::find_if(table.columns.begin(), table.columns.end(),
                               [&](const DataColumn& other) { return other.name == name; });
    if (column == table.columns.end()) {
      column = table.columns.insert(column, DataColumn());
      column->name = name;
    }
    add_value(*column, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

Table read_json_lines(std::string_view text, const std::string& file) {
  Table table;
  base::TextLines lines(text);
  for (std::string_view line; lines.next(line);) {
    const nlohmann::json parsed = base::shallow_json_or_none(std::string(line));
    if (!parsed.is_object()) {
      throw base::Error(fmt::format("{}:{}: found {}, expected a JSON object", file, lines.number(),
                                    parsed.is_discarded() ? "no JSON" : base::shown(parsed)));
    }
    add_values(table, "", nlohmann::ordered_json::parse(line));
    ++table.rows;
  }
  // Columns missing in some rows cannot be used.
  std::erase_if(table.columns,
                [&](const DataColumn& column) { return column.values != table.rows; });
  return table;
}

Table read_table(const std::filesystem::path& data) {
  const std::string file = data.string();
  const std::string bytes = base::read_file(data, kMostBytes);
  const std::string_view text = base::without_byte_order_mark(bytes);
  if (base::lines_end_with_cr(text)) {
    throw base::Error(fmt::format("{}: {}", file, base::kLinesEndWithCr));
  }
  if (base::first_invalid_utf8(text)) throw base::Error(file + ": is not UTF-8");
  const std::string format = format_of(data);
  Table table =
      format == "jsonl" ? read_json_lines(text, file) : read_delimited(text, format, file);
  table.format = format;
  if (table.rows == 0) throw base::Error(file + ": contains no examples");
  return table;
}

const DataColumn* find_target(const Table& table) {
  const auto fits = [](const DataColumn& column) {
    return column.is_labels() || column.is_scores();
  };
  for (const std::string_view name : kTargetNames) {
    for (const DataColumn& column : table.columns) {
      if (lower(column.name) == name && fits(column)) return &column;
    }
  }
  const DataColumn* best = nullptr;
  for (const DataColumn& column : table.columns) {
    const bool numbering = std::find(kNumberingNames.begin(), kNumberingNames.end(),
                                     lower(column.name)) != kNumberingNames.end();
    if (!fits(column) || numbering) continue;
    if (best == nullptr || column.counts.size() < best->counts.size()) best = &column;
  }
  return best;
}

// The text columns: the pair if there are exactly two, else the one with the longest texts.
std::vector<const DataColumn*> find_texts(const Table& table, const DataColumn* target) {
  std::vector<const DataColumn*> texts;
  for (const DataColumn& column : table.columns) {
    if (&column != target && column.is_text()) texts.push_back(&column);
  }
  if (texts.size() <= 2) return texts;
  return {*std::max_element(texts.begin(), texts.end(),
                            [](const auto* a, const auto* b) { return a->bytes < b->bytes; })};
}

std::string list_of_names(const std::vector<DataColumn>& columns) {
  std::vector<std::string> names;
  for (const DataColumn& column : columns) names.push_back(column.name);
  return base::list_in_quotes(names);
}

// Numeric labels in ascending order, so that class 0 is the smallest; other labels alphabetically.
std::vector<std::string> ordered_labels(const DataColumn& column) {
  std::vector<std::string> labels;
  for (const auto& [label, count] : column.counts) labels.push_back(label);
  if (column.is_numeric()) {
    std::sort(labels.begin(), labels.end(), [](const std::string& a, const std::string& b) {
      return number_in(a).value() < number_in(b).value();
    });
  }
  return labels;
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(yaml_text(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string target_text(const DataColumn& target) {
  if (target.is_scores()) {
    return fmt::format(
        "score: {{min: {}, max: {}}}  # numbers outside are refused\n"
        "metrics: [pearson, spearman]\n",
        target.smallest, target.largest);
  }
  const std::vector<std::string> labels = ordered_labels(target);
  std::string counts;
  for (const std::string& label : labels) {
    counts += fmt::format("{}{}", counts.empty() ? "" : ", ", target.counts.at(label));
  }
  const bool binary = labels.size() == 2;
  return fmt::format(
      "labels: {}{}\n"
      "metrics: {}\n"
      "select_by: [{}]  # chooses the best step, on the validation data\n",
      yaml_list(labels), labels.size() > kLabelsShown ? "" : fmt::format("  # {} examples", counts),
      binary ? "[accuracy, f1]  # f1 is that of the second label" : "[accuracy, f1-macro]",
      binary ? "accuracy" : "f1-macro");
}

// The position of "train" as a separate word in a name; npos if there is none.
std::size_t train_in(const std::string& stem) {
  constexpr std::string_view kBetween = "-_.";
  const std::size_t at = stem.rfind("train");
  if (at == std::string::npos) return at;
  const bool begins = at == 0 || kBetween.find(stem[at - 1]) != std::string_view::npos;
  const bool ends = at + 5 == stem.size() || kBetween.find(stem[at + 5]) != std::string_view::npos;
  return begins && ends ? at : std::string::npos;
}

// The file next to `data` whose name has one of `words` in place of "train", or at its end.
std::optional<std::filesystem::path> sibling(const std::filesystem::path& data,
                                             std::initializer_list<std::string_view> words) {
  const std::string stem = data.stem().string();
  const std::size_t at = train_in(stem);
  for (const std::string_view word : words) {
    std::vector<std::string> stems;
    if (at != std::string::npos) {
      stems.push_back(std::string(stem).replace(at, 5, word));
    } else {
      for (const char* between : {"-", "_", "."})
        stems.push_back(stem + between + std::string(word));
    }
    for (const std::string& name : stems) {
      std::filesystem::path file = data.parent_path() / (name + data.extension().string());
      std::error_code error;
      if (std::filesystem::is_regular_file(file, error)) return file;
    }
  }
  return std::nullopt;
}

std::string task_name(const std::filesystem::path& data) {
  std::string name = data.stem().string();
  if (const std::size_t at = train_in(name); at != std::string::npos) name.erase(at, 5);
  while (!name.empty() && std::string_view("-_.").find(name.back()) != std::string_view::npos) {
    name.pop_back();
  }
  if (name.empty()) name = std::filesystem::absolute(data).parent_path().filename().string();
  name = name_from(std::move(name));
  if (name.empty()) name = "task";
  return sweeps::find_task(name) == nullptr ? name : "my-" + name;
}

std::string files_text(const std::filesystem::path& data, const std::filesystem::path& folder) {
  // An empty `folder` cannot be made absolute, hence the added name.
  const std::filesystem::path here =
      std::filesystem::absolute(folder / "declaration").lexically_normal().parent_path();
  const auto named = [&](const std::filesystem::path& file) {
    return yaml_text(
        std::filesystem::absolute(file).lexically_normal().lexically_relative(here).string());
  };
  const auto validation = sibling(data, {"validation", "valid", "val", "dev"});
  const auto test = sibling(data, {"test"});
  if (validation && test) {
    return fmt::format("files: {{train: {}, validation: {}, test: {}}}\nsplit: given\n",
                       named(data), named(*validation), named(*test));
  }
  if (validation) {
    return fmt::format(
        "files: {{train: {}, validation: {}}}\n"
        "split: glue_small  # half of the validation file is test data\n",
        named(data), named(*validation));
  }
  return fmt::format(
      "files: {{train: {}}}\n"
      "split: one_file  # petlab splits off validation and test data\n",
      named(data));
}

}  // namespace

bool is_data_file(const std::string& name) {
  return name.ends_with(".tsv") || name.ends_with(".csv") || name.ends_with(".jsonl");
}

TaskStarter starter_task(const std::filesystem::path& data, const std::filesystem::path& folder) {
  const Table table = read_table(data);
  const DataColumn* const target = find_target(table);
  const std::vector<const DataColumn*> texts = find_texts(table, target);
  if (target == nullptr || texts.empty()) {
    throw std::invalid_argument(fmt::format(
        "{}: found no column with {} among {}, expected texts and labels or scores; declare such a "
        "task by hand (docs/reference/tasks.md)",
        data.string(), target == nullptr ? "labels or scores" : "texts",
        list_of_names(table.columns)));
  }
  TaskStarter starter;
  starter.name = task_name(data);
  std::vector<std::string> text_names;
  for (const DataColumn* text : texts) text_names.push_back(text->name);
  starter.text = fmt::format(
      "# From {} rows of {}: check each line. docs/reference/tasks.md describes the keys.\n"
      "task: {}\n"
      "about: {} of {}  # for listings\n"
      "{}"
      "format: {}\n"
      "{}"
      "# columns of the file: {}\n"
      "columns: {{text: {}, {}: {}}}\n"
      "{}",
      table.rows, base::printable(data.filename().string()), yaml_text(starter.name),
      target->is_scores() ? "scores" : "labels", yaml_text(starter.name), files_text(data, folder),
      table.format,
      table.format == "jsonl" ? std::string()
                              : fmt::format("header: {}\n", table.header ? "true" : "false"),
      list_of_names(table.columns), yaml_list(text_names), target->is_scores() ? "score" : "label",
      yaml_text(target->name), target_text(*target));
  return starter;
}

}  // namespace petlab::cli
