#pragma once

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace petlab::base {

/// All problems of a file written by the user.
class FileProblemsError : public std::invalid_argument {
 public:
  /// Each text is one problem, `file:line: …`, and one line of what().
  explicit FileProblemsError(std::vector<std::string> problems);
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

/// Collects the problems of a file written by the user, each with its line.
class FileProblems {
 public:
  explicit FileProblems(std::filesystem::path file) : file_(std::move(file)) {}

  /// Adds `file:line: subject: found …, expected …`. Duplicates count once. After a hundred
  /// problems, further ones are only counted.
  void add(int line, std::string_view subject, std::string_view found, std::string_view wanted);
  /// Adds `file:line: text`, for texts that include what was found and expected.
  void add_text(int line, std::string_view text);
  /// Adds a complete message about another file, at `line` of this one.
  void add_foreign(int line, const std::string& text);

  bool empty() const { return problems_.empty(); }
  /// Throws FileProblemsError with all problems in line order, if there are any.
  void throw_if_any() const;

 private:
  static constexpr std::size_t kMost = 100;
  std::filesystem::path file_;
  std::set<std::pair<int, std::string>> problems_;
  std::size_t more_ = 0;
};

}  // namespace petlab::base
