#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainer/tokenizers/byte_bpe.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

std::vector<Json> read_lines(const std::filesystem::path& file) {
  std::vector<Json> cases;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) cases.push_back(Json::parse(line));
  }
  return cases;
}

std::vector<std::int32_t> ids_of(const Json& json) { return json.get<std::vector<std::int32_t>>(); }

std::vector<std::uint8_t> from_base64(const std::string& text) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = (bits << 6) | static_cast<std::uint32_t>(kDigits.find(c));
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<std::uint8_t>(bits >> (count -= 8)));
  }
  return bytes;
}

/// Compares one case. Returns a description of the difference, or an empty string.
std::string difference(const Tokenizer& tokenizer, const Json& wanted) {
  const std::string text = wanted["text"];
  std::optional<std::string> pair;
  if (wanted.contains("pair")) pair = wanted["pair"].get<std::string>();
  const std::int64_t max_length = wanted.value("max_length", std::int64_t{0});
  Encoding found = tokenizer.encode(text, pair, max_length);
  std::vector<int> mask(found.ids.size(), 1);
  for (std::size_t n = wanted.value("pad_to", std::size_t{0}); found.ids.size() < n;) {
    found.ids.push_back(tokenizer.special().pad);
    found.type_ids.push_back(0);
    mask.push_back(0);
  }
  const std::string number = "case " + wanted["n"].dump() + ": ";
  if (found.ids != ids_of(wanted["ids"])) {
    return number + "ids " + Json(found.ids).dump() + " expected " + wanted["ids"].dump();
  }
  if (wanted.contains("type_ids") && found.type_ids != ids_of(wanted["type_ids"])) {
    return number + "type ids " + Json(found.type_ids).dump();
  }
  if (wanted.contains("attention_mask") &&
      mask != wanted["attention_mask"].get<std::vector<int>>()) {
    return number + "mask " + Json(mask).dump();
  }
  if (wanted.contains("decoded") &&
      tokenizer.decode(found.ids, true) != wanted["decoded"].get<std::string>()) {
    return number + "decoded " + tokenizer.decode(found.ids, true);
  }
  return "";
}

/// The folders of golden/tokenizers that have cases and a tokenizer that petlab supports.
std::vector<std::filesystem::path> folders(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> result;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (std::filesystem::exists(entry.path() / "cases.jsonl") &&
        (std::filesystem::exists(entry.path() / "vocab.txt") ||
         std::filesystem::exists(entry.path() / "vocab.json") ||
         std::filesystem::exists(entry.path() / "spiece.model"))) {
      result.push_back(entry.path());
    }
  }
  return result;
}

TEST_CASE("every golden tokenizer case gives the reference's ids", "[trainer][files][golden]") {
  const auto root = testing::golden("tokenizers");
  if (!root) return;
  int ran = 0;
  std::vector<std::string> wrong;
  for (const auto& folder : folders(*root)) {
    const auto tokenizer = load_tokenizer(folder);
    std::unique_ptr<Tokenizer> with_prefix;
    std::map<std::int64_t, std::unique_ptr<Tokenizer>> with_extra_ids;
    for (const Json& wanted : read_lines(folder / "cases.jsonl")) {
      const Tokenizer* used = tokenizer.get();
      if (wanted.value("add_prefix_space", false)) {
        if (!with_prefix) {
          const std::string vocab = testing::read_file(folder / "vocab.json");
          const std::string merges = testing::read_file(folder / "merges.txt");
          ByteBpeOptions options;
          options.add_prefix_space = true;
          with_prefix =
              std::make_unique<ByteBpe>(parse_vocab_json(vocab, "vocab.json"),
                                        parse_merges(merges, "merges.txt"), "merges.txt", options);
        }
        used = with_prefix.get();
      }
      if (wanted.contains("extra_ids")) {
        const std::int64_t count = wanted["extra_ids"];
        if (!with_extra_ids.contains(count)) {
          const std::string model = testing::read_file(folder / "spiece.model");
          const std::string config = Json{{"extra_ids", count}}.dump();
          with_extra_ids[count] =
              make_tokenizer({.config = TokenizerFiles::File{"tokenizer_config.json", config},
                              .spiece_model = TokenizerFiles::File{"spiece.model", model}});
        }
        used = with_extra_ids.at(count).get();
      }
      const std::string found = difference(*used, wanted);
      if (!found.empty()) wrong.push_back(folder.filename().string() + " " + found);
      ++ran;
    }
  }
  testing::golden_ran("tokenizers/cases", ran);
  for (const std::string& line : wrong) CHECK(line == "");
}

TEST_CASE("every golden text is truncated at its beginning with truncation_side left",
          "[trainer][files][golden]") {
  const auto root = testing::golden("tokenizers");
  if (!root) return;
  int ran = 0;
  std::vector<std::string> wrong;
  for (const auto& folder : folders(*root)) {
    const std::vector<Json> cases = read_lines(folder / "truncation_left.jsonl");
    if (cases.empty()) continue;
    Json config = Json::parse(testing::read_file(folder / "tokenizer_config.json"));
    const std::string merges = config.value("merges", "merges.txt");
    config["merges"] = "merges.txt";
    config["truncation_side"] = "left";
    const testing::TempDir left;
    left.write("tokenizer_config.json", config.dump());
    for (const auto& [from, to] : {std::pair<std::string, const char*>{"vocab.txt", "vocab.txt"},
                                   {"vocab.json", "vocab.json"},
                                   {merges, "merges.txt"},
                                   {"spiece.model", "spiece.model"}}) {
      if (!std::filesystem::exists(folder / from)) continue;
      std::filesystem::create_symlink(folder / from, left.path() / to);
    }
    const auto tokenizer = load_tokenizer(left.path());
    for (const Json& wanted : cases) {
      const std::string found = difference(*tokenizer, wanted);
      if (!found.empty()) wrong.push_back(folder.filename().string() + " " + found);
      ++ran;
    }
  }
  testing::golden_ran("tokenizers/truncation_left", ran);
  for (const std::string& line : wrong) CHECK(line == "");
}

TEST_CASE("every golden text with invalid UTF-8 is refused", "[trainer][files][golden]") {
  const auto root = testing::golden("tokenizers");
  if (!root) return;
  int ran = 0;
  for (const auto& folder : folders(*root)) {
    const auto tokenizer = load_tokenizer(folder);
    for (const Json& wanted : read_lines(*root / "invalid_utf8.jsonl")) {
      const auto bytes = from_base64(wanted["base64"]);
      const std::string text(bytes.begin(), bytes.end());
      CHECK_THROWS_AS(tokenizer->encode(text), std::invalid_argument);
      CHECK_THROWS_AS(tokenizer->encode("a", text), std::invalid_argument);
      ++ran;
    }
  }
  testing::golden_ran("tokenizers/invalid_utf8", ran);
}

}  // namespace
}  // namespace petlab::trainer
