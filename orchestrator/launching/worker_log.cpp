#include "orchestrator/launching/worker_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "protocol/trial_directory.h"

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kTailBytes = 4096;
constexpr int kTailLines = 20;

std::string last_lines_of(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  text = text.substr(text.size() - std::min(text.size(), kTailBytes));
  std::size_t begin = text.size();
  for (int lines = 0; lines < kTailLines && begin != std::string_view::npos && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string_view::npos && begin < text.size() && begin > 0)
    text = text.substr(begin + 1);
  // Replaces invalid UTF-8: the JSON writer does that, and the parser removes the writer's quotes
  // and escapes again.
  const nlohmann::json clean(text);
  const std::string dumped = clean.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(dumped).get<std::string>();
}

}  // namespace

void WorkerLog::expect(const std::filesystem::path& attempt_folder) {
  expected_.push_back({protocol::announcement(attempt_folder.string()),
                       protocol::TrialDirectory(attempt_folder).log()});
}

void WorkerLog::log_to(const std::filesystem::path& log) {
  const auto has_log = [&](const auto& entry) { return entry.log == log; };
  if (announces_) {
    // The worker has announced this attempt, or is about to.
    if (std::any_of(parts_.begin(), parts_.end(), has_log)) {
      while (parts_.front().log != log) parts_.pop_front();
    }
    return;
  }
  if (std::any_of(expected_.begin(), expected_.end(), has_log)) {
    while (expected_.front().log != log) expected_.pop_front();
  }
  switch_to(log);
  parts_.erase(parts_.begin(), parts_.end() - 1);
}

void WorkerLog::switch_to(const std::filesystem::path& log) {
  if (parts_.back().log == log) return;
  parts_.push_back({log, {}});
  fd_.reset();
  written_ = 0;
  full_ = false;
}

void WorkerLog::append(std::string_view bytes) {
  if (held_.empty() && bytes.find(protocol::kAnnouncement) == std::string_view::npos)
    return write(bytes);
  held_ += bytes;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const std::size_t mark = std::min(rest.find(protocol::kAnnouncement), rest.size());
    write(rest.substr(0, mark));
    rest.remove_prefix(mark);
    if (rest.empty() || expected_.empty()) break;
    const Announcement& next = expected_.front();
    if (rest.starts_with(next.text)) {
      rest.remove_prefix(next.text.size());
      announces_ = true;
      switch_to(next.log);
      expected_.pop_front();
    } else if (next.text.starts_with(rest)) {
      break;
    } else {
      write(rest.substr(0, 1));
      rest.remove_prefix(1);
    }
  }
  if (expected_.empty()) {
    write(rest);
    rest = {};
  }
  held_ = std::string(rest);
}

void WorkerLog::end() {
  write(held_);
  held_.clear();
}

void WorkerLog::write(std::string_view bytes) {
  Part& part = parts_.back();
  part.tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), kTailBytes)));
  if (part.tail.size() > 2 * kTailBytes) part.tail.erase(0, part.tail.size() - kTailBytes);
  if (full_ || part.log.empty() || bytes.empty()) return;
  if (!fd_)
    fd_ = base::FileDescriptor(
        ::open(part.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) return;
  const std::int64_t room = max_bytes_ - written_;
  std::string note;
  if (static_cast<std::int64_t>(bytes.size()) > room) {
    bytes = bytes.substr(0, static_cast<std::size_t>(room));
    note =
        fmt::format("\npetlab: the log is full ({} bytes); later output is dropped\n", max_bytes_);
    full_ = true;
  }
  for (const std::string_view piece : {bytes, std::string_view(note)}) {
    if (piece.empty()) continue;
    const ssize_t wrote = ::write(fd_.get(), piece.data(), piece.size());
    if (wrote > 0) written_ += wrote;
  }
}

std::string WorkerLog::last_lines() const { return last_lines_of(parts_.back().tail); }

std::string WorkerLog::last_lines(const std::filesystem::path& log) const {
  const auto part = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& entry) { return entry.log == log; });
  return part == parts_.end() ? std::string() : last_lines_of(part->tail);
}

std::map<std::filesystem::path, std::string> WorkerLog::lines_by_log() const {
  std::map<std::filesystem::path, std::string> lines;
  for (const Part& part : parts_) {
    if (!part.log.empty()) lines[part.log] = last_lines_of(part.tail);
  }
  return lines;
}

}  // namespace petlab::orchestrator
