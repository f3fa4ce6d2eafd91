#include "protocol/attempt_log.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "base/files.h"
#include "base/shown.h"
#include "protocol/record_lines.h"

namespace petlab::protocol {
namespace {

RecordLine to_record(const AttemptBegun& begun) {
  RecordLine line = {{"v", 1}, {"type", "begun"}, {"time", begun.time}};
  put(line, "sweep", begun.sweep);
  put(line, "owner", begun.owner);
  put(line, "host", begun.host);
  put(line, "boot_id", begun.boot_id);
  put(line, "pid_namespace", begun.pid_namespace);
  put(line, "device", begun.device);
  put(line, "launcher", begun.launcher);
  put(line, "commit", begun.commit);
  if (begun.retries) line["retries"] = *begun.retries;
  if (const auto& resume = begun.resume) {
    line["resume"] = {{"attempt", resume->attempt},
                      {"step", resume->step},
                      {"seq", resume->seq},
                      {"checkpoint", resume->checkpoint}};
  }
  return line;
}

AttemptBegun begun_from(const RecordLine& line, const std::string& trial_id) {
  AttemptBegun begun;
  begun.trial_id = trial_id;
  begun.time = line.value("time", 0.0);
  begun.sweep = line.value("sweep", "");
  begun.owner = line.value("owner", "");
  begun.host = line.value("host", "");
  begun.boot_id = line.value("boot_id", "");
  begun.pid_namespace = line.value("pid_namespace", "");
  begun.device = line.value("device", "");
  begun.launcher = line.value("launcher", "");
  begun.commit = line.value("commit", "");
  begun.retries = number_of<std::int64_t>(line, "retries");
  if (const auto provenance = line.find("provenance");
      provenance != line.end() && provenance->is_object()) {
    begun.provenance = provenance->dump();
  }
  if (const auto resume = line.find("resume"); resume != line.end()) {
    begun.resume =
        Resume{resume->at("attempt").get<std::int64_t>(), resume->at("step").get<std::int64_t>(),
               resume->at("seq").get<std::int64_t>(), resume->at("checkpoint").get<std::string>()};
  }
  return begun;
}

RecordLine to_record(const Launch& launch) {
  RecordLine line = {{"v", 1},
                     {"type", "launched"},
                     {"time", launch.time},
                     {"pid", launch.pid},
                     {"pid_start", launch.pid_start}};
  put(line, "host", launch.host);
  put(line, "boot_id", launch.boot_id);
  put(line, "pid_namespace", launch.pid_namespace);
  put(line, "device", launch.device);
  put(line, "job", launch.job);
  if (!launch.code.empty()) line["code"] = RecordLine::parse(launch.code);
  return line;
}

RecordLine to_record(const Ending& ending) {
  RecordLine line = {{"v", 1},
                     {"type", "ended"},
                     {"time", ending.time},
                     {"outcome", std::string(to_string(ending.outcome))}};
  put(line, "reason", ending.reason);
  put(line, "exit_code", ending.exit_code);
  put(line, "signal", ending.signal);
  put(line, "log_tail", ending.log_tail);
  return line;
}

// All attempts of a run have the same provenance, so its text is inserted without parsing it.
std::string provenance_member(const AttemptBegun& begun) {
  return begun.provenance.empty() ? "" : "\"provenance\":" + begun.provenance;
}

}  // namespace

void log_begun(const std::filesystem::path& file, const AttemptBegun& begun) {
  write_first_record(file, to_record(begun), provenance_member(begun));
}

void log_launch(const TrialDirectory& directory, const Launch& launch) {
  append_record(directory.attempt_log(), to_record(launch), false);
}

void log_ending(const TrialDirectory& directory, const Ending& ending) {
  append_record(directory.attempt_log(), to_record(ending), true);
}

void write_attempt_log(const TrialDirectory& directory, const AttemptLog& log) {
  std::string text;
  if (log.begun) text += record_text(to_record(*log.begun), provenance_member(*log.begun));
  if (log.launch) text += record_text(to_record(*log.launch));
  if (log.ending) text += record_text(to_record(*log.ending));
  base::write_file_atomically(directory.attempt_log(), text);
}

AttemptLog read_attempt_log(const TrialDirectory& directory) {
  AttemptLog log;
  log.left_out = each_record(directory.attempt_log(), [&](const RecordLine& line) {
    const std::string type = line.value("type", "");
    if (type == "begun" && !log.begun) {
      log.begun = begun_from(line, directory.trial_id());
    } else if (type == "launched") {
      // A job's later lines add where it runs.
      std::string code = log.launch ? log.launch->code : std::string();
      if (const auto found = line.find("code"); found != line.end() && found->is_object()) {
        code = found->dump();
      }
      log.launch = Launch{line.value("pid", std::int64_t{0}),
                          line.value("pid_start", std::int64_t{0}),
                          line.value("host", ""),
                          line.value("boot_id", ""),
                          line.value("pid_namespace", ""),
                          line.value("device", ""),
                          line.value("job", ""),
                          line.value("time", 0.0),
                          std::move(code)};
    } else if (type == "ended" && !log.ending) {
      const std::string word = line.value("outcome", "");
      const std::optional<Outcome> outcome = outcome_from(word);
      if (!outcome || outcome == Outcome::open || outcome == Outcome::finished) {
        throw std::invalid_argument(
            fmt::format("outcome is {}, which no orchestrator writes", base::in_quotes(word)));
      }
      log.ending = Ending{*outcome,
                          line.value("reason", ""),
                          number_of<int>(line, "exit_code"),
                          number_of<int>(line, "signal"),
                          line.value("log_tail", ""),
                          line.value("time", 0.0)};
    }
  });
  return log;
}

}  // namespace petlab::protocol
