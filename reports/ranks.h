#pragma once

#include <string>
#include <vector>

#include "questions/ranking.h"
#include "reports/definition.h"
#include "reports/table.h"

namespace petlab::reports {

/// A variant of a ranking.
struct RankedVariant {
  Head head;
  CellTrials trials;  // of all tasks
};

/// Finished ranks, ready to be rendered.
struct Ranks {
  std::string key;    // RanksSpec::key
  std::string title;  // RanksSpec::title
  PairTest test = PairTest::nemenyi;
  questions::Ranking ranking;
  std::vector<RankedVariant> variants;  // by average rank; without ranks as in the definition
  std::vector<std::string> notes;       // tasks left out, missing seeds

  bool has_ranks() const { return ranking.missing.empty(); }
  /// The groups of variants that do not differ by `test`.
  const std::vector<std::vector<std::size_t>>& groups() const {
    return test == PairTest::nemenyi ? ranking.ranks.nemenyi_groups : ranking.ranks.wilcoxon_groups;
  }
};

/// Ranks variants over tasks with validated names. Instead of ranks there is a reason in
/// Ranking::missing if the data do not allow any, also if a variant has several trials of a seed.
/// Problems of cells go to CellMaker::problems.
Ranks make_ranks(const RanksSpec& spec, const Ingredients& from, CellMaker& maker);

/// Average rank and letters (questions::Ranking) of each variant.
Table table_of_ranks(const Ranks& ranks);

/// What a reader of the diagram must know: Friedman's test, the test of the bars, and why there is
/// no diagram.
std::vector<std::string> caption(const Ranks& ranks);

}  // namespace petlab::reports
