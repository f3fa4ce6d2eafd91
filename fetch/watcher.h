#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace petlab::fetch {

/// The progress of a download, in bytes.
struct Step {
  std::string file;
  std::uintmax_t done = 0;
  std::uintmax_t size = 0;
};

/// Callbacks of a running download. Each may be empty.
struct Watcher {
  std::function<void(const Step&)> step;
  /// Receives a line for the user about a wait or a retry.
  std::function<void(const std::string&)> note;
  /// Returns true if the user wants to stop. Called at least once a second.
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
