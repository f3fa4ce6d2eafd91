#include "orchestrator/launching/worker_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kTailBytes = 4096;
constexpr int kTailLines = 20;

}  // namespace

void WorkerLog::switch_to(const std::filesystem::path& file) {
  file_ = file;
  fd_.reset();
  written_ = 0;
  full_ = false;
  tail_.clear();
}

void WorkerLog::append(std::string_view bytes) {
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kTailBytes)));
  if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  if (full_ || file_.empty()) return;
  if (!fd_)
    fd_ = base::FileDescriptor(
        ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) return;
  const std::int64_t room = max_bytes_ - written_;
  std::string note;
  if (static_cast<std::int64_t>(bytes.size()) > room) {
    bytes = bytes.substr(0, static_cast<std::size_t>(room));
    note =
        fmt::format("\npetlab: the log is full ({} bytes): what follows is not kept\n", max_bytes_);
    full_ = true;
  }
  for (const std::string_view part : {bytes, std::string_view(note)}) {
    if (part.empty()) continue;
    const ssize_t wrote = ::write(fd_.get(), part.data(), part.size());
    if (wrote > 0) written_ += wrote;
  }
}

std::string WorkerLog::last_lines() const {
  std::string_view text(tail_);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  text = text.substr(text.size() - std::min(text.size(), kTailBytes));
  std::size_t begin = text.size();
  for (int lines = 0; lines < kTailLines && begin != std::string_view::npos && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string_view::npos && begin < text.size() && begin > 0)
    text = text.substr(begin + 1);
  // The JSON writer replaces what is no UTF-8; its quotes and escapes are undone by its reader.
  const nlohmann::json clean(text);
  const std::string dumped = clean.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(dumped).get<std::string>();
}

}  // namespace petlab::orchestrator
