#include "cli/running/logs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <ostream>
#include <thread>

#include "cli/options/trial_arguments.h"
#include "orchestrator/recovery/control.h"

namespace petlab::cli {
namespace {

// Polled, because network file systems do not report changes.
constexpr auto kLookAgain = std::chrono::milliseconds(200);

struct LogsArguments : StoredArguments {
  std::string trial;
  std::int64_t attempt = 0;  // 0: the last attempt
  bool follow = false;
  std::int64_t tail = -1;  // number of lines; negative: all
};

// The offset of a file's last lines. Reads from the end, so that logs of gigabytes are fast.
std::streamoff tail_of(const std::filesystem::path& log, std::int64_t lines) {
  std::ifstream in(log, std::ios::binary | std::ios::ate);
  if (!in) return 0;
  std::streamoff at = in.tellg();
  if (lines == 0) return at;
  char buffer[65536];
  bool last = true;  // a final newline ends the last line and starts none
  while (at > 0) {
    const auto size = static_cast<std::streamsize>(std::min<std::streamoff>(at, sizeof buffer));
    at -= size;
    if (!in.seekg(at) || !in.read(buffer, size)) return 0;
    for (std::streamsize i = size; i-- > 0;) {
      const bool newline = buffer[i] == '\n';
      if (newline && !last && --lines == 0) return at + i + 1;
      last = false;
    }
  }
  return 0;
}

// Prints the file from `offset` on, and advances it.
void print_from(const std::filesystem::path& log, std::streamoff& offset, std::ostream& out) {
  std::ifstream in(log, std::ios::binary);
  if (!in || !in.seekg(offset)) return;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer), in.gcount() > 0) {
    out.write(buffer, in.gcount());
    offset += in.gcount();
  }
  out.flush();
}

int logs(const LogsArguments& arguments, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  const std::filesystem::path runs = arguments.existing_runs_path();
  const results::Reader reader(database);
  const std::string id = orchestrator::find_trial(reader, database, arguments.trial);
  const results::TrialFacts facts = reader.trial_facts(std::vector<std::string>{id}).front();
  if (facts.attempts.empty()) {
    throw std::invalid_argument(fmt::format("trial {} has no attempt yet", id));
  }
  const std::int64_t number =
      arguments.attempt > 0 ? arguments.attempt : facts.attempts.back().attempt.number;
  if (!reader.attempt_facts(id, number)) {
    throw std::invalid_argument(fmt::format("trial {} has no attempt {}; its last is {}", id,
                                            number, facts.attempts.back().attempt.number));
  }
  const protocol::TrialDirectory directory(runs, id, number);
  if (!std::filesystem::is_directory(directory.folder())) {
    throw results::Error(
        fmt::format("{}: the attempt's folder is missing; name the runs folder with --runs",
                    directory.folder().string()));
  }
  const std::filesystem::path log = directory.log();
  const orchestrator::HostIdentity here = orchestrator::this_host();
  const auto is_running = [&] {
    const auto attempt = reader.attempt_facts(id, number);
    return attempt && attempt->outcome == results::Outcome::open &&
           orchestrator::liveness(attempt->begun, orchestrator::locks_folder(runs), here) !=
               orchestrator::Liveness::dead;
  };
  const std::streamoff begin = arguments.tail < 0 ? 0 : tail_of(log, arguments.tail);
  std::streamoff offset = begin;
  // Checked before reading, so that the last read happens after the end.
  bool more = arguments.follow && is_running();
  print_from(log, offset, streams.out);
  while (more && streams.out) {
    std::this_thread::sleep_for(kLookAgain);
    more = is_running();
    print_from(log, offset, streams.out);
  }
  if (offset == 0 && begin == 0) {
    streams.err << fmt::format("trial {}, attempt {}: the worker has printed nothing\n", id,
                               number);
  }
  return kDone;
}

}  // namespace

std::function<int()> make_logs(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<LogsArguments>();
  app.add_option("TRIAL", arguments->trial, "a trial id or a prefix of it")->required();
  app.add_flag("-f,--follow", arguments->follow, "continue until the attempt ends");
  app.add_option("--tail", arguments->tail, "start with the last N lines")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--attempt", arguments->attempt, "attempt number (default: the last)")
      ->check(CLI::Range(1, 1'000'000'000));
  add_stored_arguments(app, *arguments);
  return [arguments, streams] { return logs(*arguments, streams); };
}

}  // namespace petlab::cli
