#include "exports/event_file.h"

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::exports {
namespace {

std::uint64_t number_at(const std::string& bytes, std::size_t at, int size) {
  std::uint64_t number = 0;
  for (int i = 0; i < size; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + static_cast<std::size_t>(i)))}
              << (8 * i);
  }
  return number;
}

/// The records of an event file, without their checksums.
std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = static_cast<std::size_t>(number_at(bytes, at, 8));
    found.push_back(bytes.substr(at + 12, size));
    at += 12 + size + 4;
  }
  return found;
}

}  // namespace

TEST_CASE("An event file begins with its version, as TensorFlow writes it", "[exports]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "events";
  EventFile(file, 1.5).close();
  // As tf.summary's writer does: the length 24, its masked CRC-32C, the event, its masked CRC-32C.
  const std::string bytes = testing::read_file(file);
  REQUIRE(bytes.size() == 12 + 24 + 4);
  CHECK(number_at(bytes, 0, 8) == 24);
  // The masked CRC of the length, the same in every file that TensorFlow writes.
  CHECK(bytes.substr(8, 4) == "\xa3\x7f\x4b\x22");
  CHECK(records(bytes).at(0) ==
        std::string("\x09\x00\x00\x00\x00\x00\x00\xf8\x3f\x1a\x0d", 11) + "brain.Event:2");
}

TEST_CASE("A scalar keeps all bits of its number", "[exports]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "events";
  EventFile events(file, 0);
  events.scalar("a", 300, 2, 0.1);
  events.scalar("a", 301, 2, std::nullopt);
  events.close();
  const std::vector<std::string> found = records(testing::read_file(file));
  REQUIRE(found.size() == 3);
  // The eight bytes of 0.1, after the tag of double_val.
  CHECK(found[1].find(std::string("\x32\x08\x9a\x99\x99\x99\x99\x99\xb9\x3f", 10)) !=
        std::string::npos);
  CHECK(found[1].find(std::string("\x10\xac\x02", 3)) == 9);
  CHECK(found[2].find(std::string("\x00\x00\x00\x00\x00\x00\xf8\x7f", 8)) != std::string::npos);
}

TEST_CASE("A hyperparameter keeps its type and its value, even if it is false", "[exports]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "events";
  EventFile events(file, 0);
  events.begin_run({{"off", false}, {"on", true}, {"rate", 0.5}, {"kind", std::string("lora")}}, 1);
  events.close();
  const std::string run = records(testing::read_file(file)).at(1);
  // Each is a map entry: its key is field 1, its google.protobuf.Value field 2.
  const auto has = [&](const std::string& entry) { return run.find(entry) != std::string::npos; };
  CHECK(has(std::string("\x0a\x03off\x12\x02\x20\x00", 9)));
  CHECK(has(std::string("\x0a\x02on\x12\x02\x20\x01", 8)));
  CHECK(has(std::string("\x0a\x04rate\x12\x09\x11\x00\x00\x00\x00\x00\x00\xe0\x3f", 17)));
  CHECK(has("\x0a\x04kind\x12\x06\x1a\x04lora"));
}

TEST_CASE("A file that cannot be written is an error", "[exports]") {
  const testing::TempDir folder;
  EventFile events(folder.path() / "nothing" / "events", 0);
  CHECK_THROWS_AS(events.close(), base::Error);
}

}  // namespace petlab::exports
