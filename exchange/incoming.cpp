#include "exchange/incoming.h"

#include <fmt/format.h>

#include <system_error>

#include "exchange/error.h"
#include "orchestrator/recovery/evidence.h"

namespace petlab::exchange {

using orchestrator::LockFile;
using orchestrator::locks_folder;

LockFile lock_incoming(const std::filesystem::path& runs) {
  const std::filesystem::path locks = locks_folder(runs);
  std::error_code error;
  std::filesystem::create_directories(locks, error);
  if (error) throw Error(fmt::format("{}: cannot be created: {}", locks.string(), error.message()));
  auto lock = LockFile::try_lock(incoming_lock(runs));
  if (!lock) {
    throw Error(fmt::format(
        "{}: another petlab db merge, import or gc is running there; wait until it ends",
        runs.string()));
  }
  return std::move(*lock);
}

std::filesystem::path incoming_lock(const std::filesystem::path& runs) {
  return locks_folder(runs) / "incoming.lock";
}

std::filesystem::path incoming_folder(const std::filesystem::path& runs) {
  return runs / ".incoming";
}

Incoming::Incoming(const std::filesystem::path& runs)
    : runs_(std::filesystem::absolute(runs).lexically_normal()),
      folder_(incoming_folder(runs_)),
      lock_(lock_incoming(runs_)) {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
  if (!error) std::filesystem::create_directory(folder_, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder_.string(), error.message()));
}

Incoming::~Incoming() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace petlab::exchange
