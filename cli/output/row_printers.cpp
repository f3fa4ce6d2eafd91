#include "cli/output/row_printers.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "reports/text.h"

namespace petlab::cli {
namespace {

using results::Value;

/// The same in every format, so that a number can be copied from any.
std::string text_of(const Value& value) { return results::exact_text(value, "NULL"); }

bool is_number(const Value& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

std::string csv_text(const std::string& text) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

nlohmann::ordered_json json_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

bool is_null(const Value& value) { return std::holds_alternative<std::monostate>(value); }

class TablePrinter : public RowPrinter {
 public:
  explicit TablePrinter(std::ostream& out) : out_(out) {}

  void columns(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      head_.push_back(reports::printable(name));
      widths_.push_back(reports::display_width(head_.back()));
    }
    numeric_.assign(names.size(), true);
  }

  bool row(const std::vector<Value>& values) override {
    std::vector<std::string>& line = rows_.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      line.push_back(reports::printable(text_of(values[i])));
      widths_[i] = std::max(widths_[i], reports::display_width(line.back()));
      numeric_[i] = numeric_[i] && (is_null(values[i]) || is_number(values[i]));
      bytes_ += line.back().size();
    }
    return bytes_ < kMostBytes;
  }

  void end() override {
    if (head_.empty()) return;
    if (rows_.empty()) numeric_.assign(head_.size(), false);
    print(head_);
    std::vector<std::string> rule;
    for (const int width : widths_) {
      std::string& dashes = rule.emplace_back();
      for (int k = 0; k < width; ++k) dashes += "─";
    }
    print(rule);
    for (const auto& line : rows_) print(line);
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  void print(const std::vector<std::string>& line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(
          static_cast<std::size_t>(widths_[i] - reports::display_width(line[i])), ' ');
      if (i > 0) text += "  ";
      text += numeric_[i] ? space + line[i] : line[i] + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out_ << text << '\n';
  }

  std::ostream& out_;
  std::vector<std::string> head_;
  std::vector<int> widths_;
  std::vector<bool> numeric_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t bytes_ = 0;
};

class MarkdownPrinter : public RowPrinter {
 public:
  explicit MarkdownPrinter(std::ostream& out) : out_(out) {}

  void columns(const std::vector<std::string>& names) override {
    for (const std::string& name : names) head_.push_back(escaped(name));
    numeric_.assign(names.size(), true);
  }

  bool row(const std::vector<Value>& values) override {
    std::vector<std::string>& line = rows_.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      line.push_back(is_null(values[i]) ? "" : escaped(text_of(values[i])));
      numeric_[i] = numeric_[i] && (is_null(values[i]) || is_number(values[i]));
    }
    return true;
  }

  void end() override {
    if (head_.empty()) return;
    print(head_);
    out_ << '|';
    for (const bool numeric : numeric_) out_ << (numeric && !rows_.empty() ? " ---: |" : " --- |");
    out_ << '\n';
    for (const auto& line : rows_) print(line);
  }

 private:
  static std::string escaped(const std::string& text) {
    std::string made;
    for (const char c : reports::printable(text)) {
      // What would end the cell, begin a tag or a link.
      if (c == '|' || c == '\\' || c == '<' || c == '[' || c == '`' || c == '*' || c == '_') {
        made += '\\';
      }
      made += c;
    }
    return made;
  }
  void print(const std::vector<std::string>& line) {
    out_ << '|';
    for (const std::string& cell : line) out_ << ' ' << cell << " |";
    out_ << '\n';
  }

  std::ostream& out_;
  std::vector<std::string> head_;
  std::vector<bool> numeric_;
  std::vector<std::vector<std::string>> rows_;
};

class CsvPrinter : public RowPrinter {
 public:
  CsvPrinter(std::ostream& out, bool inert) : out_(out), inert_(inert) {}

  void columns(const std::vector<std::string>& names) override {
    for (std::size_t i = 0; i < names.size(); ++i) out_ << (i > 0 ? "," : "") << csv_text(names[i]);
    out_ << '\n';
  }

  bool row(const std::vector<Value>& values) override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      out_ << (i > 0 ? "," : "");
      if (is_null(values[i])) continue;
      const bool mark = inert_ && !is_number(values[i]);
      const std::string text = text_of(values[i]);
      out_ << csv_text(mark ? reports::inert_cell(text) : text);
    }
    out_ << '\n';
    return true;
  }

  void end() override {}

 private:
  std::ostream& out_;
  bool inert_;
};

class JsonPrinter : public RowPrinter {
 public:
  JsonPrinter(std::ostream& out, bool array) : out_(out), array_(array) {}

  void columns(const std::vector<std::string>& names) override {
    std::map<std::string, int> times;
    for (const std::string& name : names) {
      const int before = times[name]++;
      keys_.push_back(before == 0 ? name : name + ":" + std::to_string(before));
    }
    if (array_) out_ << '[';
  }

  bool row(const std::vector<Value>& values) override {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < keys_.size(); ++i) object[keys_[i]] = json_of(values[i]);
    if (array_ && !first_) out_ << ",\n ";
    first_ = false;
    out_ << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (!array_) out_ << '\n';
    return true;
  }

  void end() override {
    if (array_) out_ << "]\n";
  }

 private:
  std::ostream& out_;
  bool array_;
  bool first_ = true;
  std::vector<std::string> keys_;
};

}  // namespace

std::unique_ptr<RowPrinter> table_printer(std::ostream& out) {
  return std::make_unique<TablePrinter>(out);
}

std::unique_ptr<RowPrinter> markdown_printer(std::ostream& out) {
  return std::make_unique<MarkdownPrinter>(out);
}

std::unique_ptr<RowPrinter> csv_printer(std::ostream& out) {
  return std::make_unique<CsvPrinter>(out, false);
}

std::unique_ptr<RowPrinter> spreadsheet_printer(std::ostream& out) {
  return std::make_unique<CsvPrinter>(out, true);
}

std::unique_ptr<RowPrinter> json_printer(std::ostream& out) {
  return std::make_unique<JsonPrinter>(out, true);
}

std::unique_ptr<RowPrinter> json_lines_printer(std::ostream& out) {
  return std::make_unique<JsonPrinter>(out, false);
}

}  // namespace petlab::cli
