// Valid definitions that do not fit the data.
#include "reports/report.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::definition;

TEST_CASE("A cell that pools several tasks, metrics or splits as seeds is an error that names them",
          "[reports]") {
  DataMaker make;
  make.score(make.trial("a", 1, "movie"), "accuracy", 0.8);
  make.score(make.trial("a", 2, "movie"), "accuracy", 0.9);
  make.score(make.trial("a", 1, "valence"), "pearson", 0.6);
  const auto table = [&](const std::string& columns) {
    return testing::table_of(definition("table:\n  rows: [{key: a}]\n  columns:\n" + columns),
                             make.data, {});
  };
  CHECK_THROWS_WITH(table("    - {key: c}\n    - {key: d, where: {split: test}}\n"),
                    "r.yaml:5: the cell pools 2 kinds of values as if they were seeds (test movie "
                    "accuracy, test valence pearson): select one task and name with where, or take "
                    "their mean with average_over\n"
                    "r.yaml:6: the cell pools 2 kinds of values as if they were seeds (test movie "
                    "accuracy, test valence pearson): select one task and name with where, or take "
                    "their mean with average_over");
  CHECK(*table("    - {key: c, where: {name: accuracy}}\n").cells[0][0].measured.mean ==
        Approx(85));
  CHECK(*table("    - {key: c, average_over: [{task: movie, name: accuracy}, {task: valence, name: "
               "pearson}]}\n")
             .cells[0][0]
             .measured.mean == Approx(70));
  make.score(make.trial("a", 3, "movie"), "accuracy", 0.7, "validation");
  CHECK_THROWS_WITH(table("    - {key: c, where: {task: movie}}\n"),
                    "r.yaml:5: the cell pools 2 kinds of values as if they were seeds (test movie "
                    "accuracy, validation movie accuracy): select one split with where, or take "
                    "their mean with average_over");
}

TEST_CASE("An unknown word in a selection is an error that suggests the nearest one", "[reports]") {
  DataMaker make;
  make.score(make.trial("propetl", 1, "x", {{"module_kind", "adapter"}}), "accuracy", 0.8);
  make.score(make.trial("adapter-8", 1, "x", {{"module_kind", "adapter"}}), "accuracy", 0.8);
  make.data.known_words = {{"name", {"accuracy", "f1"}}, {"task", {"x", "rte"}}};
  const auto report = [](const std::string& rows, const std::string& where) {
    return definition("table:\n  rows:\n" + rows + "  columns:\n    - {key: c, where: {" + where +
                      "}}\n");
  };
  const std::string all = "    - {each: variant}\n";
  CHECK_THROWS_WITH(
      testing::table_of(report(all, "name: acuracy, task: rtee"), make.data, {}),
      "r.yaml:6: name is 'acuracy', which neither petlab nor the database knows; did "
      "you mean accuracy? (known: accuracy, f1)\n"
      "r.yaml:6: task is 'rtee', which neither petlab nor the database knows; did you "
      "mean rte? (known: rte, x)");
  CHECK_THROWS_WITH(
      testing::table_of(
          definition("table:\n  rows: [{key: a}]\n  columns:\n    - {key: c, average_over: "
                     "[{name: acuracy}]}\n"),
          make.data, {}),
      "r.yaml:5: name is 'acuracy', which neither petlab nor the database knows; did you mean "
      "accuracy? (known: accuracy, f1)");
  // Known words without a value yet are no error.
  const testing::MadeTable none =
      testing::table_of(report(all, "name: f1, task: rte"), make.data, {});
  CHECK(none.cells[0][0].measured.kind == Cell::Kind::missing);
  CHECK(none.notes.empty());
  // Known variants are those of the sweep.
  CHECK_THROWS_WITH(
      testing::table_of(report("    - {key: a, where: {variant: proptl}}\n", "name: f1"), make.data,
                        {}),
      "r.yaml:4: variant is 'proptl', which no trial has; did you mean propetl?");
  // With a part of a sweep, adapter-4 is not taken for a misspelt adapter-8, which has its own row.
  const testing::MadeTable part =
      testing::table_of(report("    - {key: a, where: {variant: adapter-8}}\n"
                               "    - {key: b, where: {variant: adapter-4}}\n",
                               "name: accuracy"),
                        make.data, {});
  CHECK(part.cells[0][0].measured.kind == Cell::Kind::number);
  CHECK(part.cells[1][0].measured.kind == Cell::Kind::missing);
  CHECK(part.notes == std::vector<std::string>{"no trial here has variant adapter-4"});
}

}  // namespace
}  // namespace petlab::reports
