#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/output/patient_writer.h"

namespace petlab::cli {

/// The columns of the terminal that `out` goes to; 0: it is not standard output, or no terminal.
int terminal_width(const std::ostream& out);

/// Lines at the end of a terminal's output that are drawn again and again in their place. Each
/// picture is one write, so nothing flickers. A terminal that is stopped (Ctrl-S) or slow is not
/// waited for: lines that stay are kept, pictures that it cannot take are left out. Uses ANSI
/// escape codes that every terminal but `dumb` knows.
class Screen {
 public:
  /// `out` writes to a terminal, and lives longer.
  explicit Screen(PatientWriter& out) : out_(out) {}
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// True where `fd` is a terminal that can be drawn on; `term` is the environment's TERM.
  static bool can_draw(int fd, const std::string& term);

  /// Columns and lines that a picture may have; 80 and 24 where the terminal does not say.
  struct Size {
    int width = 80;
    int height = 24;
    bool operator==(const Size&) const = default;
  };
  Size size() const;

  /// Puts the lines, none wider than the screen, in the place of those before.
  void show(const std::vector<std::string>& lines);
  /// Takes the picture away and prints lines that stay, above what is shown next.
  void print(const std::vector<std::string>& lines);
  /// Leaves the last picture where it is; what is printed next follows it.
  void leave();

 private:
  std::string to_first_line() const;
  PatientWriter& out_;
  std::vector<std::string> shown_;
  Size shown_at_;
};

}  // namespace petlab::cli
