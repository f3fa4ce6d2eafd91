// The smallest worker that follows docs/reference/worker-protocol.md: it writes `started`, then
// `finished` (synced), and trains nothing, so that the benchmark times petlab alone.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace {

volatile sig_atomic_t stop_asked = 0;
void on_stop(int) { stop_asked = 1; }

bool put(int fd, const char* text, int size) { return ::write(fd, text, size) == size; }

// seconds.microseconds since 1970
void time_text(char (&text)[32]) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::snprintf(text, sizeof text, "%lld.%06ld", static_cast<long long>(now.tv_sec),
             now.tv_nsec / 1000);
}

bool train(const char* folder) {
  char name[4096];
  const int length = ::snprintf(name, sizeof name, "%s/events.jsonl", folder);
  if (length >= static_cast<int>(sizeof name)) return false;
  const int fd = ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  char when[32];
  char line[256];
  time_text(when);
  int size = ::snprintf(line, sizeof line,
                        R"({"v":1,"seq":0,"time":%s,"type":"started","pid":%d,)"
                        R"("worker":"bench-worker","version":"1","numerics":{"version":"1"}})"
                        "\n",
                        when, ::getpid());
  bool good = put(fd, line, size);
  time_text(when);
  size = ::snprintf(line, sizeof line,
                    R"({"v":1,"seq":1,"time":%s,"type":"finished","step":0})"
                    "\n",
                    when);
  good = good && put(fd, line, size) && ::fdatasync(fd) == 0;
  return ::close(fd) == 0 && good;
}

int train_all_from_input() {
  static char buffer[65536];
  size_t filled = 0;
  while (stop_asked == 0) {
    const ssize_t got = ::read(STDIN_FILENO, buffer + filled, sizeof buffer - filled);
    if (got <= 0) return got == 0 || stop_asked != 0 ? 0 : 1;
    filled += static_cast<size_t>(got);
    char* begin = buffer;
    for (char* end; (end = static_cast<char*>(::memchr(begin, '\n', buffer + filled - begin)));) {
      *end = '\0';
      if (!train(begin)) return 1;
      begin = end + 1;
      if (stop_asked != 0) return 3;
    }
    filled = static_cast<size_t>(buffer + filled - begin);
    ::memmove(buffer, begin, filled);
    if (filled == sizeof buffer) return 1;
  }
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && ::strcmp(argv[1], "--describe") == 0) {
    constexpr char text[] = R"({"name":"bench-worker","version":"1","protocol":1,"numerics":"1",)"
                            R"("devices":["cpu"]})"
                            "\n";
    return put(STDOUT_FILENO, text, sizeof text - 1) ? 0 : 1;
  }
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  if (argc == 2 && ::strcmp(argv[1], "-") == 0) return train_all_from_input();
  for (int argument = 1; argument < argc; ++argument) {
    if (!train(argv[argument])) return 1;
  }
  return stop_asked != 0 ? 3 : 0;
}
