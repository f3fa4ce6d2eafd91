// Preloaded into a program (LD_PRELOAD) to make calls of the C library fail, to kill the program at
// one of them, or to shift its clock: events that a test cannot cause in a disk, a kernel or a day.
//
// PETLAB_TEST_FAULTS contains rules, separated by ';'. The words of a rule are:
//   fail program=petlab calls=write,fdatasync path=*.db-wal error=EIO [after=3] [times=1]
//        [file=/where]
//        The matching calls after the third fail; times=1 limits that to one call. Writes that
//        fail with ENOSPC may write a part first, as on a real disk. Each failure appends
//        `call path` to the file.
//   kill program=petlab calls=rename path=* at=5 [torn]
//        The process dies by SIGKILL instead of the fifth matching call that changes something;
//        torn: after half of a write. It first prints on standard error: `killed at rename
//        /the/path`.
//   stop program=petlab calls=rename path=* at=5
//        The process stops (SIGSTOP) before the fifth such call until SIGCONT, so that others can
//        interfere. It first prints: `stopped at rename /the/path`.
//   trace program=petlab file=/where
//        Appends `call path` for each call that changes something.
//   record path=/folder* file=/where
//        Appends each change of a file or folder, and each sync, in the order in which they
//        happened in all processes, also in forks. tests/end_to_end/recorded_files.py describes the
//        format. Changes by mapped memory are missing: SQLite maps only its -shm file, and rebuilds
//        it.
//   locked program=petlab path=*/runs/* file=/where
//        Appends `call path` for each matching call while the process holds the write lock of an
//        SQLite database in WAL mode, and `lock` when it first gets that lock.
//   unlocked program=petlab
//        File locks (fcntl) are granted to every process, as on some network file systems. This
//        also applies to forks of the program.
//   redirect program=petlab path=/this/file file=/where
//        Opens the other file wherever the program opens this one, for example for another boot id.
//   network program=petlab [file=/where]
//        Every file system is reported as NFS. Each report appends `statfs path` to the file.
//   clock file=/where
//        The wall clock is shifted by the number of seconds that the file contains at the moment.
//   pipe size=4096
//        Pipes have this size.
// The call `tmpfile` is an open with O_TMPFILE; every other open is `open`.
// In a value, %20 is a blank, and so on, as in a URL.
// A path is that of a descriptor's file, or the path of the call; the pattern is fnmatch's.
// `program` is the name of the program's file; its forks are not affected unless stated.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

enum class Kind { fail, kill, stop };

struct Rule {
  Kind kind = Kind::fail;
  char calls[256] = "*";
  char path[PATH_MAX] = "*";
  char file[PATH_MAX] = "";
  int error = EIO;
  long after = 0;
  long times = LONG_MAX;
  long at = 1;
  bool torn = false;
  std::atomic<long> seen{0};
};

constexpr int kMostRules = 32;
Rule rules[kMostRules];
int rule_count = 0;
char clock_file[PATH_MAX] = "";
char trace_file[PATH_MAX] = "";
char locked_file[PATH_MAX] = "";
char locked_path[PATH_MAX] = "";
char record_file[PATH_MAX] = "";
char record_path[PATH_MAX] = "";
std::atomic<bool> locked{false};
bool unlocked = false;
bool network = false;
char network_file[PATH_MAX] = "";
char redirected_path[PATH_MAX] = "";
char redirected_file[PATH_MAX] = "";
int pipe_size = 0;
pid_t program_pid = 0;
bool ready = false;

int error_of(const char* name) {
  if (strcmp(name, "EINVAL") == 0) return EINVAL;
  if (strcmp(name, "ENOSPC") == 0) return ENOSPC;
  if (strcmp(name, "EDQUOT") == 0) return EDQUOT;
  if (strcmp(name, "EMFILE") == 0) return EMFILE;
  if (strcmp(name, "EAGAIN") == 0) return EAGAIN;
  if (strcmp(name, "EACCES") == 0) return EACCES;
  if (strcmp(name, "ENOENT") == 0) return ENOENT;
  if (strcmp(name, "EPERM") == 0) return EPERM;
  if (strcmp(name, "ENOLCK") == 0) return ENOLCK;
  if (strcmp(name, "EOPNOTSUPP") == 0) return EOPNOTSUPP;
  return EIO;
}

