#pragma once

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace petlab::base {

/// What is wrong with a file that the user wrote, all of it at once.
class FileProblemsError : public std::invalid_argument {
 public:
  /// One text for each problem, `file:line: …`; what() has a line for each.
  explicit FileProblemsError(std::vector<std::string> problems);
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

/// Collects what is wrong with a file that the user wrote, each with its line.
class FileProblems {
 public:
  explicit FileProblems(std::filesystem::path file) : file_(std::move(file)) {}

  /// `file:line: subject: found …, expected …`; the same problem twice counts once. Beyond a
  /// hundred the rest is only counted.
  void add(int line, std::string_view subject, std::string_view found, std::string_view wanted);
  /// `file:line: text`, for a text that says itself what was found and expected.
  void add_text(int line, std::string_view text);
  /// A line that another file's problems already wrote in full, shown at `line` of this one.
  void add_foreign(int line, const std::string& text);

  bool empty() const { return problems_.empty(); }
  /// Throws FileProblemsError with all of them, in the order of the lines, where there are any.
  void throw_if_any() const;

 private:
  static constexpr std::size_t kMost = 100;
  std::filesystem::path file_;
  std::set<std::pair<int, std::string>> problems_;
  std::size_t more_ = 0;
};

}  // namespace petlab::base
