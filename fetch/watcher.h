#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace petlab::fetch {

/// How far a download is; bytes.
struct Step {
  std::string file;
  std::uintmax_t done = 0;
  std::uintmax_t size = 0;
};

/// What a download tells and asks while it goes on. Each may be empty.
struct Watcher {
  std::function<void(const Step&)> step;
  /// A line for the user: what is waited for, what is tried again.
  std::function<void(const std::string&)> note;
  /// True: the user asked to end. Asked at least once a second.
  std::function<bool()> stopped;

  void tell(const Step& how_far) const {
    if (step) step(how_far);
  }
  void tell(const std::string& line) const {
    if (note) note(line);
  }
  bool ended() const { return stopped && stopped(); }
};

}  // namespace petlab::fetch
