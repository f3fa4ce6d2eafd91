#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace petlab::orchestrator {

/// What a command of Slurm printed, and how it ended.
struct SlurmAnswer {
  int exit_code = -1;  // -1: ended by a signal, by its time limit, or not started
  std::string output;
  std::string errors;
  bool timed_out = false;
};

/// How long a command of Slurm may take to answer.
inline constexpr std::chrono::minutes kSlurmAnswerLimit{2};

/// Runs Slurm's programs (sbatch, squeue, scancel, scontrol, sacct) beside the loop, several at
/// once. They are killed when this process dies, and do not get the terminal's Ctrl-C. Variables
/// that would change what they print or ask are taken out of their environment.
class SlurmCommands {
 public:
  explicit SlurmCommands(boost::asio::io_context& loop);
  /// Kills what still runs; its `done` is not called.
  ~SlurmCommands();
  SlurmCommands(const SlurmCommands&) = delete;
  SlurmCommands& operator=(const SlurmCommands&) = delete;

  /// `words[0]` is looked for on PATH. `done` is called from the loop, once, never from inside.
  void run(std::vector<std::string> words, std::chrono::milliseconds limit,
           std::function<void(SlurmAnswer)> done);

 private:
  class Running;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace petlab::orchestrator
