#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reports/axis.h"
#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/table.h"

namespace petlab::reports {

/// Computes the cells of a report; definition and data must outlive it.
class CellMaker {
 public:
  CellMaker(const Definition& definition, const Dataset& data);

  /// The cell at `row` and `column`, without its published value and standing. Settings come from
  /// the row, else the column (the reverse with `column_first`), else from `defaults`.
  Cell cell(const AxisLine& row, const AxisLine& column, const CellSpec& defaults,
            bool column_first = false);
  /// A field of a trial, including those of reports/derived.h. Adds a note for a backbone of
  /// unknown size.
  results::Value value_of_trial(const Trial& trial, const std::string& field);

  /// Messages `FILE:LINE: …` for cells that select several values of one trial, or values of
  /// several tasks, metrics or splits. At most one per line of the definition.
  const std::vector<std::string>& problems() const { return problems_; }
  /// Notes for the reader of the table (a backbone without a parameter count), without repeats.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Trials = std::vector<std::size_t>;
  using Selections = std::vector<const Selection*>;
  // Distinct trials in both a row and a column, with what the cells derived from them.
  struct Common {
    struct Parts {
      std::vector<Trials> trials;  // by part of an average
      TrialIds ids;                // of all trials, without repeats
      std::int64_t planned_seeds = 0;
    };
    TrialList of_row;
    Trials trials;
    std::string missing;  // why there is no value; empty: not yet computed
    TrialIds ids;         // of trials
    std::map<const std::vector<Selection>*, Parts> parts;
  };

  Common& common_of(const AxisLine& row, const AxisLine& column);
  const Common::Parts& parts_of(Common& common, const std::vector<Selection>& parts) const;
  Trials with_scores(const Trials& trials, const Selections& selections);
  std::vector<const Score*> scores_of(std::size_t trial, const Selections& selections) const;
  std::vector<Sample> metric_samples(const Trials& trials, const Selections& selections, int line,
                                     Trials& used);
  void fill_metric(Cell& cell, const Trials& trials, const Selections& selections, int line);
  Better better_value() const;
  void refuse_pooling(int line);
  void problem(int line, const std::string& what);
  void fill_average(Cell& cell, Common& common, const Selections& selections,
                    const std::vector<Selection>& parts, int line);
  Measured value_of(const Trials& trials, const std::string& field, double scale);
  Measured examples_of(const Trials& trials, const Selections& selections, double scale, int line);
  Measured text_of(const Trials& trials, const std::string& text) const;
  std::optional<std::int64_t> parameters_of(const std::string& backbone);
  void describe_trials(CellTrials& trials, const Trials& used);
  std::string why_missing(Common& common) const;

  const Definition& definition_;
  const Dataset& data_;
  std::vector<std::vector<const Score*>> scores_;    // by trial, then step: last of each series
  std::vector<std::vector<const Score*>> counting_;  // by trial: the counting one of each series
  bool as_printed_ = false;  // the cell multiplies values by MetricRow::printed_scale
  std::set<std::tuple<std::string, std::string, std::string>> series_;  // tasks, names, splits
  std::unordered_map<std::int64_t, Trials> trials_at_;  // by step; built on first use
  // The last result by a column's trials: neighbouring rows often have the same trials.
  std::map<TrialList, Common> last_common_;
  std::pair<Trials, std::vector<std::string>> last_differing_;  // trials and their differing fields
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
};

}  // namespace petlab::reports
