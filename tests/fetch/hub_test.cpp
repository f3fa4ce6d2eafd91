#include "fetch/hub.h"

#include <fstream>
#include <map>

#include "fetch/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::fetch {
namespace {

const std::string kSmall(40, 'a');
const std::string kLarge(64, 'b');

HubSettings settings_of(std::map<std::string, std::string> values) {
  return hub_settings([values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::vector<HubFile> listing_of(std::initializer_list<const char*> names) {
  std::vector<HubFile> files;
  for (const char* name : names) files.push_back({name, 1, kSmall});
  return files;
}

std::vector<std::string> chosen(std::initializer_list<const char*> names) {
  std::vector<std::string> found;
  for (const HubFile& file : files_to_fetch(listing_of(names), "o/m")) found.push_back(file.name);
  return found;
}

TEST_CASE("The hub is configured as for Hugging Face's own libraries", "[fetch]") {
  const petlab::testing::TempDir root;
  const std::string home = root.path().string();
  CHECK(settings_of({}).endpoint == "https://huggingface.co");
  CHECK(settings_of({{"HF_ENDPOINT", "http://mirror/hf//"}}).endpoint == "http://mirror/hf");
  CHECK_THROWS_WITH(settings_of({{"HF_ENDPOINT", "mirror"}}),
                    "HF_ENDPOINT is 'mirror', must be a URL such as https://huggingface.co");
  CHECK(settings_of({{"HF_HUB_OFFLINE", "yes"}}).offline);
  CHECK(settings_of({{"TRANSFORMERS_OFFLINE", "1"}}).offline);
  CHECK_FALSE(settings_of({{"HF_HUB_OFFLINE", "0"}}).offline);
  CHECK(settings_of({{"HF_TOKEN", " hf_x\n"}}).token == "hf_x");
  CHECK_THROWS_WITH(settings_of({{"HF_TOKEN", "a b"}}),
                    "HF_TOKEN, or the token file, is not a single word");
  std::ofstream(root.path() / "token") << "hf_stored\n";
  std::ofstream(root.path() / "other") << "hf_other";
  CHECK(settings_of({{"HF_HOME", home}}).token == "hf_stored");
  CHECK(settings_of({{"HF_HOME", home}, {"HF_TOKEN", "hf_x"}}).token == "hf_x");
  CHECK(settings_of({{"HF_HOME", home}, {"HF_TOKEN_PATH", home + "/other"}}).token == "hf_other");
}

TEST_CASE("A listing gives each file's size and digest", "[fetch]") {
  const std::string text = R"([{"type": "directory", "oid": "x", "size": 0, "path": "onnx"},
    {"type": "file", "oid": ")" +
                           kSmall + R"(", "size": 7, "path": "config.json"},
    {"type": "file", "oid": ")" +
                           kSmall + R"(", "size": 134, "path": "model.safetensors",
     "lfs": {"oid": ")" + kLarge +
                           R"(", "size": 5000000000, "pointerSize": 134},
     "xetHash": "0"}])";
  CHECK(
      parse_listing(text, "o/m") ==
      std::vector<HubFile>{{"config.json", 7, kSmall}, {"model.safetensors", 5000000000, kLarge}});
  CHECK(parse_listing("[]", "o/m").empty());
}

TEST_CASE("An invalid listing is refused", "[fetch]") {
  const auto entry = [](const std::string& more) { return "[{\"type\": \"file\", " + more + "}]"; };
  const std::vector<std::string> bad = {
      "",
      "<html>",
      "{}",
      "[7]",
      entry(R"("path": "a", "size": 1)"),
      entry(R"("path": "a", "size": "1", "oid": ")" + kSmall + "\""),
      entry(R"("path": 7, "size": 1, "oid": ")" + kSmall + "\""),
      entry(R"("path": "a", "size": 1, "oid": "../../etc/passwd")"),
      entry(R"("path": "a", "size": 1, "oid": ")" + kLarge + "\""),
      entry(R"("path": "a\u001b[2J", "size": 1, "oid": ")" + kSmall + "\""),
      entry(R"("path": "a", "size": 1, "oid": "x", "lfs": {"oid": "../x", "size": 1})"),
      std::string(100000, '['),
  };
  for (const std::string& text : bad) {
    CAPTURE(text.substr(0, 100));
    CHECK_THROWS_AS(parse_listing(text, "o/m"), Error);
  }
}

TEST_CASE("Only the files of a model that petlab reads are fetched", "[fetch]") {
  using Names = std::vector<std::string>;
  CHECK(chosen({"README.md", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "vocab.txt",
                "config.json", "flax_model.msgpack"}) ==
        Names{"config.json", "vocab.txt", "model.safetensors"});
  CHECK(chosen({"config.json", "tokenizer.json", "pytorch_model.bin"}) ==
        Names{"config.json", "tokenizer.json", "pytorch_model.bin"});
  CHECK(chosen({"config.json", "spiece.model", "tokenizer_config.json",
                "model.safetensors.index.json", "pytorch_model.bin"}) ==
        Names{"config.json", "spiece.model", "tokenizer_config.json",
              "model.safetensors.index.json"});
  for (const auto& names : {std::vector<const char*>{"config.json", "vocab.txt"},
                            {"model.safetensors", "vocab.txt"},
                            {"config.json", "model.safetensors"},
                            {"config.json", "model.safetensors", "tokenizer_config.json"},
                            {}}) {
    std::vector<HubFile> listing;
    for (const char* name : names) listing.push_back({name, 1, kSmall});
    CHECK_THROWS_AS(files_to_fetch(listing, "o/m"), Error);
  }
}

TEST_CASE("A file is compared with git's id or with its SHA-256", "[fetch]") {
  const petlab::testing::TempDir root;
  const auto file = root.path() / "file";
  std::ofstream(file) << "hello\n";
  sweeps::FileDigests digests("");
  // git hash-object and sha256sum of the same file.
  CHECK(has_digest(file, "ce013625030ba8dba906f756967f9e9ca394464a", digests));
  CHECK(has_digest(file, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
                   digests));
  CHECK_FALSE(has_digest(file, kSmall, digests));
  CHECK_FALSE(has_digest(file, kLarge, digests));
  CHECK_THROWS(has_digest(root.path() / "none", kSmall, digests));
}

TEST_CASE("URL parts are encoded and folders are named as in Hugging Face's cache", "[fetch]") {
  CHECK(url_part("refs/pr/1") == "refs%2Fpr%2F1");
  CHECK(url_part("a-b_c.d~ é") == "a-b_c.d~%20%C3%A9");
  CHECK(folder_name("FacebookAI/roberta-base") == "models--FacebookAI--roberta-base");
  CHECK(folder_name("gpt2") == "models--gpt2");
  CHECK(is_commit(kSmall));
  CHECK_FALSE(is_commit("main"));
}

}  // namespace
}  // namespace petlab::fetch
