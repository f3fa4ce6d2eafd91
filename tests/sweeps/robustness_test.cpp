#include <random>
#include <string>
#include <vector>

#include "protocol/events.h"
#include "tests/fuzz/sweeps_inputs.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using namespace petlab;

namespace {

// Changes, cuts and doubles a few bytes, now and then with a piece that the format knows.
std::string mutated(std::string text, std::mt19937& random,
                    const std::vector<std::string>& pieces) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t n = 1 + below(4); n > 0; --n) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), 1 + below(30)));
        break;
      default:
        text.insert(at, pieces[below(pieces.size())]);
    }
  }
  return text;
}

void try_mutations(const std::string& text, int times, const std::vector<std::string>& pieces,
                   void (*property)(std::string_view)) {
  std::mt19937 random(11);
  property(text);
  for (int i = 0; i < times; ++i) {
    const std::string input = mutated(text, random, pieces);
    INFO(input);
    REQUIRE_NOTHROW(property(input));
  }
}

const std::vector<std::string> kYaml = {"*a",   "&a ", "{", "}",     "[",   "]",   "? ",   "---\n",
                                        "- ",   ": ",  "'", "\"",    "|",   "\t",  "\n  ", "!!x ",
                                        "\xff", "#",   "~", "1e999", "0x1", "<<: "};
const std::vector<std::string> kJson = {"{",    "}",   "[",    "]",   "\"", "\\u12", "\\",
                                        "null", "1e9", "-0.0", "NaN", ":",  ",",     "\xff"};

}  // namespace

TEST_CASE("Sweep files that were tampered with are refused in the open, or good", "[sweeps]") {
  const std::string quickstart =
      petlab::testing::read_file(petlab::testing::source_dir() / "sweeps/quickstart.yaml");
  const std::string rest =
      "when: [{if: {variant: a, seed: [1, 2]}, set: {training: {epochs: 3}}}]\n"
      "zip: [{training.epochs: [1, 2], user.n: [a, ~]}]\nexclude: [{module.share: true}]\n";
  try_mutations(quickstart, 400, kYaml, fuzz::sweep_file);
  try_mutations(
      "sweep: t\nbase: &a {backbone: minilm, task: cola}\nvariants: {a: {}, b: *a}\n" + rest, 600,
      kYaml, fuzz::sweep_file);
}

TEST_CASE("Declarations that were tampered with are refused in the open, or good", "[sweeps]") {
  try_mutations(
      "task: reviews\nfiles: {train: a.tsv, validation: b.tsv, test: c.tsv}\nformat: csv\n"
      "columns: {text: [x, y], label: z}\nlabels: [bad, good]\nmetrics: [accuracy]\n"
      "text_to_text: {source: \"{text1} {text2}\", targets: [a, b]}\n",
      1500, kYaml, fuzz::task_file);
}

TEST_CASE("Events that were tampered with are refused, or JSON", "[sweeps]") {
  const std::string metric =
      protocol::to_line({5, 3.25, protocol::Metric{200, "test", "a \"task\"", "accuracy", 0.5}});
  const std::string started = protocol::to_line(
      {0, 1, protocol::Started{7, "w", "1", R"({"a":[1,{}]})", "sha256:0", {{"t", "sha256:1"}}}});
  try_mutations(metric, 5000, kJson, fuzz::event_line);
  try_mutations(started, 5000, kJson, fuzz::event_line);
}

TEST_CASE("Trial files that were tampered with are refused, or good", "[sweeps]") {
  try_mutations(R"({"v":1,"trial":"ab","attempt":1,"config":{"backbone":"b","task":"cola","seed":1,
"module":{"kind":"lora","rank":4},"user":{"a":null}},"backbone_folder":"/m","data_folders":["/d"],
"digests":{"backbone":"x","data":{"cola":"y"}},"threads":1,"device":"cpu",
"resume":{"attempt":1,"step":2,"seq":3,"checkpoint":"c"}})",
                400, kJson, fuzz::trial_file);
}
