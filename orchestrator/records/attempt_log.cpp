#include "orchestrator/records/attempt_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "protocol/trial_file_text.h"

namespace petlab::orchestrator {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw Error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(errno)));
}

/// True where the last line has no end: whoever wrote it was killed, or the disk was full.
bool ends_torn(int descriptor) {
  struct stat status {};
  char last = '\n';
  if (fstat(descriptor, &status) != 0 || status.st_size == 0) return false;
  return pread(descriptor, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

/// One write, so that the lines of two processes do not mix. A torn line is ended first, or this
/// one would become a part of it; where two do that at once, an empty line comes of it, which
/// nobody understands and all leave out.
void append_line(const std::filesystem::path& file, const Json& line, bool synced) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(file, "cannot be written");
  // A person's log lines may hold anything: what is no UTF-8 is replaced, not refused.
  const std::string text = (ends_torn(descriptor) ? "\n" : "") +
                           line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const ssize_t written = write(descriptor, text.data(), text.size());
  int error = 0;
  if (written != static_cast<ssize_t>(text.size())) {
    error = written < 0 ? errno : ENOSPC;
  } else if (synced && fdatasync(descriptor) != 0) {
    error = errno;
  }
  close(descriptor);
  if (error == 0) return;
  errno = error;
  fail(file, "cannot be written");
}

void write_new(const std::filesystem::path& file, const std::string& text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(file, "cannot be written");
  const ssize_t written = write(descriptor, text.data(), text.size());
  const int error = written < 0 ? errno : ENOSPC;
  close(descriptor);
  if (written == static_cast<ssize_t>(text.size())) return;
  errno = error;
  fail(file, "cannot be written");
}

/// Calls `take` with each complete line that is a JSON object of version 1. Returns what was left
/// out, a line each: `FILE:LINE: why`.
std::vector<std::string> each_line(const std::filesystem::path& file,
                                   const std::function<void(const Json&)>& take) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::string> left_out;
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line) && !in.eof(); ++number) {
    const auto leave_out = [&](std::string_view why) {
      left_out.push_back(fmt::format("{}:{}: {}", file.string(), number, why));
    };
    const Json json = base::shallow_ordered_json_or_none(line);
    if (!json.is_object()) {
      leave_out("it is no JSON object");
    } else if (json.value("v", Json()) != 1) {
      leave_out(fmt::format("v is {}, must be 1", json.value("v", Json()).dump()));
    } else {
      try {
        take(json);
      } catch (const Json::exception& error) {
        leave_out(error.what());
      } catch (const std::invalid_argument& error) {
        leave_out(error.what());
      }
    }
  }
  return left_out;
}

void put(Json& line, const char* key, const std::string& text) {
  if (!text.empty()) line[key] = text;
}
template <typename Number>
void put(Json& line, const char* key, const std::optional<Number>& value) {
  if (value) line[key] = *value;
}
template <typename Number>
std::optional<Number> number_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  return found->template get<Number>();
}

Json to_json(const results::NewAttempt& begun) {
  Json line = {{"v", 1}, {"type", "begun"}, {"time", begun.time}};
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

results::NewAttempt begun_from(const Json& line, const std::string& trial_id) {
  results::NewAttempt begun;
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
  if (const auto resume = line.find("resume"); resume != line.end()) {
    begun.resume = protocol::Resume{
        resume->at("attempt").get<std::int64_t>(), resume->at("step").get<std::int64_t>(),
        resume->at("seq").get<std::int64_t>(), resume->at("checkpoint").get<std::string>()};
  }
  return begun;
}

constexpr std::pair<Decision::What, const char*> kDecisions[] = {
    {Decision::What::cancel, "cancel"},
    {Decision::What::uncancel, "uncancel"},
    {Decision::What::retry, "retry"},
};

/// The first line of a sweep's file. The time has a fixed width and place, so that it can be
/// renewed in a file of many megabytes.
constexpr std::size_t kTimeAt = 14;  // behind {"v":1,"time":
constexpr std::size_t kTimeWidth = 18;

std::string sweep_text(const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                       double time) {
  Json header = {{"sweep", sweep.name},
                 {"about", sweep.about},
                 {"file", sweep.file},
                 {"digest", sweep.digest}};
  std::string text = fmt::format("{{\"v\":1,\"time\":{:<{}.6f},", time, kTimeWidth);
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  text += dump(header).substr(1) + "\n";
  for (const results::TrialRow& trial : trials) {
    Json line = {{"trial", trial.trial_id}};
    put(line, "backbone_digest", trial.backbone_digest);
    put(line, "bls_bits", trial.bls_bits);
    put(line, "stored_bits", trial.stored_bits);
    std::string printed = dump(line);
    printed.pop_back();
    text += printed + ",\"config\":" + trial.config + "}\n";
  }
  for (const auto& member : sweep.members) {
    text += dump({{"member", member.trial_id}, {"variant", member.variant}}) + "\n";
  }
  return text;
}

bool same_but_for_time(const std::filesystem::path& file, std::string text) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  std::ostringstream content;
  content << in.rdbuf();
  std::string there = std::move(content).str();
  if (there.size() != text.size()) return false;
  return there.replace(kTimeAt - 1, kTimeWidth, kTimeWidth, ' ') ==
         text.replace(kTimeAt - 1, kTimeWidth, kTimeWidth, ' ');
}