bool has_word(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = list; *at != '\0';) {
    const size_t part = strcspn(at, ",");
    if (part == length && strncmp(at, word, part) == 0) return true;
    at += part + (at[part] == ',' ? 1 : 0);
  }
  return strcmp(list, "*") == 0;
}

// Replaces %20 by a blank, and so on.
void decode(char* text) {
  char* to = text;
  for (unsigned code = 0; *text != '\0'; ++text) {
    if (sscanf(text, "%%%2x", &code) == 1) {
      *to++ = static_cast<char>(code);
      text += 2;
    } else {
      *to++ = *text;
    }
  }
  *to = '\0';
}

void read_rule(char* text, const char* program) {
  Rule& rule = rules[rule_count];
  char* rest = nullptr;
  const char* kind = strtok_r(text, " ", &rest);
  if (kind == nullptr) return;
  bool mine = true;
  for (char* word = strtok_r(nullptr, " ", &rest); word != nullptr;
       word = strtok_r(nullptr, " ", &rest)) {
    char* value = strchr(word, '=');
    if (value != nullptr) *value++ = '\0';
    if (value != nullptr) decode(value);
    const auto is = [&](const char* name) { return strcmp(word, name) == 0; };
    if (is("torn")) rule.torn = true;
    if (value == nullptr) continue;
    if (is("program")) mine = strcmp(value, program) == 0;
    if (is("calls")) snprintf(rule.calls, sizeof rule.calls, "%s", value);
    if (is("path")) snprintf(rule.path, sizeof rule.path, "%s", value);
    if (is("file")) snprintf(rule.file, sizeof rule.file, "%s", value);
    if (is("error")) rule.error = error_of(value);
    if (is("after")) rule.after = atol(value);
    if (is("times")) rule.times = atol(value);
    if (is("at")) rule.at = atol(value);
    if (is("size") && mine) pipe_size = atoi(value);
    if (is("file") && mine && strcmp(kind, "clock") == 0) {
      snprintf(clock_file, sizeof clock_file, "%s", value);
    }
    if (is("file") && mine && strcmp(kind, "trace") == 0) {
      snprintf(trace_file, sizeof trace_file, "%s", value);
    }
    if (is("file") && mine && strcmp(kind, "locked") == 0) {
      snprintf(locked_file, sizeof locked_file, "%s", value);
    }
    if (is("file") && mine && strcmp(kind, "record") == 0) {
      snprintf(record_file, sizeof record_file, "%s", value);
    }
    if (is("path") && mine && strcmp(kind, "record") == 0) {
      snprintf(record_path, sizeof record_path, "%s", value);
    }
    if (is("file") && mine && strcmp(kind, "network") == 0) {
      snprintf(network_file, sizeof network_file, "%s", value);
    }
    if (is("path") && mine && strcmp(kind, "redirect") == 0) {
      snprintf(redirected_path, sizeof redirected_path, "%s", value);
    }
    if (is("file") && mine && strcmp(kind, "redirect") == 0) {
      snprintf(redirected_file, sizeof redirected_file, "%s", value);
    }
    if (is("path") && strcmp(kind, "locked") == 0) {
      snprintf(locked_path, sizeof locked_path, "%s", value);
    }
  }
  if (mine && strcmp(kind, "unlocked") == 0) unlocked = true;
  if (mine && strcmp(kind, "network") == 0) network = true;
  const bool stop = strcmp(kind, "stop") == 0;
  if (!mine || (strcmp(kind, "fail") != 0 && strcmp(kind, "kill") != 0 && !stop)) {
    rule.~Rule();
    new (&rule) Rule();
    return;
  }
  rule.kind = stop ? Kind::stop : strcmp(kind, "kill") == 0 ? Kind::kill : Kind::fail;
  if (rule_count + 1 < kMostRules) ++rule_count;
}

