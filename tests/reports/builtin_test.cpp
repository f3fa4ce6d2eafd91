#include "reports/builtin.h"

#include <algorithm>

#include "reports/table.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

TEST_CASE("Files are compiled in to the byte", "[reports]") {
  for (const BuiltinFile& file : builtin_files()) {
    INFO(file.name);
    const std::string folder = file.name.ends_with(".yaml")   ? "reports/definitions"
                               : file.name.ends_with(".json") ? "reports"
                                                              : "reports/page";
    CHECK(testing::read_file(testing::source_dir() / folder / file.name) == file.content);
  }
}

TEST_CASE("Every definition in the folder is compiled in, parses and has its file's name",
          "[reports]") {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_dir() / "reports/definitions")) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  CHECK(builtin_reports() == names);
  for (const std::string& name : names) {
    INFO(name);
    const Definition definition = builtin_report(name);
    CHECK(definition.name == name);
    CHECK_FALSE(definition.about.empty());
    CHECK(unknown_names(definition, {}, published_numbers()).empty());
  }
}

TEST_CASE("An unknown report lists the known ones and the nearest", "[reports]") {
  CHECK_THROWS_WITH(builtin_report("quikstart"),
                    Catch::Contains("there is no report 'quikstart'; did you mean quickstart? "
                                    "(known: quickstart, sweep"));
}

}  // namespace
}  // namespace petlab::reports
