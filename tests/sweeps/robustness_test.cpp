#include <string>
#include <vector>

#include "protocol/events.h"
#include "tests/fuzz/sweeps_inputs.h"
#include "tests/fuzz/tampered.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using namespace petlab;

TEST_CASE("Corrupted sweep files are refused with a message, or valid", "[sweeps]") {
  const std::string quickstart =
      petlab::testing::read_file(petlab::testing::source_dir() / "sweeps/quickstart.yaml");
  const std::string rest =
      "when: [{if: {variant: a, seed: [1, 2]}, set: {training: {epochs: 3}}}]\n"
      "zip: [{training.epochs: [1, 2], user.n: [a, ~]}]\nexclude: [{module.share: true}]\n";
  fuzz::try_tampered(quickstart, 400, fuzz::kYaml, fuzz::sweep_file);
  fuzz::try_tampered(
      "sweep: t\nbase: &a {backbone: minilm, task: cola}\nvariants: {a: {}, b: *a}\n" + rest, 600,
      fuzz::kYaml, fuzz::sweep_file);
}

TEST_CASE("Corrupted task declarations are refused with a message, or valid", "[sweeps]") {
  fuzz::try_tampered(
      "task: reviews\nfiles: {train: a.tsv, validation: b.tsv, test: c.tsv}\nformat: csv\n"
      "columns: {text: [x, y], label: z}\nlabels: [bad, good]\nmetrics: [accuracy]\n"
      "text_to_text: {source: \"{text1} {text2}\", targets: [a, b]}\n",
      1500, fuzz::kYaml, fuzz::task_file);
}

TEST_CASE("Corrupted events are refused, or valid JSON", "[sweeps]") {
  const std::string metric =
      protocol::to_line({5, 3.25, protocol::Metric{200, "test", "a \"task\"", "accuracy", 0.5}});
  const std::string started = protocol::to_line(
      {0, 1, protocol::Started{7, "w", "1", R"({"a":[1,{}]})", "sha256:0", {{"t", "sha256:1"}}}});
  fuzz::try_tampered(metric, 5000, fuzz::kJson, fuzz::event_line);
  fuzz::try_tampered(started, 5000, fuzz::kJson, fuzz::event_line);
}

TEST_CASE("Corrupted trial files are refused, or valid", "[sweeps]") {
  fuzz::try_tampered(
      R"({"v":1,"trial":"ab","attempt":1,"config":{"backbone":"b","task":"cola","seed":1,
"module":{"kind":"lora","rank":4},"user":{"a":null}},"backbone_folder":"/m","data_folders":["/d"],
"digests":{"backbone":"x","data":{"cola":"y"}},"threads":1,"device":"cpu",
"resume":{"attempt":1,"step":2,"seq":3,"checkpoint":"c"}})",
      400, fuzz::kJson, fuzz::trial_file);
}

TEST_CASE("Corrupted records are skipped with their file and line, or read back", "[sweeps]") {
  const std::string lines =
      R"({"v":1,"type":"begun","time":1.5,"sweep":"s","owner":"o","host":"h"})"
      "\n"
      R"({"v":1,"type":"ended","outcome":"crashed","reason":"r","signal":9,"time":2})"
      "\n"
      R"({"v":1,"decision":"retry","after_attempt":3,"time":1})"
      "\n"
      R"({"v":1,"decision":"hide","why":"a \"b\"","time":1})"
      "\n"
      R"({"v":1,"note":"t","time":1})"
      "\n";
  fuzz::try_tampered(lines, 300, fuzz::kJson, fuzz::record_files);
}

TEST_CASE("Corrupted conditions are refused, or have typed values", "[sweeps]") {
  const std::vector<std::string> pieces = {"=",  "!=", "<",  ">=",    "'",
                                           "\"", ",",  "..", " and ", "\xff"};
  fuzz::try_tampered("task=cola,rte and seed!=1..5 and user.a>='x ''y'", 3000, pieces,
                     fuzz::condition_text);
}
