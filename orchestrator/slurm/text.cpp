#include "orchestrator/slurm/text.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/shown.h"
#include "base/trimmed.h"
#include "orchestrator/host/error.h"

namespace petlab::orchestrator {
namespace {

constexpr std::pair<std::string_view, JobPhase> kStates[] = {
    {"PENDING", JobPhase::waiting},      {"REQUEUED", JobPhase::waiting},
    {"REQUEUE_HOLD", JobPhase::waiting}, {"REQUEUE_FED", JobPhase::waiting},
    {"SPECIAL_EXIT", JobPhase::waiting}, {"RESV_DEL_HOLD", JobPhase::waiting},
    {"CONFIGURING", JobPhase::waiting},  {"POWER_UP_NODE", JobPhase::waiting},
    {"SUSPENDED", JobPhase::paused},     {"STOPPED", JobPhase::paused},
    {"COMPLETED", JobPhase::ended},      {"CANCELLED", JobPhase::ended},
    {"FAILED", JobPhase::ended},         {"TIMEOUT", JobPhase::ended},
    {"PREEMPTED", JobPhase::ended},      {"NODE_FAIL", JobPhase::ended},
    {"BOOT_FAIL", JobPhase::ended},      {"DEADLINE", JobPhase::ended},
    {"OUT_OF_MEMORY", JobPhase::ended},  {"REVOKED", JobPhase::ended},
    {"LAUNCH_FAILED", JobPhase::ended},  {"RECONFIG_FAIL", JobPhase::ended},
};

// Messages of sbatch for a user's limits and for those of the whole cluster.
constexpr std::string_view kLimits[] = {
    "violates accounting/QOS policy",
    "Resource temporarily unavailable",
    "temporarily unable to accept job",
    "Unable to create job record, try again",
    "MaxSubmitJob",
    "job submit limit",
    "Job limit reached",
    "Too many jobs",
};
constexpr std::string_view kPolicies[] = {"error: QOS", "error: Assoc"};
constexpr std::string_view kSilences[] = {
    "Unable to contact slurm controller",
    "Socket timed out",
    "timed out on send/recv",
    "Zero Bytes were transmitted",
    "Communication connection failure",
    "Connection refused",
    "Connection timed out",
    "Connection reset",
    "No route to host",
    "controller not responding",
    "backup controller in standby mode",
    "Message receive failure",
    "Message send failure",
    "Unexpected message received",
    "Transport endpoint is not connected",
    "Header lengths are longer than data received",
    "Protocol authentication error",
    "Munge encode failed",
    "auth_g_create",
    "Broken pipe",
};

bool contains_any(std::string_view text, const auto& words) {
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// "CANCELLED by 0", "CANCELLED+" -> "CANCELLED"
std::string_view bare(std::string_view state) { return state.substr(0, state.find_first_of(" +")); }

template <typename Number>
bool parse_whole(std::string_view text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

template <typename Take>
void each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = base::trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) take(line);
  }
}

[[noreturn]] void not_a_row(std::string_view line) {
  throw Error(fmt::format("squeue printed {}, expected {}", base::in_quotes(line), kSqueueFormat));
}

// More jobs than any cluster runs. A short range such as [1-99999999999] must not exhaust memory.
constexpr std::size_t kMostJobs = 1'000'000;

// "12_[4-6,9%2]" -> 12_4, 12_5, 12_6, 12_9. Empty for ids that petlab's jobs cannot have ("12+0").
// Throws Error for more than `most` ids.
std::vector<std::string> job_ids(std::string_view id, std::size_t most) {
  const std::size_t bracket = id.find("_[");
  if (bracket == std::string_view::npos) {
    const std::size_t under = std::min(id.find('_'), id.size());
    const bool is_task = under < id.size();
    if (!is_digits(id.substr(0, under)) || (is_task && !is_digits(id.substr(under + 1)))) {
      return {};
    }
    return {std::string(id)};
  }
  const std::string_view array = id.substr(0, bracket);
  std::string_view tasks = id.substr(bracket + 2);
  if (!is_digits(array) || !tasks.ends_with(']')) return {};
  tasks.remove_suffix(1);
  tasks = tasks.substr(0, tasks.find('%'));
  std::vector<std::string> ids;
  while (!tasks.empty()) {
    const std::size_t end = std::min(tasks.find(','), tasks.size());
    const std::string_view range = tasks.substr(0, end);
    tasks.remove_prefix(std::min(end + 1, tasks.size()));
    const std::size_t dash = range.find('-');
    std::int64_t from = 0;
    std::int64_t to = 0;
    if (!parse_whole(range.substr(0, dash), from)) return {};
    to = from;
    if (dash != std::string_view::npos && !parse_whole(range.substr(dash + 1), to)) {
      return {};
    }
    for (std::int64_t task = from; task <= to; ++task) {
      if (ids.size() == most) {
        throw Error(
            fmt::format("squeue printed more than {} jobs, at {}", kMostJobs, base::in_quotes(id)));
      }
      ids.push_back(fmt::format("{}_{}", array, task));
    }
  }
  return ids;
}

// "0:9"
bool parse_exit(std::string_view text, JobRecord& record) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && parse_whole(text.substr(0, colon), record.exit_code) &&
         parse_whole(text.substr(colon + 1), record.signal);
}

}  // namespace

