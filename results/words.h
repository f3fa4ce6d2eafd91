#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/fields.h"

namespace petlab::results {

/// The subject of a word, which determines the tables it needs.
enum class WordScope {
  trial,    ///< configuration and id of the trial
  member,   ///< the trial's place in a sweep: sweep, variant
  attempt,  ///< the attempt with the trial's result
  artifact,
  score,  ///< task and name of a value
  tag,    ///< tags of the trial and its sweeps; there may be several
};

/// A property of trials or scores. Its name is the same in --where, --by, printed columns and the
/// columns of the views.
struct Word {
  std::string name;
  sweeps::FieldType type = sweeps::FieldType::text;
  WordScope scope = WordScope::trial;
  std::string_view help;
  /// The KEY of `user.KEY`; empty for all other words.
  std::string user_key;
  /// The JSON path in the configuration of a field that a worker declares, which has no column in
  /// tables: `$.module.targets`. Empty for all other words.
  std::string path = {};
};

/// All words except `user.KEY`, which accepts any key: first those of trials and sweeps, then those
/// of the configuration, and of the catalogs that were learned (sweeps/worker_catalog.h). A vector
/// stays valid when more is learned.
const std::vector<Word>& words();

/// Finds a user's word: a name of words(), a field as in sweep files (`module.kind`), `metric` for
/// `name`, or `user.KEY`. std::nullopt if it is unknown.
std::optional<Word> find_word(std::string_view text);

/// Does the same, but throws std::invalid_argument if it is unknown: `unknown field "sed"; did you
/// mean "seed"?`. Suggestions include `others`.
Word word_named(std::string_view text, std::span<const std::string_view> others = {});

}  // namespace petlab::results
