#include "questions/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "metrics/seed_statistics.h"
#include "questions/collected.h"
#include "questions/conditions.h"
#include "questions/values.h"

namespace petlab::questions {
namespace {

using results::Value;
using results::Word;
using results::WordScope;

bool contains(const std::vector<Word>& words, std::string_view name) {
  return std::any_of(words.begin(), words.end(), [&](const Word& w) { return w.name == name; });
}

// Indices of a group's values, joined.
using GroupKey = std::u32string;

struct Group {
  std::size_t first_row = 0;
  std::string task;
  std::vector<double> values;
  std::int64_t undefined = 0;
  std::int64_t pending = 0;
  std::int64_t last_trial = -1;  // counts a trial once, even if it is in two sweeps
};

class Summariser {
 public:
  Summariser(const results::ScoreReader& reader, const SummaryRequest& request)
      : request_(request),
        by_(request.by),
        collected_(reader, question(reader, request)),
        first_field_(collected_.first_configuration_field()),
        mixed_(collected_.fields().size() - first_field_) {}

  Summary make(const results::ScoreReader& reader) {
    if (collected_.scores().empty()) explain_nothing(reader, request_.where);
    for (const Collected::Score& score : collected_.scores()) {
      tasks_.insert(collected_.series()[score.series].task);
    }
    for (const Collected::Row& row : collected_.rows()) {
      if (row.has_result) continue;
      for (const std::string& task : collected_.tasks()[row.tasks]) {
        if (is_wanted(task)) tasks_.insert(task);
      }
    }
    if (request_.by.empty()) choose_rows();
    const bool task_told = contains(by_, "task") || (contains(by_, "tasks") && !multi_task()) ||
                           (request_.pivot && request_.pivot->name == "task");
    if (!task_told && tasks_.size() > 1) by_.push_back(results::word_named("task"));
    Summary summary;
    count_trials(summary);
    fill(summary);
    add_notes(summary);
    return summary;
  }

 private:
  static results::ScoreQuestion question(const results::ScoreReader& reader,
                                         const SummaryRequest& request) {
    results::ScoreQuestion score_question;
    score_question.where = request.where;
    score_question.metrics = request.metrics;
    score_question.splits = {request.split};
    const auto add = [&](const Word& word) {
      if (word.scope != WordScope::score && !contains(score_question.fields, word.name) &&
          !contains(results::configuration_words(), word.name)) {
        score_question.fields.push_back(word);
      }
    };
    for (const Word& word : request.by) add(word);
    if (request.pivot) add(*request.pivot);
    if (request.by.empty() && !reader.values_of(results::word_named("variant"), 1).empty()) {
      add(results::word_named("variant"));
    }
    return score_question;
  }

  // Uses the variant and all fields in which trials of a variant differ, except for the task.
  void choose_rows() {
    const auto& fields = collected_.fields();
    if (contains(fields, "variant")) by_.push_back(results::word_named("variant"));
    const std::optional<std::size_t> variant =
        by_.empty() ? std::nullopt : std::optional(collected_.field("variant"));
    std::unordered_map<std::uint64_t, std::size_t> first;  // first row by variant and tasks
    std::vector<bool> differs(fields.size());
    for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
      const std::uint64_t key =
          (variant ? std::uint64_t{collected_.code(row, *variant)} << 32 : 0) |
          collected_.rows()[row].tasks;
      const std::size_t other = first.emplace(key, row).first->second;
      if (same_configuration(row, other)) continue;
      for (std::size_t i = first_field_; i < fields.size(); ++i) {
        if (collected_.code(row, i) != collected_.code(other, i)) differs[i] = true;
      }
    }
    for (std::size_t i = first_field_; i < fields.size(); ++i) {
      if (differs[i]) by_.push_back(fields[i]);
    }
    if (request_.pivot) {
      std::erase_if(by_, [&](const Word& word) { return word.name == request_.pivot->name; });
    }
  }

  bool multi_task() const {
    return std::any_of(collected_.tasks().begin(), collected_.tasks().end(),
                       [](const auto& tasks) { return tasks.size() > 1; });
  }
  bool same_configuration(std::size_t a, std::size_t b) const {
    return collected_.rows()[a].configuration == collected_.rows()[b].configuration;
  }

