#include "cli/answers/attempt_details.h"

#include <fmt/format.h>

#include <ostream>
#include <string>

#include "reports/text.h"

namespace petlab::cli {
namespace {

// Texts from workers may contain anything.
std::string on_one_line_each(const std::string& text) {
  return fmt::format("{}", fmt::join(reports::printable_lines(text), " "));
}

void print_details_of(std::ostream& out, const results::AttemptFacts& attempt) {
  out << fmt::format("attempt {}: on {} ({}) for sweep {}\n", attempt.attempt.number,
                     on_one_line_each(attempt.begun.host), on_one_line_each(attempt.begun.device),
                     on_one_line_each(attempt.begun.sweep));
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out << "  " << name << ": " << on_one_line_each(text) << "\n";
  };
  add("kind of failure", attempt.kind);
  if (const auto& resume = attempt.begun.resume) {
    out << fmt::format("  resumed from step {} of attempt {}\n", resume->step, resume->attempt);
  }
  if (attempt.checkpoint) {
    add("last checkpoint",
        fmt::format("step {}, {}", attempt.checkpoint->step, attempt.checkpoint->path));
  }
  if (attempt.device_memory_mib) {
    out << fmt::format("  peak GPU memory: {:.0f} MiB\n", *attempt.device_memory_mib);
  }
  add("note", attempt.note);
  if (attempt.log_tail.empty()) return;
  out << "  last lines of its log:\n";
  for (const std::string& line : reports::printable_lines(attempt.log_tail)) {
    out << "    " << line << "\n";
  }
}

}  // namespace

void print_attempt_details(std::ostream& out, const results::TrialFacts& facts) {
  for (const results::AttemptFacts& attempt : facts.attempts) print_details_of(out, attempt);
}

}  // namespace petlab::cli