/// Adds what an earlier state of the sweep had and this one has not: the database keeps those
/// trials too.
void keep_former_trials(const SweepFile& former, std::vector<results::TrialRow>& trials) {
  std::set<std::string_view> there;
  for (const results::TrialRow& trial : trials) there.insert(trial.trial_id);
  std::vector<results::TrialRow> gone;
  for (const results::TrialRow& trial : former.trials) {
    if (!there.contains(trial.trial_id)) gone.push_back(trial);
  }
  trials.insert(trials.end(), gone.begin(), gone.end());
}

void renew_time(const std::filesystem::path& file, const std::string& text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, "cannot be written");
  const ssize_t written = pwrite(descriptor, text.data() + kTimeAt - 1, kTimeWidth, kTimeAt - 1);
  const int error = written < 0 ? errno : ENOSPC;
  close(descriptor);
  if (written == static_cast<ssize_t>(kTimeWidth)) return;
  errno = error;
  fail(file, "cannot be written");
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
}

/// Of the name under which the attempt's directory is made.
std::string unfinished_prefix(const protocol::TrialDirectory& directory) {
  return fmt::format(".{}.new-", directory.attempt());
}

void sync(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, "cannot be read");
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (error == 0) return;
  errno = error;
  fail(file, "cannot be written");
}

/// False where there is no such file.
bool link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (link(from.c_str(), to.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  // A file system without hard links, a file of another user, too many links of it.
  for (const int no_link : {EPERM, EACCES, EXDEV, EMLINK, EOPNOTSUPP, ENOSYS}) {
    if (errno != no_link) continue;
    std::error_code error;
    std::filesystem::copy_file(from, to, error);
    if (error == std::errc::no_such_file_or_directory) return false;
    if (error) {
      errno = error.value();
      break;
    }
    sync(to);
    return true;
  }
  fail(to, "cannot be made");
}

}  // namespace

bool make_attempt_directory(const protocol::TrialDirectory& directory,
                            const protocol::TrialFile& trial, const results::NewAttempt& begun,
                            const std::filesystem::path& checkpoint) {
  const std::filesystem::path parent = directory.folder().parent_path();
  const std::filesystem::path made =
      parent / fmt::format("{}{}", unfinished_prefix(directory), getpid());
  std::error_code ignored;
  // Nearly always neither is there: nothing is asked for that the calls say themselves.
  if (mkdir(parent.c_str(), 0777) != 0 && errno != EEXIST) make_folders(parent);
  if (mkdir(made.c_str(), 0777) != 0) {
    std::filesystem::remove_all(made, ignored);
    if (mkdir(made.c_str(), 0777) != 0) fail(made, "cannot be made");
  }
  try {
    if (!checkpoint.empty()) {
      const std::filesystem::path kept = made / begun.resume->checkpoint;
      make_folders(kept.parent_path());
      if (!link_or_copy(checkpoint, kept)) {
        std::filesystem::remove_all(made, ignored);
        return false;
      }
    }
    // Not synced: what a power cut takes with it is an attempt that had not got far, and its trial
    // gets another.
    write_new(made / directory.trial_json().filename(),
              protocol::trial_file_text(directory.trial_json(), trial));
    append_line(made / directory.attempt_log().filename(), to_json(begun), false);
    // rename() replaces only an empty directory, and no attempt's is empty.
    if (rename(made.c_str(), directory.folder().c_str()) != 0) {
      fail(directory.folder(), "cannot be made");
    }
  } catch (...) {
    std::filesystem::remove_all(made, ignored);
    throw;
  }
  return true;
}

