#include "tests/support/golden.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace petlab::testing {
namespace {

const std::filesystem::path kSource = PETLAB_SOURCE_DIR;
const std::filesystem::path kShared = kSource.parent_path() / "shared";

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
  skip((otherwise / what).string() + " is missing (" + variable + " names its folder)");
  return std::nullopt;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::int64_t fewest_cases(const std::string& what) {
  std::string file = variable("PETLAB_GOLDEN_DIR") + "/counts.json";
  if (!std::filesystem::exists(file)) file = variable("PETLAB_GOLDEN_COUNTS");
  if (file.empty()) return 1;
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file + ": cannot be read, expected counts of golden cases");
  const auto counts = nlohmann::json::parse(in);
  if (!counts.contains(what)) throw std::runtime_error(file + ": has no count of " + what);
  return counts.at(what);
}

}  // namespace

std::optional<std::filesystem::path> golden(const std::string& part) {
  return found("PETLAB_GOLDEN_DIR", kShared / "golden", part);
}

std::filesystem::path own_golden() { return kSource / "tests" / "golden"; }

void golden_ran(const std::string& what, std::int64_t cases) {
  std::printf("golden: %lld cases of %s\n", static_cast<long long>(cases), what.c_str());
  INFO(what);
  CHECK(cases >= fewest_cases(what));
}

std::optional<std::filesystem::path> real_data() {
  const auto glue = found("PETLAB_DATA", kShared / "data", "glue");
  if (!glue) return std::nullopt;
  return glue->parent_path();
}

std::optional<std::filesystem::path> published_values() {
  const std::filesystem::path file = kShared / "reference" / "published.json";
  if (std::filesystem::exists(file)) return file;
  skip(file.string() + " is missing");
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
  skip((home / "models/minilm").string() + " is missing (scripts/setup.sh downloads it)");
  return std::nullopt;
}

}  // namespace petlab::testing
