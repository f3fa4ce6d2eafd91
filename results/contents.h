#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/store.h"

namespace petlab::results {

/// A digest of reported values. Equal counts and digests mean bit-identical values in the same
/// order.
struct ValuesDigest {
  std::int64_t values = 0;
  std::string digest;  ///< SHA-256 of the step, split, task, name and value of each
  bool operator==(const ValuesDigest&) const = default;
};

/// A value that counts in results.
struct CountedValue {
  std::string split, task, name;
  std::int64_t step = 0;
  std::optional<double> value;  ///< absent if undefined
  bool operator==(const CountedValue&) const = default;
};

/// Reads everything in a database, including hidden trials, to compare it with another database or
/// a runs folder. Throws results::Error, as Reader.
class ContentsReader {
 public:
  explicit ContentsReader(const std::filesystem::path& database);
  ~ContentsReader();
  ContentsReader(ContentsReader&&) noexcept;
  ContentsReader& operator=(ContentsReader&&) noexcept;

  /// The faults found by SQLite's integrity check of pages and indexes; empty if it is sound.
  std::vector<std::string> damage() const;
  /// The ids of all trials, sorted.
  std::vector<std::string> trial_ids() const;
  using ByAttempt = std::map<std::pair<std::string, std::int64_t>, ValuesDigest>;
  /// Digests of the values of each attempt and their seq, by trial and attempt number. Attempts
  /// without values are omitted.
  ByAttempt attempts() const;
  ByAttempt attempts(const std::string& trial_id) const;
  /// The values of a trial that count, by split, task, name and step.
  std::vector<CountedValue> counted(const std::string& trial_id) const;
  /// An artifact as reported by its finished attempt: path in the attempt's folder, and size.
  struct Artifact {
    std::string trial_id;
    std::int64_t attempt = 0;
    std::string path;  ///< empty if there is none
    std::optional<std::int64_t> stored_bits;
    bool counts = false;  ///< its attempt is the result
  };
  /// All artifacts, by trial and attempt number.
  std::vector<Artifact> artifacts() const;
  std::vector<Artifact> artifacts(const std::string& trial_id) const;
  /// The highest attempt number ever assigned to the trial, including forgotten attempts; 0 if
  /// there is none.
  std::int64_t highest_attempt(const std::string& trial_id) const;

 private:
  std::shared_ptr<internal::Connection> connection_;
};

}  // namespace petlab::results
