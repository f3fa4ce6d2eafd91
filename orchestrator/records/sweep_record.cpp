#include "orchestrator/records/sweep_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "protocol/record_lines.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {
namespace {

[[noreturn]] void fail_at(const std::filesystem::path& file, const char* what) {
  throw Error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(errno)));
}

// The first line of a sweep's file. The time has a fixed width and position, so that it can be
// updated in place in a file of many megabytes.
constexpr std::size_t kTimeAt = 14;  // after {"v":1,"time":
constexpr std::size_t kTimeWidth = 18;

std::string sweep_text(const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                       double time) {
  protocol::RecordLine header = {{"sweep", sweep.name},
                                 {"about", sweep.about},
                                 {"file", sweep.file},
                                 {"digest", sweep.digest}};
  if (!sweep.overrides.empty()) header["set"] = sweep.overrides;
  std::string text = fmt::format("{{\"v\":1,\"time\":{:<{}.6f},", time, kTimeWidth);
  const auto dump = [](const protocol::RecordLine& json) {
    return json.dump(-1, ' ', false, protocol::RecordLine::error_handler_t::replace);
  };
  text += dump(header).substr(1) + "\n";
  for (const results::TrialRow& trial : trials) {
    protocol::RecordLine line = {{"trial", trial.trial_id}};
    protocol::put(line, "backbone_digest", trial.backbone_digest);
    protocol::put(line, "bls_bits", trial.bls_bits);
    protocol::put(line, "stored_bits", trial.stored_bits);
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
  std::string written = std::move(content).str();
  if (written.size() != text.size()) return false;
  return written.replace(kTimeAt - 1, kTimeWidth, kTimeWidth, ' ') ==
         text.replace(kTimeAt - 1, kTimeWidth, kTimeWidth, ' ');
}

// Adds former trials of the sweep, which the database keeps as well.
void keep_former_trials(const SweepFile& former, std::vector<results::TrialRow>& trials) {
  std::set<std::string_view> current;
  for (const results::TrialRow& trial : trials) current.insert(trial.trial_id);
  std::vector<results::TrialRow> gone;
  for (const results::TrialRow& trial : former.trials) {
    if (!current.contains(trial.trial_id)) gone.push_back(trial);
  }
  trials.insert(trials.end(), gone.begin(), gone.end());
}

void renew_time(const std::filesystem::path& file, const std::string& text) {
  const base::FileDescriptor out(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!out) fail_at(file, "cannot be written");
  // In one call, so that no reader sees half of the time.
  const ssize_t written = pwrite(out.get(), text.data() + kTimeAt - 1, kTimeWidth, kTimeAt - 1);
  if (written == static_cast<ssize_t>(kTimeWidth)) return;
  if (written >= 0) errno = ENOSPC;
  fail_at(file, "cannot be written");
}

void keep_text(const std::filesystem::path& runs, const std::string& digest,
               const std::string& text) {
  const std::filesystem::path file = protocol::sweep_text_file(runs, digest);
  if (!std::filesystem::exists(file)) base::write_file_atomically(file, text);
}

}  // namespace

void record_sweep(results::Store& store, const std::filesystem::path& runs,
                  const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                  double time) {
  const std::filesystem::path folder = protocol::sweeps_folder(runs);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  // Before the configurations that can only be read with it.
  if (!sweep.catalog.empty()) keep_text(runs, base::sha256(sweep.catalog), sweep.catalog);
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
  if (!sweep.text.empty()) keep_text(runs, sweep.digest, sweep.text);
  results::Batch batch = store.begin();
  batch.record_sweep(sweep, trials, time);
  batch.commit();
}

SweepFile read_sweep_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail_at(file, "cannot be read");
  SweepFile content;
  std::set<std::string> known;
  std::string line;
  std::int64_t number = 0;
  try {
    while (std::getline(in, line)) {
      ++number;
      const protocol::RecordLine json =
          base::parse_shallow_ordered_json(line, fmt::format("{}:{}", file.string(), number));
      if (number == 1) {
        if (json.at("v") != 1) {
          throw Error(fmt::format("{}:1: v is {}, must be 1: made by a newer petlab", file.string(),
                                  json.at("v").dump()));
        }
        content.time = json.at("time").get<double>();
        content.sweep.name = json.at("sweep").get<std::string>();
        content.sweep.about = json.at("about").get<std::string>();
        content.sweep.file = json.at("file").get<std::string>();
        content.sweep.digest = json.at("digest").get<std::string>();
        content.sweep.overrides = json.value("set", std::vector<std::string>());
      } else if (json.contains("trial")) {
        content.trials.push_back({json.at("trial").get<std::string>(), json.at("config").dump(),
                                  json.value("backbone_digest", ""),
                                  protocol::number_of<double>(json, "bls_bits"),
                                  protocol::number_of<std::int64_t>(json, "stored_bits")});
        known.insert(content.trials.back().trial_id);
      } else {
        content.sweep.members.push_back(
            {json.at("member").get<std::string>(), json.at("variant").get<std::string>()});
        if (!known.contains(content.sweep.members.back().trial_id)) {
          throw Error(fmt::format("{}:{}: its member {} is not a trial of the file", file.string(),
                                  number, content.sweep.members.back().trial_id));
        }
      }
    }
  } catch (const protocol::RecordLine::exception& error) {
    throw Error(
        fmt::format("{}:{}: cannot be understood: {}", file.string(), number, error.what()));
  }
  if (in.bad()) fail_at(file, "cannot be read completely");
  if (number == 0) throw Error(fmt::format("{}: it is empty", file.string()));
  return content;
}

}  // namespace petlab::orchestrator
