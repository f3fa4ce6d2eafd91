#include "trainer/files/safetensors.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

TensorView view_of(std::span<const float> values, std::vector<std::int64_t> shape) {
  return {DType::f32, std::move(shape), std::as_bytes(values), nullptr};
}

std::string bytes_of(const std::string& header, std::size_t data) {
  std::string bytes(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + std::string(data, '\0');
}

std::string refusal_of(const std::string& bytes) {
  const auto raw = std::as_bytes(std::span(bytes));
  try {
    SafetensorsFile::parse(FileBytes::own("x", {raw.begin(), raw.end()}));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a written safetensors file reads back, mapped", "[trainer][files]") {
  const testing::TempDir dir;
  const std::array<float, 6> values{1, 2, 3, 4, 5, -0.0f};
  const auto file = dir.path() / "a.safetensors";
  write_safetensors(file,
                    {{"w", view_of(values, {2, 3})},
                     {"empty", view_of({}, {0, 4})},
                     {"scalar", view_of(std::span(values).first(1), {})}},
                    {{"format", "pt"}});
  const SafetensorsFile read = SafetensorsFile::open(file);
  CHECK(read.names() == std::vector<std::string>{"w", "empty", "scalar"});
  CHECK(read.metadata().at("format") == "pt");
  CHECK(read.tensor("w").shape == std::vector<std::int64_t>{2, 3});
  CHECK(std::memcmp(read.tensor("w").bytes.data(), values.data(), 24) == 0);
  CHECK(to_floats(read.tensor("scalar")) == std::vector<float>{1});
  CHECK(reinterpret_cast<std::uintptr_t>(read.tensor("w").bytes.data()) % 8 == 0);
  CHECK_THROWS_WITH(read.tensor("b"), file.string() + ": has no tensor b");
  // The folder has only the finished file.
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("tensors begin at a multiple of eight bytes, for any length of the header",
          "[trainer][files]") {
  const testing::TempDir dir;
  const std::array<float, 1> value{1};
  const auto file = dir.path() / "a.safetensors";
  for (std::size_t length = 1; length <= 8; ++length) {
    write_safetensors(file, {{std::string(length, 'w'), view_of(value, {1})}});
    const std::string bytes = testing::read_file(file);
    CHECK((bytes.size() - sizeof value) % 8 == 0);
  }
}

TEST_CASE("the writer refuses tensors that could not be read back", "[trainer][files]") {
  const testing::TempDir dir;
  const std::array<float, 2> values{1, 2};
  const auto file = dir.path() / "a.safetensors";
  CHECK_THROWS_AS(write_safetensors(file, {{"w", view_of(values, {3})}}), std::invalid_argument);
  CHECK_THROWS_AS(
      write_safetensors(file, {{"w", view_of(values, {2})}, {"w", view_of(values, {2})}}),
      std::invalid_argument);
  CHECK_THROWS_AS(write_safetensors(dir.path() / "none" / "a", {{"w", view_of(values, {2})}}),
                  Error);
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("half and brain floats convert exactly", "[trainer][files]") {
  const std::array<std::uint16_t, 7> halves{0x3c00, 0xc000, 0x0001, 0x8000, 0x7c00, 0x03ff, 0x7e00};
  const TensorView half{DType::f16, {7}, std::as_bytes(std::span(halves)), nullptr};
  const std::vector<float> found = to_floats(half);
  CHECK(found[0] == 1);
  CHECK(found[1] == -2);
  CHECK(found[2] == 0x1p-24f);
  CHECK(std::bit_cast<std::uint32_t>(found[3]) == 0x80000000);
  CHECK(std::isinf(found[4]));
  CHECK(found[5] == 1023 * 0x1p-24f);
  CHECK(std::isnan(found[6]));
  const std::array<std::uint16_t, 2> brains{0x3f80, 0xc040};
  CHECK(to_floats({DType::bf16, {2}, std::as_bytes(std::span(brains)), nullptr}) ==
        std::vector<float>{1, -3});
  CHECK_THROWS_AS(to_floats({DType::i32, {0}, {}, nullptr}), Error);
}

TEST_CASE("bad headers are refused with what was found and expected", "[trainer][files]") {
  CHECK(refusal_of("") ==
        "x: is 0 bytes long, a safetensors file begins with a header length of 8");
  CHECK(refusal_of(std::string(8, '\xff')) ==
        "x: the safetensors header has 18446744073709551615 bytes according to its length field, "
        "more than the file's 8 bytes");
  // The header may end with the file but not a byte after it.
  CHECK(refusal_of(bytes_of("{}", 0)) == "no error");
  std::string longer = bytes_of("{}", 0);
  longer[0] = 3;
  CHECK(refusal_of(longer) ==
        "x: the safetensors header has 3 bytes according to its length field, more than the file's "
        "10 bytes");
  CHECK(refusal_of(bytes_of("[1]", 0)) ==
        "x: the safetensors header is a JSON array, expected an object");
  const std::string deep(200'000, '[');
  CHECK(refusal_of(bytes_of(deep, 0)) ==
        "x: the safetensors header: must have at most 64 levels of nesting");
  CHECK(
      refusal_of(bytes_of(R"({"a":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}})", 4)) ==
      "x: tensor a: dtype F7 is not known, expected one of BOOL, U8, I8, U16, I16, U32, I32, U64, "
      "I64, F16, BF16, F32, F64");
  CHECK(refusal_of(bytes_of(R"({"a":{"dtype":"F32","shape":[2,4],"data_offsets":[0,24]}})", 24)) ==
        "x: tensor a: data_offsets span 24 bytes, [2, 4] of F32 needs 32");
  CHECK(refusal_of(bytes_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 12)) ==
        "x: 8 bytes after the last tensor belong to none");
  CHECK(refusal_of(bytes_of(
            R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0)) ==
        "x: tensor a: shape [4294967296, 4294967296] of F32 has more bytes than 64 bits can count");
  CHECK(refusal_of(bytes_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                            12)) ==
        "x: tensor b: its data begin at byte 4, inside another tensor's, which end at 8");
  CHECK(refusal_of(bytes_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                            R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                            8)) ==
        "x: tensor a: its data begin at byte 4, so the 4 bytes before belong to no tensor");
}

}  // namespace
}  // namespace petlab::trainer
