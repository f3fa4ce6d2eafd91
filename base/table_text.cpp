#include "base/table_text.h"

#include <algorithm>

namespace petlab::base {

bool TextLines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

std::vector<TableRecord> cut_tsv(std::string_view text) {
  std::vector<TableRecord> records;
  TextLines lines(text);
  for (std::string_view line; lines.next(line);) {
    TableRecord& record = records.emplace_back();
    record.line = lines.number();
    while (true) {
      const std::size_t tab = line.find('\t');
      record.fields.emplace_back(line.substr(0, tab));
      if (tab == std::string_view::npos) break;
      line.remove_prefix(tab + 1);
    }
  }
  return records;
}

std::vector<TableRecord> cut_csv(std::string_view text, const RefuseRecord& refuse) {
  std::vector<TableRecord> records;
  std::int64_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    TableRecord& record = records.emplace_back();
    record.line = line;
    for (bool more = true; more;) {
      std::string field;
      if (at < text.size() && text[at] == '"') {
        ++at;
        while (true) {
          if (at == text.size()) refuse(record.line, "a quoted field has no closing quote");
          const char c = text[at++];
          if (c == '"') {
            if (at == text.size() || text[at] != '"') break;
            ++at;
          }
          if (c == '\n') ++line;
          field += c;
        }
        if (at < text.size() && text[at] != ',' && text[at] != '\n' && text[at] != '\r') {
          refuse(line, "found text after a closing quote, expected a comma or the line's end");
        }
      } else {
        const std::size_t end = std::min(text.find_first_of(",\n", at), text.size());
        field = text.substr(at, end - at);
        if (field.ends_with('\r') && (end == text.size() || text[end] == '\n')) field.pop_back();
        if (field.find('"') != std::string::npos) {
          refuse(line, "found a double quote inside an unquoted field");
        }
        at = end;
      }
      record.fields.push_back(std::move(field));
      if (at < text.size() && text[at] == '\r') ++at;
      more = at < text.size() && text[at] == ',';
      if (at < text.size()) {
        if (text[at] == '\n') ++line;
        if (text[at] != ',' && text[at] != '\n') {
          refuse(line, "found a carriage return inside a line");
        }
        ++at;
      }
    }
  }
  return records;
}

}  // namespace petlab::base
