#pragma once

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "results/connection.h"
#include "results/error.h"
#include "results/store.h"

namespace petlab::results::internal {

/// A consistent state of the database over several statements. Does nothing inside a batch's
/// transaction.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection) : connection_(connection) {
    if (connection.in_transaction()) return;
    connection.check_not_moved();
    connection.look_again();
    connection.exec("BEGIN");
    began_ = true;
  }
  ~Snapshot() {
    if (began_ && connection_.in_transaction()) connection_.roll_back();
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Connection& connection_;
  bool began_ = false;
};

/// Runs `body` on a consistent state of the database; converts SQLite's errors to Errors.
template <typename Body>
auto reading(Connection& connection, Body&& body) {
  return connection.guard("read it", [&] {
    const Snapshot snapshot(connection);
    auto read = [&] {
      if constexpr (std::is_void_v<decltype(body())>) {
        body();
        return true;
      } else {
        return body();
      }
    }();
    connection.check_unchanged();
    return read;
  });
}

/// Runs `body` in the batch's transaction; converts SQLite's errors to Errors about what `doing`
/// describes.
template <typename Body>
auto writing(const Batch& batch, std::string_view doing, Body&& body) {
  Connection& connection = connection_of(batch);
  // Some errors (disk full) end SQLite's transaction. Later writes would then be stored
  // immediately.
  if (!connection.in_transaction()) {
    throw Error(fmt::format("{}: cannot {}: an earlier error ended this batch of writes",
                            connection.file().string(), doing));
  }
  return connection.guard(doing, [&] { return body(connection); });
}

}  // namespace petlab::results::internal
