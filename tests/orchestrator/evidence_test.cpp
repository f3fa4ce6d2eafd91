#include "orchestrator/recovery/evidence.h"

#include <filesystem>

#include "orchestrator/host/lock_file.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::orchestrator;

TEST_CASE("A held worker lock means alive, even if the lock of its orchestrator is free",
          "[orchestrator]") {
  const testing::TempDir folder;
  const HostIdentity here = this_host();
  results::NewAttempt begun;
  begun.owner = "123-4567-89ab";
  begun.host = here.host;
  begun.boot_id = here.boot_id;
  begun.pid_namespace = here.pid_namespace;
  folder.write(begun.owner + ".lock", "");
  CHECK(liveness(begun, folder.path(), here) == Liveness::dead);
  std::optional<LockFile> worker =
      LockFile::try_lock(folder.path() / (begun.owner + ".cpu-0.lock"));
  REQUIRE(worker);
  CHECK(liveness(begun, folder.path(), here) == Liveness::alive);
  // The lock of another orchestrator's worker does not count.
  begun.owner = "123-4567-89ac";
  folder.write(begun.owner + ".lock", "");
  CHECK(liveness(begun, folder.path(), here) == Liveness::dead);
  begun.owner = "123-4567-89ab";
  worker.reset();
  CHECK(liveness(begun, folder.path(), here) == Liveness::dead);
}
