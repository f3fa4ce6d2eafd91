#include "reports/trial_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "reports/report.h"
#include "reports/selection.h"
#include "reports/text.h"
#include "reports/thinning.h"
#include "results/query.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

// Calls `take` for every cell of the report.
template <typename Take>
void each_cell(const Report& report, Take take) {
  const auto of_table = [&](const Table& table) {
    for (const std::vector<Cell>& row : table.cells) {
      for (const Cell& cell : row) take(cell);
    }
  };
  for (const Section& section : report.sections) {
    if (const auto* table = std::get_if<Table>(&section)) {
      of_table(*table);
      continue;
    }
    if (const auto* ranks = std::get_if<Ranks>(&section)) {
      of_table(table_of_ranks(*ranks));
      continue;
    }
    const auto& figure = std::get<Figure>(section);
    for (const FigureSeries& series : figure.series) {
      for (const FigurePoint& point : series.points) take(point.cell);
    }
    for (const HorizontalLine& line : figure.horizontal) take(line.cell);
  }
}

std::vector<std::string> last_of(std::vector<std::string> lines) {
  if (lines.size() > PageRoom::kLogLines) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(PageRoom::kLogLines));
  }
  return lines;
}

AttemptRecord attempt_record(const results::AttemptFacts& facts) {
  AttemptRecord record;
  record.number = facts.attempt.number;
  record.outcome = to_string(facts.outcome);
  record.reason = facts.reason;
  if (record.reason.empty() && facts.signal)
    record.reason = fmt::format("signal {}", *facts.signal);
  if (record.reason.empty() && facts.exit_code.value_or(0) != 0) {
    record.reason = fmt::format("exit code {}", *facts.exit_code);
  }
  record.host = facts.begun.host;
  record.device = facts.begun.device;
  if (facts.launch && !facts.launch->host.empty()) record.host = facts.launch->host;
  if (facts.launch && !facts.launch->device.empty()) record.device = facts.launch->device;
  record.worker = facts.worker;
  if (!facts.worker_version.empty()) record.worker += " " + facts.worker_version;
  if (facts.begun.time > 0) record.begun_at = facts.begun.time;
  if (facts.ended_at && record.begun_at && *facts.ended_at >= *record.begun_at) {
    record.seconds = *facts.ended_at - *record.begun_at;
  }
  record.log = last_of(printable_lines(facts.log_tail));
  return record;
}

std::string member_text(const Trial& trial) {
  return trial.variant.empty() ? trial.sweep : trial.sweep + ": " + trial.variant;
}

TrialRecord record_of(const Trial& trial, const std::set<std::string>& configuration) {
  TrialRecord record;
  record.id = trial.id;
  record.state = trial.state;
  record.variant = trial.variant;
  for (const std::string& field : configuration) {
    const results::Value& value = field_of(trial, field);
    if (!std::holds_alternative<std::monostate>(value)) record.fields[field] = to_text(value);
  }
  record.fields["seed"] = std::to_string(trial.seed);
  record.fields["tasks"] = fmt::format("{}", fmt::join(trial.tasks, ", "));
  for (const char* size : {"bls_bits", "stored_bits"}) {
    const results::Value& value = field_of(trial, size);
    if (!std::holds_alternative<std::monostate>(value)) record.fields[size] = to_text(value);
  }
  for (const results::AttemptFacts& facts : trial.attempts) {
    record.attempts.push_back(attempt_record(facts));
  }
  return record;
}

// Typical properties of attempts, stored only once; this saves a megabyte for ten thousand
// attempts.
Json usual_json(const AttemptRecord& attempt) {
  return {{"number", attempt.number},
          {"outcome", attempt.outcome},
          {"host", printable(attempt.host)},
          {"worker", printable(attempt.worker)}};
}

