#include "tests/orchestrator/watched_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

namespace petlab::testing {

namespace fs = std::filesystem;

namespace {

char state_of(pid_t pid) {
  const std::string stat = read_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? 'X' : stat[end + 2];
}

}  // namespace

std::string read_text(const fs::path& file) {
  std::string text;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  char buffer[65536];
  for (ssize_t got = 0; fd >= 0 && (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (fd >= 0) ::close(fd);
  return text;
}

// /proc/PID/stat: "pid (name) state ppid …"
std::vector<Process> children_of(pid_t parent) {
  std::vector<Process> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string folder = entry.path().filename().string();
    if (folder.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_text(entry.path() / "stat");
    const std::size_t begin = stat.find('(');
    const std::size_t end = stat.rfind(')');
    if (begin == std::string::npos || end == std::string::npos) continue;
    std::istringstream rest(stat.substr(end + 1));
    Process process;
    pid_t its_parent = 0;
    rest >> process.state >> its_parent;
    if (its_parent != parent) continue;
    process.pid = static_cast<pid_t>(std::stol(folder));
    process.name = stat.substr(begin + 1, end - begin - 1);
    found.push_back(process);
  }
  return found;
}

void stop_and_wait(pid_t pid) {
  ::kill(pid, SIGSTOP);
  for (int tries = 0; tries < 2000; ++tries) {
    const char state = state_of(pid);
    if (state == 'T' || state == 'Z' || state == 'X') return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace petlab::testing