  void count_trials(Summary& summary) {
    std::int64_t last = -1;
    for (const Collected::Row& row : collected_.rows()) {
      if (row.trial == last) continue;
      last = row.trial;
      ++summary.trials;
      if (!row.has_result) ++(row.stopped_early ? stopped_ : pending_);
    }
  }

  // A word of a row or column, with the index of its field.
  struct Part {
    Word word;
    std::size_t place = 0;
  };
  Part part_of(const Word& word) const {
    return {word, word.scope == WordScope::score ? 0 : collected_.field(word.name)};
  }
  // The index of a value among those of its word; words of scores are indexed by their text.
  std::uint32_t code(const Part& part, std::size_t row, const std::string& task,
                     const std::string& name) {
    if (part.word.scope != WordScope::score) return collected_.code(row, part.place);
    const std::string& text = part.word.name == "task" ? task : name;
    return texts_.emplace(text, static_cast<std::uint32_t>(texts_.size())).first->second;
  }
  Value value(const Part& part, std::size_t row, const std::string& task,
              const std::string& name) const {
    if (part.word.scope != WordScope::score) return collected_.value(row, part.place);
    const std::string& text = part.word.name == "task" ? task : name;
    return text.empty() ? Value() : Value(text);
  }
  std::size_t row_of(Summary& summary, std::size_t row, const std::string& task,
                     const std::string& name) {
    key_.clear();
    for (const Part& part : parts_) key_ += static_cast<char32_t>(code(part, row, task, name));
    const auto [found, is_new] = row_places_.emplace(key_, summary.rows.size());
    if (is_new) {
      SummaryRow new_row;
      for (const Part& part : parts_) new_row.key.push_back(value(part, row, task, name));
      summary.rows.push_back(std::move(new_row));
    }
    return found->second;
  }

  std::size_t column_of(Summary& summary, std::size_t row, std::uint32_t series) {
    const auto& [key, split, task, name] = collected_.series()[series];
    const std::uint64_t pivot = pivot_ ? code(*pivot_, row, task, name) : 0;
    const auto [known, is_new] = columns_known_.emplace(pivot << 32 | series, 0);
    if (!is_new) return known->second;
    std::string title = pivot_ ? results::exact_text(value(*pivot_, row, task, name), "none") : "";
    const bool name_told = contains(by_, "name") || (pivot_ && pivot_->word.name == "name");
    if (!name_told) title += (title.empty() ? "" : " ") + name;
    if (title.empty()) title = "value";
    const auto [found, new_column] = column_places_.emplace(title, summary.columns.size());
    if (new_column) summary.columns.push_back(title);
    known->second = found->second;
    return found->second;
  }

  void fill(Summary& summary) {
    for (const Word& word : by_) {
      summary.by.push_back(word.name);
      parts_.push_back(part_of(word));
    }
    if (request_.pivot) pivot_ = part_of(*request_.pivot);
    std::unordered_map<std::uint64_t, Group> groups;  // by row and column
    std::map<std::size_t, std::int64_t> last_without;
    for (std::size_t row = 0; row < collected_.rows().size(); ++row) {
      const Collected::Row& trial = collected_.rows()[row];
      if (!trial.has_result) {
        note_missing(summary, row, last_without);
        continue;
      }
      for (std::size_t at = trial.first_score; at < trial.end_score; ++at) {
        const Collected::Score& score = collected_.scores()[at];
        const results::SeriesName& series = collected_.series()[score.series];
        const std::size_t place = row_of(summary, row, series.task, series.name);
        const std::size_t column = column_of(summary, row, score.series);
        const auto [found, is_new] = groups.try_emplace(std::uint64_t{place} << 32 | column);
        Group& group = found->second;
        if (is_new) group.first_row = row;
        if (group.last_trial == trial.trial && group.task == series.task) continue;
        group.last_trial = trial.trial;
        group.task = series.task;
        note_mixed(group.first_row, row);
        if (score.value) {
          group.values.push_back(*score.value);
        } else {
          ++group.undefined;
        }
      }
    }
    for (SummaryRow& row : summary.rows) row.cells.resize(summary.columns.size());
    for (const auto& [place, group] : groups) {
      SummaryCell cell;
      cell.n = static_cast<std::int64_t>(group.values.size()) + group.undefined;
      cell.undefined = group.undefined;
      undefined_ += group.undefined;
      if (group.undefined == 0) {
        cell.mean = metrics::mean(group.values);
        cell.deviation = metrics::sample_deviation(group.values);
      }
      summary.rows[place >> 32].cells[place & 0xffffffff] = cell;
    }
  }

