#include "exports/transaction_log.h"

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::exports {
namespace {

std::string log_of(const std::vector<std::string>& records) {
  const testing::TempDir folder;
  const auto file = folder.path() / "run.wandb";
  TransactionLog log(file);
  for (const std::string& record : records) log.add(record);
  log.close();
  return testing::read_file(file);
}

}  // namespace

TEST_CASE("A transaction log begins as W&B's, and its records have checksums", "[exports]") {
  // The CRC-32 of the kind, 1, and "hello" (zlib.crc32), the length 5, the kind.
  CHECK(log_of({"hello"}) == std::string(":W&B\xe1\xbe\x00", 7) +
                                 std::string("\x9d\x23\xac\x8a\x05\x00\x01", 7) + "hello");
}

TEST_CASE("A record that does not fit into a block continues in the next ones", "[exports]") {
  // Blocks of 32,768 bytes, of which the first begins with 7 bytes of the file's header; each
  // fragment has a header of 7 bytes, which ends with its length and its kind.
  const std::string bytes = log_of({std::string(70000, 'a')});
  CHECK(bytes.size() == 7 + 3 * 7 + 70000);
  const std::size_t first = 32768 - 7 - 7;
  const std::size_t middle = 32768 - 7;
  const auto header = [](std::size_t length, char kind) {
    return std::string{static_cast<char>(length & 0xff), static_cast<char>(length >> 8), kind};
  };
  CHECK(bytes.substr(7 + 4, 3) == header(first, 2));
  CHECK(bytes.substr(32768 + 4, 3) == header(middle, 3));
  CHECK(bytes.substr(65536 + 4, 3) == header(70000 - first - middle, 4));
}

TEST_CASE("A block's end that is too short for a fragment is filled with zeros", "[exports]") {
  for (const std::size_t left : {0, 1, 6, 7}) {
    const std::string bytes = log_of({std::string(32768 - 14 - left, 'a'), "b"});
    INFO(left);
    if (left < 7) {
      CHECK(bytes.substr(32768 - left, left) == std::string(left, '\0'));
      CHECK(bytes.substr(32768 + 4) == std::string("\x01\x00\x01", 3) + "b");
    } else {
      // A fragment without content, as LevelDB writes it, then the last one.
      CHECK(bytes.substr(32768 - 3, 3) == std::string("\x00\x00\x02", 3));
      CHECK(bytes.substr(32768 + 4) == std::string("\x01\x00\x04", 3) + "b");
    }
  }
}

TEST_CASE("A log that cannot be written is an error", "[exports]") {
  const testing::TempDir folder;
  TransactionLog log(folder.path() / "nothing" / "run.wandb");
  CHECK_THROWS_AS(log.close(), base::Error);
}

}  // namespace petlab::exports
