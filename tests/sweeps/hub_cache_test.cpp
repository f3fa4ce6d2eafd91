#include "sweeps/hub_cache.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "sweeps/error.h"
#include "sweeps/locations.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab::sweeps;
namespace fs = std::filesystem;

namespace {

Environment environment_with(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

// Adds a model in the layout of Hugging Face's library: a snapshot with links to blobs.
fs::path add_model(const fs::path& hub, const std::string& folder, const std::string& revision,
                   const std::vector<std::string>& files, bool with_ref = true) {
  const fs::path model = hub / folder;
  const fs::path snapshot = model / "snapshots" / revision;
  fs::create_directories(snapshot);
  fs::create_directories(model / "blobs");
  fs::create_directories(model / "refs");
  if (with_ref) std::ofstream(model / "refs/main") << revision;
  for (const std::string& file : files) {
    std::ofstream(model / "blobs" / file) << "{}";
    fs::create_symlink(fs::path("../../blobs") / file, snapshot / file);
  }
  return snapshot;
}

Locations locations_of(const fs::path& root) {
  Locations locations;
  locations.home = root / "home";
  locations.hub = root / "hub";
  return locations;
}

}  // namespace

TEST_CASE("Hugging Face's cache is found in the folder that its libraries use", "[sweeps]") {
  CHECK(find_hub_cache(environment_with({{"HF_HUB_CACHE", "/c"}, {"HF_HOME", "/h"}})) == "/c");
  CHECK(find_hub_cache(environment_with({{"HF_HUB_CACHE", ""}, {"HF_HOME", "/h"}})) == "/h/hub");
  CHECK(find_hub_cache(environment_with({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/u"}})) ==
        "/x/huggingface/hub");
  CHECK(find_hub_cache(environment_with({{"HOME", "/u"}})) == "/u/.cache/huggingface/hub");
  CHECK(find_hub_cache(environment_with({})).empty());
}

TEST_CASE("A backbone is found in Hugging Face's cache by its name", "[sweeps]") {
  const petlab::testing::TempDir root;
  const Locations locations = locations_of(root.path());
  const fs::path snapshot = add_model(locations.hub, "models--FacebookAI--roberta-base", "e2da8e2f",
                                      {"config.json", "model.safetensors"});
  const fs::path without_owner = add_model(locations.hub, "models--bert-base-uncased", "86b5e093",
                                           {"config.json", "pytorch_model.bin"});
  CHECK(backbone_folder(locations, "roberta-base", root.path()) == snapshot);
  CHECK(backbone_folder(locations, "FacebookAI/roberta-base", root.path()) == snapshot);
  CHECK(backbone_folder(locations, "bert-base-uncased", root.path()) == without_owner);

  SECTION("but petlab's own models come first") {
    fs::create_directories(locations.models() / "roberta-base");
    CHECK(backbone_folder(locations, "roberta-base", root.path()) ==
          locations.models() / "roberta-base");
  }
  SECTION("and so does a folder of that path") {
    fs::create_directories(root.path() / "FacebookAI/roberta-base");
    CHECK(backbone_folder(locations, "FacebookAI/roberta-base", root.path()) ==
          root.path() / "FacebookAI/roberta-base");
  }
  SECTION("and of two models, the one with exactly that name") {
    const fs::path old = add_model(locations.hub, "models--roberta-base", "5b0c9d6a",
                                   {"config.json", "model.safetensors"});
    CHECK(backbone_folder(locations, "roberta-base", root.path()) == old);
    CHECK(backbone_folder(locations, "FacebookAI/roberta-base", root.path()) == snapshot);
  }
  SECTION("but not with another owner") {
    CHECK_THROWS_AS(backbone_folder(locations, "google/roberta-base", root.path()), Error);
  }
}

TEST_CASE("A cached model's revision is main, or its only one", "[sweeps]") {
  const petlab::testing::TempDir root;
  const fs::path hub = root.path();
  add_model(hub, "models--o--m", "old", {"config.json", "model.safetensors"});
  const fs::path main =
      add_model(hub, "models--o--m", "new", {"config.json", "model.safetensors.index.json"});
  CHECK(cached_models(hub, "m") == std::vector<CachedModel>{{"o/m", main, true, {}}});
  const fs::path only = add_model(hub, "models--o--n", "one", {"config.json"}, false);
  CHECK(cached_models(hub, "n") == std::vector<CachedModel>{{"o/n", only, false, {}}});
  add_model(hub, "models--o--n", "two", {"config.json"}, false);
  CHECK(cached_models(hub, "n") == std::vector<CachedModel>{{"o/n", {}, false, {"one", "two"}}});
  CHECK(cached_models(hub, "n", "one") == std::vector<CachedModel>{{"o/n", only, false, {}}});
  fs::remove_all(hub / "models--o--n");
  CHECK(cached_models(hub, "") == std::vector<CachedModel>{{"o/m", main, true, {}}});
  CHECK(cached_models(hub, "no-such").empty());
  CHECK(cached_models(hub / "nowhere", "m").empty());
}

TEST_CASE("A revision of a cached model is selected after an @", "[sweeps]") {
  const petlab::testing::TempDir root;
  const Locations locations = locations_of(root.path());
  const fs::path& hub = locations.hub;
  const std::vector<std::string> files = {"config.json", "model.safetensors"};
  const fs::path one = add_model(hub, "models--o--m", "aa11", files, false);
  const fs::path two = add_model(hub, "models--o--m", "aa22", files, false);
  const auto folder = [&](const std::string& name) {
    return backbone_folder(locations, name, root.path());
  };
  CHECK(folder("o/m@aa11") == one);
  CHECK(folder("o/m@aa2") == two);
  CHECK(folder("m@aa2") == two);
  fs::create_directories(hub / "models--o--m/refs/pr");
  std::ofstream(hub / "models--o--m/refs/pr/1") << "aa11";
  CHECK(folder("o/m@pr/1") == one);
  const std::string cache = hub.string();
  CHECK_THROWS_WITH(folder("o/m"),
                    "backbone o/m: Hugging Face's cache " + cache +
                        " has several commits of it but no refs/main: 'aa11', 'aa22'; name one "
                        "(o/m@COMMIT), or download main: petlab fetch backbone o/m");
  for (const char* revision : {"aa", "bb", "../../models--o--m/refs/pr/1"}) {
    CHECK_THROWS_WITH(folder(std::string("o/m@") + revision),
                      "backbone o/m@" + std::string(revision) + ": Hugging Face's cache " + cache +
                          " has no single revision " + revision +
                          " of it, found 'aa11', 'aa22'; to download it: petlab fetch backbone "
                          "o/m@" +
                          revision);
  }
  CHECK_THROWS_WITH(folder("p/none@v1"), "backbone p/none@v1: found neither a folder " +
                                             (root.path() / "p/none@v1").string() +
                                             " nor this model in Hugging Face's cache " + cache +
                                             "; to download it: petlab fetch backbone p/none@v1");
  CHECK_THROWS_WITH(folder("./p/none"), "backbone ./p/none: the folder " +
                                            (root.path() / "p/none").string() +
                                            " with config.json and weights does not exist");
}

TEST_CASE("An incomplete cached model, or an ambiguous name, is refused", "[sweeps]") {
  const petlab::testing::TempDir root;
  const Locations locations = locations_of(root.path());
  const fs::path part = add_model(locations.hub, "models--o--part", "r", {"config.json"});
  // While a file is being downloaded its link is broken.
  fs::create_symlink("../../blobs/later", part / "model.safetensors");
  CHECK_THROWS_WITH(backbone_folder(locations, "part", root.path()),
                    "backbone part: found " + part.string() +
                        " in Hugging Face's cache, expected config.json and the weights in it: "
                        "download the whole model");
  for (const char* owner : {"a", "b"}) {
    add_model(locations.hub, std::string("models--") + owner + "--twice", "r",
              {"config.json", "model.safetensors"});
  }
  CHECK_THROWS_WITH(
      backbone_folder(locations, "twice", root.path()),
      "backbone twice: Hugging Face's cache " + locations.hub.string() +
          " has several models of that name: a/twice, b/twice; name one with its owner");
  CHECK_THROWS_WITH(
      backbone_folder(locations, "none", root.path()),
      "backbone none: the folder " + (locations.models() / "none").string() +
          " with config.json and weights does not exist; there is none (move the folder with "
          "PETLAB_HOME; a name with a slash is a path; nor is the model in Hugging Face's cache " +
          locations.hub.string() + ", which petlab fetch backbone fills)");
}
