#include "base/file_problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/shown.h"

namespace petlab::base {

FileProblemsError::FileProblemsError(std::vector<std::string> problems)
    : std::invalid_argument(fmt::format("{}", fmt::join(problems, "\n"))),
      problems_(std::move(problems)) {}

void FileProblems::add(int line, std::string_view subject, std::string_view found,
                       std::string_view wanted) {
  add_text(line, fmt::format("{}: found {}, expected {}", subject, found, wanted));
}

void FileProblems::add_text(int line, std::string_view text) {
  add_foreign(line, printable_message(fmt::format("{}:{}: {}", file_.string(), line, text)));
}

void FileProblems::add_foreign(int line, const std::string& text) {
  if (problems_.size() < kMost) {
    problems_.emplace(line, text);
  } else if (!problems_.contains({line, text})) {
    ++more_;
  }
}

void FileProblems::throw_if_any() const {
  if (problems_.empty()) return;
  std::vector<std::string> texts;
  for (const auto& [line, text] : problems_) texts.push_back(text);
  if (more_ > 0) texts.push_back(fmt::format("{}: and {} more", file_.string(), more_));
  throw FileProblemsError(std::move(texts));
}

}  // namespace petlab::base
