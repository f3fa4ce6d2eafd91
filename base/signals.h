#pragma once

#include <signal.h>

namespace petlab::base {

/// Holds all signals of this thread back as long as it lives: between fork and exec a handler of
/// ours would run in the child, on pipes that both share.
class SignalsHeldBack {
 public:
  SignalsHeldBack();
  ~SignalsHeldBack();
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_;
};

/// True if this process ignores the signal, as after `nohup` or in a shell's background job. What
/// was ignored at the start must stay so: nobody installs a handler for it.
bool is_ignored(int signal);

/// Installs a handler unless the signal is ignored. `flags` are those of sigaction.
void handle_unless_ignored(int signal, void (*handler)(int), int flags = 0);

/// In a child before exec: no handler of ours is left and no signal held back. Signals that are
/// ignored here stay so, but for SIGPIPE, which programs expect to end them. Async-signal-safe.
void reset_signals();

}  // namespace petlab::base
