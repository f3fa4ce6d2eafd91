#include "analysis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "analysis/collected.h"
#include "metrics/metric_table.h"
#include "questions/conditions.h"

namespace petlab::analysis {
namespace {

using metrics::MetricRow;
using results::Value;

// Below it no ordering of signs is rare enough for 1 in 20: 2 / 2^5.
constexpr std::int64_t kFewestForRanks = 6;

std::string text_of_value(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

// A side's trials, each once, with what tells its pairs.
class SideScores {
 public:
  SideScores(const results::ScoreReader& reader, const CompareRequest& request, const Side& side)
      : side_(side), collected_(reader, question(request, side)) {
    if (collected_.scores().empty()) {
      questions::explain_nothing(reader, question(request, side).where);
      throw std::invalid_argument(collected_.rows().empty()
                                      ? fmt::format("{}: no trial is selected", side.name)
                                      : fmt::format("{}: of {} trials none has a score of split {}",
                                                    side.name, collected_.rows().size(),
                                                    request.split));
    }
    for (std::size_t field = collected_.first_configuration_field();
         field < collected_.fields().size(); ++field) {
      std::set<std::string>& values = varied_[collected_.fields()[field].name];
      for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
        values.insert(text_of_value(collected_.value(row, field)));
      }
      if (values.size() < 2) varied_.erase(collected_.fields()[field].name);
    }
  }

  using Varied = std::map<std::string, std::set<std::string>>;
  const Varied& varied() const { return varied_; }

  /// By metric, then by task. `shared` are fields that both sides vary, and that tell pairs apart
  /// as the seed does.
  using Scores = std::map<std::string, std::map<std::string, metrics::ScoresByPair>>;
  Scores scores(const std::vector<std::string>& shared) const {
    Scores all;
    std::set<std::int64_t> seen;
    const std::size_t seed = collected_.field("seed");
    for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
      const Collected::Row& trial = collected_.rows()[row];
      if (!seen.insert(trial.trial).second) continue;
      std::string key = text_of_value(collected_.value(row, seed));
      for (const std::string& name : shared) {
        key += '\x1f' + text_of_value(collected_.value(row, collected_.field(name)));
      }
      for (std::size_t at = trial.first_score; at < trial.end_score; ++at) {
        const Collected::Score& score = collected_.scores()[at];
        const results::SeriesName& series = collected_.series()[score.series];
        if (!all[series.name][series.task].emplace(key, score.value).second) refuse(shared, row);
      }
    }
    return all;
  }

 private:
  static results::ScoreQuestion question(const CompareRequest& request, const Side& side) {
    results::ScoreQuestion asked;
    asked.fields = {results::word_named("seed")};
    asked.where = request.where;
    asked.where.insert(asked.where.end(), side.where.begin(), side.where.end());
    asked.metrics = request.metrics;
    asked.splits = {request.split};
    return asked;
  }

  [[noreturn]] void refuse(const std::vector<std::string>& shared, std::size_t row) const {
    std::vector<std::string> names;
    for (const auto& [name, values] : varied_) {
      if (std::find(shared.begin(), shared.end(), name) == shared.end()) names.push_back(name);
    }
    throw std::invalid_argument(fmt::format(
        "{}: several trials have seed {}, wanted one for each pair: they differ in {}; choose with "
        "--where",
        side_.name, text_of_value(collected_.value(row, collected_.field("seed"))),
        fmt::join(names, ", ")));
  }

