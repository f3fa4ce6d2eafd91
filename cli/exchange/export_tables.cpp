#include "cli/exchange/export_tables.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "cli/output/row_printers.h"
#include "results/words.h"

namespace petlab::cli {
namespace {

using results::Value;
using results::Word;
using results::WordScope;

/// An output file of one table.
class TableFile {
 public:
  TableFile(const std::filesystem::path& folder, const std::string& name, const std::string& format)
      : file_(folder / fmt::format("{}.{}", name, format)),
        out_(file_, std::ios::binary),
        printer_(format == "csv" ? spreadsheet_printer(out_) : json_printer(out_)) {}

  void columns(const std::vector<std::string>& names) { printer_->columns(names); }
  void row(const std::vector<Value>& values) {
    printer_->row(values);
    ++rows_;
    if (!out_) fail();
  }
  ExportedTable close() {
    printer_->end();
    out_.close();
    if (!out_) fail();
    return {file_.filename().string(), rows_};
  }

 private:
  [[noreturn]] void fail() const {
    throw results::Error(
        fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
  }
  std::filesystem::path file_;
  std::ofstream out_;
  std::unique_ptr<RowPrinter> printer_;
  std::int64_t rows_ = 0;
};

// In these queries {0} selects trials t, {1} sweeps w.
constexpr const char* kHistory =
    "SELECT trial_id, attempt, seq, step, split, task, name AS metric, value FROM results WHERE "
    "{0}";
constexpr const char* kAttempts =
    "SELECT t.trial_id, a.number AS attempt, a.key IS t.result_attempt AS is_result, a.outcome, "
    "a.event_kind AS kind, a.reason, a.exit_code, a.signal, a.begun_at, a.launched_at, "
    "a.started_at, a.ended_at, a.parent AS resumed_from, a.resume_step, a.sweep, a.launcher, "
    "a.host, a.device, a.job, a.worker, a.worker_version, a.numerics, a.backbone_digest, "
    "a.data_digests, a.checkpoint_step, a.finished_step, a.peak_memory_mib, a.device_memory_mib, "
    "a.train_seconds, f.path AS artifact, f.bls_bits, f.stored_bits, a.\"commit\" AS "
    "petlab_commit, p.petlab_said, p.worker_said, p.examples FROM trials t CROSS JOIN attempts a "
    "ON a.trial = "
    "t.key LEFT JOIN artifacts f ON f.attempt = a.key LEFT JOIN attempt_provenance p ON "
    "p.trial_id = t.trial_id AND p.attempt = a.number WHERE {0} ORDER BY t.key, a.number";
constexpr const char* kSweeps =
    "SELECT w.name AS sweep, nullif(m.variant, '') AS variant, m.place, t.trial_id, w.about, "
    "w.file, w.digest, w.overrides FROM sweeps w CROSS JOIN sweep_trials m ON m.sweep = w.key "
    "CROSS JOIN trials t ON t.key = m.trial WHERE {1} ORDER BY w.key, m.place";
constexpr const char* kRemarks =
    "SELECT t.trial_id, NULL AS sweep, what, text, time FROM trials t CROSS JOIN trial_remarks r "
    "ON r.trial = t.key WHERE {0} UNION ALL SELECT NULL, w.name, what, text, time FROM sweeps w "
    "CROSS JOIN sweep_remarks r ON r.sweep = w.key WHERE {1} ORDER BY 5, 1, 2, 3, 4";

/// SQL conditions that select the exported trials and sweeps.
struct Chosen {
  std::string trials = "1";
  std::string sweeps = "1";
};
Chosen chosen(const std::vector<std::string>& sweeps) {
  if (sweeps.empty()) return {};
  std::vector<std::string> places;
  for (std::size_t at = 1; at <= sweeps.size(); ++at) places.push_back(fmt::format("?{}", at));
  const std::string list = fmt::format("{}", fmt::join(places, ", "));
  return {fmt::format("t.key IN (SELECT trial FROM sweep_trials WHERE sweep IN (SELECT key FROM "
                      "sweeps WHERE name IN ({})))",
                      list),
          fmt::format("w.name IN ({})", list)};
}

// Selects a trial's configuration and the sizes of its artifact.
std::string configuration_sql(const Chosen& which) {
  std::string columns;
  for (const Word& word : results::words()) {
    if (word.scope != WordScope::trial) continue;
    columns += word.path.empty()
                   ? fmt::format("t.\"{}\", ", word.name)
                   : fmt::format("json_extract(t.config, '{}') AS \"{}\", ", word.path, word.name);
  }
  return fmt::format(
      "SELECT {}coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, "
      "t.stored_bits) AS stored_bits, t.backbone_digest, t.config, t.cancelled, "
      // A trial may have finished before its worker saw that it was to stop.
      "(SELECT why FROM early_stops e WHERE e.trial = t.key AND t.cancelled AND e.after_attempt > "
      "coalesce((SELECT number FROM attempts WHERE key = t.result_attempt), 0)) AS stopped_early, "
      "h.trial IS NOT NULL AS hidden, h.why AS hidden_why FROM trials t LEFT JOIN artifacts f ON "
      "f.attempt = t.result_attempt LEFT JOIN hidden_trials h ON h.trial = t.key WHERE {} ORDER BY "
      "t.key",
      columns, which.trials);
}

ExportedTable export_scores(const results::OneState& state, TableFile file,
                            const std::vector<std::string>& sweeps) {
  results::ScoreQuestion question;
  question.splits = {"train", "validation", "test"};
  std::vector<std::string> columns;
  // Columns that identify a row come before the score, all others after it.
  constexpr std::size_t kBefore = 2;
  for (const char* name : {"sweep", "variant"}) {
    question.fields.push_back(results::word_named(name));
    columns.emplace_back(name);
  }
  columns.insert(columns.end(), {"trial_id", "task", "split", "metric", "step", "value"});
  for (const Word& word : results::words()) {
    const bool exported = word.scope == WordScope::score || word.scope == WordScope::member ||
                          word.name == "trial_id";
    if (exported) continue;
    question.fields.push_back(word);
    columns.push_back(word.name);
  }
  if (!sweeps.empty()) {
    results::Condition condition{results::word_named("sweep"), results::Condition::Op::equal, {}};
    for (const std::string& sweep : sweeps) condition.values.emplace_back(sweep);
    question.where.push_back(std::move(condition));
  }
  file.columns(columns);
  std::vector<Value> row;
  state.scores().each(question, [&](const results::ScoredTrial& trial) {
    for (const results::Score& score : trial.scores()) {
      row.assign(trial.fields.begin(), trial.fields.begin() + kBefore);
      row.emplace_back(trial.trial_id);
      row.emplace_back(score.series->task);
      row.emplace_back(score.series->split);
      row.emplace_back(score.series->name);
      row.emplace_back(score.step);
      row.push_back(score.value ? Value(*score.value) : Value());
      row.insert(row.end(), trial.fields.begin() + kBefore, trial.fields.end());
      file.row(row);
    }
  });
  return file.close();
}

}  // namespace

std::vector<ExportedTable> export_tables(const results::OneState& state,
                                         const std::filesystem::path& folder,
                                         const std::string& format,
                                         const std::vector<std::string>& sweeps) {
  const Chosen which = chosen(sweeps);
  std::vector<Value> parameters(sweeps.begin(), sweeps.end());
  std::vector<ExportedTable> done;
  done.push_back(export_scores(state, TableFile(folder, "results", format), sweeps));
  const auto add = [&](const char* name, const std::string& sql) {
    TableFile file(folder, name, format);
    state.rows(
        sql, parameters, [&](const auto& names) { file.columns(names); },
        [&](const auto& values) { file.row(values); });
    done.push_back(file.close());
  };
  add("history",
      fmt::format(kHistory, sweeps.empty() ? "1"
                                           : fmt::format("trial_id IN (SELECT t.trial_id FROM "
                                                         "trials t WHERE {})",
                                                         which.trials)));
  add("configuration", configuration_sql(which));
  add("attempts", fmt::format(kAttempts, which.trials, which.sweeps));
  add("sweeps", fmt::format(kSweeps, which.trials, which.sweeps));
  add("remarks", fmt::format(kRemarks, which.trials, which.sweeps));
  return done;
}

}  // namespace petlab::cli
