#pragma once

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <variant>

#include "results/query.h"
#include "tests/support/programs.h"
#include "tests/support/scripted_values.h"
#include "tests/support/temp_dir.h"

namespace petlab::testing {

/// A sweep for the scripted worker in a temporary folder, and calls of the program petlab on it.
struct ScriptedSweep {
  /// `variants`: one trial a line, `  name: {seed: 1, user: {…}}`.
  explicit ScriptedSweep(const std::string& variants) {
    write_unread_backbone(folder.path() / "backbone");
    folder.write("sweep.yaml", sweep_text(variants));
  }

  static std::string sweep_text(const std::string& variants) {
    return "sweep: scripted\nbase:\n  backbone: ./backbone\n  task: cola\n"
           "  module.kind: adapter\nvariants:\n" +
           variants;
  }

  /// `prefix` comes before the program: variables, `timeout …`.
  CommandResult petlab(const std::string& words, const std::string& prefix = "") const {
    return run_command(
        fmt::format("cd {0} && export PETLAB_SLOTS={0}/slots PETLAB_DB=sweep.db; {1} {2} {3}",
                    folder.path().string(), prefix, program("petlab").string(), words));
  }
  CommandResult run(const std::string& words = "", const std::string& prefix = "") const {
    return petlab(run_words(words), prefix);
  }
  std::string run_words(const std::string& words = "") const {
    const char* slots = words.find("--slots") == std::string::npos ? "--slots 2" : "";
    return fmt::format("run sweep.yaml {} --retry-delay 10ms --grace 300ms --worker {} {}", slots,
                       program("scripted-worker").string(), words);
  }

  /// Plans with the scripted worker, because the default worker has another numerics version.
  CommandResult plan(const std::string& words = "") const {
    return petlab(
        fmt::format("plan sweep.yaml --worker {} {}", program("scripted-worker").string(), words));
  }

  std::int64_t number(const std::string& sql) const {
    return std::get<std::int64_t>(results::query(database(), sql).rows.at(0).at(0));
  }
  std::string text(const std::string& sql) const {
    return std::get<std::string>(results::query(database(), sql).rows.at(0).at(0));
  }
  std::filesystem::path database() const { return folder.path() / "sweep.db"; }

  /// Waits until the query gives a number that is not 0; false after 20 s.
  bool until(const std::string& sql) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      try {
        if (std::filesystem::exists(database()) && number(sql) != 0) return true;
      } catch (const std::exception&) {
        // The database is still being created.
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  TempDir folder;
};

/// A command that runs in a thread. The destructor waits for its end.
class Background {
 public:
  explicit Background(std::function<CommandResult()> command)
      : thread_([this, command = std::move(command)] { result_ = command(); }) {}
  ~Background() {
    if (thread_.joinable()) thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  const CommandResult& wait() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 private:
  CommandResult result_;
  std::thread thread_;
};

}  // namespace petlab::testing
