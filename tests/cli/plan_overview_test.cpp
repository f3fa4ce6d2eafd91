#include "cli/running/plan_overview.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

namespace petlab::cli {
namespace {

TEST_CASE("Equal trials of several sweep files are counted once", "[cli]") {
  const sweeps::testing::Home home;
  const auto write = [&](const std::string& name, const std::string& seeds) {
    return home.folder()
        .write(name + ".yaml", "sweep: " + name +
                                   "\nbase: {backbone: minilm, task: cola}\ngrid: {seed: " + seeds +
                                   "}\n")
        .string();
  };
  const std::vector<std::string> files = {write("one", "[1, 2, 3]"), write("other", "[3, 4]")};
  const PlanOverview overview =
      plan_overview(files, {}, home.locations(), sweeps::process_environment(), {}, std::nullopt);
  REQUIRE(overview.rows.size() == 2);
  CHECK(overview.rows[0].trials == 3);
  CHECK(overview.rows[0].shared == 0);
  CHECK(overview.rows[1].trials == 2);
  CHECK(overview.rows[1].shared == 1);
  CHECK(overview.rows[1].to_train == 2);
  CHECK(overview.trials == 4);
  CHECK(overview.to_train == 4);
  std::ostringstream text;
  print_overview(text, overview, false);
  CHECK(text.str() ==
        "sweep   trials  shared  to train  file\n"
        "one          3       0         3  " +
            files[0] + "\n" + "other        2       1         2  " + files[1] + "\n" +
            "in total, counting equal trials once: 4 trials, 4 to train\n");
  std::ostringstream json;
  print_overview(json, overview, true);
  const nlohmann::json read = nlohmann::json::parse(json.str());
  CHECK(read.at("trials") == 4);
  CHECK(read.at("sweeps").at(1).at("shared") == 1);
}

}  // namespace
}  // namespace petlab::cli
