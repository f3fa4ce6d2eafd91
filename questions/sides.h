#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/paired_comparison.h"
#include "questions/collected.h"
#include "results/scores.h"

namespace petlab::questions {

/// One side of a comparison.
struct Side {
  std::string name;
  std::vector<results::Condition> where;
};

/// Parses a condition such as `variant=a and seed<45`, or the name of a variant. Throws
/// std::invalid_argument.
Side parse_side(const std::string& text);

/// The scores to compare.
struct SideQuestion {
  std::vector<results::Condition> where;  ///< for all sides
  std::vector<std::string> metrics;       ///< empty: all
  std::string split = "test";
};

/// The attempt with a trial's result.
struct ResultOf {
  std::string trial_id;
  std::int64_t attempt = 0;
};

/// The scores of a side. Throws std::invalid_argument if the side selects nothing.
class SideScores {
 public:
  SideScores(const results::ScoreReader& reader, const SideQuestion& question, Side side);

  /// The configuration fields in which the trials differ, except for the seed, with their values.
  using Varied = std::map<std::string, std::set<std::string>>;
  const Varied& varied() const { return varied_; }

  /// By metric, then by task. A pair is identified by a seed and a value of each field in `shared`.
  /// Throws std::invalid_argument if a pair has several trials, naming the fields in which they
  /// differ.
  using Scores = std::map<std::string, std::map<std::string, metrics::ScoresByPair>>;
  Scores scores(const std::vector<std::string>& shared = {}) const;
  /// The results with these scores, by task, then by pair.
  using Results = std::map<std::string, std::map<std::string, ResultOf>>;
  Results results(const std::vector<std::string>& shared = {}) const;

 private:
  std::string text_of(std::size_t row, std::string_view field) const {
    return results::exact_text(collected_.value(row, collected_.field(field)), "");
  }
  std::string pair_of(std::size_t row, const std::vector<std::string>& shared) const;
  [[noreturn]] void refuse(const std::vector<std::string>& shared, std::size_t row) const;

  Side side_;
  Collected collected_;
  Varied varied_;
};

}  // namespace petlab::questions
