#include "protocol/record_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/shallow_json.h"

namespace petlab::protocol {
namespace {

/// Marks a line whose writer was killed, so that it never counts. No JSON ends like this.
constexpr std::string_view kTorn = "#torn";

[[noreturn]] void fail_to_write(const std::filesystem::path& file) {
  throw base::Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
}

// True if the last line has no newline: its writer was killed, or the disk was full.
bool ends_torn(int descriptor) {
  struct stat status {};
  char last = '\n';
  if (::fstat(descriptor, &status) != 0 || status.st_size == 0) return false;
  return ::pread(descriptor, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

// In one call, so that lines of several processes never mix.
void write(const base::FileDescriptor& out, const std::string& text, bool synced,
           const std::filesystem::path& file) {
  const ssize_t written = ::write(out.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) {
    if (written >= 0) errno = ENOSPC;
    fail_to_write(file);
  }
  if (synced && ::fdatasync(out.get()) != 0) fail_to_write(file);
}

// Far more than a user and petlab write line by line.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

}  // namespace

std::string record_text(const RecordLine& line, const std::string& more) {
  // Log lines may contain anything. Invalid UTF-8 is replaced rather than rejected.
  std::string text = line.dump(-1, ' ', false, RecordLine::error_handler_t::replace);
  if (!more.empty()) text.insert(text.size() - 1, "," + more);
  return text + "\n";
}

void append_record(const std::filesystem::path& file, const RecordLine& line, bool synced) {
  const base::FileDescriptor out(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!out) fail_to_write(file);
  const std::string torn = ends_torn(out.get()) ? std::string(kTorn) + "\n" : "";
  write(out, torn + record_text(line), synced, file);
}

void write_first_record(const std::filesystem::path& file, const RecordLine& line,
                        const std::string& more) {
  const base::FileDescriptor out(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!out) fail_to_write(file);
  write(out, record_text(line, more), false, file);
}

std::vector<std::string> each_record(const std::filesystem::path& file,
                                     const std::function<void(const RecordLine&)>& take) {
  std::vector<std::string> left_out;
  const std::optional<std::string> content = base::read_file_if_any(file, kMostBytes);
  if (!content) return left_out;
  std::istringstream in(*content);
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line) && !in.eof(); ++number) {
    const auto leave_out = [&](std::string_view why) {
      left_out.push_back(fmt::format("{}:{}: {}", file.string(), number, why));
    };
    if (line.ends_with(kTorn)) continue;
    const RecordLine json = base::shallow_ordered_json_or_none(line);
    if (!json.is_object()) {
      leave_out("it is not a JSON object");
    } else if (json.value("v", RecordLine()) != 1) {
      leave_out(fmt::format("v is {}, must be 1", json.value("v", RecordLine()).dump()));
    } else {
      try {
        take(json);
      } catch (const RecordLine::exception& error) {
        leave_out(error.what());
      } catch (const std::invalid_argument& error) {
        leave_out(error.what());
      }
    }
  }
  return left_out;
}

void put(RecordLine& line, const char* key, const std::string& text) {
  if (!text.empty()) line[key] = text;
}

}  // namespace petlab::protocol
