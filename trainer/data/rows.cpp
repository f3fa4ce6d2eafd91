#include "trainer/data/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/line_ends.h"
#include "base/shown.h"
#include "base/table_text.h"
#include "base/trimmed.h"
#include "base/utf8.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/shallow_json.h"

namespace petlab::trainer {
namespace {

using base::TableRecord;
using base::TextLines;
using sweeps::FileFormat;
using sweeps::TaskLayout;

[[noreturn]] void refuse(const std::string& file, std::int64_t line, const std::string& message) {
  throw Error(fmt::format("{}:{}: {}", file, line, message));
}

void check_text(std::string_view text, const std::string& file) {
  if (base::lines_end_with_cr(text))
    throw Error(fmt::format("{}: {}", file, base::kLinesEndWithCr));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw Error(fmt::format("{}: begins with the byte order mark of UTF-16, expected UTF-8", file));
  }
  const auto invalid = base::first_invalid_utf8(text);
  if (!invalid) return;
  const std::string_view before = text.substr(0, *invalid);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  refuse(file, line,
         fmt::format("byte {} of the line is not UTF-8 (0x{:02X})", *invalid - line_begin + 1,
                     static_cast<unsigned char>(text[*invalid])));
}

/// The index of a column by its name in the header. Without a header, the name is the number.
std::size_t column_number(const TaskLayout& layout, const std::vector<std::string>& header,
                          const std::string& name, const std::string& file) {
  if (layout.header) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) {
      refuse(file, 1,
             fmt::format("has no column {}, found {}", base::in_quotes(name),
                         base::list_in_quotes(header)));
    }
    if (std::find(found + 1, header.end(), name) != header.end()) {
      refuse(file, 1,
             fmt::format("has two columns {}, expected each name once", base::in_quotes(name)));
    }
    return static_cast<std::size_t>(found - header.begin());
  }
  constexpr std::size_t kMostDigits = 6;
  if (name.empty() || name.size() > kMostDigits ||
      name.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(
        fmt::format("{}: column {} is not a number, expected one for a file without a header", file,
                    base::in_quotes(name)));
  }
  return static_cast<std::size_t>(std::stoul(name));
}

std::vector<DataRow> rows_of(const TaskLayout& layout, std::vector<TableRecord> records,
                             const std::string& file) {
  std::vector<DataRow> rows;
  if (records.empty()) throw Error(fmt::format("{}: is empty, expected examples", file));
  const std::vector<std::string> header =
      layout.header ? records.front().fields : std::vector<std::string>{};
  std::vector<std::size_t> texts;
  for (const std::string& name : layout.text_columns) {
    texts.push_back(column_number(layout, header, name, file));
  }
  const std::size_t target = column_number(layout, header, layout.target_column, file);
  std::size_t needed = target + 1;
  for (const std::size_t column : texts) needed = std::max(needed, column + 1);
  // Without a header, all rows must have the same number of columns, so that their order does not
  // matter.
  std::size_t most = header.size();
  std::int64_t first = 1;  // the line that `most` comes from
  for (std::size_t i = layout.header ? 1 : 0; i < records.size(); ++i) {
    auto& [fields, line] = records[i];
    const bool is_short = fields.size() < needed;
    if (is_short && layout.skip_short_rows) continue;
    if (is_short) {
      refuse(file, line,
             fmt::format("found {} columns, expected {}", fields.size(), std::max(most, needed)));
    }
    if (most == 0) {
      most = fields.size();
      first = line;
    }
    const bool fits = layout.header ? fields.size() <= most : fields.size() == most;
    if (!fits && !layout.ignore_extra_columns) {
      refuse(file, line,
             fmt::format("found {} columns, expected {} as in line {}; `extra_columns: ignore` in "
                         "the task's file allows more than the task uses",
                         fields.size(), most, first));
    }
    DataRow& row = rows.emplace_back();
    row.line = line;
    row.target = fields[target];
    for (const std::size_t column : texts) row.texts.push_back(fields[column]);
  }
  return rows;
}

/// Finds the value of a key, or of a dotted name that leads into nested objects; nullptr if
/// missing.
const nlohmann::json* find_key(const nlohmann::json& object, std::string_view name) {
  if (const auto found = object.find(std::string(name)); found != object.end()) return &*found;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const auto outer = object.find(std::string(name.substr(0, dot)));
    if (outer == object.end() || !outer->is_object()) continue;
    if (const nlohmann::json* const inner = find_key(*outer, name.substr(dot + 1))) return inner;
  }
  return nullptr;
}

