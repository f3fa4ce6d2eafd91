#include "sweeps/shallow_json.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "sweeps/artifact_format.h"
#include "sweeps/backbone.h"
#include "sweeps/error.h"
#include "sweeps/identity.h"
#include "sweeps/json_line.h"
#include "sweeps/trial_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::sweeps;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

// Far more than a stack holds of anything that calls itself at each level.
constexpr std::size_t kDeep = 200'000;

}  // namespace

TEST_CASE("JSON of up to 64 levels is read, deeper one refused by name", "[sweeps]") {
  const std::string most = nested(kMaxJsonDepth);
  CHECK(parse_shallow_json(most, "f.json").dump() == most);
  CHECK(parse_shallow_ordered_json(R"({"b":1,"a":[]})", "f.json").dump() == R"({"b":1,"a":[]})");
  CHECK(shallow_json_or_none(most).dump() == most);
  CHECK(shallow_ordered_json_or_none(most).dump() == most);
  // Many that stand beside each other are not deep; nor are brackets in text.
  CHECK(parse_shallow_json("[" + std::string(kDeep / 3, ' ') + "[],[]]", "f.json").size() == 2);
  std::string flat = "[[]";
  for (int count = 0; count < 1000; ++count) flat += ",{}";
  CHECK(parse_shallow_json(flat + "]", "f.json").size() == 1001);
  CHECK(parse_shallow_json('"' + std::string(kDeep, '[') + '"', "f.json").is_string());
  for (const std::string& text : {nested(kMaxJsonDepth + 1), nested(kDeep), std::string(kDeep, '['),
                                  "{\"a\":" + nested(kMaxJsonDepth) + "}"}) {
    CHECK_THROWS_WITH(parse_shallow_json(text, "f.json"),
                      "f.json: must have at most 64 levels of nesting");
    CHECK_THROWS_AS(parse_shallow_ordered_json(text, "f.json"), Error);
    CHECK(shallow_json_or_none(text).is_discarded());
    CHECK(shallow_ordered_json_or_none(text).is_discarded());
    std::istringstream in(text);
    CHECK(shallow_json_or_none(in).is_discarded());
  }
  CHECK_THROWS_AS(parse_shallow_json("[1,", "f.json"), nlohmann::json::parse_error);
  CHECK(shallow_json_or_none("[1,").is_discarded());
}

TEST_CASE("Files of others that are nested too deep are refused by name", "[sweeps]") {
  const petlab::testing::TempDir folder;
  const std::string problem = "must have at most 64 levels of nesting";
  const auto config = folder.write("config.json", "{\"a\":" + nested(kDeep) + "}");
  CHECK_THROWS_WITH(read_backbone_shape(folder.path()), config.string() + ": " + problem);
  folder.write("config.json", std::string(kDeep, '['));
  CHECK_THROWS_WITH(read_backbone_shape(folder.path()), config.string() + ": " + problem);
  const auto index = folder.write("model.safetensors.index.json", nested(kDeep));
  FileDigests digests({});
  CHECK_THROWS_WITH(backbone_digest(folder.path(), digests), index.string() + ": " + problem);
  const auto trial =
      folder.write("trial.json", R"({"v":1,"trial":"t","attempt":1,"config":{"backbone":"b",)"
                                 R"("task":"cola","user":{"a":)" +
                                     nested(kDeep) + "}}}");
  CHECK_THROWS_WITH(read_trial_file(trial), trial.string() + ": " + problem);
  const std::string bytes =
      make_artifact_container(R"({"trial":"t","config":{"user":)" + nested(kDeep) + "}}", {});
  CHECK_THROWS_WITH(artifact_storage(bytes, "a.petl"), "a.petl: its header: " + problem);
}
