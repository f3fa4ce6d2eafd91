// Functions that the C++ library and compiled code use and that glibc 2.28 does not have. Hidden, so
// that no shared library of the process binds to them.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Since glibc 2.32. False is always right: it only costs atomic instructions.
char __libc_single_threaded = 0;

// Since glibc 2.30.
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// Since glibc 2.36.
void arc4random_buf(void* buffer, size_t size) {
  while (size > 0) {
    const ssize_t got = getrandom(buffer, size, 0);
    if (got > 0) {
      buffer = (char*)buffer + got;
      size -= (size_t)got;
    } else if (errno != EINTR) {
      abort();  // as glibc does: a program must not go on without random numbers
    }
  }
}
uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof(value));
  return value;
}

// Since glibc 2.30: waits until a moment of `clock`. Here the moment is converted to the clock that
// pthread_cond_timedwait uses, as the C++ library did before: if that clock is set meanwhile, the
// wait ends early or late, which callers of condition variables allow for.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  struct timespec here, now;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  if (clock_gettime(clock, &here) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return EINVAL;
  now.tv_sec += until->tv_sec - here.tv_sec;
  now.tv_nsec += until->tv_nsec - here.tv_nsec;
  if (now.tv_nsec < 0) {
    now.tv_nsec += 1000000000;
    --now.tv_sec;
  } else if (now.tv_nsec >= 1000000000) {
    now.tv_nsec -= 1000000000;
    ++now.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &now);
}
