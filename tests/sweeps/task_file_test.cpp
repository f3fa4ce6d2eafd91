#include <nlohmann/json.hpp>

#include "base/file_problems.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/identity.h"
#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

using namespace petlab;
using namespace petlab::sweeps;
using petlab::sweeps::testing::Home;
using petlab::sweeps::testing::Strings;
using petlab::testing::TempDir;

namespace {

const std::string kTask = R"(task: reviews
about: is a product review good
files: {train: reviews.tsv, validation: dev.tsv, test: test.tsv}
columns: {text: [title, body], label: rating}
labels: [bad, good]
metrics: [accuracy, f1]
select_by: [accuracy]
)";

Strings problems_of(const std::string& text) {
  const TempDir folder;
  const auto file = folder.write("t.yaml", text);
  try {
    load_task(file);
  } catch (const base::FileProblemsError& error) {
    Strings problems = error.problems();
    for (std::string& problem : problems) problem.erase(0, folder.path().string().size() + 1);
    return problems;
  }
  return {};
}

}  // namespace

TEST_CASE("A user's task is a declaration like the built-in ones", "[sweeps]") {
  const TempDir folder;
  const TaskDeclaration task = load_task(folder.write("t.yaml", kTask));
  CHECK(task.name == "reviews");
  CHECK(task.kind == TaskKind::classification);
  CHECK(task.target == TargetRule::label);
  CHECK(task.classes == Strings{"bad", "good"});
  CHECK(task.split == SplitRule::given);
  REQUIRE(task.layouts.size() == 1);
  CHECK(task.layouts[0].format == FileFormat::tsv);
  CHECK(task.layouts[0].header);
  CHECK(task.layouts[0].text_columns == Strings{"title", "body"});
  CHECK(task.layouts[0].target_column == "rating");
  CHECK(task.select_by == Strings{"accuracy"});
  CHECK(task.text_to_text.source == "reviews title: {text1} body: {text2}");
  CHECK(task.folder == folder.path());
  CHECK(task_from_json(nlohmann::json(to_json(task))) == task);
}

