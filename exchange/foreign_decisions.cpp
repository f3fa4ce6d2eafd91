#include "exchange/foreign_decisions.h"

#include <algorithm>

namespace petlab::exchange {
namespace {

using protocol::Decision;

bool is_on_attempts(const Decision& decision) {
  return decision.what == Decision::What::retry || decision.what == Decision::What::rerun ||
         decision.what == Decision::What::discard || decision.what == Decision::What::stop_early;
}

bool is_on_sight(const Decision& decision) {
  return decision.what == Decision::What::hide || decision.what == Decision::What::unhide;
}

bool is_in(const std::vector<Decision>& all, const Decision& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

std::vector<Decision> decisions_to_take(const ForeignDecisions& there,
                                        const std::vector<Decision>& here) {
  if (there.numbers.empty()) return {};
  std::vector<Decision> mapped = there.all;
  for (Decision& decision : mapped) {
    std::int64_t after = 0;
    for (const auto& [number_there, number_here] : there.numbers) {
      if (number_there <= decision.after_attempt) after = std::max(after, number_here);
    }
    decision.after_attempt = after;
  }
  const bool local_decisions = std::any_of(here.begin(), here.end(), [&](const Decision& one) {
    return is_on_sight(one) && !is_in(mapped, one);
  });
  std::vector<Decision> wanted;
  for (const Decision& one : mapped) {
    const bool means_something =
        (is_on_attempts(one) && (there.attempts_come || !there.own_attempts)) ||
        (is_on_sight(one) && !there.own_attempts && !local_decisions);
    if (means_something && !is_in(here, one)) wanted.push_back(one);
  }
  return wanted;
}

}  // namespace petlab::exchange
