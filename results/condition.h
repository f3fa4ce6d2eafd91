#pragma once

#include <string_view>
#include <vector>

#include "results/query.h"
#include "results/words.h"
#include "sweeps/condition_text.h"

namespace petlab::results {

/// `seed=42`, `task=cola,rte`, `training_epochs>=3`: all of a question's must hold.
struct Condition {
  using Op = sweeps::Comparison;
  Word word;
  Op op = Op::equal;
  /// equal: one of them; unequal: none of them; else one value. std::monostate is `null`: the field
  /// means nothing for the trial.
  std::vector<Value> values;
  int line = 0;  ///< in a report's definition, for messages
};

/// `=`, `!=`, `<`, `<=`, `>` or `>=`.
std::string_view operator_text(Condition::Op op);

/// Whether a field of this value meets the condition, as SQL on the database decides it: numbers
/// compare as numbers, texts as texts, and a number never equals a text. A field that means nothing
/// (NULL) is unequal to every value.
bool holds(const Condition& condition, const Value& value);

}  // namespace petlab::results
