#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

/// The words that a message must have: those in backticks or brackets in the manifest's "must", up
/// to its first semicolon.
std::vector<std::string> wanted_words(std::string must) {
  must = must.substr(0, must.find(';'));
  std::vector<std::string> words;
  if (must.find("the global") != std::string::npos) words.push_back("names the global ");
  for (std::size_t at = 0; (at = must.find('`', at)) != std::string::npos;) {
    const std::size_t end = must.find('`', at + 1);
    if (end == std::string::npos) break;
    words.push_back(must.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  for (std::size_t at = 0; (at = must.find('[', at)) != std::string::npos; ++at) {
    words.push_back(must.substr(at, must.find(']', at) - at + 1));
  }
  for (const std::string word : {"F7", "24 and 32"}) {
    if (must.find(word) != std::string::npos) words.push_back(word.substr(0, 2));
  }
  return words;
}

TEST_CASE("every bad file of golden/models/bad is refused, and its controls load",
          "[trainer][files][golden][wide]") {
  const auto models = testing::golden("models");
  if (!models) return;
  const Json manifest = Json::parse(testing::read_file(*models / "bad" / "manifest.json"));
  int ran = 0;
  for (const Json& entry : manifest) {
    const std::string name = entry["file"];
    const std::string must = entry["must"];
    const std::filesystem::path path = *models / "bad" / name;
    INFO(name << ": " << must);
    std::string message;
    std::vector<std::string> unused;
    try {
      if (name.ends_with('/')) {
        const EncoderConfig config = read_encoder_config(path);
        unused = load_encoder_weights(path, config).unused;
      } else {
        open_weights_file(path);
      }
    } catch (const Error& error) {
      message = error.what();
    }
    INFO("message: " << message);
    CHECK(message.empty() == entry["loads"].get<bool>());
    if (!message.empty()) {
      CHECK(message.find(path.string()) != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
      for (const std::string& word : wanted_words(must)) {
        // A one-letter tensor name would match any message.
        CHECK(message.find(word.size() == 1 ? "tensor " + word + ":" : word) != std::string::npos);
      }
    }
    if (must.find("reported as unused") != std::string::npos) {
      CHECK(unused == std::vector<std::string>{"unknown.thing"});
    }
    ++ran;
  }
  testing::golden_ran("models/bad", ran);
}

}  // namespace
}  // namespace petlab::trainer