void set_up() {
  if (ready) return;
  ready = true;
  program_pid = getpid();
  const char* text = getenv("PETLAB_TEST_FAULTS");
  if (text == nullptr) return;
  char program[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) return;
  program[length] = '\0';
  const char* slash = strrchr(program, '/');
  static char copy[65536];
  snprintf(copy, sizeof copy, "%s", text);
  char* rest = nullptr;
  for (char* rule = strtok_r(copy, ";", &rest); rule != nullptr;
       rule = strtok_r(nullptr, ";", &rest)) {
    read_rule(rule, slash == nullptr ? program : slash + 1);
  }
}
__attribute__((constructor)) void begin() { set_up(); }

template <typename Function>
Function* real(const char* name, Function*& cached) {
  if (cached == nullptr) cached = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return cached;
}

void append(const char* file, const char* call, const char* path) {
  char line[PATH_MAX + 64];
  const int length = snprintf(line, sizeof line, "%s %s\n", call, path);
  const int fd = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (fd < 0) return;
  syscall(SYS_write, fd, line, static_cast<size_t>(length));
  syscall(SYS_close, fd);
}

// Applies the rules to a call. Returns 0 to execute it, the error with which it fails, or -1 to do
// half of it and then die.
int verdict(const char* call, const char* path, bool changes) {
  set_up();
  if (getpid() != program_pid) return 0;
  if (changes && trace_file[0] != '\0') append(trace_file, call, path);
  if (locked && fnmatch(locked_path, path, 0) == 0) append(locked_file, call, path);
  for (int index = 0; index < rule_count; ++index) {
    Rule& rule = rules[index];
    if (rule.kind != Kind::fail && !changes) continue;
    if (!has_word(rule.calls, call) || fnmatch(rule.path, path, 0) != 0) continue;
    const long seen = ++rule.seen;
    if (rule.kind == Kind::fail) {
      if (seen <= rule.after || seen - rule.after > rule.times) continue;
      if (rule.file[0] != '\0') append(rule.file, call, path);
      return rule.error;
    }
    if (seen != rule.at) continue;
    char line[PATH_MAX + 64];
    const bool stop = rule.kind == Kind::stop;
    const int length =
        snprintf(line, sizeof line, "%s at %s %s\n", stop ? "stopped" : "killed", call, path);
    syscall(SYS_write, 2, line, static_cast<size_t>(length));
    if (rule.torn) return -1;
    syscall(SYS_kill, program_pid, stop ? SIGSTOP : SIGKILL);
  }
  return 0;
}

// Writes the path of a descriptor's file; empty if it has none.
void path_of(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
}

int verdict_fd(const char* call, int fd, bool changes) {
  set_up();
  if (rule_count == 0 && trace_file[0] == '\0' && !locked) return 0;
  char path[PATH_MAX];
  path_of(fd, path);
  return verdict(call, path, changes);
}

const char* full(int at, const char* path, char* into) {
  if (path[0] == '/') return path;
  char folder[PATH_MAX];
  if (at != AT_FDCWD) {
    path_of(at, folder);
  } else if (getcwd(folder, sizeof folder) == nullptr) {
    return path;
  }
  if (snprintf(into, PATH_MAX, "%s/%s", folder, path) >= PATH_MAX) return path;
  return into;
}

int verdict_path(const char* call, const char* path, int at = AT_FDCWD) {
  char whole[PATH_MAX];
  return verdict(call, full(at, path, whole), true);
}

