#pragma once

#include <signal.h>

namespace petlab::base {

/// Blocks all signals of this thread during its lifetime. After a fork, a signal handler would
/// otherwise also run in the child, on pipes shared with the parent: one Ctrl-C would count twice.
class SignalsHeldBack {
 public:
  SignalsHeldBack();
  ~SignalsHeldBack();
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_;
};

/// True if this process ignores the signal, as after `nohup` or in a shell's background job. Such a
/// signal must stay ignored: install no handler for it.
bool is_ignored(int signal);

/// Installs a handler unless the signal is ignored. `flags` are those of sigaction.
void handle_unless_ignored(int signal, void (*handler)(int), int flags = 0);

/// Resets signal handlers and unblocks all signals, in a child before exec. Ignored signals stay
/// ignored, except for SIGPIPE, whose default action programs expect. Async-signal-safe.
void reset_signals();

}  // namespace petlab::base
