#pragma once

#include <string_view>
#include <vector>

#include "results/query.h"
#include "results/words.h"
#include "sweeps/condition_text.h"

namespace petlab::results {

/// `seed=42`, `task=cola,rte`, `training_epochs>=3`. A question's conditions must all hold.
struct Condition {
  using Op = sweeps::Comparison;
  Word word;
  Op op = Op::equal;
  /// equal: any of them; unequal: none of them; otherwise a single value. std::monostate is `null`:
  /// the field does not apply to the trial.
  std::vector<Value> values;
  int line = 0;  ///< in a report's definition, for messages
};

/// `=`, `!=`, `<`, `<=`, `>` or `>=`.
std::string_view operator_text(Condition::Op op);

/// Evaluates a condition like SQL on the database: numbers compare as numbers, texts as texts, and
/// a number never equals a text. A field that does not apply (NULL) is unequal to every value.
bool holds(const Condition& condition, const Value& value);

}  // namespace petlab::results
