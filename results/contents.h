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

/// Values that were reported, in short: two with the same number and digest are the same values, to
/// the bit and in their order.
struct ValuesDigest {
  std::int64_t values = 0;
  std::string digest;  ///< SHA-256 of step, split, task, name and value of each
  bool operator==(const ValuesDigest&) const = default;
};

/// A value that counts.
struct CountedValue {
  std::string split, task, name;
  std::int64_t step = 0;
  std::optional<double> value;  ///< absent: undefined
  bool operator==(const CountedValue&) const = default;
};

/// Reads all that a database holds, hidden trials included, to be held against another database or
/// a runs folder. Throws results::Error, as Reader.
class ContentsReader {
 public:
  explicit ContentsReader(const std::filesystem::path& database);
  ~ContentsReader();
  ContentsReader(ContentsReader&&) noexcept;
  ContentsReader& operator=(ContentsReader&&) noexcept;

  /// What SQLite's own look at its pages and indexes finds, a text each; nothing where it is sound.
  std::vector<std::string> damage() const;
  /// Every trial's id, sorted.
  std::vector<std::string> trial_ids() const;
  using ByAttempt = std::map<std::pair<std::string, std::int64_t>, ValuesDigest>;
  /// What each attempt reported, with its places in the events, by trial and number of the attempt;
  /// those without values are left out.
  ByAttempt attempts() const;
  ByAttempt attempts(const std::string& trial_id) const;
  /// The values that count of one trial, by split, task, name and step.
  std::vector<CountedValue> counted(const std::string& trial_id) const;
  /// What a trial's artifact is, as its finished attempt said: path in its folder and sizes.
  struct Artifact {
    std::string trial_id;
    std::int64_t attempt = 0;
    std::string path;  ///< empty: none
    std::optional<std::int64_t> stored_bits;
    bool counts = false;  ///< of the attempt whose values count
  };
  /// Of each attempt that has one, by trial and number of the attempt.
  std::vector<Artifact> artifacts() const;
  std::vector<Artifact> artifacts(const std::string& trial_id) const;
  /// The highest number of an attempt of the trial that was ever given, also of one that was taken
  /// back; 0 where there is none.
  std::int64_t highest_attempt(const std::string& trial_id) const;

 private:
  std::shared_ptr<internal::Connection> connection_;
};

}  // namespace petlab::results
