#include <string>

#include "protocol/artifact_format.h"
#include "protocol/trial_directory.h"
#include "sweeps/backbone.h"
#include "sweeps/identity.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

// Far more levels than the stack could hold in a recursive parser.
constexpr std::size_t kDeep = 200'000;

}  // namespace

TEST_CASE("Foreign files that are nested too deeply are refused by name", "[protocol]") {
  const petlab::testing::TempDir folder;
  const std::string problem = "must have at most 64 levels of nesting";
  const auto config = folder.write("config.json", "{\"a\":" + nested(kDeep) + "}");
  CHECK_THROWS_WITH(sweeps::read_backbone_shape(folder.path()), config.string() + ": " + problem);
  folder.write("config.json", std::string(kDeep, '['));
  CHECK_THROWS_WITH(sweeps::read_backbone_shape(folder.path()), config.string() + ": " + problem);
  const auto index = folder.write("model.safetensors.index.json", nested(kDeep));
  sweeps::FileDigests digests({});
  CHECK_THROWS_WITH(sweeps::backbone_digest(folder.path(), digests),
                    index.string() + ": " + problem);
  const auto trial =
      folder.write("trial.json", R"({"v":1,"trial":"t","attempt":1,"config":{"backbone":"b",)"
                                 R"("task":"cola","user":{"a":)" +
                                     nested(kDeep) + "}}}");
  CHECK_THROWS_WITH(protocol::read_trial_file(trial), trial.string() + ": " + problem);
  const std::string bytes = protocol::make_artifact_container(
      R"({"trial":"t","config":{"user":)" + nested(kDeep) + "}}", {});
  CHECK_THROWS_WITH(protocol::artifact_storage(bytes, "a.petl"), "a.petl: its header: " + problem);
}