Json attempt_json(const AttemptRecord& attempt, const Json& usual) {
  Json json = usual_json(attempt);
  for (const auto& [key, value] : usual.items()) {
    if (json[key] == value) json.erase(key);
  }
  if (!attempt.reason.empty()) json["reason"] = printable(attempt.reason);
  if (!attempt.device.empty()) json["device"] = printable(attempt.device);
  if (attempt.begun_at) json["begun"] = std::llround(*attempt.begun_at);
  if (attempt.seconds) json["seconds"] = std::round(*attempt.seconds * 100) / 100;
  if (!attempt.log.empty()) json["log"] = attempt.log;
  return json;
}

// Alternates steps and values. Six digits exceed the resolution of a screen.
Json curve_json(const LearningCurve& curve) {
  Json points = Json::array();
  for (const auto& [step, value] : curve.points) {
    points.push_back(step);
    points.push_back(std::stod(fmt::format("{:.6g}", value)));
  }
  return {{"split", printable(curve.split)},
          {"task", printable(curve.task)},
          {"name", printable(curve.name)},
          {"points", points}};
}

LearningCurve thinned_curve(LearningCurve curve) {
  std::vector<double> values;
  for (const auto& [step, value] : curve.points) values.push_back(value);
  std::vector<std::pair<std::int64_t, double>> kept;
  for (const std::size_t at : thinned(values, PageRoom::kCurvePoints)) {
    kept.push_back(curve.points[at]);
  }
  curve.points = std::move(kept);
  return curve;
}

// The ids of the first trials whose metric rows fit into `room`, as a JSON array.
std::string trials_with_room(const std::vector<TrialRecord>& records,
                             const std::filesystem::path& database, std::int64_t room) {
  Json all = Json::array();
  for (const TrialRecord& record : records) all.push_back(record.id);
  // Upper bound: an attempt has no more counting metrics than counting events or read lines.
  const results::QueryResult counts = results::query(
      database,
      "SELECT t.trial_id, sum(min(a.counts_to, a.events_lines)) FROM trials t JOIN attempts a ON "
      "a.trial = t.key WHERE "
      "a.counts_to IS NOT NULL AND t.trial_id IN (SELECT value FROM json_each(?1)) GROUP BY 1",
      {all.dump()});
  std::unordered_map<std::string, std::int64_t> rows;
  for (const auto& row : counts.rows) {
    rows[std::get<std::string>(row[0])] = std::get<std::int64_t>(row[1]);
  }
  Json chosen = Json::array();
  for (const TrialRecord& record : records) {
    const auto found = rows.find(record.id);
    if (found == rows.end()) continue;
    if (found->second > room) break;
    room -= found->second;
    chosen.push_back(record.id);
  }
  return chosen.dump();
}

}  // namespace

std::vector<TrialRecord> trial_records(const Report& report, const Dataset& data) {
  std::unordered_map<std::string, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < data.trials.size(); ++i) places[data.trials[i].id].push_back(i);
  std::unordered_set<const void*> lists;  // shared by many cells
  std::unordered_set<std::string> seen;
  std::vector<TrialRecord> records;
  each_cell(report, [&](const Cell& cell) {
    if (cell.trials.ids == nullptr || !lists.insert(cell.trials.ids.get()).second) return;
    for (const std::string& id : *cell.trials.ids) {
      const auto place = places.find(id);
      if (place == places.end() || !seen.insert(id).second) continue;
      TrialRecord& record =
          records.emplace_back(record_of(data.trials[place->second.front()], data.configuration));
      for (const std::size_t at : place->second) {
        record.members.push_back(member_text(data.trials[at]));
      }
    }
  });
  return records;
}

void add_logs(std::vector<TrialRecord>& records, const LogEnd& log_end, const PageRoom& room) {
  std::size_t left = room.log_bytes;
  for (TrialRecord& record : records) {
    if (record.attempts.empty()) continue;
    AttemptRecord& last = record.attempts.back();
    // Logs of finished attempts are rarely read, so do not open thousands of files.
    if (last.outcome == to_string(results::Outcome::finished)) continue;
    std::vector<std::string> lines = last_of(printable_lines(log_end(record.id, last.number)));
    std::size_t size = 0;
    for (const std::string& line : lines) size += line.size() + 1;
    if (size > left) return;
    left -= size;
    if (!lines.empty()) last.log = std::move(lines);
  }
}

