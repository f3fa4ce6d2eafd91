#include "results/selected_scores.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

namespace petlab::results::internal {
namespace {

bool has_task(std::string_view tasks, std::string_view task) {
  while (!task.empty()) {
    const std::size_t comma = tasks.find(',');
    if (tasks.substr(0, comma) == task) return true;
    if (comma == std::string_view::npos) return false;
    tasks.remove_prefix(comma + 1);
  }
  return false;
}

bool is_of_test(const SeriesName& series) { return series.split == "test"; }

}  // namespace

std::vector<SeriesName> all_series(Connection& connection) {
  std::vector<SeriesName> all;
  Query rows(connection,
             "SELECT key, split, task, name FROM series ORDER BY split, task, name, key");
  while (rows.step()) all.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.text(3)});
  return all;
}

std::vector<CountingAttempt> counting_attempts(Connection& connection, std::int64_t trial) {
  std::vector<CountingAttempt> all;
  Query rows(
      connection,
      "SELECT key, number, counts_to FROM attempts WHERE trial = ?1 AND counts_to IS NOT NULL "
      "ORDER BY number DESC");
  rows.with(trial);
  while (rows.step()) all.push_back({rows.integer(0), rows.integer(1), rows.integer(2)});
  if (!all.empty()) return all;
  Query last(
      connection,
      "SELECT key, number, 9223372036854775807 FROM attempts WHERE trial = ?1 ORDER BY number "
      "DESC LIMIT 1");
  last.with(trial);
  while (last.step()) all.push_back({last.integer(0), last.integer(1), last.integer(2)});
  return all;
}

SelectedScores::SelectedScores(std::vector<const SeriesName*> wanted,
                               std::span<const SeriesName* const> tests)
    : wanted_(std::move(wanted)), found_(wanted_.size()) {
  for (std::size_t place = 0; place < wanted_.size(); ++place) {
    places_[wanted_[place]->key] = place;
  }
  for (const SeriesName* one : tests) tests_.insert(one->key);
}

void SelectedScores::begin() {
  for (Found& one : found_) one = {};
  selected_.reset();
  settled_ = 0;
}

void SelectedScores::take(std::int64_t series, std::int64_t step, std::optional<double> value) {
  if (!selected_ && tests_.contains(series)) {
    selected_ = step;
    for (Found& one : found_) {
      if (one.settled) continue;
      const auto there = one.candidates.find(step);
      if (there == one.candidates.end()) continue;
      one.score = Score{one.score->series, step, there->second};
      settle(one);
    }
  }
  const auto place = places_.find(series);
  if (place == places_.end()) return;
  Found& found = found_[place->second];
  if (found.settled) return;
  const SeriesName* const name = wanted_[place->second];
  const bool at_selected = selected_ == step;
  if (!found.score || at_selected) found.score = Score{name, step, value};
  // Without test scores there is no selected step, and the last value is the one.
  if (at_selected || tests_.empty() || is_of_test(*name)) {
    settle(found);
  } else if (!selected_) {
    found.candidates.try_emplace(step, value);
  }
}

void SelectedScores::settle(Found& found) {
  found.settled = true;
  ++settled_;
}

std::vector<Score> SelectedScores::scores() const {
  std::vector<Score> all;
  for (const Found& one : found_) {
    if (one.score) all.push_back(*one.score);
  }
  return all;
}

WantedSeries::WantedSeries(Connection& connection,
                           const std::function<bool(const SeriesName&)>& wanted)
    : connection_(connection), all_(all_series(connection)) {
  for (const SeriesName& one : all_) {
    by_key_[one.key] = &one;
    if (wanted(one)) wanted_.push_back(&one);
  }
}

SelectedScores& WantedSeries::of(const std::string& tasks) {
  if (const auto known = by_tasks_.find(tasks); known != by_tasks_.end()) return known->second;
  std::vector<const SeriesName*> wanted;
  std::copy_if(wanted_.begin(), wanted_.end(), std::back_inserter(wanted),
               [&](const SeriesName* one) { return belongs_to(tasks, *one); });
  return by_tasks_.emplace(tasks, SelectedScores(std::move(wanted), tests_of(tasks))).first->second;
}

std::vector<const SeriesName*> WantedSeries::tests_of(const std::string& tasks) {
  std::vector<const SeriesName*> tests;
  for (const SeriesName& one : all_) {
    if (is_of_test(one) && belongs_to(tasks, one)) tests.push_back(&one);
  }
  return tests;
}

std::string WantedSeries::keys() const {
  nlohmann::json keys = nlohmann::json::array();
  for (const SeriesName* one : wanted_) keys.push_back(one->key);
  if (std::all_of(wanted_.begin(), wanted_.end(),
                  [](const SeriesName* one) { return is_of_test(*one); })) {
    return keys.dump();  // the last report counts, and no step has to be known
  }
  for (const SeriesName& one : all_) {
    if (is_of_test(one)) keys.push_back(one.key);
  }
  return keys.dump();
}

bool WantedSeries::belongs_to(const std::string& tasks, const SeriesName& series) {
  if (has_task(tasks, series.task)) return true;
  const auto [known, is_new] = owned_.try_emplace(series.task, false);
  if (is_new) {
    Query owner(connection_, "SELECT 1 FROM trials WHERE instr(',' || tasks || ',', ?1) LIMIT 1");
    const std::string task = "," + series.task + ",";
    known->second = owner.with(std::string_view(task)).step();
  }
  return !known->second;
}

}  // namespace petlab::results::internal
