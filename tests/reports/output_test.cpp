#include "reports/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include "reports/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

using testing::TempDir;

const std::vector<const Format*> kTwo = {find_format("markdown"), find_format("csv-long")};

TEST_CASE("A report's files are named after it and replaced atomically", "[reports]") {
  const TempDir folder;
  Report report;
  report.name = "demo";
  folder.write("out/demo.md", "old");
  const auto written = write_files(report, folder.path() / "out", kTwo, {});
  REQUIRE(written.files.size() == 2);
  CHECK(written.files[0] == folder.path() / "out/demo.md");
  CHECK(written.files[1] == folder.path() / "out/demo.long.csv");
  CHECK(testing::read_file(written.files[0]) == to_markdown(report));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "out")) {
    files += entry.exists() ? 1 : 0;
  }
  CHECK(files == 2);
}

TEST_CASE("A folder that cannot be created or written is reported", "[reports]") {
  const TempDir folder;
  Report report;
  report.name = "demo";
  const auto file = folder.write("file", "x");
  CHECK_THROWS_WITH(write_files(report, file, kTwo, {}),
                    file.string() +
                        ": cannot make the folder: there is a file of that name; name "
                        "another with --out");
  CHECK_THROWS_AS(write_files(report, "/proc/no-such-folder", kTwo, {}), Error);
}

TEST_CASE("A report never replaces a pipe or a device", "[reports]") {
  const TempDir folder;
  Report report;
  report.name = "demo";
  const auto pipe = folder.path() / "demo.md";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(write_files(report, folder.path(), kTwo, {}),
                    pipe.string() +
                        ": is not a regular file, must be one or not exist yet; name another "
                        "folder with --out");
  CHECK(std::filesystem::is_fifo(pipe));
}

}  // namespace
}  // namespace petlab::reports
