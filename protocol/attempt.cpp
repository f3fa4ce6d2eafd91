#include "protocol/attempt.h"

#include <array>
#include <utility>

namespace petlab::protocol {
namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 10> kOutcomes = {{
    {Outcome::open, "open"},
    {Outcome::finished, "finished"},
    {Outcome::failed, "failed"},
    {Outcome::crashed, "crashed"},
    {Outcome::never_started, "never_started"},
    {Outcome::timed_out, "timed_out"},
    {Outcome::stalled, "stalled"},
    {Outcome::stopped, "stopped"},
    {Outcome::cancelled, "cancelled"},
    {Outcome::lost, "lost"},
}};

}  // namespace

std::string_view to_string(Outcome outcome) {
  for (const auto& [value, text] : kOutcomes) {
    if (value == outcome) return text;
  }
  return "open";
}

std::optional<Outcome> outcome_from(std::string_view text) {
  for (const auto& [value, name] : kOutcomes) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace petlab::protocol
