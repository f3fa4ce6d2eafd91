#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "results/scores.h"
#include "results/store.h"

namespace petlab::results {

/// One state of a database for as long as this lives, for what is read in several steps; others
/// write meanwhile and are not seen. Throws as Reader.
class OneState {
 public:
  explicit OneState(const std::filesystem::path& database);
  ~OneState();
  OneState(const OneState&) = delete;
  OneState& operator=(const OneState&) = delete;

  const Reader& reader() const { return reader_; }
  const ScoreReader& scores() const { return scores_; }
  /// Runs a SELECT of petlab's own, `parameters` bound to ?1, ?2, …
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
