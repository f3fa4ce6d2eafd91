#include "trainer/worker/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

std::string problem(const std::filesystem::path& file, const char* doing) {
  return file.string() + ": cannot be " + doing + ": " + std::strerror(errno);
}

}  // namespace

Clock system_clock() {
  return [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
}

EventLog::EventLog(std::filesystem::path file, Clock clock)
    : file_(std::move(file)), clock_(std::move(clock)) {
  out_ =
      base::FileDescriptor(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!out_) throw Error(problem(file_, "opened"));
  struct stat found {};
  if (::fstat(out_.get(), &found) != 0) throw Error(problem(file_, "examined"));
  if (found.st_size != 0) {
    throw Error(file_.string() +
                ": already contains events, must be new: an attempt runs only once");
  }
}

void EventLog::write(decltype(protocol::Event::body) body) {
  if (!broken_.empty()) throw Error(broken_);
  const bool synced = std::holds_alternative<protocol::Checkpoint>(body) ||
                      std::holds_alternative<protocol::Finished>(body) ||
                      std::holds_alternative<protocol::Failed>(body) ||
                      std::holds_alternative<protocol::Stopped>(body);
  const std::string line = protocol::to_line({next_, clock_(), std::move(body)}) + "\n";
  if (!base::write_all(out_.get(), line)) {
    const std::string found = problem(file_, "written");
    if (::ftruncate(out_.get(), size_) != 0) broken_ = found;
    throw Error(found);
  }
  size_ += static_cast<std::int64_t>(line.size());
  ++next_;
  if (synced && ::fdatasync(out_.get()) != 0) {
    // After a failed sync, it is unknown which lines reached the disk.
    broken_ = problem(file_, "synced");
    throw Error(broken_);
  }
}

}  // namespace petlab::trainer
