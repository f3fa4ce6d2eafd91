#pragma once

#include <string>
#include <vector>

namespace petlab::cli {

/// Lines at the end of a terminal's output that are drawn again and again in their place. Each
/// picture is one write, so nothing flickers. Uses ANSI escape codes that every terminal but `dumb`
/// knows.
class Screen {
 public:
  explicit Screen(int fd) : fd_(fd) {}
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
  void write(const std::string& bytes);
  int fd_;
  std::vector<std::string> shown_;
  Size shown_at_;
};

}  // namespace petlab::cli
