#include "results/condition.h"

#include <algorithm>
#include <compare>
#include <optional>

namespace petlab::results {
namespace {

// std::nullopt if the values cannot be ordered, or one is NULL.
std::optional<std::partial_ordering> order_of(const Value& a, const Value& b) {
  const auto* a_whole = std::get_if<std::int64_t>(&a);
  const auto* b_whole = std::get_if<std::int64_t>(&b);
  if (a_whole != nullptr && b_whole != nullptr) return *a_whole <=> *b_whole;
  const auto a_number = number_in(a);
  const auto b_number = number_in(b);
  if (a_number && b_number) return *a_number <=> *b_number;
  const auto* a_text = std::get_if<std::string>(&a);
  const auto* b_text = std::get_if<std::string>(&b);
  if (a_text != nullptr && b_text != nullptr) return *a_text <=> *b_text;
  return std::nullopt;
}

}  // namespace

std::string_view operator_text(Condition::Op op) {
  constexpr std::string_view kTexts[] = {"=", "!=", "<", "<=", ">", ">="};
  return kTexts[static_cast<std::size_t>(op)];
}

bool holds(const Condition& condition, const Value& value) {
  using Op = Condition::Op;
  if (condition.op == Op::equal || condition.op == Op::unequal) {
    const bool found =
        std::any_of(condition.values.begin(), condition.values.end(), [&](const Value& one) {
          const auto order = order_of(value, one);
          return order ? *order == std::partial_ordering::equivalent
                       : std::holds_alternative<std::monostate>(value) &&
                             std::holds_alternative<std::monostate>(one);
        });
    return found == (condition.op == Op::equal);
  }
  const auto order = order_of(value, condition.values.at(0));
  if (!order) return false;
  switch (condition.op) {
    case Op::less:
      return *order < 0;
    case Op::at_most:
      return *order <= 0;
    case Op::greater:
      return *order > 0;
    default:
      return *order >= 0;
  }
}

}  // namespace petlab::results
