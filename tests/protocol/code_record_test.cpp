#include "protocol/code_record.h"

#include <filesystem>

#include "base/sha256.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::protocol {
namespace {

CodeRecord record_with_repository() {
  CodeRecord record;
  record.command = {"/usr/bin/python3", "/repo/worker.py"};
  record.files = {{"/repo/worker.py", "sha256:aa"}, {"/repo/big.bin", ""}};
  record.repository = CodeRepository{"/repo",
                                     "0123",
                                     "main",
                                     false,
                                     "sha256:bb",
                                     {{"worker.py", "4567"}, {"old.py", "deleted"}},
                                     "diff --git a/worker.py b/worker.py\n+é \"x\"\n",
                                     {{".env", "files of this name may hold secrets"}}};
  record.environment = {{"OMP_NUM_THREADS", "4"}};
  return record;
}

}  // namespace

TEST_CASE("A record of code is stored once under its digest and reads back", "[protocol]") {
  const testing::TempDir runs;
  CodeRecord without;
  without.command = {"/opt/worker"};
  without.why_no_repository = "the worker is a compiled program";
  for (const CodeRecord& record : {record_with_repository(), without}) {
    const std::string digest = write_code_record(runs.path(), record);
    CHECK(read_code_record(runs.path(), digest) == record);
    const std::filesystem::path file = code_record_file(runs.path(), digest);
    CHECK(file == runs.path() / "sweeps" / ("sha256-" + digest.substr(7) + ".code"));
    const auto written = std::filesystem::last_write_time(file);
    CHECK(write_code_record(runs.path(), record) == digest);
    CHECK(std::filesystem::last_write_time(file) == written);
  }
}

TEST_CASE("A record of code that is damaged or from a newer petlab is refused", "[protocol]") {
  const testing::TempDir runs;
  const std::string digest = write_code_record(runs.path(), record_with_repository());
  const std::string file = code_record_file(runs.path(), digest).string();
  runs.write(std::filesystem::path(file).lexically_relative(runs.path()).string(), "{\"v\": 2}");
  CHECK_THROWS_WITH(read_code_record(runs.path(), digest),
                    Catch::Matchers::StartsWith(file + ": its content has digest sha256:"));
  const auto named_by_digest = [&](const std::string& text) {
    const std::string of_text = base::sha256(text);
    runs.write(code_record_file(runs.path(), of_text).lexically_relative(runs.path()).string(),
               text);
    return of_text;
  };
  const std::string newer = named_by_digest("{\"v\": 2}");
  CHECK_THROWS_WITH(read_code_record(runs.path(), newer),
                    code_record_file(runs.path(), newer).string() +
                        ": v is 2, must be 1: written by a newer petlab");
  const std::string other = named_by_digest("{\"v\": 1, \"command\": 5}");
  CHECK_THROWS_WITH(read_code_record(runs.path(), other),
                    Catch::Matchers::StartsWith(code_record_file(runs.path(), other).string() +
                                                ": found something else than a record of code: "));
}

}  // namespace petlab::protocol