std::vector<DataRow> parse_jsonl(const TaskLayout& layout, std::string_view text,
                                 const std::string& file) {
  std::vector<DataRow> rows;
  TextLines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (base::trimmed(line).empty()) {
      refuse(file, lines.number(), "found a blank line, expected a JSON object");
    }
    const nlohmann::json object =
        parse_shallow_json(line, fmt::format("{}:{}", file, lines.number()));
    if (!object.is_object()) {
      refuse(file, lines.number(),
             fmt::format("is a JSON {}, expected an object", object.type_name()));
    }
    const auto field = [&](const std::string& name) -> const nlohmann::json& {
      const nlohmann::json* const found = find_key(object, name);
      if (found == nullptr)
        refuse(file, lines.number(), fmt::format("has no key {}", base::in_quotes(name)));
      return *found;
    };
    DataRow& row = rows.emplace_back();
    row.line = lines.number();
    for (const std::string& name : layout.text_columns) {
      const nlohmann::json& value = field(name);
      if (!value.is_string()) {
        refuse(file, lines.number(),
               fmt::format("{} is a JSON {}, expected a string", base::in_quotes(name),
                           value.type_name()));
      }
      row.texts.push_back(value.get<std::string>());
    }
    const nlohmann::json& target = field(layout.target_column);
    if (!target.is_string() && !target.is_number()) {
      refuse(file, lines.number(),
             fmt::format("{} is a JSON {}, expected a string or a number",
                         base::in_quotes(layout.target_column), target.type_name()));
    }
    row.target_is_number = target.is_number();
    row.target = target.is_string() ? target.get<std::string>() : target.dump();
  }
  return rows;
}

}  // namespace

std::vector<DataRow> parse_rows(const TaskLayout& layout, std::string_view text,
                                const std::string& file) {
  text = base::without_byte_order_mark(text);
  check_text(text, file);
  std::vector<DataRow> rows;
  switch (layout.format) {
    case FileFormat::tsv:
      rows = rows_of(layout, base::cut_tsv(text), file);
      break;
    case FileFormat::csv:
      rows = rows_of(
          layout,
          base::cut_csv(
              text, [&](std::int64_t line, const std::string& what) { refuse(file, line, what); }),
          file);
      break;
    case FileFormat::jsonl:
      rows = parse_jsonl(layout, text, file);
      break;
    case FileFormat::aligned:
      throw std::logic_error("files of lines have no rows of their own");
  }
  if (rows.empty()) throw Error(fmt::format("{}: contains no examples", file));
  return rows;
}

std::vector<DataRow> align_rows(std::span<const LineFile> files) {
  std::vector<std::vector<std::string_view>> columns;
  std::string counts;
  bool equal = true;
  for (const LineFile& file : files) {
    const std::string_view text = base::without_byte_order_mark(file.text);
    check_text(text, file.name);
    std::vector<std::string_view>& column = columns.emplace_back();
    TextLines lines(text);
    for (std::string_view line; lines.next(line);) column.push_back(line);
    counts +=
        fmt::format("{}{} has {} lines", counts.empty() ? "" : ", ", file.name, column.size());
    equal = equal && column.size() == columns.front().size();
  }
  if (!equal)
    throw Error(fmt::format("{}: expected equal numbers, one line for each example", counts));
  if (columns.front().empty()) {
    throw Error(fmt::format("{}: contains no examples", files.front().name));
  }
  std::vector<DataRow> rows(columns.front().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].line = static_cast<std::int64_t>(i) + 1;
    for (std::size_t c = 0; c + 1 < columns.size(); ++c) rows[i].texts.emplace_back(columns[c][i]);
    rows[i].target = columns.back()[i];
  }
  return rows;
}

std::vector<DataRow> read_rows(const TaskLayout& layout, const std::filesystem::path& file,
                               const std::string& source) {
  std::vector<decltype(FileBytes::map(file))> mapped;
  std::vector<LineFile> files;
  for (const std::string& part : sweeps::file_parts(layout, file.string())) {
    if (!std::filesystem::exists(part)) {
      throw Error(fmt::format("{}: is missing; it comes from {}", part,
                              source.empty() ? "the task's author" : source));
    }
    const auto& bytes_of = mapped.emplace_back(FileBytes::map(part));
    const auto bytes = bytes_of->bytes();
    files.push_back(
        {bytes_of->name(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  }
  if (layout.format == FileFormat::aligned) return align_rows(files);
  return parse_rows(layout, files.front().text, files.front().name);
}

}  // namespace petlab::trainer
