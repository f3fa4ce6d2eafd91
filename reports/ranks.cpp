#include "reports/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "reports/axis.h"
#include "reports/cell.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

// Adds the trials of a task to those of a variant.
void add_trials(CellTrials& all, const CellTrials& added) {
  std::vector<std::string> ids;
  if (all.ids != nullptr) ids = *all.ids;
  std::set<std::string> seen(ids.begin(), ids.end());
  if (added.ids != nullptr) {
    std::copy_if(added.ids->begin(), added.ids->end(), std::back_inserter(ids),
                 [&](const std::string& id) { return seen.insert(id).second; });
  }
  all.ids = std::make_shared<const std::vector<std::string>>(std::move(ids));
  all.stale = all.stale || added.stale;
  // Numerics, code and fields are mixed only within a task.
  if (all.numerics.size() < added.numerics.size()) all.numerics = added.numerics;
  for (const auto& [mixed, more] : {std::pair(&all.mixed_code, &added.mixed_code),
                                    std::pair(&all.mixed_fields, &added.mixed_fields)}) {
    for (const std::string& one : *more) {
      if (std::find(mixed->begin(), mixed->end(), one) == mixed->end()) mixed->push_back(one);
    }
  }
}

std::string list_of(std::vector<std::string> all, std::size_t most) {
  if (all.size() > most) {
    const std::size_t more = all.size() - most;
    all.resize(most);
    all.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

// Computes the ranks of one section.
class RanksMaker {
 public:
  RanksMaker(const RanksSpec& spec, const Ingredients& from, CellMaker& maker)
      : spec_(spec), from_(from), maker_(maker) {}

  Ranks make() {
    ranks_.key = spec_.key;
    ranks_.title = spec_.title;
    ranks_.test = spec_.test;
    const Selection& where = from_.definition.where;
    variants_ = expand(spec_.variants, from_.data, from_.trials, where);
    std::vector<std::string> names;
    for (const AxisLine& variant : variants_) {
      names.push_back(variant.name);
      ranks_.variants.push_back({{variant.key, "", variant.name}, {}});
    }
    std::vector<questions::RankedTask> tasks;
    for (const AxisLine& task : expand(spec_.tasks, from_.data, from_.trials, where)) {
      add_task(task, tasks);
    }
    if (!unknown_.empty()) {
      ranks_.notes.push_back(
          fmt::format("left out because it is not known whether higher is better (better: higher "
                      "or lower says so): {}",
                      list_of(unknown_, kMostListed)));
    }
    ranks_.ranking = questions::rank_over_tasks(names, tasks, spec_.level);
    if (!several_.empty()) {
      ranks_.ranking = {};
      ranks_.ranking.missing = several_;
      return std::move(ranks_);
    }
    finish();
    return std::move(ranks_);
  }

 private:
  static constexpr std::size_t kMostListed = 20;

  void add_task(const AxisLine& task, std::vector<questions::RankedTask>& tasks) {
    questions::RankedTask added;
    added.name = task.name;
    Better better = Better::none;
    bool any = false;
    for (std::size_t at = 0; at < variants_.size(); ++at) {
      const Cell cell = maker_.cell(variants_[at], task, {}, true);
      add_trials(ranks_.variants[at].trials, cell.trials);
      if (better == Better::none) better = cell.better;
      any = any || cell.measured.n() > 0;
      added.scores.push_back(by_seed(variants_[at], task, cell));
    }
    if (better == Better::none && any) {
      unknown_.push_back(task.name);
      return;
    }
    added.higher_is_better = better != Better::lower;
    tasks.push_back(std::move(added));
  }

  metrics::ScoresByPair by_seed(const AxisLine& variant, const AxisLine& task, const Cell& cell) {
    metrics::ScoresByPair scores;
    const Measured& measured = cell.measured;
    for (const Sample& sample : measured.samples) {
      const bool defined = sample.value && std::isfinite(*sample.value);
      const bool is_new = scores
                              .emplace(std::to_string(sample.seed),
                                       defined ? sample.value : std::optional<double>())
                              .second;
      if (is_new || !several_.empty()) continue;
      const std::vector<std::string>& fields = cell.trials.mixed_fields;
      several_ = fmt::format(
          "{} has several trials with seed {} for {}, expected one{}; choose with where",
          variant.name, sample.seed, task.name,
          fields.empty() ? "" : fmt::format(" (they differ in {})", fmt::join(fields, ", ")));
    }
    if (measured.n() > 0 && measured.partial()) {
      partial_.push_back(fmt::format("{} for {} ({} of {})", variant.name, task.name, measured.n(),
                                     measured.planned));
    }
    return scores;
  }

  void finish() {
    const questions::Ranking& ranking = ranks_.ranking;
    if (!ranking.left_out.empty()) {
      ranks_.notes.push_back("left out without a defined score of every variant: " +
                             list_of(ranking.left_out, kMostListed));
    }
    if (!ranks_.has_ranks()) return;
    if (!partial_.empty()) {
      ranks_.notes.push_back("means over fewer seeds than planned: " +
                             list_of(partial_, kMostListed));
    }
    std::vector<RankedVariant> sorted;
    for (const std::size_t at : ranking.order) sorted.push_back(std::move(ranks_.variants[at]));
    ranks_.variants = std::move(sorted);
  }

  const RanksSpec& spec_;
  const Ingredients& from_;
  CellMaker& maker_;
  std::vector<AxisLine> variants_;
  std::vector<std::string> unknown_;  // tasks of unknown direction
  std::vector<std::string> partial_;  // scores over fewer seeds than planned
  std::string several_;               // why scores cannot be told apart by seed; empty: they can
  Ranks ranks_;
};

}  // namespace

Ranks make_ranks(const RanksSpec& spec, const Ingredients& from, CellMaker& maker) {
  return RanksMaker(spec, from, maker).make();
}

Table table_of_ranks(const Ranks& ranks) {
  constexpr int kRankDigits = 2;
  Table table;
  table.key = ranks.key;
  table.title = ranks.title;
  table.columns = {{"average_rank", "", "average rank"},
                   {"nemenyi", "", "nemenyi"},
                   {"wilcoxon", "", "wilcoxon"}};
  for (std::size_t at = 0; at < ranks.variants.size(); ++at) {
    table.rows.push_back(ranks.variants[at].head);
    std::vector<Cell>& cells = table.cells.emplace_back(table.columns.size());
    for (Cell& cell : cells) {
      cell.measured.spread = false;
      cell.measured.reason = ranks.ranking.missing;
    }
    cells.front().trials = ranks.variants[at].trials;
    if (!ranks.has_ranks()) continue;
    cells[0].measured.kind = Measured::Kind::number;
    cells[0].measured.mean = ranks.ranking.ranks.average_ranks[at];
    cells[0].digits = kRankDigits;
    for (const auto& [column, letters] :
         {std::pair(1, &ranks.ranking.nemenyi), std::pair(2, &ranks.ranking.wilcoxon)}) {
      cells[column].measured.kind = Measured::Kind::text;
      cells[column].measured.text = (*letters)[at];
    }
  }
  return table;
}

std::vector<std::string> caption(const Ranks& ranks) {
  const questions::Ranking& ranking = ranks.ranking;
  if (!ranks.has_ranks()) return {"no diagram: " + printable(ranking.missing)};
  std::vector<std::string> lines = {friedman_text(ranking)};
  if (!ranking.differs) {
    lines.emplace_back("the bar connects all variants");
    return lines;
  }
  lines.push_back(
      ranks.test == PairTest::nemenyi
          ? fmt::format("Nemenyi's test (level {:g}): critical difference CD = {:.2f}",
                        ranking.level, ranking.ranks.critical_difference)
          : fmt::format("Wilcoxon's exact test over tasks with Holm's correction (level {:g})",
                        ranking.level));
  lines.emplace_back(ranks.groups().empty()
                         ? "no bars: any two variants differ significantly"
                         : "bars connect variants that do not differ significantly");
  const std::int64_t fewest = questions::fewest_wilcoxon_tasks(ranking.sides.size(), ranking.level);
  if (ranks.test == PairTest::wilcoxon &&
      fewest > static_cast<std::int64_t>(ranking.tasks.size())) {
    lines.push_back(
        fmt::format("this test cannot tell any variants apart over fewer than {} tasks", fewest));
  }
  return lines;
}

}  // namespace petlab::reports
