#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace petlab::protocol {

// Files of a runs folder to which petlab appends lines of JSON: attempt.jsonl, decisions.jsonl.
// Each line is an object with `v`, its format version.

using RecordLine = nlohmann::ordered_json;

/// Appends a line with a single write, so that lines of two processes do not mix. First ends a torn
/// line, with a mark that makes all readers skip it. Throws base::Error.
void append_record(const std::filesystem::path& file, const RecordLine& line, bool synced);

/// Creates a file with its first line. `more` is an additional member of the line as JSON text,
/// which is not parsed (`"provenance":{…}`).
void write_first_record(const std::filesystem::path& file, const RecordLine& line,
                        const std::string& more);

/// The text of a line with its newline; `more` as above.
std::string record_text(const RecordLine& line, const std::string& more = {});

/// Calls `take` with each complete line that is a JSON object of version 1. A line is skipped if
/// `take` throws std::invalid_argument or a JSON type error. Returns `FILE:LINE: why` for each
/// skipped line except marked torn ones. A missing file has no lines; an unreadable one throws
/// base::Error.
std::vector<std::string> each_record(const std::filesystem::path& file,
                                     const std::function<void(const RecordLine&)>& take);

/// Adds the member unless `text` is empty.
void put(RecordLine& line, const char* key, const std::string& text);
template <typename Number>
void put(RecordLine& line, const char* key, const std::optional<Number>& value) {
  if (value) line[key] = *value;
}
/// std::nullopt if it is missing or not a number.
template <typename Number>
std::optional<Number> number_of(const RecordLine& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  return found->template get<Number>();
}

}  // namespace petlab::protocol
