#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace petlab::protocol {

/// How many examples there are: by task, then by split (train, validation, test).
using Examples = std::map<std::string, std::map<std::string, std::int64_t>>;

// The events of docs/reference/worker-protocol.md, one struct a type.
struct Started {
  std::int64_t pid = 0;
  std::string worker;
  std::string version;
  std::string numerics;         // JSON object as text
  std::string backbone_digest;  // as the worker saw it; may be empty
  std::map<std::string, std::string> data_digests;
  /// JSON object as text, may be empty: which build the worker is and what it computes on.
  std::string provenance = {};
  bool operator==(const Started&) const = default;
};
struct Progress {
  std::int64_t step = 0;
  std::int64_t of = 0;
  std::optional<double> loss;  // absent: not finite
  /// The most that the process held of its device's memory so far; absent: not told.
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
  std::optional<double> peak_memory_mib;  // of the machine's memory
  std::optional<double> train_seconds;
  std::optional<double> device_memory_mib = std::nullopt;  // as of progress
  Examples examples = {};  // that the trial was trained and scored on; empty: not told
  bool operator==(const Finished&) const = default;
};
struct Failed {
  std::string reason;  // for people; to_line writes bounded_reason of it
  std::string kind = "error";
  bool operator==(const Failed&) const = default;
};

/// One line of `events.jsonl`.
struct Event {
  std::int64_t seq = 0;
  double time = 0;  // seconds since 1970, UTC
  std::variant<Started, Progress, Metric, Checkpoint, Finished, Failed> body;
  bool operator==(const Event&) const = default;
};

/// The line without its newline. Numbers are printed so that they read back bit-identical. Throws
/// std::invalid_argument for what the protocol does not allow: a time that is not finite, text that
/// is not UTF-8, a line that is too long. A failure's reason can always be written.
std::string to_line(const Event& event);

/// The reason as an event holds it: bytes that are not UTF-8 are written as \xNN, and of a text of
/// more than 4,096 bytes the middle is left out.
std::string bounded_reason(std::string_view reason);

/// Parses a line (without its newline). Throws std::runtime_error saying what was found and
/// expected: no JSON, invalid UTF-8, a missing or wrong-typed field, an unknown type or version.
/// The caller adds file and line.
Event parse_event(std::string_view line);

}  // namespace petlab::protocol
