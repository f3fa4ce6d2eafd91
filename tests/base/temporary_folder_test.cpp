#include "base/temporary_folder.h"

#include <stdlib.h>

#include <fstream>
#include <optional>

#include "base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;
using petlab::base::TemporaryFolder;
using petlab::testing::TempDir;

TEST_CASE("a temporary folder is its own, and goes with what is in it", "[base]") {
  const TempDir dir;
  const char* const before = ::getenv("TMPDIR");
  const std::optional<std::string> kept =
      before == nullptr ? std::nullopt : std::optional<std::string>(before);
  ::setenv("TMPDIR", dir.path().c_str(), 1);
  fs::path made;
  {
    const TemporaryFolder one("purpose");
    const TemporaryFolder other("purpose");
    made = one.path();
    CHECK(made != other.path());
    CHECK(made.parent_path() == dir.path());
    CHECK(made.filename().string().starts_with("purpose-"));
    std::ofstream(made / "file") << "text";
  }
  CHECK_FALSE(fs::exists(made));
  const fs::path gone = dir.path() / "gone";
  ::setenv("TMPDIR", gone.c_str(), 1);
  CHECK_THROWS_AS(TemporaryFolder("purpose"), petlab::base::Error);
  if (kept) {
    ::setenv("TMPDIR", kept->c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
}