JobPhase job_phase(std::string_view state) {
  for (const auto& [name, phase] : kStates) {
    if (name == bare(state)) return phase;
  }
  return JobPhase::running;
}

std::vector<JobRow> parse_squeue(std::string_view text) {
  std::vector<JobRow> rows;
  bool any_row = false;
  std::string_view no_row;
  each_line(text, [&](std::string_view line) {
    std::array<std::string_view, 6> fields;
    std::string_view rest = line;
    for (std::size_t field = 0; field + 1 < fields.size(); ++field) {
      const std::size_t bar = rest.find('|');
      if (bar == std::string_view::npos) {
        if (!line.starts_with("CLUSTER: ")) no_row = line;  // printed with --clusters
        return;
      }
      fields[field] = rest.substr(0, bar);
      rest.remove_prefix(bar + 1);
    }
    fields.back() = rest;
    any_row = true;
    for (std::string& job : job_ids(fields[0], kMostJobs - rows.size())) {
      rows.push_back({std::move(job), std::string(fields[1]), std::string(fields[2]),
                      std::string(fields[3]), parse_time(fields[4]), std::string(fields[5])});
    }
  });
  if (!any_row && !no_row.empty()) not_a_row(no_row);
  return rows;
}

std::string parse_submission(std::string_view text) {
  // A site's plugins may print lines before the job number.
  std::string_view last;
  each_line(text, [&](std::string_view line) { last = line; });
  const std::string_view job = last.substr(0, last.find(';'));
  if (!is_digits(job)) {
    throw Error(
        fmt::format("sbatch --parsable printed {}, expected a job number", base::in_quotes(last)));
  }
  return std::string(job);
}

Refusal refusal_from(std::string_view error_output) {
  if (contains_any(error_output, kSilences)) return Refusal::silence;
  // A policy's message starts with the name of its limit. Only the limit on submitted jobs resolves
  // by itself.
  if (contains_any(error_output, kPolicies) &&
      error_output.find("SubmitJob") == std::string_view::npos) {
    return Refusal::refused;
  }
  if (contains_any(error_output, kLimits)) return Refusal::limit;
  return Refusal::refused;
}

bool is_unknown_job(std::string_view output) {
  // The second form is printed for an unknown task of a known array.
  return output.find("Invalid job id") != std::string_view::npos ||
         (output.find("Job ") != std::string_view::npos &&
          output.find(" not found") != std::string_view::npos);
}

SlurmLimits parse_config(std::string_view text) {
  SlurmLimits limits;
  each_line(text, [&](std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return;
    const std::string_view key = base::trimmed(line.substr(0, equals));
    const std::string_view value = base::trimmed(line.substr(equals + 1));
    const auto number = [&](std::int64_t& into) {
      if (!parse_whole(value, into)) {
        throw Error(fmt::format("scontrol show config: {} is '{}', must be a number", key, value));
      }
    };
    if (key == "MaxArraySize") number(limits.max_array_size);
    if (key == "MaxJobCount") number(limits.max_job_count);
    if (key == "SLURM_VERSION") limits.version = value;
  });
  return limits;
}

