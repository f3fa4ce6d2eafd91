#include "results/place.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "results/error.h"
#include "results/host_lock.h"
#include "results/store.h"

namespace petlab::results {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::milliseconds(200);
// On a network file system whose lock server is down, locks wait forever.
constexpr auto kLongestAnswer = std::chrono::seconds(60);

// Names of common file systems by statfs(2) type. In a chroot, the underlying mount may not be
// listed.
std::string file_system_by_number(const fs::path& folder) {
  static const std::map<unsigned long, const char*> names = {
      {0x01021994, "tmpfs"}, {0x58465342, "xfs"},     {0x6969, "nfs"},
      {0x65735546, "fuse"},  {0x794c7630, "overlay"}, {0x9123683e, "btrfs"},
      {0xef53, "ext4"},      {0xf2f52010, "f2fs"},    {0xfe534d42, "cifs"},
  };
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return "";
  const auto name = names.find(static_cast<unsigned long>(status.f_type) & 0xffffffffUL);
  return name == names.end() ? "" : name->second;
}

// The type of the mount that contains `folder`: the one with the longest matching path.
std::string file_system_of(const fs::path& folder) {
  std::ifstream mounts("/proc/self/mountinfo");
  const std::string path = folder.string();
  std::string type;
  std::size_t longest = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::array<std::string, 5> first;
    for (std::string& word : first) words >> word;
    const std::string& at = first[4];
    const bool leads = path == at || at == "/" || path.starts_with(at + "/");
    const auto dash = line.find(" - ");
    if (!leads || dash == std::string::npos || at.size() < longest) continue;
    longest = at.size();
    type = line.substr(dash + 3, line.find(' ', dash + 3) - dash - 3);
  }
  return longest > 0 ? type : file_system_by_number(folder);
}

struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) {
      throw Error(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t which) {
    if (ends[which] >= 0) ::close(ends[which]);
    ends[which] = -1;
  }
  // std::nullopt if the other end neither wrote nor closed the pipe in time.
  std::optional<std::string> read_all() const {
    std::string text;
    std::array<char, 4096> part;
    const auto end = std::chrono::steady_clock::now() + kLongestAnswer;
    while (!text.starts_with(kHolds)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return std::nullopt;
      pollfd wait = {ends[0], POLLIN, 0};
      if (::poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
      const ssize_t got = ::read(ends[0], part.data(), part.size());
      if (got == 0 || (got < 0 && errno != EINTR)) break;
      if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  static constexpr char kHolds = 1;
  std::array<int, 2> ends = {-1, -1};
};

void write_part(Store& store, const fs::path& folder) {
  Batch batch = store.begin();
  batch.record_runs_folder(folder);
  batch.commit();
}

// Runs in the other process: holds the database's write lock until the parent lets it continue.
[[noreturn]] void hold(const fs::path& scratch, Pipe& to_parent, Pipe& from_parent) {
  to_parent.close_end(0);
  from_parent.close_end(1);
  try {
    Store store(scratch);
    Batch batch = store.begin();
    batch.record_runs_folder(scratch.parent_path());
    const char holds = Pipe::kHolds;
    char go = 0;
    if (::write(to_parent.ends[1], &holds, 1) == 1) (void)!::read(from_parent.ends[0], &go, 1);
    batch.commit();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    (void)!::write(to_parent.ends[1], text.data(), text.size());
    ::_exit(1);
  }
  ::_exit(0);
}

bool second_is_kept_out(const fs::path& scratch) {
  OpenOptions options;
  options.busy_timeout = kPatience;
  try {
    Store store(scratch, options);
    write_part(store, scratch.parent_path());
  } catch (const Error&) {
    return true;
  }
  return false;
}

struct Scratch {
  fs::path file;
  ~Scratch() {
    for (const char* end : {"", "-wal", "-shm", "-journal", ".lock"}) {
      std::error_code ignored;
      fs::remove(file.string() + end, ignored);
    }
  }
};

}  // namespace

DatabasePlace examine_place(const fs::path& database) {
  const fs::path real = internal::real_path(fs::absolute(database));
  DatabasePlace place;
  place.file_system = file_system_of(real.parent_path());
  place.network = internal::on_network_file_system(real);
  const Scratch scratch{real.parent_path() / fmt::format(".petlab-doctor-{}.db", ::getpid())};
  Pipe answer;
  Pipe order;
  const pid_t child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be made: {}", std::strerror(errno)));
  if (child == 0) hold(scratch.file, answer, order);
  answer.close_end(1);
  order.close_end(0);
  std::optional<std::string> reported = answer.read_all();
  const bool held = reported && reported->starts_with(Pipe::kHolds);
  if (held && !second_is_kept_out(scratch.file)) {
    place.lock_problem = "a second process could write while the first did";
  }
  order.close_end(1);  // lets it continue
  if (held) reported = answer.read_all();
  if (!reported) {
    // It may never end, so do not wait for it.
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, WNOHANG);
    place.problem = fmt::format(
        "{}: SQLite gave no answer within {} s there: the disk, or its locks, "
        "hang",
        database.string(), kLongestAnswer.count());
    return place;
  }
  place.problem = *reported;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 && place.problem.empty()) {
    place.problem = fmt::format("the process that tried it ended with status {}", status);
  }
  if (place.problem.empty() && place.lock_problem.empty()) {
    try {
      Store store(scratch.file);
      write_part(store, real.parent_path());
    } catch (const Error& error) {
      place.problem = error.what();
    }
  }
  // Messages should name the database rather than the scratch file.
  for (auto at = place.problem.find(scratch.file.string()); at != std::string::npos;
       at = place.problem.find(scratch.file.string())) {
    place.problem.replace(at, scratch.file.string().size(), database.string());
  }
  return place;
}

}  // namespace petlab::results
