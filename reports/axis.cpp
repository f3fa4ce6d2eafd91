#include "reports/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "questions/conditions.h"
#include "reports/selection.h"

namespace petlab::reports {
namespace {

// Values of the fields in `each`.
using Values = std::vector<results::Value>;

bool needs_scores(const std::vector<std::string>& each) {
  return std::any_of(each.begin(), each.end(), is_score_field);
}

results::Value score_field(const Score& score, const std::string& field) {
  if (field == "split") return score.series->split;
  if (field == "step") return score.step;
  if (field == "task") return score.series->task;
  return score.series->name;
}

// The combinations that `each` produces from one trial's scores, by task, then split, name and
// step.
std::vector<Values> combinations_of_scores(const std::vector<std::string>& each, const Trial& trial,
                                           const std::vector<const Score*>& scores) {
  std::map<std::string_view, std::size_t> places;
  for (const std::string& task : trial.tasks) places.emplace(task, places.size());
  // Each score with the index of its task in the trial; other tasks come last.
  std::vector<std::pair<std::size_t, const Score*>> sorted;
  for (const Score* score : scores) {
    const auto place = places.find(score->series->task);
    sorted.emplace_back(place == places.end() ? places.size() : place->second, score);
  }
  const auto key = [](const std::pair<std::size_t, const Score*>& entry) {
    return std::tie(entry.first, entry.second->series->task, entry.second->series->split,
                    entry.second->series->name, entry.second->step);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<Values> found;
  std::set<Values> seen;
  for (const auto& [place, score] : sorted) {
    Values values;
    for (const std::string& field : each) {
      values.push_back(is_score_field(field) || field == "task" ? score_field(*score, field)
                                                                : field_of(trial, field));
    }
    if (seen.insert(values).second) found.push_back(std::move(values));
  }
  return found;
}

std::vector<Values> combinations_of_trial(const std::vector<std::string>& each, const Trial& trial,
                                          const Selection& where) {
  std::vector<Values> found = {{}};
  for (const std::string& field : each) {
    std::vector<Values> longer;
    for (const Values& values : found) {
      if (field != "task") {
        longer.push_back(values);
        longer.back().push_back(field_of(trial, field));
        continue;
      }
      for (const auto* tasks : {&trial.tasks, &trial.other_tasks}) {
        for (const std::string& task : *tasks) {
          // Only those tasks of a trial that the line selects.
          if (!selects_task(where, task)) continue;
          longer.push_back(values);
          longer.back().emplace_back(task);
        }
      }
    }
    found = std::move(longer);
  }
  return found;
}

Selection scores_only(const Selection& selection) {
  Selection kept;
  for (const Condition& condition : selection.conditions) {
    if (is_score_field(condition.word.name) || condition.word.name == "task") {
      kept.conditions.push_back(condition);
    }
  }
  return kept;
}

// A trial with only the values of `each`, for filling in names.
Trial named_by(const std::vector<std::string>& each, const Values& values) {
  Trial trial;
  for (std::size_t i = 0; i < each.size(); ++i) trial.fields[each[i]] = values[i];
  return trial;
}

void expand_each(const Line& line, const Dataset& data, const std::vector<std::size_t>& matching,
                 const std::vector<std::vector<const Score*>>& scores,
                 std::vector<AxisLine>& expanded) {
  std::vector<results::Word> fields;
  for (const std::string& field : line.each) fields.push_back(questions::field_named(field));
  std::map<Values, std::size_t> known;
  for (const std::size_t index : matching) {
    const Trial& trial = data.trials[index];
    const std::vector<Values> combinations =
        needs_scores(line.each) ? combinations_of_scores(line.each, trial, scores[index])
                                : combinations_of_trial(line.each, trial, line.where);
    for (const Values& values : combinations) {
      const auto [place, is_new] = known.emplace(values, expanded.size());
      if (!is_new) continue;
      AxisLine expanded_line;
      for (const results::Value& value : values) {
        expanded_line.key += (expanded_line.key.empty() ? "" : ".") + to_text(value);
        expanded_line.name += (expanded_line.name.empty() ? "" : " ") + to_text(value);
      }
      const Trial values_as_fields = named_by(line.each, values);
      if (!line.name.empty()) expanded_line.name = filled(line.name, values_as_fields);
      expanded_line.published =
          line.published ? filled(*line.published, values_as_fields) : expanded_line.key;
      expanded_line.group = filled(line.group, values_as_fields);
      expanded_line.line = &line;
      expanded_line.scores = scores_only(line.where);
      for (std::size_t i = 0; i < line.each.size(); ++i) {
        if (is_score_field(line.each[i]) || line.each[i] == "task") {
          expanded_line.scores.conditions.push_back(
              {fields[i], Condition::Op::equal, {values[i]}, line.line});
        }
      }
      expanded.push_back(std::move(expanded_line));
    }
  }
  // The trials of each line, including those that have no scores yet but match by their fields.
  std::vector<std::string> trial_fields;
  std::vector<std::size_t> trial_places;
  for (std::size_t i = 0; i < line.each.size(); ++i) {
    if (is_score_field(line.each[i])) continue;
    trial_fields.push_back(line.each[i]);
    trial_places.push_back(i);
  }
  std::map<Values, std::vector<std::size_t>> trials_of;
  for (const std::size_t index : matching) {
    for (Values& trial_values :
         combinations_of_trial(trial_fields, data.trials[index], line.where)) {
      trials_of[std::move(trial_values)].push_back(index);
    }
  }
  std::map<Values, TrialList> shared;
  for (auto& [values, indices] : trials_of) {
    shared[values] = std::make_shared<const std::vector<std::size_t>>(std::move(indices));
  }
  const auto none = std::make_shared<const std::vector<std::size_t>>();
  for (const auto& [values, place] : known) {
    Values trial_values;
    for (const std::size_t i : trial_places) trial_values.push_back(values[i]);
    const auto found = shared.find(trial_values);
    expanded[place].trials = found == shared.end() ? none : found->second;
  }
}

}  // namespace

std::vector<AxisLine> expand(std::span<const Line> lines, const Dataset& data,
                             const std::vector<std::size_t>& trials, const Selection& where) {
  std::vector<AxisLine> expanded;
  for (const Line& line : lines) {
    std::vector<std::size_t> matching;
    for (const std::size_t index : trials) {
      if (matches(line.where, data.trials[index])) matching.push_back(index);
    }
    if (!line.each.empty()) {
      std::vector<std::vector<const Score*>> scores(data.trials.size());
      if (needs_scores(line.each)) {
        for (const Score& score : data.scores) {
          if (matches(where, score) && matches(line.where, score)) {
            scores[score.trial].push_back(&score);
          }
        }
      }
      expand_each(line, data, matching, scores, expanded);
      continue;
    }
    AxisLine expanded_line;
    expanded_line.key = line.key;
    expanded_line.group = line.group;
    expanded_line.name = line.name;
    expanded_line.published = line.published.value_or(line.key);
    expanded_line.line = &line;
    expanded_line.trials = std::make_shared<const std::vector<std::size_t>>(std::move(matching));
    expanded_line.scores = scores_only(line.where);
    expanded.push_back(std::move(expanded_line));
  }
  return expanded;
}

std::vector<AxisLine> separated(std::vector<AxisLine> rows, const std::vector<AxisLine>& columns,
                                const Dataset& data) {
  std::vector<AxisLine> all;
  // Neighbouring rows often have the same trials, so the last result is kept.
  TrialList compared;
  std::set<std::string> different;
  for (AxisLine& row : rows) {
    if (!row.line->separate || row.trials != compared) different.clear();
    if (row.line->separate && row.trials != compared) {
      compared = row.trials;
      for (const AxisLine& column : columns) {
        for (std::string& field : differing_fields(data, common(*row.trials, *column.trials))) {
          different.insert(std::move(field));
        }
      }
    }
    if (!row.line->separate) compared.reset();
    if (different.empty()) {
      all.push_back(std::move(row));
      continue;
    }
    std::map<Values, std::size_t> known;
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> parts;  // index and trials
    for (const std::size_t index : *row.trials) {
      Values values;
      std::string description;
      for (const std::string& field : different) {
        values.push_back(field_of(data.trials[index], field));
        description += (description.empty() ? "" : ", ") + field + " " + to_text(values.back());
      }
      const auto [place, is_new] = known.emplace(std::move(values), parts.size());
      if (is_new) {
        AxisLine part = row;
        part.key += fmt::format(" ({})", description);
        part.name += fmt::format(" ({})", description);
        parts.emplace_back(all.size(), std::vector<std::size_t>());
        all.push_back(std::move(part));
      }
      parts[place->second].second.push_back(index);
    }
    for (auto& [place, trials] : parts) {
      all[place].trials = std::make_shared<const std::vector<std::size_t>>(std::move(trials));
    }
  }
  return all;
}

std::vector<std::string> differing_fields(const Dataset& data,
                                          const std::vector<std::size_t>& trials) {
  std::vector<std::string> different;
  std::map<std::vector<std::string>, std::size_t> first_of_tasks;
  for (const std::size_t index : trials)
    first_of_tasks.try_emplace(data.trials[index].tasks, index);
  // Compare fields only for trials that are not known to be equal.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const std::size_t index : trials) {
    const std::size_t first = first_of_tasks.at(data.trials[index].tasks);
    const std::size_t number = data.trials[index].configuration;
    if (number != 0 && number == data.trials[first].configuration) continue;
    pairs.emplace_back(index, first);
  }
  if (pairs.empty()) return {};
  for (const std::string& field : data.configuration) {
    if (field == "seed" || field == "task" || field == "tasks") continue;
    const bool differs = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
      return field_of(data.trials[pair.first], field) != field_of(data.trials[pair.second], field);
    });
    if (differs) different.push_back(field);
  }
  return different;
}

TrialIds trial_ids(const Dataset& data, const std::vector<std::size_t>& trials) {
  if (trials.empty()) return nullptr;
  std::vector<std::string> ids;
  for (const std::size_t index : trials) ids.push_back(data.trials[index].id);
  return std::make_shared<const std::vector<std::string>>(std::move(ids));
}

std::vector<std::size_t> common(const std::vector<std::size_t>& a,
                                const std::vector<std::size_t>& b) {
  std::vector<std::size_t> both;
  const auto& few = a.size() < b.size() ? a : b;
  const auto& many = a.size() < b.size() ? b : a;
  // Binary search, so that thousands of short rows do not each scan a column of all trials.
  if (few.size() * 16 < many.size()) {
    std::copy_if(few.begin(), few.end(), std::back_inserter(both), [&](std::size_t index) {
      return std::binary_search(many.begin(), many.end(), index);
    });
    return both;
  }
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace petlab::reports