std::optional<JobRecord> parse_show_job(std::string_view text) {
  const auto field = [&](std::string_view key) -> std::optional<std::string_view> {
    for (std::size_t at = text.find(key); at != std::string_view::npos;
         at = text.find(key, at + 1)) {
      if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\n') continue;
      const std::string_view value = text.substr(at + key.size());
      return value.substr(0, value.find_first_of(" \n"));
    }
    return std::nullopt;
  };
  const auto state = field("JobState=");
  if (!state) return std::nullopt;
  JobRecord record;
  record.state = *state;
  const auto exit = field("ExitCode=");
  return !exit || parse_exit(*exit, record) ? std::optional(record) : std::nullopt;
}

std::optional<JobRecord> parse_sacct(std::string_view text, std::string_view job) {
  std::optional<JobRecord> found;
  each_line(text, [&](std::string_view line) {
    const std::size_t first = line.find('|');
    const std::size_t second = line.find('|', std::min(first, line.size() - 1) + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return;
    if (line.substr(0, first) != job) return;
    JobRecord record;
    record.state = bare(line.substr(first + 1, second - first - 1));
    if (parse_exit(line.substr(second + 1), record)) found = record;
  });
  return found;
}

WorkerEnd worker_end(const std::string& job, const JobRecord& record) {
  const std::string_view state = bare(record.state);
  WorkerEnd end;
  const auto taken_away = [&](std::string_view what) {
    end.how = TakenAway{fmt::format("Slurm job {} {}", job, what)};
  };
  if (state == "CANCELLED") {
    taken_away("was cancelled");
  } else if (state == "PREEMPTED") {
    taken_away("was preempted");
  } else if (state == "NODE_FAIL" || state == "BOOT_FAIL" || state == "RECONFIG_FAIL") {
    taken_away("lost its node");
  } else if (state == "REVOKED" || state == "LAUNCH_FAILED") {
    taken_away(state == "REVOKED" ? "was revoked" : "was not launched by Slurm");
  } else if (state == "TIMEOUT" || state == "DEADLINE") {
    end.how = OutOfTime{fmt::format("Slurm job {} reached its {} (--slurm-time)", job,
                                    state == "TIMEOUT" ? "time limit" : "deadline")};
  } else if (state == "OUT_OF_MEMORY") {
    end.how = Killed{SIGKILL};
    end.last_lines = fmt::format("Slurm job {}: out of memory", job);
  } else if (record.signal != 0) {
    end.how = Killed{record.signal};
  } else {
    end.how = Exited{record.exit_code};
  }
  return end;
}

std::optional<std::chrono::seconds> parse_time(std::string_view text) {
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!is_digits(text.substr(0, dash)) || !parse_whole(text.substr(0, dash), days)) {
      return std::nullopt;
    }
    text.remove_prefix(dash + 1);
  }
  std::int64_t seconds = 0;
  int parts = 0;
  for (bool last = false; !last; ++parts) {
    const std::size_t colon = text.find(':');
    last = colon == std::string_view::npos;
    const std::string_view digits = text.substr(0, colon);
    std::int64_t part = 0;
    if (!is_digits(digits) || digits.size() > 4 || !parse_whole(digits, part) || parts == 3) {
      return std::nullopt;
    }
    seconds = seconds * 60 + part;
    if (!last) text.remove_prefix(colon + 1);
  }
  constexpr std::int64_t kMostDays = 10'000;
  const bool whole = dash == std::string_view::npos || parts == 3;
  if (parts < 2 || !whole || days > kMostDays) return std::nullopt;
  return std::chrono::seconds(seconds) + std::chrono::days(days);
}

bool is_slurm_time(std::string_view text) {
  // minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]
  std::string_view clock = text;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!is_digits(text.substr(0, dash))) return false;
    clock = text.substr(dash + 1);
  }
  int parts = 0;
  while (true) {
    const std::size_t colon = clock.find(':');
    if (!is_digits(clock.substr(0, colon)) || ++parts > 3) return false;
    if (colon == std::string_view::npos) return true;
    clock.remove_prefix(colon + 1);
  }
}

}  // namespace petlab::orchestrator
