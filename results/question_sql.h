#pragma once

#include <string>
#include <vector>

#include "results/connection.h"
#include "results/scores.h"

namespace petlab::results::internal {

// What a question asks of trials, as SQL over the aliases t (trials), a (the attempt that counts),
// f, m and w (its artifact, its membership in a sweep, and that).

/// SQL with the values for its ?1, ?2, ….
struct Statement {
  std::string sql;
  std::vector<Value> parameters;

  /// Adds a value; its "?3". Throws std::invalid_argument where there are more than SQLite takes.
  std::string bound(const Value& value);
};

/// The values in the order of their numbers.
void bind_all(Query& query, const std::vector<Value>& values);
/// What a word is called there. Throws std::invalid_argument for a key that cannot be asked for,
/// std::logic_error for a word of a score.
std::string expression(const Word& word, Statement& statement);
/// The trials that a question is about and that are not hidden, with the fields that it wants of
/// them. Throws std::invalid_argument for more than 500 fields or conditions.
Statement trials_of(const ScoreQuestion& question);

}  // namespace petlab::results::internal
