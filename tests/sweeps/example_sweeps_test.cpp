#include <algorithm>
#include <fstream>
#include <sstream>

#include "sweeps/sweep_file.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/sweeps/fixture.h"

using namespace petlab;
using namespace petlab::sweeps;
using petlab::sweeps::testing::Home;

namespace {

const std::filesystem::path kSweeps = petlab::testing::source_dir() / "sweeps";

std::vector<const SweepTrial*> of_variant(const Sweep& sweep, const std::string& variant) {
  std::vector<const SweepTrial*> found;
  for (const SweepTrial& trial : sweep.trials) {
    if (std::find(trial.variants.begin(), trial.variants.end(), variant) != trial.variants.end()) {
      found.push_back(&trial);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("The quickstart sweep takes sharing and masking apart at equal storage", "[sweeps]") {
  const Home home;
  const Sweep sweep = load_sweep(kSweeps / "quickstart.yaml", home.locations());
  CHECK(sweep.trials.size() == 20);
  CHECK(sweep.notes.empty());
  const double propetl = *of_variant(sweep, "propetl").front()->bls_bits;
  for (const std::string variant : {"random", "only_share", "only_mask"}) {
    for (const SweepTrial* trial : of_variant(sweep, variant)) {
      CHECK(*trial->bls_bits == Approx(propetl).epsilon(0.03));
    }
  }
  for (const SweepTrial& trial : sweep.trials) {
    CHECK(trial.config.data.max_train_examples <= 1000);
  }
}

TEST_CASE("The GLUE example has a plan without notes", "[sweeps]") {
  const Home home;
  const Sweep sweep = load_sweep(kSweeps / "glue-small.yaml", home.locations());
  CHECK(sweep.trials.size() == 8);
  CHECK(sweep.notes.empty());
}

TEST_CASE("The documentation's example is a sweep", "[sweeps]") {
  const Home home;
  std::ifstream in(petlab::testing::source_dir() / "docs/sweep-files.md");
  std::stringstream page;
  page << in.rdbuf();
  const std::string text = page.str();
  const std::string fence = "```yaml\n";
  const std::size_t begin = text.find(fence) + fence.size();
  CHECK(home.load(text.substr(begin, text.find("```", begin) - begin)).trials.size() == 28);
}
