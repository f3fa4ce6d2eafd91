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

  /// The cell where `row` and `column` meet, without what the paper prints there and its standing.
  /// What neither of them says of it is taken from `defaults`; where both say it, the row does, or
  /// else the column.
  Cell cell(const AxisLine& row, const AxisLine& column, const CellSpec& defaults,
            bool column_first = false);
  /// A field of a trial, those of reports/derived.h included. A backbone of unknown size is noted.
  results::Value value_of_trial(const Trial& trial, const std::string& field);

  /// Cells that select several values of one trial, or values of several tasks, metrics or splits,
  /// as `FILE:LINE: …`, a line of the definition once.
  const std::vector<std::string>& problems() const { return problems_; }
  /// What a reader of the table must know (a backbone without a parameter count), each once.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Trials = std::vector<std::size_t>;
  using Selections = std::vector<const Selection*>;
  // The trials of a row and of a column, each once, and what cells find out of all of them.
  struct Common {
    struct Parts {
      std::vector<Trials> trials;  // by part of an average
      TrialIds ids;                // of all of them, each once
      std::int64_t planned_seeds = 0;
    };
    TrialList of_row;
    Trials trials;
    std::string missing;  // why there is no value; empty: nobody has asked
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
  std::vector<std::vector<const Score*>> scores_;    // by trial, by step: the last of each series
  std::vector<std::vector<const Score*>> counting_;  // by trial: of each series the one that counts
  bool as_printed_ = false;  // the running cell: values times MetricRow::printed_scale
  std::set<std::tuple<std::string, std::string, std::string>> series_;  // its tasks, names, splits
  std::unordered_map<std::int64_t, Trials> trials_at_;  // by step; made when a cell asks
  // Neighbouring rows often are of the same trials. By the column's.
  std::map<TrialList, Common> last_common_;
  std::pair<Trials, std::vector<std::string>> last_differing_;  // trials, and in what they differ
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
};

}  // namespace petlab::reports