void remove_unfinished_directories(const protocol::TrialDirectory& directory) {
  const std::string prefix = unfinished_prefix(directory);
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory.folder().parent_path(), error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  for (const std::filesystem::path& folder : found) std::filesystem::remove_all(folder, error);
}

void log_launch(const protocol::TrialDirectory& directory, const results::Launch& launch) {
  Json line = {{"v", 1},
               {"type", "launched"},
               {"time", launch.time},
               {"pid", launch.pid},
               {"pid_start", launch.pid_start}};
  put(line, "host", launch.host);
  put(line, "boot_id", launch.boot_id);
  put(line, "pid_namespace", launch.pid_namespace);
  put(line, "device", launch.device);
  put(line, "job", launch.job);
  append_line(directory.attempt_log(), line, false);
}

void log_ending(const protocol::TrialDirectory& directory, const results::Ending& ending) {
  Json line = {{"v", 1},
               {"type", "ended"},
               {"time", ending.time},
               {"outcome", std::string(results::to_string(ending.outcome))}};
  put(line, "reason", ending.reason);
  put(line, "exit_code", ending.exit_code);
  put(line, "signal", ending.signal);
  put(line, "log_tail", ending.log_tail);
  append_line(directory.attempt_log(), line, false);
}

AttemptLog read_attempt_log(const protocol::TrialDirectory& directory) {
  AttemptLog log;
  log.left_out = each_line(directory.attempt_log(), [&](const Json& line) {
    const std::string type = line.value("type", "");
    if (type == "begun" && !log.begun) {
      log.begun = begun_from(line, directory.trial_id());
    } else if (type == "launched") {
      log.launch = results::Launch{line.value("pid", std::int64_t{0}),
                                   line.value("pid_start", std::int64_t{0}),
                                   line.value("host", ""),
                                   line.value("boot_id", ""),
                                   line.value("pid_namespace", ""),
                                   line.value("device", ""),
                                   line.value("job", ""),
                                   line.value("time", 0.0)};
    } else if (type == "ended" && !log.ending) {
      const std::string word = line.value("outcome", "");
      const auto outcome = results::outcome_from(word);
      if (!outcome || outcome == results::Outcome::open || outcome == results::Outcome::finished) {
        throw std::invalid_argument(
            fmt::format("outcome is '{}', which no orchestrator says of an end", word));
      }
      log.ending = results::Ending{*outcome,
                                   line.value("reason", ""),
                                   number_of<int>(line, "exit_code"),
                                   number_of<int>(line, "signal"),
                                   line.value("log_tail", ""),
                                   line.value("time", 0.0)};
    }
  });
  return log;
}

std::int64_t highest_attempt_directory(const std::filesystem::path& runs,
                                       const std::string& trial_id) {
  std::int64_t highest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(protocol::trial_folder(runs, trial_id), error),
       end;
       !error && entry != end; entry.increment(error)) {
    highest =
        std::max(highest, protocol::attempt_number(entry->path().filename().string()).value_or(0));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error(fmt::format("{}: cannot be read: {}",
                            protocol::trial_folder(runs, trial_id).string(), error.message()));
  }
  return highest;
}

void store_decision(results::Batch& batch, const std::string& trial_id, const Decision& decision) {
  if (decision.what == Decision::What::retry) {
    batch.allow_retry(trial_id, decision.after_attempt);
    batch.set_cancelled(trial_id, false);
  } else {
    batch.set_cancelled(trial_id, decision.what == Decision::What::cancel);
  }
}

