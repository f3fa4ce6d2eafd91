#include "questions/collected.h"

#include <cmath>
#include <stdexcept>

namespace petlab::questions {
Collected::Collected(const results::ScoreReader& reader, const results::ScoreQuestion& question)
    : question_fields_(question.fields.size()), fields_(question.fields) {
  const std::vector<results::Word>& configuration = results::configuration_words();
  fields_.insert(fields_.end(), configuration.begin(), configuration.end());
  columns_.resize(fields_.size());
  std::unordered_map<std::string, std::uint32_t> task_codes;
  std::unordered_map<std::int64_t, std::uint32_t> series_codes;
  reader.each(question, [&](const results::ScoredTrial& trial) {
    const auto [tasks, is_new] =
        task_codes.emplace(trial.tasks, static_cast<std::uint32_t>(tasks_.size()));
    if (is_new) tasks_.push_back(results::listed(trial.tasks));
    Row row{trial.key,
            tasks->second,
            trial.configuration,
            trial.has_result,
            trial.stopped_early,
            scores_.size(),
            0};
    for (std::size_t i = 0; i < question_fields_; ++i) note(columns_[i], trial.fields[i], codes_);
    for (std::size_t i = 0; i < trial.configuration_values.size(); ++i) {
      note(columns_[question_fields_ + i], trial.configuration_values[i], configurations_);
    }
    for (const results::Score& score : trial.scores()) {
      const auto [code, new_series] =
          series_codes.emplace(score.series->key, static_cast<std::uint32_t>(series_.size()));
      if (new_series) series_.push_back(*score.series);
      const bool finite = score.value && std::isfinite(*score.value);
      scores_.push_back({code->second, score.step, finite ? score.value : std::nullopt});
    }
    row.end_score = scores_.size();
    rows_.push_back(row);
    ids_.push_back(trial.trial_id);
  });
}

void Collected::note(Column& column, const results::Value& value,
                     std::vector<std::uint32_t>& codes) {
  if (column.values.empty() || column.values[column.last] != value) {
    const auto [code, is_new] =
        column.codes.emplace(value, static_cast<std::uint32_t>(column.values.size()));
    if (is_new) column.values.push_back(value);
    column.last = code->second;
  }
  codes.push_back(column.last);
}

std::size_t Collected::field(std::string_view name) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return i;
  }
  throw std::out_of_range("no field " + std::string(name) + " was asked for");
}

}  // namespace petlab::questions
