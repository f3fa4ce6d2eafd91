#include "questions/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "questions/conditions.h"

namespace petlab::questions {
namespace {

results::ScoreQuestion scores_of(const SideQuestion& question, const Side& side) {
  results::ScoreQuestion score_question;
  score_question.fields = {results::word_named("seed"), results::word_named("attempt")};
  score_question.where = question.where;
  score_question.where.insert(score_question.where.end(), side.where.begin(), side.where.end());
  score_question.metrics = question.metrics;
  score_question.splits = {question.split};
  return score_question;
}

}  // namespace

Side parse_side(const std::string& text) {
  if (text.find_first_of("=<>!") != std::string::npos) return {text, parse_where(text, text)};
  return {text, {{results::word_named("variant"), results::Condition::Op::equal, {text}}}};
}

SideScores::SideScores(const results::ScoreReader& reader, const SideQuestion& question, Side side)
    : side_(std::move(side)), collected_(reader, scores_of(question, side_)) {
  if (collected_.scores().empty()) {
    explain_nothing(reader, scores_of(question, side_).where);
    throw std::invalid_argument(collected_.rows().empty()
                                    ? fmt::format("{}: no trial is selected", side_.name)
                                    : fmt::format("{}: of {} trials none has a score of split {}",
                                                  side_.name, collected_.rows().size(),
                                                  question.split));
  }
  for (std::size_t field = collected_.first_configuration_field();
       field < collected_.fields().size(); ++field) {
    std::set<std::string> values;
    for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
      values.insert(results::exact_text(collected_.value(row, field), ""));
    }
    if (values.size() > 1) varied_[collected_.fields()[field].name] = std::move(values);
  }
}

SideScores::Scores SideScores::scores(const std::vector<std::string>& shared) const {
  Scores all;
  for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
    const Collected::Row& trial = collected_.rows()[row];
    const std::string key = pair_of(row, shared);
    for (std::size_t at = trial.first_score; at < trial.end_score; ++at) {
      const Collected::Score& score = collected_.scores()[at];
      const results::SeriesName& series = collected_.series()[score.series];
      if (!all[series.name][series.task].emplace(key, score.value).second) refuse(shared, row);
    }
  }
  return all;
}

SideScores::Results SideScores::results(const std::vector<std::string>& shared) const {
  Results all;
  for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
    const Collected::Row& trial = collected_.rows()[row];
    if (!trial.has_result) continue;
    const auto attempt = std::get<std::int64_t>(collected_.value(row, collected_.field("attempt")));
    for (std::size_t at = trial.first_score; at < trial.end_score; ++at) {
      const std::string& task = collected_.series()[collected_.scores()[at].series].task;
      all[task][pair_of(row, shared)] = {collected_.trial_id(row), attempt};
    }
  }
  return all;
}

std::string SideScores::pair_of(std::size_t row, const std::vector<std::string>& shared) const {
  std::string pair = text_of(row, "seed");
  for (const std::string& name : shared) {
    pair += '\x1f' + text_of(row, name);
  }
  return pair;
}

void SideScores::refuse(const std::vector<std::string>& shared, std::size_t row) const {
  std::vector<std::string> names;
  for (const auto& [name, values] : varied_) {
    if (std::find(shared.begin(), shared.end(), name) == shared.end()) names.push_back(name);
  }
  throw std::invalid_argument(fmt::format(
      "{}: several trials have seed {}, expected one for each pair: they differ in {}; choose with "
      "--where",
      side_.name, text_of(row, "seed"), fmt::join(names, ", ")));
}

}  // namespace petlab::questions
