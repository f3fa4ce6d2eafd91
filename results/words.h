#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/fields.h"

namespace petlab::results {

/// What a word of a question is about, and so which tables it needs.
enum class WordScope {
  trial,    ///< its configuration and its identity
  member,   ///< the trial in a sweep: sweep, variant
  attempt,  ///< the attempt that made the trial's result
  artifact,
  score,  ///< task and name of one value
  tag,    ///< of the trial or of a sweep that it is in; it may have several
};

/// A word for something that trials and scores have: the same in --where, --by, in the columns of
/// what is printed and in the views, whose columns these are.
struct Word {
  std::string name;
  sweeps::FieldType type = sweeps::FieldType::text;
  WordScope scope = WordScope::trial;
  std::string_view help;
  /// The JSON key of `user.KEY`; empty elsewhere.
  std::string user_key;
};

/// Every word but `user.KEY`, which there is for any key: first those of trial and sweep, then the
/// configuration's.
const std::vector<Word>& words();

/// The word that a user wrote: a name of words(), a field as sweep files spell it
/// (`module.kind`), `metric` for `name`, or `user.KEY`. std::nullopt where there is none.
std::optional<Word> find_word(std::string_view text);

/// The same. Throws std::invalid_argument `unknown field "sed"; did you mean "seed"?`, where
/// `others` may be meant as well.
Word word_named(std::string_view text, std::span<const std::string_view> others = {});

}  // namespace petlab::results