  const Side& side_;
  Collected collected_;
  Varied varied_;
};

// Fields that both sides vary over the same values: their trials are pairs of equal ones.
std::vector<std::string> shared_fields(const SideScores& a, const SideScores& b) {
  std::vector<std::string> shared;
  for (const auto& [name, values] : a.varied()) {
    const auto other = b.varied().find(name);
    if (other != b.varied().end() && other->second == values) shared.push_back(name);
  }
  return shared;
}

std::string undefined_text(const std::string& name, std::int64_t undefined) {
  return fmt::format("{} has {} undefined {}", name, undefined,
                     undefined == 1 ? "score" : "scores");
}

std::string verdict(const Comparison& made, const std::string& baseline, double level) {
  std::vector<std::string> undefined;
  if (made.baseline_undefined > 0) {
    undefined.push_back(undefined_text(baseline, made.baseline_undefined));
  }
  if (made.undefined > 0) undefined.push_back(undefined_text(made.side, made.undefined));
  if (!undefined.empty()) return fmt::format("undefined: {}", fmt::join(undefined, ", "));
  if (made.pairs == 0) return "no pairs: no equal task and seed";
  if (made.pairs < metrics::kFewestPairs) return "too few pairs to say anything";
  if (!made.p) {
    return std::fabs(*made.effect) <= metrics::kEqualSpread * std::fabs(*made.mean)
               ? "equal in every pair"
               : "the same difference in every pair: no test";
  }
  if (!made.significant(level)) return "no difference shown";
  const MetricRow* row = metrics::find_metric(made.metric);
  if (row == nullptr && made.metric != "loss") {
    return *made.effect > 0 ? made.side + " is higher" : made.side + " is lower";
  }
  const bool higher_is_better = row != nullptr && row->higher_is_better;
  return ((*made.effect > 0) == higher_is_better ? made.side : baseline) + " is better";
}

}  // namespace

Side parse_side(const std::string& text) {
  if (text.find_first_of("=<>!") != std::string::npos)
    return {text, questions::parse_where(text, text)};
  return {text, {{results::word_named("variant"), results::Condition::Op::equal, {text}}}};
}

CompareResult compare(const results::ScoreReader& reader, const CompareRequest& request) {
  CompareResult result;
  std::set<std::string> pooled;
  bool averaged = false;
  const SideScores baseline(reader, request, request.baseline);
  for (const Side& side : request.others) {
    const SideScores other(reader, request, side);
    const std::vector<std::string> shared = shared_fields(baseline, other);
    pooled.insert(shared.begin(), shared.end());
    const SideScores::Scores a = baseline.scores(shared);
    const SideScores::Scores b = other.scores(shared);
    for (const auto& [metric, tasks] : a) {
      const auto its = b.find(metric);
      if (its == b.end()) continue;
      std::vector<const metrics::ScoresByPair*> of_baseline;
      std::vector<const metrics::ScoresByPair*> of_side;
      const auto add = [&, &metric = metric](const std::string& task,
                                             const metrics::ScoresByPair& base,
                                             const metrics::ScoresByPair& scores) {
        result.comparisons.push_back(
            {metrics::compare(base, scores, request.confidence), side.name, task, metric, {}});
      };
      for (const auto& [task, scores] : tasks) {
        const auto same = its->second.find(task);
        if (same == its->second.end()) continue;
        add(task, scores, same->second);
        of_baseline.push_back(&scores);
        of_side.push_back(&same->second);
      }
      if (of_side.size() > 1) {
        add("", metrics::mean_over_tasks(of_baseline), metrics::mean_over_tasks(of_side));
        averaged = true;
      }
    }
  }
  if (result.comparisons.empty()) {
    throw std::invalid_argument("the sides have no metric of one task in common");
  }
  std::vector<metrics::PairedComparison*> family;
  for (Comparison& made : result.comparisons) family.push_back(&made);
  metrics::adjust(family);
  const double level = 1 - request.confidence;
  std::int64_t tested = 0;
  bool rests_on_normality = false;
  bool unpaired = false;
  for (Comparison& made : result.comparisons) {
    tested += made.p ? 1 : 0;
    made.verdict = verdict(made, request.baseline.name, level);
    unpaired = unpaired || made.unpaired > 0;
    rests_on_normality =
        rests_on_normality || (made.significant(level) && made.pairs < kFewestForRanks);
  }
  if (tested > 1) {
    result.notes.push_back(fmt::format("p is adjusted for {} comparisons (Holm)", tested));
  }
  if (averaged) {
    result.notes.emplace_back("all tasks: the mean over tasks of each seed that has all of them");
  }
  if (!pooled.empty()) {
    result.notes.push_back(fmt::format(
        "pairs are not of seeds alone, but of each {} too: they may depend on each other",
        fmt::join(pooled, ", ")));
  }
  if (rests_on_normality) {
    result.notes.push_back(
        fmt::format("with fewer than {} pairs a difference rests on the differences being normally "
                    "distributed: ranks alone could not show it",
                    kFewestForRanks));
  }
  if (unpaired) {
    result.notes.emplace_back(
        "some scores have no partner of equal task and seed, and are left out");
  }
  return result;
}

}  // namespace petlab::analysis
