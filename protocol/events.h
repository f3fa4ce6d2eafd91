#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace petlab::protocol {

/// Numbers of examples by task, then by split (train, validation, test).
using Examples = std::map<std::string, std::map<std::string, std::int64_t>>;

// The events of docs/reference/worker-protocol.md, one struct per type.
struct Started {
  std::int64_t pid = 0;
  std::string worker;
  std::string version;
  std::string numerics;         // JSON object
  std::string backbone_digest;  // as seen by the worker; may be empty
  std::map<std::string, std::string> data_digests;
  /// JSON object, may be empty: the worker's build and its device.
  std::string provenance = {};
  bool operator==(const Started&) const = default;
};
struct Progress {
  std::int64_t step = 0;
  std::int64_t of = 0;
  std::optional<double> loss;  // absent: not finite
  /// The highest memory use of the process on its device so far; absent if not reported.
  std::optional<double> device_memory_mib = std::nullopt;
  bool operator==(const Progress&) const = default;
};
struct Metric {
  std::int64_t step = 0;
  std::string split;
  std::string task;
  std::string name;
  std::optional<double> value;  // absent: undefined
  bool operator==(const Metric&) const = default;
};
struct Checkpoint {
  std::int64_t step = 0;
  std::string path;
  bool operator==(const Checkpoint&) const = default;
};
struct Finished {
  std::int64_t step = 0;
  std::string artifact;  // empty: none
  std::optional<double> bls_bits;
  std::optional<std::int64_t> stored_bits;
  std::optional<double> peak_memory_mib;  // host memory
  std::optional<double> train_seconds;
  std::optional<double> device_memory_mib = std::nullopt;  // as in Progress
  Examples examples = {};  // used for training and evaluation; empty if not reported
  /// As in Started, which it replaces; empty: unchanged.
  std::string provenance = {};
  bool operator==(const Finished&) const = default;
};
struct Failed {
  std::string reason;  // for people; to_line shortens it with bounded_reason
  std::string kind = "error";
  bool operator==(const Failed&) const = default;
};
/// The worker stopped this trial alone, as petlab asked (TrialDirectory::stop).
struct Stopped {
  std::int64_t step = 0;
  bool operator==(const Stopped&) const = default;
};

/// A line of `events.jsonl`.
struct Event {
  std::int64_t seq = 0;
  double time = 0;  // seconds since 1970, UTC
  std::variant<Started, Progress, Metric, Checkpoint, Finished, Failed, Stopped> body;
  bool operator==(const Event&) const = default;
};

/// Returns the line without its newline. Printed numbers read back bit-identical. Throws
/// std::invalid_argument if the protocol does not allow the event: a time that is not finite, text
/// that is not UTF-8, or a line that is too long. The reason of a failure can always be written.
std::string to_line(const Event& event);

/// Prepares a reason for an event: escapes bytes that are not UTF-8 as \xNN, and cuts the middle of
/// texts longer than 4,096 bytes.
std::string bounded_reason(std::string_view reason);

/// Parses a line without its newline. Throws std::runtime_error with the found and expected
/// content: no JSON, invalid UTF-8, a missing or wrong-typed field, an unknown type or version. The
/// caller adds file and line.
Event parse_event(std::string_view line);

}  // namespace petlab::protocol
