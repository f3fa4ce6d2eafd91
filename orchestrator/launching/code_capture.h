#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/launching/worker_command.h"
#include "protocol/code_record.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// Limits of a capture.
struct CodeLimits {
  std::chrono::milliseconds git = std::chrono::seconds(10);  // for all calls of one capture
  std::size_t diff_bytes = std::size_t{1} << 20;
  std::uintmax_t file_bytes = std::uintmax_t{256} << 20;  // a larger file gets no digest
};

/// Captures what a worker runs: its command, the digests of the files in it, the git repository of
/// its script, and some environment variables. Never fails: what cannot be read is absent, with
/// the reason. Nothing that looks like a secret is captured (base/secrets.h).
class CodeCapture {
 public:
  CodeCapture(WorkerCommand worker, sweeps::Environment environment, CodeLimits limits = {});

  /// The code as it is now. If many workers start, the state of the repository is that of the last
  /// capture, for as long as git needed for it, and ten times as long if it needed over 200 ms.
  const protocol::CodeRecord& now();

 private:
  struct Digested {
    std::filesystem::file_time_type changed;
    std::uintmax_t size = 0;
    std::string digest;
  };
  std::string digest_of(const std::filesystem::path& file);
  void read_files();
  void read_repository();

  WorkerCommand worker_;
  sweeps::Environment environment_;
  CodeLimits limits_;
  std::filesystem::path folder_;  // where git is asked; empty: nowhere
  std::map<std::string, Digested> digests_;
  protocol::CodeRecord record_;
  std::chrono::steady_clock::time_point ask_git_at_;
};

/// The digest of the record's files; empty if one of them has none.
std::string script_digest_of(const protocol::CodeRecord& record);

}  // namespace petlab::orchestrator
