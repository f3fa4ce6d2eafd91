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

TEST_CASE("A temporary folder is unique, and is removed with its content", "[base]") {
  const TempDir dir;
  const char* const before = ::getenv("TMPDIR");
  const std::optional<std::string> former =
      before == nullptr ? std::nullopt : std::optional<std::string>(before);
  ::setenv("TMPDIR", dir.path().c_str(), 1);
  fs::path created;
  {
    const TemporaryFolder one("purpose");
    const TemporaryFolder other("purpose");
    created = one.path();
    CHECK(created != other.path());
    CHECK(created.parent_path() == dir.path());
    CHECK(created.filename().string().starts_with("purpose-"));
    std::ofstream(created / "file") << "text";
  }
  CHECK_FALSE(fs::exists(created));
  const fs::path gone = dir.path() / "gone";
  ::setenv("TMPDIR", gone.c_str(), 1);
  CHECK_THROWS_AS(TemporaryFolder("purpose"), petlab::base::Error);
  if (former) {
    ::setenv("TMPDIR", former->c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
}
