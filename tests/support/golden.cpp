#include "tests/support/golden.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace petlab::testing {
namespace {

const std::filesystem::path kShared =
    std::filesystem::path(PETLAB_SOURCE_DIR).parent_path() / "shared";

std::optional<std::filesystem::path> found(const char* variable,
                                           const std::filesystem::path& otherwise,
                                           const std::string& what) {
  if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') {
    const std::filesystem::path folder = std::filesystem::path(named) / what;
    if (!std::filesystem::exists(folder)) {
      throw std::runtime_error(std::string(variable) + " is " + named + ", which holds no " + what);
    }
    return folder;
  }
  if (std::filesystem::exists(otherwise / what)) return otherwise / what;
  std::printf("skipped: %s is not there (%s names its folder)\n", (otherwise / what).c_str(),
              variable);
  return std::nullopt;
}

}  // namespace

std::optional<std::filesystem::path> golden(const std::string& part) {
  return found("PETLAB_GOLDEN_DIR", kShared / "golden", part);
}

std::optional<std::filesystem::path> real_data() {
  const auto glue = found("PETLAB_DATA", kShared / "data", "glue");
  if (!glue) return std::nullopt;
  return glue->parent_path();
}

std::optional<std::filesystem::path> published_values() {
  const std::filesystem::path file = kShared / "reference" / "published.json";
  if (std::filesystem::exists(file)) return file;
  std::printf("skipped: %s is not there\n", file.c_str());
  return std::nullopt;
}

std::optional<std::filesystem::path> minilm() {
  std::filesystem::path home;
  if (const char* named = std::getenv("PETLAB_HOME")) {
    home = named;
  } else if (const char* data = std::getenv("XDG_DATA_HOME")) {
    home = std::filesystem::path(data) / "petlab";
  } else if (const char* user = std::getenv("HOME")) {
    home = std::filesystem::path(user) / ".local/share/petlab";
  }
  if (std::filesystem::exists(home / "models/minilm/model.safetensors")) {
    return home / "models/minilm";
  }
  std::printf("skipped: %s is not there (scripts/setup.sh makes it)\n",
              (home / "models/minilm").c_str());
  return std::nullopt;
}

}  // namespace petlab::testing