void decide(results::Store& store, const std::filesystem::path& runs, const std::string& trial_id,
            const Decision& decision) {
  // Before the file is touched, so that a mistyped id leaves nothing.
  if (!store.read().trial(trial_id)) {
    throw std::invalid_argument(
        fmt::format("there is no trial {} in {}", trial_id, store.file().string()));
  }
  Json line = {{"v", 1}, {"time", decision.time}};
  for (const auto& [what, word] : kDecisions) {
    if (what == decision.what) line["decision"] = word;
  }
  if (decision.what == Decision::What::retry) line["after_attempt"] = decision.after_attempt;
  make_folders(protocol::trial_folder(runs, trial_id));
  append_line(protocol::decisions_file(runs, trial_id), line, true);
  results::Batch batch = store.begin();
  store_decision(batch, trial_id, decision);
  batch.commit();
}

std::vector<Decision> read_decisions(const std::filesystem::path& runs, const std::string& trial_id,
                                     std::vector<std::string>* left_out) {
  std::vector<Decision> decisions;
  std::vector<std::string> unread =
      each_line(protocol::decisions_file(runs, trial_id), [&](const Json& line) {
        for (const auto& [what, word] : kDecisions) {
          if (line.value("decision", "") == word) {
            decisions.push_back(
                {what, line.value("after_attempt", std::int64_t{0}), line.value("time", 0.0)});
            return;
          }
        }
        throw std::invalid_argument("decision is none that this petlab knows");
      });
  if (left_out != nullptr) left_out->insert(left_out->end(), unread.begin(), unread.end());
  return decisions;
}

void record_sweep(results::Store& store, const std::filesystem::path& runs,
                  const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                  double time) {
  make_folders(protocol::sweeps_folder(runs));
  const std::filesystem::path file = protocol::sweep_file(runs, sweep.name);
  std::string text = sweep_text(sweep, trials, time);
  bool same = same_but_for_time(file, text);
  if (!same && std::filesystem::exists(file)) {
    std::vector<results::TrialRow> known = trials;
    keep_former_trials(read_sweep_file(file), known);
    text = sweep_text(sweep, known, time);
    same = same_but_for_time(file, text);
  }
  if (same) {
    base::remove_abandoned_writes(file);
    renew_time(file, text);
  } else {
    base::write_file_atomically(file, text);
  }
  results::Batch batch = store.begin();
  batch.record_sweep(sweep, trials, time);
  batch.commit();
}

SweepFile read_sweep_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file, "cannot be read");
  SweepFile content;
  std::set<std::string> known;
  std::string line;
  std::int64_t number = 0;
  try {
    while (std::getline(in, line)) {
      const Json json =
          base::parse_shallow_ordered_json(line, fmt::format("{}:{}", file.string(), number + 1));
      if (++number == 1) {
        if (json.at("v") != 1) {
          throw Error(fmt::format("{}:1: v is {}, must be 1: made by a newer petlab", file.string(),
                                  json.at("v").dump()));
        }
        content.time = json.at("time").get<double>();
        content.sweep.name = json.at("sweep").get<std::string>();
        content.sweep.about = json.at("about").get<std::string>();
        content.sweep.file = json.at("file").get<std::string>();
        content.sweep.digest = json.at("digest").get<std::string>();
      } else if (json.contains("trial")) {
        content.trials.push_back({json.at("trial").get<std::string>(), json.at("config").dump(),
                                  json.value("backbone_digest", ""),
                                  number_of<double>(json, "bls_bits"),
                                  number_of<std::int64_t>(json, "stored_bits")});
        known.insert(content.trials.back().trial_id);
      } else {
        content.sweep.members.push_back(
            {json.at("member").get<std::string>(), json.at("variant").get<std::string>()});
        if (!known.contains(content.sweep.members.back().trial_id)) {
          throw Error(fmt::format("{}:{}: its member {} is no trial of the file", file.string(),
                                  number, content.sweep.members.back().trial_id));
        }
      }
    }
  } catch (const Json::exception& error) {
    throw Error(
        fmt::format("{}:{}: cannot be understood: {}", file.string(), number + 1, error.what()));
  }
  if (number == 0) throw Error(fmt::format("{}: it is empty", file.string()));
  return content;
}

}  // namespace petlab::orchestrator