void add_curves(std::vector<TrialRecord>& records, const std::filesystem::path& database,
                const PageRoom& room) {
  if (records.empty()) return;
  const results::QueryResult found = results::query(
      database,
      "SELECT trial_id, step, split, task, name, value FROM results WHERE trial_id IN (SELECT "
      "value FROM json_each(?1)) AND value IS NOT NULL",
      {trials_with_room(records, database, room.metric_rows)});
  using Name = std::tuple<std::string, std::string, std::string>;  // split, task, name
  std::unordered_map<std::string, std::map<Name, std::map<std::int64_t, double>>> values;
  for (const auto& row : found.rows) {
    const auto text = [&](std::size_t at) { return to_text(row[at]); };
    values[text(0)][{text(2), text(3), text(4)}][std::get<std::int64_t>(row[1])] =
        *number_in(row[5]);
  }
  for (TrialRecord& record : records) {
    const auto of_trial = values.find(record.id);
    if (of_trial == values.end()) continue;
    for (const auto& [series, points] : of_trial->second) {
      if (points.size() < 2) continue;
      const auto& [split, task, name] = series;
      record.curves.push_back(thinned_curve({split, task, name, {points.begin(), points.end()}}));
    }
  }
}

std::string trials_json(const std::vector<TrialRecord>& records) {
  std::map<std::string, std::string> same;
  if (!records.empty()) same = records.front().fields;
  for (const TrialRecord& record : records) {
    std::erase_if(same, [&](const auto& entry) {
      const auto found = record.fields.find(entry.first);
      return found == record.fields.end() || found->second != entry.second;
    });
  }
  const auto tried = std::find_if(records.begin(), records.end(), [](const TrialRecord& record) {
    return !record.attempts.empty();
  });
  const Json usual = tried == records.end() ? Json::object() : usual_json(tried->attempts.front());
  // Stored once, because many trials differ only in the seed.
  Json configurations = Json::array();
  std::unordered_map<std::string, std::size_t> places;
  const auto configuration_of = [&](const TrialRecord& record) {
    Json fields = Json::object();
    auto& all = fields.get_ref<Json::object_t&>();
    for (const auto& [field, value] : record.fields) {
      if (field != "seed" && !same.contains(field)) {
        all.emplace_back(printable(field), printable(value));
      }
    }
    const auto [place, is_new] =
        places.emplace(fields.dump(-1, ' ', false, Json::error_handler_t::replace), places.size());
    if (is_new) configurations.push_back(std::move(fields));
    return place->second;
  };
  Json trials = Json::object();
  auto& entries = trials.get_ref<Json::object_t&>();
  entries.reserve(records.size());
  for (const TrialRecord& record : records) {
    Json json = {{"state", record.state}, {"variant", printable(record.variant)}};
    for (const std::string& member : record.members) json["members"].push_back(printable(member));
    json["configuration"] = configuration_of(record);
    if (const auto seed = record.fields.find("seed");
        seed != record.fields.end() && !same.contains("seed")) {
      json["seed"] = seed->second;
    }
    for (const AttemptRecord& attempt : record.attempts) {
      json["attempts"].push_back(attempt_json(attempt, usual));
    }
    for (const LearningCurve& curve : record.curves) json["curves"].push_back(curve_json(curve));
    // Ids are unique, so skip the linear search of operator[].
    entries.emplace_back(record.id, std::move(json));
  }
  Json equal = Json::object();
  for (const auto& [field, value] : same) equal[printable(field)] = printable(value);
  const Json all = {
      {"same", equal}, {"configurations", configurations}, {"attempt", usual}, {"trials", trials}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace petlab::reports
