#include "cli/output/row_printers.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "cli/output/screen.h"
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
  TablePrinter(std::ostream& out, std::size_t keys, int width)
      : out_(out), keys_(keys), width_(width) {}

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
    std::vector<std::string> rule;
    for (const int width : widths_) {
      std::string& dashes = rule.emplace_back();
      for (int k = 0; k < width; ++k) dashes += "─";
    }
    bool first = true;
    for (const std::vector<std::size_t>& block : blocks()) {
      if (!std::exchange(first, false)) out_ << '\n';
      print(head_, block);
      print(rule, block);
      for (const auto& line : rows_) print(line, block);
    }
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr int kGap = 2;

  // The columns of each block: as many as fit, and at least one that is no key.
  std::vector<std::vector<std::size_t>> blocks() const {
    std::vector<std::size_t> keys;
    int keys_width = 0;
    for (std::size_t i = 0; i < std::min(keys_, head_.size()); ++i) {
      keys.push_back(i);
      keys_width += widths_[i] + kGap;
    }
    std::vector<std::vector<std::size_t>> all = {keys};
    int width = keys_width;
    for (std::size_t i = keys.size(); i < head_.size(); ++i) {
      if (width_ > 0 && width + widths_[i] > width_ && all.back().size() > keys.size()) {
        all.push_back(keys);
        width = keys_width;
      }
      all.back().push_back(i);
      width += widths_[i] + kGap;
    }
    return all;
  }

  void print(const std::vector<std::string>& line, const std::vector<std::size_t>& block) {
    std::string text;
    for (const std::size_t i : block) {
      const std::string space(
          static_cast<std::size_t>(widths_[i] - reports::display_width(line[i])), ' ');
      if (i != block.front()) text.append(kGap, ' ');
      text += numeric_[i] ? space + line[i] : line[i] + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out_ << text << '\n';
  }

  std::ostream& out_;
  std::size_t keys_;
  int width_;
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

std::unique_ptr<RowPrinter> table_printer(std::ostream& out, std::size_t keys, int width) {
  return std::make_unique<TablePrinter>(out, keys, width);
}

std::unique_ptr<RowPrinter> terminal_table_printer(std::ostream& out, std::size_t keys) {
  return table_printer(out, keys, terminal_width(out));
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
