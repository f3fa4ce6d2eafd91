#include "trainer/files/torch_file.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"
#include "trainer/files/pickle.h"
#include "trainer/files/safetensors.h"
#include "trainer/files/zip_archive.h"

namespace petlab::trainer {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string u16(std::uint16_t value) { return {reinterpret_cast<const char*>(&value), 2}; }
std::string u32(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }

/// A zip archive of stored entries as torch writes it; `method` is the recorded compression method.
std::string zip(const std::vector<std::pair<std::string, std::string>>& entries,
                std::uint16_t method = 0) {
  std::string body, directory;
  for (const auto& [name, data] : entries) {
    const auto size = static_cast<std::uint32_t>(data.size());
    const auto offset = static_cast<std::uint32_t>(body.size());
    const std::string common = u16(0) + u16(method) + u32(0) + u32(0) + u32(size) + u32(size) +
                               u16(static_cast<std::uint16_t>(name.size())) + u16(0);
    body += "PK\x03\x04" + u16(20) + common + name + data;
    directory += "PK\x01\x02" + u16(20) + u16(20) + common + u16(0) + u16(0) + u16(0) + u32(0) +
                 u32(offset) + name;
  }
  const auto count = static_cast<std::uint16_t>(entries.size());
  return body + directory + "PK\x05\x06" + u32(0) + u16(count) + u16(count) +
         u32(static_cast<std::uint32_t>(directory.size())) +
         u32(static_cast<std::uint32_t>(body.size())) + u16(0);
}

/// The pickle of {"t": tensor} with this offset, sizes and strides in storage "0" of 6 floats.
std::string tensor_pickle(const std::string& offset, const std::string& sizes,
                          const std::string& strides) {
  return std::string("\x80\x02}X\x01\x00\x00\x00t", 9) + "ctorch._utils\n_rebuild_tensor_v2\n((X" +
         u32(7) + "storagectorch\nFloatStorage\nX" + u32(1) + "0X" + u32(3) + "cpuK\x06tQ" +
         offset + sizes + strides + "\x89}tRs.";
}

std::map<std::string, TensorView> read(const std::string& file) {
  return read_torch_file(FileBytes::own("m.bin", bytes_of(file)));
}

std::string reading_error(const std::string& file) {
  try {
    read(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string storage() {
  const float values[] = {0, 1, 2, 3, 4, 5};
  return {reinterpret_cast<const char*>(values), sizeof(values)};
}

std::string archive(const std::string& pickle) {
  return zip({{"m/data.pkl", pickle}, {"m/data/0", storage()}, {"m/byteorder", "little"}});
}

TEST_CASE("tensors of a torch archive are read, strided ones in row-major order",
          "[trainer][files]") {
  const auto plain = read(archive(tensor_pickle("K\x01", "K\x02K\x02\x86", "K\x02K\x01\x86")));
  CHECK(plain.at("t").shape == std::vector<std::int64_t>{2, 2});
  CHECK(to_floats(plain.at("t")) == std::vector<float>{1, 2, 3, 4});
  const std::string zero(1, '\0');
  const auto turned = read(archive(tensor_pickle("K" + zero, "K\x03K\x02\x86", "K\x01K\x03\x86")));
  CHECK(to_floats(turned.at("t")) == std::vector<float>{0, 3, 1, 4, 2, 5});
  const auto scalar = read(archive(tensor_pickle("K\x05", ")", ")")));
  CHECK(to_floats(scalar.at("t")) == std::vector<float>{5});
  const auto none = read(archive(tensor_pickle("K" + zero, "K" + zero + "\x85", "K\x01\x85")));
  CHECK(to_floats(none.at("t")).empty());
}

TEST_CASE("tensors that reach beyond their storage are refused with their name",
          "[trainer][files]") {
  const std::string zero(1, '\0');
  CHECK(reading_error(archive(tensor_pickle("K\x03", "K\x02K\x02\x86", "K\x02K\x01\x86"))) ==
        "m.bin: tensor t: shape [2, 2] with strides [2, 1] from element 3 reaches beyond its "
        "storage 0 of 6 elements");
  CHECK(reading_error(archive(tensor_pickle("J\xff\xff\xff\xff", "K\x02\x85", "K\x01\x85"))) ==
        "m.bin: tensor t: shape [2] with strides [1] from element -1 is impossible");
  // One element expanded to 2^62, which would need any amount of memory.
  const std::string huge = "\x8a\x08" + std::string(7, '\0') + "\x40";
  CHECK(reading_error(archive(tensor_pickle("K" + zero, huge + "\x85", "K" + zero + "\x85"))) ==
        "m.bin: tensor t: shape [4611686018427387904] has more elements than its storage 0 of 6: "
        "an expanded tensor is not read");
  CHECK(reading_error(archive(tensor_pickle("K" + zero, huge + huge + "\x86", "K\x01K\x01\x86")))
            .ends_with("is impossible"));
  CHECK(reading_error(archive(tensor_pickle("K\x01", huge + "\x85", huge + "\x85")))
            .find("reaches beyond its storage") != std::string::npos);
  CHECK(reading_error(archive(tensor_pickle("K\x01", "K\x02\x85", ")"))) ==
        "m.bin: tensor t: has 1 sizes and 0 strides");
}

TEST_CASE("a pickle with unknown globals is refused and the global named", "[trainer][files]") {
  CHECK(reading_error(archive("\x80\x02"
                              "cos\nsystem\nX\x02"
                              "...")) ==
        "m.bin: the pickle: names the global os.system, which tensors do not use; nothing was run");
  CHECK(reading_error(archive(std::string("\x80\x04\x8c\x02os\x8c\x06system\x93.", 16))) ==
        "m.bin: the pickle: names the global os.system, which tensors do not use; nothing was run");
  CHECK(reading_error(archive("\x80\x02"
                              "ctorch\nFloatStorage\n)R.")) ==
        "m.bin: the pickle: calls torch.FloatStorage, which is not allowed");
  CHECK(reading_error(archive("\x80\x02N.")) ==
        "m.bin: the pickle does not contain a dict of tensors");
  for (const char* bad :
       {"\x80\x02", "\x80\x06", "\x80\x02}", "\x80\x02.", "\x80\x02t.", "\x80\x02(0.",
        "\x80\x02h\x05.", "\x80\x02NNs.", "\x80\x02}Nb(NuR.", "\x80\x02i.",
        "\x80\x02X\xff\xff\xff\xff.", "\x80\x02cos", "\x80\x02]Q."}) {
    CHECK(reading_error(archive(bad)).starts_with("m.bin: the pickle: "));
  }
}

TEST_CASE("deeply nested values are freed without recursion", "[trainer][files]") {
  std::string deep = "\x80\x02";
  for (int i = 0; i < 300000; ++i) deep += ")\x85";
  CHECK(reading_error(archive(deep + ".")) ==
        "m.bin: the pickle does not contain a dict of tensors");
}

TEST_CASE("a file that torch.save did not write is refused", "[trainer][files]") {
  const std::string good = archive(tensor_pickle("K\x01", "K\x02\x85", "K\x01\x85"));
  REQUIRE(reading_error(good) == "no error");
  CHECK(reading_error("") ==
        "m.bin: is not a file of torch.save: neither a zip archive nor its older format");
  CHECK(reading_error(zip({{"m/data.pkl", "x"}}, 8)) ==
        "m.bin: the zip entry m/data.pkl is compressed, expected a stored one, as torch writes it");
  CHECK(reading_error(zip({{"m/other", "x"}})) ==
        "m.bin: the zip archive has no data.pkl, so torch.save did not write it");
  CHECK(reading_error(zip({{"m/data.pkl", "x"}, {"m/data.pkl", "y"}})) ==
        "m.bin: the zip entry m/data.pkl occurs twice");
  CHECK(reading_error(zip({{"m/data.pkl", "x"}, {"m/byteorder", "big"}})) ==
        "m.bin: byte order is 'big', expected little");
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(reading_error(good.substr(0, size)) != "no error");
  }
}

TEST_CASE("every golden pickle gives the expected bits", "[trainer][files][golden][wide]") {
  const auto models = testing::golden("models");
  if (!models) return;
  const auto expected =
      SafetensorsFile::open(*models / "pickle" / "state_dict_features.expected.safetensors");
  int ran = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*models / "pickle")) {
    if (entry.path().extension() != ".bin") continue;
    INFO(entry.path());
    const auto tensors = read_torch_file(FileBytes::map(entry.path()));
    CHECK_FALSE(tensors.empty());
    if (entry.path().stem() == "state_dict_features") {
      CHECK(tensors.size() == expected.names().size());
    }
    for (const auto& [name, view] : tensors) {
      INFO(name);
      REQUIRE(expected.contains(name));
      const TensorView& wanted = expected.tensor(name);
      CHECK(view.dtype == wanted.dtype);
      CHECK(view.shape == wanted.shape);
      CHECK(std::equal(view.bytes.begin(), view.bytes.end(), wanted.bytes.begin(),
                       wanted.bytes.end()));
    }
    ++ran;
  }
  testing::golden_ran("models/pickle", ran);
}

}  // namespace
}  // namespace petlab::trainer