// A change that the rule `record` covers. From construction to destruction, no other change
// happens, in no process, so that the file lists changes in the order in which they happened.
class Change {
 public:
  explicit Change(int fd) {
    set_up();
    if (record_file[0] == '\0' || fstat(fd, &before_) != 0) return;
    if (!S_ISREG(before_.st_mode) && !S_ISDIR(before_.st_mode)) return;
    path_of(fd, path_);
    begin();
  }
  Change(int at, const char* path) {
    set_up();
    if (record_file[0] == '\0') return;
    char whole[PATH_MAX];
    snprintf(path_, sizeof path_, "%s", full(at, path, whole));
    begin();
    if (*this && lstat(path_, &before_) != 0) before_ = {};
  }
  ~Change() {
    if (*this) syscall(SYS_close, log_);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  explicit operator bool() const { return log_ >= 0; }
  bool is_folder() const { return S_ISDIR(before_.st_mode); }

  // `size` bytes were written. They end at `end`, or at the descriptor's position if negative.
  void wrote(int fd, const iovec* parts, int count, ssize_t size, off_t end = -1) {
    if (!*this || size <= 0) return;
    if (end < 0) end = lseek(fd, 0, SEEK_CUR);
    add("write", before_.st_ino, end - size, "", parts, count, static_cast<size_t>(size));
  }
  void resized(int fd) {
    struct stat now;
    if (!*this || fstat(fd, &now) != 0 || now.st_size == before_.st_size) return;
    add("size", now.st_ino, now.st_size);
  }
  void synced(const char* call) {
    if (*this) add(call, before_.st_ino);
  }
  // The path was opened or created.
  void opened() {
    struct stat now;
    if (!*this || lstat(path_, &now) != 0) return;
    if (before_.st_mode == 0) {
      add(S_ISDIR(now.st_mode) ? "mkdir" : "create", now.st_ino);
    } else if (now.st_size != before_.st_size) {
      add("size", now.st_ino, now.st_size);
    }
  }
  void created_as(const char* path) {
    char whole[PATH_MAX];
    if (*this) snprintf(path_, sizeof path_, "%s", full(AT_FDCWD, path, whole));
    opened();
  }
  void named(const char* call, int from_at, const char* from) {
    if (!*this) return;
    char whole[PATH_MAX];
    add(call, 0, 0, full(from_at, from, whole));
  }
  void removed() {
    if (*this) add(is_folder() ? "rmdir" : "unlink", before_.st_ino);
  }

 private:
  void begin() {
    if (fnmatch(record_path, path_, 0) != 0) return;
    log_ = static_cast<int>(syscall(SYS_openat, AT_FDCWD, record_file,
                                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (log_ < 0) lost("the file cannot be opened");
    // A description of its own per change also excludes threads and forks.
    while (syscall(SYS_flock, log_, LOCK_EX) != 0) {
      if (errno != EINTR) lost("the file cannot be locked");
    }
  }
  void add(const char* what, ino_t node, off_t at = 0, const char* from = "",
           const iovec* data = nullptr, int count = 0, size_t size = 0) {
    const int error = errno;
    char head[2 * PATH_MAX + 128];
    const int length = snprintf(head, sizeof head, "%s %llu %lld %zu %zu %zu\n%s%s", what,
                                static_cast<unsigned long long>(node), static_cast<long long>(at),
                                strlen(path_), strlen(from), size, path_, from);
    put(head, static_cast<size_t>(length));
    for (; size > 0; ++data, --count) {
      const size_t part = count > 1 && data->iov_len < size ? data->iov_len : size;
      put(data->iov_base, part);
      size -= part;
    }
    errno = error;
  }
  void put(const void* data, size_t size) {
    if (syscall(SYS_write, log_, data, size) != static_cast<long>(size)) {
      lost("the file cannot be written");
    }
  }
  [[noreturn]] static void lost(const char* why) {
    const char* parts[] = {"petlab-faults: record: ", why, "\n"};
    for (const char* part : parts) syscall(SYS_write, 2, part, strlen(part));
    abort();
  }
  int log_ = -1;
  struct stat before_ {};
  char path_[PATH_MAX] = "";
};

[[noreturn]] void die() {
  syscall(SYS_kill, program_pid, SIGKILL);
  abort();
}

double clock_shift() {
  set_up();
  if (clock_file[0] == '\0') return 0;
  const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, clock_file, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return 0;
  char text[64] = "";
  const long got = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  return got > 0 ? strtod(text, nullptr) : 0;
}

}  // namespace

// Ends the process, or fails the call, if a rule says so.
#define OBEY(VERDICT)        \
  const int error = VERDICT; \
  if (error < 0) die();      \
  if (error > 0) {           \
    errno = error;           \
    return -1;               \
  }

// Wraps a call of the C library that returns -1 and sets errno if it fails.
#define FAULTY(RESULT, NAME, PARAMETERS, ARGUMENTS, VERDICT) \
  extern "C" RESULT NAME PARAMETERS {                        \
    static RESULT(*next) PARAMETERS = nullptr;               \
    OBEY(VERDICT)                                            \
    return real(#NAME, next) ARGUMENTS;                      \
  }

// The same for a call that changes something. CHANGE constructs `change`, NOTE records it.
#define CHANGING(RESULT, NAME, PARAMETERS, ARGUMENTS, VERDICT, CHANGE, NOTE) \
  extern "C" RESULT NAME PARAMETERS {                                        \
    static RESULT(*next) PARAMETERS = nullptr;                               \
    OBEY(VERDICT)                                                            \
    Change change CHANGE;                                                    \
    const RESULT result = real(#NAME, next) ARGUMENTS;                       \
    if (result >= 0) change.NOTE;                                            \
    return result;                                                           \
  }

// The same for a write, a part of which may happen before the failure or death.
#define FAULTY_WRITE(NAME, PARAMETERS, ARGUMENTS, HALF, END)         \
  extern "C" ssize_t NAME PARAMETERS {                               \
    static ssize_t(*next) PARAMETERS = nullptr;                      \
    const int error = verdict_fd(#NAME, fd, true);                   \
    if (error < 0) {                                                 \
      [[maybe_unused]] const ssize_t wrote = real(#NAME, next) HALF; \
      die();                                                         \
    }                                                                \
    if (error == ENOSPC && size > 1) return real(#NAME, next) HALF;  \
    if (error > 0) {                                                 \
      errno = error;                                                 \
      return -1;                                                     \
    }                                                                \
    Change change(fd);                                               \
    const iovec part = {const_cast<void*>(data), size};              \
    const ssize_t wrote = real(#NAME, next) ARGUMENTS;               \
    change.wrote(fd, &part, 1, wrote, END);                          \
    return wrote;                                                    \
  }

FAULTY_WRITE(write, (int fd, const void* data, size_t size), (fd, data, size), (fd, data, size / 2),
             -1)
FAULTY_WRITE(pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at),
             (fd, data, size / 2, at), at + wrote)
FAULTY_WRITE(pwrite64, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at),
             (fd, data, size / 2, at), at + wrote)
CHANGING(ssize_t, writev, (int fd, const iovec* parts, int count), (fd, parts, count),
         verdict_fd("writev", fd, true), (fd), wrote(fd, parts, count, result))
FAULTY(ssize_t, read, (int fd, void* data, size_t size), (fd, data, size),
       verdict_fd("read", fd, false))
FAULTY(ssize_t, pread, (int fd, void* data, size_t size, off_t at), (fd, data, size, at),
       verdict_fd("pread", fd, false))
FAULTY(ssize_t, pread64, (int fd, void* data, size_t size, off64_t at), (fd, data, size, at),
       verdict_fd("pread64", fd, false))
extern "C" dirent* readdir(DIR* folder) {
  static dirent* (*next)(DIR*) = nullptr;
  const int error = verdict_fd("readdir", dirfd(folder), false);
  if (error > 0) {
    errno = error;
    return nullptr;
  }
  return real("readdir", next)(folder);
}
CHANGING(int, ftruncate, (int fd, off_t size), (fd, size), verdict_fd("ftruncate", fd, true), (fd),
         resized(fd))
CHANGING(int, ftruncate64, (int fd, off64_t size), (fd, size), verdict_fd("ftruncate64", fd, true),
         (fd), resized(fd))
CHANGING(int, fsync, (int fd), (fd), verdict_fd("fsync", fd, true), (fd), synced("fsync"))
CHANGING(int, fdatasync, (int fd), (fd), verdict_fd("fdatasync", fd, true), (fd),
         synced("fdatasync"))
CHANGING(int, syncfs, (int fd), (fd), verdict_fd("syncfs", fd, true), (fd), synced("syncfs"))
FAULTY(int, flock, (int fd, int how), (fd, how), verdict_fd("flock", fd, true))
CHANGING(int, rename, (const char* from, const char* to), (from, to), verdict_path("rename", to),
         (AT_FDCWD, to), named("rename", AT_FDCWD, from))
CHANGING(int, renameat, (int at, const char* from, int to_at, const char* to),
         (at, from, to_at, to), verdict_path("renameat", to, to_at), (to_at, to),
         named("rename", at, from))
CHANGING(int, renameat2, (int at, const char* from, int to_at, const char* to, unsigned flags),
         (at, from, to_at, to, flags), verdict_path("renameat2", to, to_at), (to_at, to),
         named("rename", at, from))
CHANGING(int, link, (const char* from, const char* to), (from, to), verdict_path("link", to),
         (AT_FDCWD, to), named("link", AT_FDCWD, from))
CHANGING(int, linkat, (int at, const char* from, int to_at, const char* to, int flags),
         (at, from, to_at, to, flags), verdict_path("linkat", to, to_at), (to_at, to),
         named("link", at, from))
CHANGING(int, unlink, (const char* path), (path), verdict_path("unlink", path), (AT_FDCWD, path),
         removed())
CHANGING(int, unlinkat, (int at, const char* path, int flags), (at, path, flags),
         verdict_path("unlinkat", path, at), (at, path), removed())
CHANGING(int, rmdir, (const char* path), (path), verdict_path("rmdir", path), (AT_FDCWD, path),
         removed())
CHANGING(int, remove, (const char* path), (path), verdict_path("remove", path), (AT_FDCWD, path),
         removed())
CHANGING(int, mkdir, (const char* path, mode_t mode), (path, mode), verdict_path("mkdir", path),
         (AT_FDCWD, path), opened())

// Replaces the last letters of `path`.
extern "C" int mkostemp(char* path, int flags) {
  static int (*next)(char*, int) = nullptr;
  const int error = verdict_path("mkostemp", path);
  if (error < 0) die();
  if (error > 0) {
    errno = error;
    return -1;
  }
  Change change(AT_FDCWD, path);
  const int result = real("mkostemp", next)(path, flags);
  if (result >= 0) change.created_as(path);
  return result;
}
FAULTY(pid_t, fork, (), (), verdict("fork", "", true))
FAULTY(int, kill, (pid_t pid, int number), (pid, number), verdict("kill", "", number != 0))

#ifdef __x86_64__
// The child of vfork returns into its caller's frame, so nothing of ours may be left on the stack.
extern "C" {
__attribute__((visibility("hidden"))) pid_t (*petlab_real_vfork)() = nullptr;
}
extern "C" __attribute__((visibility("hidden"))) int petlab_before_vfork() {
  real("vfork", petlab_real_vfork);
  const int error = verdict("vfork", "", true);
  if (error < 0) die();
  errno = error;
  return error;
}
extern "C" __attribute__((naked)) pid_t vfork() {
  asm("subq $8, %rsp\n"
      "call petlab_before_vfork\n"
      "addq $8, %rsp\n"
      "testl %eax, %eax\n"
      "jne 1f\n"
      "jmp *petlab_real_vfork(%rip)\n"
      "1: movl $-1, %eax\n"
      "ret\n");
}
#endif

// Opening counts as a change if it creates or truncates a file.
#define FAULTY_OPEN(NAME, AT, PARAMETERS, ARGUMENTS)                                              \
  extern "C" int NAME PARAMETERS {                                                                \
    static int (*next)(NAME##_TYPES) = nullptr;                                                   \
    mode_t mode = 0;                                                                              \
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {                                                   \
      va_list more;                                                                               \
      va_start(more, flags);                                                                      \
      mode = va_arg(more, mode_t);                                                                \
      va_end(more);                                                                               \
    }                                                                                             \
    char whole[PATH_MAX];                                                                         \
    if (redirected_file[0] != '\0' && strcmp(path, redirected_path) == 0) path = redirected_file; \
    const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;                                      \
    const char* const call = (flags & O_TMPFILE) == O_TMPFILE ? "tmpfile" : "open";               \
    const int error = verdict(call, full(AT, path, whole), changes);                              \
    if (error < 0) die();                                                                         \
    if (error > 0) {                                                                              \
      errno = error;                                                                              \
      return -1;                                                                                  \
    }                                                                                             \
    if (!changes) return real(#NAME, next) ARGUMENTS;                                             \
    Change change(AT, path);                                                                      \
    const int result = real(#NAME, next) ARGUMENTS;                                               \
    if (result >= 0) change.opened();                                                             \
    return result;                                                                                \
  }
#define open_TYPES const char*, int, ...
#define open64_TYPES const char*, int, ...
#define openat_TYPES int, const char*, int, ...
#define openat64_TYPES int, const char*, int, ...
FAULTY_OPEN(open, AT_FDCWD, (const char* path, int flags, ...), (path, flags, mode))
FAULTY_OPEN(open64, AT_FDCWD, (const char* path, int flags, ...), (path, flags, mode))
FAULTY_OPEN(openat, at, (int at, const char* path, int flags, ...), (at, path, flags, mode))
FAULTY_OPEN(openat64, at, (int at, const char* path, int flags, ...), (at, path, flags, mode))

// The C library's own calls cannot be wrapped, among them those by which streams open files. The
// streams of C++ write by write and writev.
#define RECORDED_FOPEN(NAME)                                  \
  extern "C" FILE* NAME(const char* path, const char* mode) { \
    static FILE* (*next)(const char*, const char*) = nullptr; \
    if (mode[0] == 'r') return real(#NAME, next)(path, mode); \
    Change change(AT_FDCWD, path);                            \
    FILE* const result = real(#NAME, next)(path, mode);       \
    if (result != nullptr) change.opened();                   \
    return result;                                            \
  }
RECORDED_FOPEN(fopen)
RECORDED_FOPEN(fopen64)

// SQLite locks bytes of the index file next to a database; the first of them is the write lock.
void note_lock(const struct flock* lock) {
  constexpr off_t kWriteLock = 120;
  set_up();
  if (locked_file[0] == '\0' || getpid() != program_pid) return;
  if (lock->l_start > kWriteLock || lock->l_start + lock->l_len <= kWriteLock) return;
  static bool reported = false;
  locked = lock->l_type == F_WRLCK;
  if (locked && !reported) append(locked_file, "lock", "");
  reported = reported || locked;
}
#define NOTED_FCNTL(NAME)                                        \
  extern "C" int NAME(int fd, int command, ...) {                \
    static int (*next)(int, int, ...) = nullptr;                 \
    va_list rest;                                                \
    va_start(rest, command);                                     \
    void* argument = va_arg(rest, void*);                        \
    va_end(rest);                                                \
    set_up();                                                    \
    if (unlocked && command == F_SETLK) return 0;                \
    if (command == F_OFD_SETLK) {                                \
      const int error = verdict_fd("fcntl", fd, false);          \
      if (error > 0) {                                           \
        errno = error;                                           \
        return -1;                                               \
      }                                                          \
    }                                                            \
    const int result = real(#NAME, next)(fd, command, argument); \
    if (result == 0 && command == F_SETLK) {                     \
      note_lock(static_cast<const struct flock*>(argument));     \
    }                                                            \
    return result;                                               \
  }
NOTED_FCNTL(fcntl)
NOTED_FCNTL(fcntl64)

extern "C" int statfs(const char* path, struct statfs* status) {
  static int (*next)(const char*, struct statfs*) = nullptr;
  const int result = real("statfs", next)(path, status);
  set_up();
  if (result == 0 && network) {
    status->f_type = 0x6969;
    if (network_file[0] != '\0') append(network_file, "statfs", path);
  }
  return result;
}

extern "C" DIR* opendir(const char* path) {
  static DIR* (*next)(const char*) = nullptr;
  char whole[PATH_MAX];
  verdict("opendir", full(AT_FDCWD, path, whole), false);
  return real("opendir", next)(path);
}

extern "C" int pipe2(int* ends, int flags) {
  static int (*next)(int*, int) = nullptr;
  const int result = real("pipe2", next)(ends, flags);
  set_up();
  if (result == 0 && pipe_size > 0) fcntl(ends[1], F_SETPIPE_SZ, pipe_size);
  return result;
}

extern "C" int clock_gettime(clockid_t which, timespec* now) {
  // Uses the system call, because looking up the real function would call this one.
  const int result = static_cast<int>(syscall(SYS_clock_gettime, which, now));
  if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += static_cast<time_t>(clock_shift());
  }
  return result;
}
extern "C" int gettimeofday(timeval* now, void*) {
  timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
extern "C" time_t time(time_t* into) {
  timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (into != nullptr) *into = precise.tv_sec;
  return precise.tv_sec;
}