TEST_CASE("Scores, signs, numbered columns and JSON Lines can be declared", "[sweeps]") {
  const TempDir folder;
  const TaskDeclaration score = load_task(folder.write("s.yaml", R"(
task: stars
files: {train: all.jsonl}
split: one_file
columns: {text: body, score: stars}
score: {min: 0, max: 5}
metrics: [pearson]
)"));
  CHECK(score.kind == TaskKind::regression);
  CHECK(score.layouts[0].format == FileFormat::jsonl);
  CHECK(score.score_max == 5.0);
  CHECK(score.select_by == Strings{"pearson"});
  const TaskDeclaration sign = load_task(folder.write("p.yaml", R"(
task: mood
files: {train: a.txt, validation: b.txt}
split: glue_small
format: csv
header: false
skip_short_rows: true
extra_columns: ignore
columns: {text: 2, sign: 1}
metrics: [matthews]
text_to_text: {source: "mood: {text1}", targets: [low, high]}
)"));
  CHECK(sign.target == TargetRule::sign);
  CHECK(sign.classes == Strings{"negative", "positive"});
  CHECK(sign.layouts[0].text_columns == Strings{"2"});
  CHECK(sign.layouts[0].target_column == "1");
  CHECK_FALSE(sign.layouts[0].header);
  CHECK(sign.layouts[0].skip_short_rows);
  CHECK(sign.layouts[0].ignore_extra_columns);
  CHECK(task_from_json(nlohmann::json(to_json(sign))) == sign);
  CHECK(sign.text_to_text.targets == Strings{"low", "high"});
}

TEST_CASE("All mistakes of a declaration are reported with their lines", "[sweeps]") {
  CHECK(problems_of(R"(task: cola
fils: {train: a}
files: {train: a.txt, validation: b.txt}
split: halves
columns: {text: [a, b, c], label: x, score: y}
labels: [one, one, three]
metrics: [acuracy, f1]
select_by: [matthews]
)") == Strings{
           "t.yaml:1: task: found 'cola', expected a name of no built-in task",
           "t.yaml:2: a task: found the key 'fils', expected one of task, about, source, files, "
           "split, "
           "format, header, skip_short_rows, extra_columns, columns, labels, score, metrics, "
           "select_by, "
           "text_to_text (nearest: files)",
           "t.yaml:3: files.test: found nothing, expected text",
           "t.yaml:3: format: found none, and the file a.txt, expected tsv, csv, jsonl or "
           "aligned",
           "t.yaml:4: split: found 'halves', expected given, glue_small, glue_large or one_file",
           "t.yaml:5: columns.text: found 3 columns, expected one column or two",
           "t.yaml:5: columns: found 2 of label, score, sign and target, expected one of them",
           "t.yaml:6: labels: found a list, expected no value with columns.score",
           "t.yaml:7: metrics: found 'acuracy', expected one of pearson, spearman",
           "t.yaml:7: metrics: found 'f1', expected one of pearson, spearman",
           "t.yaml:8: select_by: found 'matthews', expected one of acuracy, f1",
       });
  CHECK(problems_of("[]") == Strings{"t.yaml:1: the file: found a list, expected a task"});
  CHECK(problems_of("task: x\n") ==
        Strings{"t.yaml:1: columns: found nothing, expected {text: …, label: …} (or score, sign or "
                "target, for label)",
                "t.yaml:1: files: found nothing, expected {train: …, validation: …, test: …}",
                "t.yaml:1: labels: found 0 labels, expected 2 to 1000",
                "t.yaml:1: metrics: found nothing, expected a list of metrics"});
  CHECK(problems_of(kTask + "score: {min: 1, max: x}\nheader: 7\n"
                            "text_to_text: {source: \"{text1}\", targets: [a]}\n") ==
        Strings{"t.yaml:8: score: found a group of keys, expected no value with columns.label",
                "t.yaml:9: header: found 7, expected true or false",
                "t.yaml:10: text_to_text.source: found no {text2}, expected a place for every text "
                "column",
                "t.yaml:10: text_to_text.targets: found 1 targets, expected 2, one per label"});
}

TEST_CASE("Extra columns change a task's identity only if they are ignored", "[sweeps]") {
  const TempDir folder;
  const TaskDeclaration plain = load_task(folder.write("t.yaml", kTask));
  const TaskDeclaration refusing =
      load_task(folder.write("t.yaml", kTask + "extra_columns: refuse\n"));
  const TaskDeclaration ignoring =
      load_task(folder.write("t.yaml", kTask + "extra_columns: ignore\n"));
  CHECK(to_json(plain).dump().find("extra") == std::string::npos);
  CHECK(task_digest(refusing) == task_digest(plain));
  CHECK(task_digest(ignoring) != task_digest(plain));
  CHECK(problems_of(kTask + "extra_columns: drop\n") ==
        Strings{"t.yaml:8: extra_columns: found 'drop', expected ignore or refuse"});
  CHECK(problems_of(kTask + "format: jsonl\nextra_columns: ignore\n") ==
        Strings{"t.yaml:9: extra_columns: found 'ignore', expected no value with format jsonl"});
}

TEST_CASE("A task that generates texts has sources, targets and text metrics", "[sweeps]") {
  const TempDir folder;
  const TaskDeclaration task = load_task(folder.write("t.yaml", R"(task: ro-sts
files: {train: RO-STS.train, validation: RO-STS.dev, test: RO-STS.test}
format: aligned
columns: {text: ro, target: en}
metrics: [bleu, exact-match, token-error-rate]
select_by: bleu
text_to_text: {source: "translate Romanian to English: {text1}"}
)"));
  CHECK(task.kind == TaskKind::text);
  CHECK(task.target == TargetRule::text);
  CHECK(task.layouts[0].format == FileFormat::aligned);
  CHECK(task.select_by == Strings{"bleu"});
  CHECK(file_parts(task.layouts[0], task.layouts[0].train) ==
        Strings{"RO-STS.train.ro", "RO-STS.train.en"});
  CHECK(task_from_json(nlohmann::json(to_json(task))) == task);
  const TaskDeclaration nested = load_task(folder.write("n.yaml", R"(task: mine
files: {train: all.jsonl}
split: one_file
columns: {text: [translation.ro, hint], target: translation.en}
metrics: [rouge2]
)"));
  CHECK(nested.text_to_text.source == "mine ro: {text1} hint: {text2}");
  CHECK(problems_of(R"(task: t
files: {train: a.aligned}
split: one_file
columns: {text: ro, target: en}
labels: [a, b]
score: {min: 1}
metrics: [bleu, accuracy]
text_to_text: {source: "{text1}", targets: [a]}
)") == Strings{
           "t.yaml:2: format: found none, and the file a.aligned, expected tsv, csv, jsonl or "
           "aligned",
           "t.yaml:5: labels: found a list, expected no value with columns.target",
           "t.yaml:6: score: found a group of keys, expected no value with columns.target",
           "t.yaml:7: metrics: found 'accuracy', expected one of bleu, chrf, ter, rouge1, rouge2, "
           "rougeL, rougeLsum, exact-match, token-error-rate",
           "t.yaml:8: text_to_text.targets: found a list, expected no value without labels"});
  CHECK(problems_of(R"(task: t
files: {train: a}
split: one_file
format: aligned
header: false
columns: {text: ro, target: en}
metrics: [bleu]
)") == Strings{"t.yaml:5: header: found false, expected no value with format aligned"});
}

TEST_CASE("Each of the aligned files affects the digest, and a missing one is reported",
          "[sweeps]") {
  const TempDir folder;
  TaskDeclaration task;
  task.name = "t";
  task.split = SplitRule::one_file;
  task.folder = folder.path();
  TaskLayout layout;
  layout.format = FileFormat::aligned;
  layout.train = "x";
  layout.text_columns = {"ro"};
  layout.target_column = "en";
  task.layouts = {layout};
  folder.write("x.ro", "a\n");
  CHECK_THROWS_WITH(find_task_files(task, {}), "task t: x.en is in none of the folders " +
                                                   folder.path().string() +
                                                   " (set PETLAB_DATA to add a folder)");
  folder.write("x.en", "b\n");
  CHECK(find_task_files(task, {}).train == folder.path() / "x");
  FileDigests digests({});
  const std::string before = data_digest(task, {}, digests);
  folder.write("x.en", "other\n");
  CHECK(data_digest(task, {}, digests) != before);
}

TEST_CASE("A sweep refers to a user's task by its file, and equal declarations are one trial",
          "[sweeps]") {
  const Home home;
  home.folder().write("mine/reviews.yaml", kTask);
  home.folder().write("mine/copy.yaml", "# the same\n" + kTask + "source: elsewhere\n");
  const Sweep sweep = home.load(
      "sweep: t\nbase: {backbone: minilm}\ngrid: {task: [mine/reviews.yaml, cola, "
      "mine/copy.yaml]}\n"
      "when: [{if: {task: reviews}, set: {training.epochs: 2}}]\n");
  REQUIRE(sweep.trials.size() == 2);
  CHECK(sweep.trials[0].config.tasks == Strings{"reviews"});
  CHECK(sweep.trials[0].config.training.epochs == 2);
  CHECK(sweep.trials[1].config.training.epochs == 20);
  CHECK(sweep.tasks.size() == 2);
  CHECK(sweep.tasks.at("reviews").folder.parent_path() == home.folder().path());

  // A different declaration, or the same one with files in another folder.
  home.folder().write("mine/copy.yaml", kTask + "header: false\n");
  CHECK(home.problems("sweep: t\nbase: {backbone: minilm}\n"
                      "grid: {task: [mine/reviews.yaml, mine/copy.yaml]}\n")
            .size() == 1);
  home.folder().write("copy.yaml", kTask);
  CHECK(
      home.problems("sweep: t\nbase: {backbone: minilm}\n"
                    "grid: {task: [mine/reviews.yaml, copy.yaml]}\n") ==
      Strings{"sweep.yaml:3: task: found copy.yaml for the task reviews, expected one declaration "
              "of it"});
  home.folder().write("copy.yaml", "task: 7 7\n");
  const Strings problems =
      home.problems("sweep: t\nbase: {backbone: minilm}\ngrid: {task: [copy.yaml], seed: [x]}\n");
  REQUIRE(problems.size() == 6);
  CHECK(problems.front() ==
        "copy.yaml:1: columns: found nothing, expected {text: …, label: …} (or score, sign or "
        "target, for "
        "label)");
  CHECK(problems.back() ==
        "sweep.yaml:3: seed: found 'x', expected a whole number from 0 to 9223372036854775807");
}
