#pragma once

#include <type_traits>

#include "results/connection.h"

namespace petlab::results::internal {

/// One state of the database over several statements; the transaction of a batch is one already.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection) : connection_(connection) {
    if (connection.in_transaction()) return;
    connection.check_not_moved();
    connection.look_again();
    connection.exec("BEGIN");
    own_ = true;
  }
  ~Snapshot() {
    if (own_ && connection_.in_transaction()) connection_.roll_back();
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Connection& connection_;
  bool own_ = false;
};

/// Runs `body`, which reads one state of the database; SQLite's errors become Errors.
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

}  // namespace petlab::results::internal
