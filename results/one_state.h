#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "results/scores.h"
#include "results/store.h"

namespace petlab::results {

/// A consistent state of a database during this object's lifetime, for reads in several steps.
/// Other processes may write meanwhile, which is not visible here. Throws as Reader.
class OneState {
 public:
  explicit OneState(const std::filesystem::path& database);
  ~OneState();
  OneState(const OneState&) = delete;
  OneState& operator=(const OneState&) = delete;

  const Reader& reader() const { return reader_; }
  const ScoreReader& scores() const { return scores_; }
  /// Runs one of petlab's own SELECTs, with `parameters` bound to ?1, ?2, …
  void rows(const std::string& sql, const std::vector<Value>& parameters,
            const std::function<void(const std::vector<std::string>&)>& columns,
            const std::function<void(const std::vector<Value>&)>& row) const;

 private:
  explicit OneState(std::shared_ptr<internal::Connection> connection);
  std::shared_ptr<internal::Connection> connection_;
  Reader reader_;
  ScoreReader scores_;
};

}  // namespace petlab::results
