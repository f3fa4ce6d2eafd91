// Preloaded into a program (LD_PRELOAD) to make calls of the C library fail, to kill the program at
// one of them, or to shift its clock: events that a test cannot cause in a disk, a kernel or a day.
//
// PETLAB_TEST_FAULTS contains rules, separated by ';'. The words of a rule are:
//   fail program=petlab calls=write,fdatasync path=*.db-wal error=EIO [after=3] [times=1]
//        The matching calls after the third fail; times=1 limits that to one call. Writes that
//        fail with ENOSPC may write a part first, as on a real disk.
//   kill program=petlab calls=rename path=* at=5 [torn]
//        The process dies by SIGKILL instead of the fifth matching call; torn: after half of a
//        write. It first prints on standard error: `killed at rename /the/path`.
//   stop program=petlab calls=rename path=* at=5
//        The process stops (SIGSTOP) before the fifth matching call until SIGCONT, so that others
//        can interfere. It first prints: `stopped at rename /the/path`.
//   trace program=petlab file=/where
//        Appends `call path` for each call that changes something.
//   locked program=petlab path=*/runs/* file=/where
//        Appends `call path` for each matching call while the process holds the write lock of an
//        SQLite database in WAL mode, and `lock` when it first gets that lock.
//   unlocked program=petlab
//        File locks (fcntl) are granted to every process, as on some network file systems. This
//        also applies to forks of the program.
//   redirect program=petlab path=/this/file file=/where
//        Opens the other file wherever the program opens this one, for example for another boot id.
//   network program=petlab
//        Every file system is reported as NFS.
//   clock file=/where
//        The wall clock is shifted by the number of seconds that the file contains at the moment.
//   pipe size=4096
//        Pipes have this size.
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
  int error = EIO;
  long after = 0;
  long times = LONG_MAX;
  long at = 1;
  bool torn = false;
  std::atomic<long> seen{0};
};

constexpr int kMostRules = 16;
Rule rules[kMostRules];
int rule_count = 0;
char clock_file[PATH_MAX] = "";
char trace_file[PATH_MAX] = "";
char locked_file[PATH_MAX] = "";
char locked_path[PATH_MAX] = "";
std::atomic<bool> locked{false};
bool unlocked = false;
bool network = false;
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
    const auto is = [&](const char* name) { return strcmp(word, name) == 0; };
    if (is("torn")) rule.torn = true;
    if (value == nullptr) continue;
    if (is("program")) mine = strcmp(value, program) == 0;
    if (is("calls")) snprintf(rule.calls, sizeof rule.calls, "%s", value);
    if (is("path")) snprintf(rule.path, sizeof rule.path, "%s", value);
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
    if (!has_word(rule.calls, call) || fnmatch(rule.path, path, 0) != 0) continue;
    const long seen = ++rule.seen;
    if (rule.kind == Kind::fail) {
      if (seen > rule.after && seen - rule.after <= rule.times) return rule.error;
      continue;
    }
    if (seen != rule.at || !changes) continue;
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

int verdict_fd(const char* call, int fd, bool changes) {
  set_up();
  if (rule_count == 0 && trace_file[0] == '\0' && !locked) return 0;
  char link[64];
  char path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return verdict(call, path, changes);
}

const char* full(const char* path, char* into) {
  if (path[0] == '/') return path;
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof folder) == nullptr) return path;
  if (snprintf(into, PATH_MAX, "%s/%s", folder, path) >= PATH_MAX) return path;
  return into;
}

int verdict_path(const char* call, const char* path) {
  char whole[PATH_MAX];
  return verdict(call, full(path, whole), true);
}

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

// Wraps a call of the C library that returns -1 and sets errno if it fails.
#define FAULTY(RESULT, NAME, PARAMETERS, ARGUMENTS, VERDICT) \
  extern "C" RESULT NAME PARAMETERS {                        \
    static RESULT(*next) PARAMETERS = nullptr;               \
    const int error = VERDICT;                               \
    if (error < 0) die();                                    \
    if (error > 0) {                                         \
      errno = error;                                         \
      return -1;                                             \
    }                                                        \
    return real(#NAME, next) ARGUMENTS;                      \
  }

// The same for a write, a part of which may happen before the failure or death.
#define FAULTY_WRITE(NAME, PARAMETERS, ARGUMENTS, HALF)              \
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
    return real(#NAME, next) ARGUMENTS;                              \
  }

FAULTY_WRITE(write, (int fd, const void* data, size_t size), (fd, data, size), (fd, data, size / 2))
FAULTY_WRITE(pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at),
             (fd, data, size / 2, at))
FAULTY_WRITE(pwrite64, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at),
             (fd, data, size / 2, at))
FAULTY(ssize_t, writev, (int fd, const iovec* parts, int count), (fd, parts, count),
       verdict_fd("writev", fd, true))
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
FAULTY(int, ftruncate, (int fd, off_t size), (fd, size), verdict_fd("ftruncate", fd, true))
FAULTY(int, ftruncate64, (int fd, off64_t size), (fd, size), verdict_fd("ftruncate64", fd, true))
FAULTY(int, fsync, (int fd), (fd), verdict_fd("fsync", fd, true))
FAULTY(int, fdatasync, (int fd), (fd), verdict_fd("fdatasync", fd, true))
FAULTY(int, syncfs, (int fd), (fd), verdict_fd("syncfs", fd, true))
FAULTY(int, flock, (int fd, int how), (fd, how), verdict_fd("flock", fd, true))
FAULTY(int, rename, (const char* from, const char* to), (from, to), verdict_path("rename", to))
FAULTY(int, renameat2, (int at, const char* from, int to_at, const char* to, unsigned flags),
       (at, from, to_at, to, flags), verdict_path("renameat2", to))
FAULTY(int, link, (const char* from, const char* to), (from, to), verdict_path("link", to))
FAULTY(int, unlink, (const char* path), (path), verdict_path("unlink", path))
FAULTY(int, unlinkat, (int at, const char* path, int flags), (at, path, flags),
       verdict_path("unlinkat", path))
FAULTY(int, rmdir, (const char* path), (path), verdict_path("rmdir", path))
FAULTY(int, remove, (const char* path), (path), verdict_path("remove", path))
FAULTY(int, mkdir, (const char* path, mode_t mode), (path, mode), verdict_path("mkdir", path))
FAULTY(int, mkostemp, (char* path, int flags), (path, flags), verdict_path("mkostemp", path))
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
#define FAULTY_OPEN(NAME, PARAMETERS, ARGUMENTS)                                                  \
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
    const int error = verdict("open", full(path, whole), (flags & (O_CREAT | O_TRUNC)) != 0);     \
    if (error < 0) die();                                                                         \
    if (error > 0) {                                                                              \
      errno = error;                                                                              \
      return -1;                                                                                  \
    }                                                                                             \
    return real(#NAME, next) ARGUMENTS;                                                           \
  }
#define open_TYPES const char*, int, ...
#define open64_TYPES const char*, int, ...
#define openat_TYPES int, const char*, int, ...
#define openat64_TYPES int, const char*, int, ...
FAULTY_OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
FAULTY_OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
FAULTY_OPEN(openat, (int at, const char* path, int flags, ...), (at, path, flags, mode))
FAULTY_OPEN(openat64, (int at, const char* path, int flags, ...), (at, path, flags, mode))

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
  if (result == 0 && network) status->f_type = 0x6969;
  return result;
}

extern "C" DIR* opendir(const char* path) {
  static DIR* (*next)(const char*) = nullptr;
  char whole[PATH_MAX];
  verdict("opendir", full(path, whole), false);
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
