#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace petlab::protocol {

// Files of a runs folder to which petlab adds a line of JSON at a time: attempt.jsonl,
// decisions.jsonl. Each line is an object with `v`, the version of its format.

using RecordLine = nlohmann::ordered_json;

/// One write, so that the lines of two processes do not mix. A torn line is ended first, or this
/// one would become a part of it, with a mark by which all leave it out. Throws base::Error.
void append_record(const std::filesystem::path& file, const RecordLine& line, bool synced);

/// The same for the first line of a file that nobody else knows yet; it is made. A member of the
/// line may come as JSON text, which is not read (`more`: `"provenance":{…}`).
void write_first_record(const std::filesystem::path& file, const RecordLine& line,
                        const std::string& more);

/// The text of one line, with its newline; `more` as above.
std::string record_text(const RecordLine& line, const std::string& more = {});

/// Calls `take` with each complete line that is a JSON object of version 1. What `take` throws as
/// std::invalid_argument or of a field's type leaves the line out. Returns what was left out, a
/// line each: `FILE:LINE: why`; torn lines that were ended are nothing that anybody said. A missing
/// file has no lines; one that exists but cannot be read throws base::Error.
std::vector<std::string> each_record(const std::filesystem::path& file,
                                     const std::function<void(const RecordLine&)>& take);

/// Puts what is not empty.
void put(RecordLine& line, const char* key, const std::string& text);
template <typename Number>
void put(RecordLine& line, const char* key, const std::optional<Number>& value) {
  if (value) line[key] = *value;
}
/// std::nullopt where it is missing or no number.
template <typename Number>
std::optional<Number> number_of(const RecordLine& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  return found->template get<Number>();
}

}  // namespace petlab::protocol
