#pragma once

#include <string>
#include <vector>

#include "results/connection.h"
#include "results/scores.h"

namespace petlab::results::internal {

// Translates questions to SQL with the table aliases t (trials), a (the attempt that counts), f
// (its artifact), m (the trial's membership in a sweep) and w (that sweep).

/// SQL with the values of its ?1, ?2, ….
struct Statement {
  std::string sql;
  std::vector<Value> parameters;

  /// Adds a value and returns its placeholder ("?3"). Throws std::invalid_argument if SQLite's
  /// limit is exceeded.
  std::string bound(const Value& value);
};

/// Binds the values to ?1, ?2, … in order.
void bind_all(Query& query, const std::vector<Value>& values);
/// A word as an SQL expression. Throws std::invalid_argument for a key that SQL cannot express, and
/// std::logic_error for a word of a score.
std::string expression(const Word& word, Statement& statement);
/// The visible trials that a question selects, with its fields. Throws std::invalid_argument for
/// more than 500 fields or conditions.
Statement trials_of(const ScoreQuestion& question);
/// The values of configuration_words() of the trial whose key is bound after the statement's
/// parameters.
Statement configuration_of_trial();

}  // namespace petlab::results::internal