  // A trial without scores counts in the row of each of its tasks.
  void note_missing(Summary& summary, std::size_t row, std::map<std::size_t, std::int64_t>& last) {
    const Collected::Row& trial = collected_.rows()[row];
    std::vector<std::string> tasks = {""};
    if (contains(by_, "task")) tasks = collected_.tasks()[trial.tasks];
    for (const std::string& task : tasks) {
      if (!is_wanted(task)) continue;
      if (contains(by_, "name")) continue;  // its metrics are not known yet
      const std::size_t place = row_of(summary, row, task, "");
      const auto [before, is_new] = last.emplace(place, trial.trial);
      if (!is_new && before->second == trial.trial) continue;
      before->second = trial.trial;
      SummaryRow& counts = summary.rows[place];
      ++(trial.stopped_early ? counts.stopped_early : counts.pending);
    }
  }
  bool is_wanted(const std::string& task) const {
    return task.empty() || std::all_of(request_.where.begin(), request_.where.end(),
                                       [&](const results::Condition& condition) {
                                         return condition.word.name != "task" ||
                                                results::holds(condition, Value(task));
                                       });
  }

  void note_mixed(std::size_t first, std::size_t row) {
    if (same_configuration(first, row)) return;
    for (std::size_t i = 0; i < mixed_.size(); ++i) {
      const std::size_t field = first_field_ + i;
      if (collected_.code(first, field) != collected_.code(row, field)) mixed_[i] = true;
    }
  }

  void add_notes(Summary& summary) {
    std::vector<std::string> fields;
    for (std::size_t i = 0; i < mixed_.size(); ++i) {
      if (mixed_[i]) fields.push_back(collected_.fields()[first_field_ + i].name);
    }
    if (!fields.empty()) {
      summary.notes.push_back(
          fmt::format("some means are over trials that differ in more than their seeds, in {}: add "
                      "what matters to --by, or choose with --where",
                      fmt::join(fields, ", ")));
    }
    if (pending_ > 0) {
      summary.notes.push_back(
          fmt::format("{} of {} trials have no result yet", pending_, summary.trials));
    }
    if (stopped_ > 0) {
      summary.notes.push_back(
          fmt::format("{} of {} trials stopped early: means are over those that continued",
                      stopped_, summary.trials));
    }
    if (undefined_ > 0) {
      summary.notes.push_back(fmt::format(
          "{} values are undefined; a mean with one of them is undefined too", undefined_));
    }
  }

  const SummaryRequest& request_;
  std::vector<Word> by_;
  Collected collected_;
  std::size_t first_field_;  // the first configuration field
  std::vector<bool> mixed_;  // by configuration field: trials of one mean differ in it
  std::vector<Part> parts_;  // in the order of by_
  std::optional<Part> pivot_;
  GroupKey key_;
  std::set<std::string> tasks_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::unordered_map<GroupKey, std::size_t> row_places_;
  std::unordered_map<std::uint64_t, std::size_t> columns_known_;
  std::map<std::string, std::size_t> column_places_;
  std::int64_t pending_ = 0;
  std::int64_t stopped_ = 0;
  std::int64_t undefined_ = 0;
};

}  // namespace

Summary summarise(const results::ScoreReader& reader, const SummaryRequest& request) {
  if (request.pivot && contains(request.by, request.pivot->name)) {
    throw std::invalid_argument(
        fmt::format("{} is in --by and in --pivot, want it in one of them", request.pivot->name));
  }
  check_names(reader, request.metrics, {request.split});
  return Summariser(reader, request).make(reader);
}

}  // namespace petlab::questions
