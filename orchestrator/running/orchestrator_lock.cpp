#include "orchestrator/running/orchestrator_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/process_identity.h"
#include "orchestrator/recovery/evidence.h"

namespace petlab::orchestrator {

OrchestratorLock::OrchestratorLock(const std::filesystem::path& locks, const std::string& owner,
                                   const std::filesystem::path& database, const std::string& sweep)
    : lock_(LockFile::try_lock(owner_lock(locks, owner))) {
  // Other processes check a lock by taking it for a moment, possibly just before this one takes
  // it.
  for (int tries = 0; !lock_ && tries < 5000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock_ = LockFile::try_lock(owner_lock(locks, owner));
  }
  if (!lock_)
    throw Error(fmt::format("{}: another process holds the lock of this new name", owner));
  const HostIdentity here = this_host();
  const nlohmann::ordered_json about = {
      {"pid", ::getpid()},
      {"host", here.host},
      {"boot_id", here.boot_id},
      {"pid_namespace", here.pid_namespace},
      {"database", std::filesystem::absolute(database).lexically_normal().string()},
      {"sweep", sweep}};
  lock_->write(about.dump() + "\n");
  // After a power cut, the lock must still show that this orchestrator's attempts need checking.
  const std::filesystem::path runs = locks.parent_path();
  for (const std::filesystem::path& folder : {locks, runs, base::folder_of(runs)}) {
    const base::FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::fsync(opened.get());
  }
}

OrchestratorLock::~OrchestratorLock() {
  // Without the lock, no process would check the attempts, so their files are synced first.
  const base::FileDescriptor folder(
      ::open(lock_->file().parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ::syncfs(folder.get());
  std::error_code ignored;
  std::filesystem::remove(lock_->file(), ignored);
}

}  // namespace petlab::orchestrator
