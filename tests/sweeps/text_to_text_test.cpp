#include "sweeps/text_to_text.h"

#include <map>
#include <string>
#include <vector>

#include "sweeps/catalog.h"
#include "tests/support/catch.h"

namespace petlab::sweeps {
namespace {

using Texts = std::vector<std::string>;

// The texts are those of "T5-base" in reference/method.md.
TEST_CASE("Each task of GLUE has the source and target texts of the method", "[sweeps]") {
  const std::map<std::string, std::string> wanted = {
      {"cola", "cola sentence: A"},
      {"sst2", "sst2 sentence: A"},
      {"mrpc", "mrpc sentence1: A sentence2: B"},
      {"qqp", "qqp question1: A question2: B"},
      {"stsb", "stsb sentence1: A sentence2: B"},
      {"mnli", "mnli premise: A hypothesis: B"},
      {"qnli", "qnli question: A sentence: B"},
      {"rte", "rte sentence1: A sentence2: B"},
  };
  for (const auto& [name, text] : wanted) {
    INFO(name);
    const TaskDeclaration& task = *find_task(name);
    Texts texts{"A", "B"};
    texts.resize(task.layouts.front().text_columns.size());
    CHECK(source_text(task, texts) == text);
    for (std::size_t label = 0; label < task.classes.size(); ++label) {
      CHECK(target_text(task, static_cast<std::int64_t>(label)) == std::to_string(label));
    }
  }
  CHECK(source_text(*find_task("wmt16-ro-en"), Texts{"A"}) ==
        "wmt16-ro-en Translate Romanian to English: A");
  CHECK(source_text(*find_task("xsum"), Texts{"A"}) == "xsum document: A");
  CHECK(source_text(*find_task("tweets-polarity"), Texts{"A"}) == "tweets-polarity sentence: A");
}

TEST_CASE("A placeholder inside a text is not replaced", "[sweeps]") {
  const TaskDeclaration& task = *find_task("rte");
  CHECK(source_text(task, Texts{"{text2} {text1}", "b"}) ==
        "rte sentence1: {text2} {text1} sentence2: b");
  TaskDeclaration custom = task;
  custom.text_to_text.source = "{text2}, {text1} and {text2}";
  CHECK(source_text(custom, Texts{"a", "b"}) == "b, a and b");
  custom.text_to_text.source = "nothing";
  CHECK(source_text(custom, Texts{"a", "b"}) == "nothing");
  CHECK_THROWS_WITH(source_text(task, Texts{"a"}),
                    "task rte: text_to_text.source is 'rte sentence1: {text1} sentence2: {text2}', "
                    "must have a place for 1 texts");
}

TEST_CASE("Targets are class numbers, or the texts that the task declares", "[sweeps]") {
  TaskDeclaration task = *find_task("mnli");
  CHECK(target_text(task, 2) == "2");
  task.text_to_text.targets = {"yes", "maybe", "no"};
  CHECK(target_text(task, 1) == "maybe");
  CHECK_THROWS_WITH(target_text(task, 3), "task mnli: class 3 is not one of its 3");
  CHECK_THROWS_WITH(target_text(task, -1), "task mnli: class -1 is not one of its 3");
  CHECK(score_target_text(3.8) == "3.8");
  CHECK(score_target_text(2.25) == "2.2");
  CHECK(score_target_text(5) == "5.0");
}

}  // namespace
}  // namespace petlab::sweeps
