#include "reports/definition.h"

#include "base/file_problems.h"
#include "questions/conditions.h"
#include "reports/definition_text.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

std::vector<std::string> problems_of(const std::string& text) {
  try {
    parse_definition(text, "r.yaml");
  } catch (const base::FileProblemsError& error) {
    return error.problems();
  }
  return {};
}

TEST_CASE("A definition is read with its selections and cell contents", "[reports]") {
  const Definition read = parse_definition(R"(report: mine
about: What it is
sweep: [a, b]
where: {split: test}
backbone_parameters: {minilm: 22713216}
notes: one
table:
  published: table1
  cells: {scale: 100, digits: 2}
  rows:
    - {key: x, name: The x, group: G, where: {module_share: true, variant: [x, "1"], user_y: ~}}
    - {each: [variant, seed], separate: true}
  columns:
    - {key: bits, value: bls_bits, digits: 0, better: lower, published: bls_percent}
    - key: avg
      average_over: [{task: cola, name: matthews}, {task: rte, name: accuracy}]
)",
                                           "r.yaml");
  CHECK(read.name == "mine");
  CHECK(read.sweeps == std::vector<std::string>{"a", "b"});
  CHECK(read.backbone_parameters.at("minilm") == 22713216);
  CHECK(std::get<TableSpec>(read.sections.at(0)).published == "table1");
  CHECK(std::get<TableSpec>(read.sections.at(0)).cells.scale == 100.0);
  const Line& x = std::get<TableSpec>(read.sections.at(0)).rows.at(0);
  CHECK(x.name == "The x");
  CHECK(x.group == "G");
  REQUIRE(x.where.conditions.size() == 3);
  CHECK(x.where.conditions[0].values.at(0) == results::Value(std::int64_t{1}));
  CHECK(x.where.conditions[1].values.at(0) == results::Value("x"));
  CHECK(x.where.conditions[1].values.at(1) == results::Value("1"));
  CHECK(x.where.conditions[2].values.at(0) == results::Value());
  CHECK(std::get<TableSpec>(read.sections.at(0)).rows.at(1).each ==
        std::vector<std::string>{"variant", "seed"});
  CHECK(std::get<TableSpec>(read.sections.at(0)).rows.at(1).separate);
  const Line& bits = std::get<TableSpec>(read.sections.at(0)).columns.at(0);
  CHECK(bits.name == "bits");
  CHECK(bits.cells.value == "bls_bits");
  CHECK(bits.cells.better == Better::lower);
  CHECK(bits.published == "bls_percent");
  CHECK(std::get<TableSpec>(read.sections.at(0)).columns.at(1).cells.average_over.size() == 2);
}

TEST_CASE("A name that looks like a number selects its trial", "[reports]") {
  testing::DataMaker make;
  const std::size_t trial = make.trial("007", 1, "x", {{"user.commit", results::Value("0012345")}});
  make.data.trials[trial].id = "1902488289551e33";
  make.data.trials[trial].fields["trial_id"] = "1902488289551e33";
  make.score(trial, "accuracy", 0.5);
  for (const char* where :
       {"{variant: 007}", "{trial_id: 1902488289551e33}", "{user_commit: 0012345}",
        "{user_commit: '0012345'}", "'variant=007 and seed<2'", "{variant: [x, 007], seed: 1}"}) {
    INFO(where);
    const testing::MadeTable table =
        testing::table_of(testing::definition("where: " + std::string(where) +
                                              "\ntable: {rows: [{key: a}], columns: [{key: b}]}\n"),
                          make.data, {});
    CHECK(table.cells[0][0].measured.mean == 50.0);
  }
}

TEST_CASE("A question's definition can be written and read back", "[reports]") {
  Definition written;
  written.name = "results";
  written.about = "all: \"of it\"";
  written.sweeps = {"a b", "1"};
  written.where.conditions = questions::parse_where(
      "variant=007,'it''s, so' and seed<45 and user.k=7,'7',null,x and module_rank!=null and "
      "user.k>='2' and training_learning_rate=0.001 and task='null'");
  TableSpec table;
  table.cells.scale = 1;
  table.against = "1";
  table.rows.resize(2);
  table.rows[0].key = table.rows[0].name = "1";
  table.rows[0].where.conditions = questions::parse_where("variant=small");
  table.rows[1].each = {"variant", "user.k"};
  table.columns.resize(1);
  table.columns[0].each = {"task", "name"};
  table.columns[0].name = "{task} {name}";
  written.sections.emplace_back(table);
  const Definition read = parse_definition(to_yaml(written), "r.yaml");
  CHECK(read.name == written.name);
  CHECK(read.about == written.about);
  CHECK(read.sweeps == written.sweeps);
  REQUIRE(read.where.conditions.size() == written.where.conditions.size());
  for (std::size_t i = 0; i < written.where.conditions.size(); ++i) {
    CHECK(read.where.conditions[i].word.name == written.where.conditions[i].word.name);
    CHECK(read.where.conditions[i].op == written.where.conditions[i].op);
    CHECK(read.where.conditions[i].values == written.where.conditions[i].values);
  }
  const auto& read_table = std::get<TableSpec>(read.sections.at(0));
  CHECK(read_table.cells.scale == 1.0);
  CHECK(read_table.against == "1");
  REQUIRE(read_table.rows.size() == 2);
  CHECK(read_table.rows[0].key == "1");
  CHECK(read_table.rows[0].where.conditions.size() == 1);
  CHECK(read_table.rows[1].each == table.rows[1].each);
  CHECK(read_table.columns.at(0).name == "{task} {name}");
  CHECK(to_yaml(read) == to_yaml(written));
}

TEST_CASE("A value with another type than its field is an error", "[reports]") {
  CHECK_THROWS_WITH(
      testing::definition("where: {seed: x}\ntable: {rows: [{key: a}], columns: "
                          "[{key: b}]}\n"),
      "r.yaml:2: where: seed: found 'x', expected a whole number, or several as 1..5");
  CHECK_THROWS_WITH(testing::definition("where: seed=1 or seed=2\ntable: {rows: [{key: a}], "
                                        "columns: [{key: b}]}\n"),
                    Catch::Contains("r.yaml:2: where: found or"));
}

TEST_CASE("All problems of a definition are reported together with their lines", "[reports]") {
  CHECK(problems_of(R"(report: my report
abuot: x
table:
  cells: {scale: zero}
  rows:
    - {key: a, wheer: {variant: a}}
    - {key: a}
    - {name: b}
  columns:
    - {key: c, value: bls_bits, text: "{seed}", digits: 99, better: more}
    - {key: d, where: [1]}
)") == std::vector<std::string>{
           "r.yaml:1: report is 'my report', must be a name of letters, digits, _, - and . "
           "(files are named after it)",
           "r.yaml:2: the report has no key 'abuot'; did you mean about? (known: report, about, "
           "sweep, where, backbone_parameters, notes, table, figure, ranks, sections)",
           "r.yaml:4: table.cells.scale is 'zero', must be a number other than 0",
           "r.yaml:6: a row has no key 'wheer'; did you mean where? (known: key, name, where, "
           "each, published, group, separate, value, text, average_over, scale, digits, better)",
           "r.yaml:7: row a is also the key of line 6, keys must be unique",
           "r.yaml:8: a row has neither key nor each, must have one",
           "r.yaml:10: column c has more than one of value, text and average_over; a cell shows "
           "one of them",
           "r.yaml:10: column.better is 'more', must be higher, lower or none",
           "r.yaml:10: column.digits is 99, must be a whole number from 0 to 12",
           "r.yaml:11: column.where is a list, must be a group of names and values",
       });
}

TEST_CASE("A definition's missing parts are named", "[reports]") {
  CHECK(problems_of("about: x\n") ==
        std::vector<std::string>{
            "r.yaml:1: there is no key 'report' with its name",
            "r.yaml:1: there is no key 'table', 'figure', 'ranks' or 'sections'"});
  CHECK(problems_of("report: r\ntable: {}\n") ==
        std::vector<std::string>{"r.yaml:2: table has no columns", "r.yaml:2: table has no rows"});
  CHECK(problems_of("report: r\ntable: {rows: [], columns: x}\n") ==
        std::vector<std::string>{"r.yaml:2: table.columns is 'x', must be a list of columns",
                                 "r.yaml:2: table.rows is an empty list, must be a list of rows"});
}

TEST_CASE("A figure has axes, series with published points, and lines across", "[reports]") {
  const Definition read = parse_definition(R"(report: r
sections:
  - table: {key: t, title: T, rows: [{key: a}], columns: [{key: b}], against: a}
  - figure:
      key: f
      title: F
      errors: interval
      x: {value: bls_percent, name: storage, log: true, scale: 2}
      y: {where: {name: f1}, digits: 1}
      series:
        - {key: a, where: {variant: a}, published: {table: t1, rows: "a bn=", x: bls, y: s}}
        - {each: variant, published: [{table: t1, row: b, x: 0.5, y: s}]}
      horizontal: [{key: full, where: {variant: full}, published: {table: t2, row: f, y: s}}]
)",
                                           "r.yaml");
  REQUIRE(read.sections.size() == 2);
  CHECK(std::get<TableSpec>(read.sections[0]).against == "a");
  const auto& figure = std::get<FigureSpec>(read.sections[1]);
  CHECK(figure.key == "f");
  CHECK(figure.title == "F");
  CHECK(figure.errors == Spread::interval);
  CHECK(figure.x.cells.value == "bls_percent");
  CHECK(figure.x.name == "storage");
  CHECK(figure.x.log);
  CHECK(figure.x.cells.scale == 2.0);
  CHECK_FALSE(figure.y.log);
  CHECK(figure.y.cells.digits == 1);
  REQUIRE(figure.series.size() == 2);
  CHECK(figure.series[0].published.at(0).rows == "a bn=");
  CHECK(std::get<std::string>(figure.series[0].published.at(0).x) == "bls");
  CHECK(figure.series[1].line.each == std::vector<std::string>{"variant"});
  CHECK(std::get<double>(figure.series[1].published.at(0).x) == 0.5);
  REQUIRE(figure.horizontal.size() == 1);
  CHECK(figure.horizontal[0].published.at(0).table == "t2");
}

TEST_CASE("Mistakes in sections and figures are reported with their lines", "[reports]") {
  CHECK(problems_of("report: r\nsections: []\n") ==
        std::vector<std::string>{
            "r.yaml:2: sections is an empty list, must be a list of sections (table, figure, "
            "ranks)"});
  CHECK(problems_of("report: r\nsections: [{}]\n") ==
        std::vector<std::string>{
            "r.yaml:2: a section has no key, must have one of table, figure, ranks"});
  CHECK(problems_of("report: r\nsections: [{table: {rows: [{key: a}], columns: [{key: b}]}, ranks: "
                    "{variants: [{key: a}], tasks: [{key: b}]}}]\n") ==
        std::vector<std::string>{
            "r.yaml:2: a section has table, ranks, must have one of table, figure, ranks"});
  CHECK(problems_of(
            "report: r\ntable: {rows: [{key: a}], columns: [{key: b}], against: c}\n"
            "figure: {x: {log: maybe}, y: {}, series: [{key: s, group: g}], error: none}\n") ==
        std::vector<std::string>{
            "r.yaml:1: there are the keys table and figure, must be one; sections is a list of "
            "them",
            "r.yaml:2: table.against is 'c', must be the key of a row (known: a)",
            "r.yaml:3: a series has no key 'group' (known: key, name, where, each, published, "
            "value, text, average_over, scale, digits, better)",
            "r.yaml:3: figure has no key 'error'; did you mean errors? (known: x, y, series, "
            "horizontal, errors, key, title)",
            "r.yaml:3: figure.x has no value: a field of the trials, or step",
            "r.yaml:3: figure.x.log is 'maybe', must be true or false"});
  CHECK(problems_of(R"(report: r
sections:
  - table: {key: a b, rows: [{key: a}], columns: [{key: b}]}
  - figure:
      x: {value: step}
      y: {name: y}
      series: [{key: s, published: {row: a, rows: b}}]
)") == std::vector<std::string>{
           "r.yaml:3: table.key is 'a b', must be a name of letters, digits, _, - and . (files are "
           "named after it)",
           "r.yaml:4: a section has no key, must have one where there are several",
           "r.yaml:7: published has no table",
           "r.yaml:7: published has no x, the column of its place or a number",
           "r.yaml:7: published has no y, the column of its value",
           "r.yaml:7: published must have either row (its key) or rows (with what their keys "
           "begin)"});
}

TEST_CASE("Ranks have variants, tasks, a test and its level", "[reports]") {
  const Definition read = parse_definition(R"(report: r
ranks:
  title: Ranks
  test: wilcoxon
  level: 0.01
  variants: [{each: variant}, {key: mine, name: My own, where: {variant: x}}]
  tasks: [{each: task, where: {name: accuracy}}, {key: ppl, where: {name: ppl}, better: lower}]
)",
                                           "r.yaml");
  const auto& ranks = std::get<RanksSpec>(read.sections.at(0));
  CHECK(ranks.title == "Ranks");
  CHECK(ranks.test == PairTest::wilcoxon);
  CHECK(ranks.level == 0.01);
  REQUIRE(ranks.variants.size() == 2);
  CHECK(ranks.variants[1].name == "My own");
  REQUIRE(ranks.tasks.size() == 2);
  CHECK(ranks.tasks[0].each == std::vector<std::string>{"task"});
  CHECK(ranks.tasks[1].cells.better == Better::lower);
  const auto defaults = std::get<RanksSpec>(
      parse_definition("report: r\nranks: {variants: [{key: a}], tasks: [{key: b}]}\n", "r.yaml")
          .sections.at(0));
  CHECK(defaults.test == PairTest::nemenyi);
  CHECK(defaults.level == 0.05);
}

TEST_CASE("The examples of sections in the documentation are definitions", "[reports]") {
  const std::string page =
      testing::read_file(testing::source_dir() / "docs/reference/report-definitions.md");
  for (const char* kind : {"figure:\n", "ranks:\n"}) {
    INFO(kind);
    const std::string begin = std::string("```yaml\n") + kind;
    const std::size_t at = page.find(begin);
    REQUIRE(at != std::string::npos);
    const std::size_t text = at + std::string("```yaml\n").size();
    CHECK(problems_of("report: r\n" + page.substr(text, page.find("```", text) - text)).empty());
  }
}

TEST_CASE("Mistakes in ranks are reported with their lines and fields", "[reports]") {
  CHECK(problems_of(R"(report: r
ranks:
  test: friedman
  level: 0.9
  levle: 1
  variants:
    - {key: a, where: {variant: a}}
    - {key: a, group: g}
  tasks:
    - {key: b, text: "{task}"}
    - {name: c}
)") == std::vector<std::string>{
           "r.yaml:3: ranks.test is 'friedman', must be nemenyi or wilcoxon",
           "r.yaml:4: ranks.level is 0.9, must be a number above 0 and at most 0.5",
           "r.yaml:5: ranks has no key 'levle'; did you mean level? (known: variants, tasks, "
           "test, level, key, title)",
           "r.yaml:8: a variant has no key 'group' (known: key, name, where, each, value, text, "
           "average_over, scale, digits, better)",
           "r.yaml:8: variant a is also the key of line 7, keys must be unique",
           "r.yaml:10: task.text is a text, which has no rank; use value or average_over, or "
           "neither for a metric",
           "r.yaml:11: a task has neither key nor each, must have one"});
  CHECK(problems_of("report: r\nranks: {variants: x}\n") ==
        std::vector<std::string>{"r.yaml:2: ranks has no tasks",
                                 "r.yaml:2: ranks.variants is 'x', must be a list of variants"});
  CHECK(problems_of("report: r\nranks: 3\n") ==
        std::vector<std::string>{"r.yaml:2: ranks is 3, must be a group of variants, tasks, test, "
                                 "level, key, title"});
}

TEST_CASE("Several sections of ranks can be written and read back", "[reports]") {
  Definition written;
  written.name = "compare";
  for (const char* key : {"metric-1", "metric-2"}) {
    RanksSpec ranks;
    ranks.key = key;
    ranks.title = "f1";
    ranks.level = 0.01;
    ranks.variants.resize(1);
    ranks.variants[0].key = ranks.variants[0].name = "module_kind=lora";
    ranks.variants[0].where.conditions = questions::parse_where("module_kind=lora");
    ranks.tasks.resize(1);
    ranks.tasks[0].each = {"task"};
    ranks.tasks[0].where.conditions = questions::parse_where("name=f1");
    written.sections.emplace_back(ranks);
    const Definition read = parse_definition(to_yaml(written), "r.yaml");
    REQUIRE(read.sections.size() == written.sections.size());
    const auto& last = std::get<RanksSpec>(read.sections.back());
    CHECK(last.key == key);
    CHECK(last.title == "f1");
    CHECK(last.level == 0.01);
    CHECK(last.variants.at(0).key == "module_kind=lora");
    CHECK(last.tasks.at(0).each == std::vector<std::string>{"task"});
    CHECK(to_yaml(read) == to_yaml(written));
  }
}

TEST_CASE("Texts that are not definitions are refused with a line number", "[reports]") {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "r.yaml:1: YAML: found an empty file, expected a group of keys"},
      {"report: a\ntable: {rows: [{key: a}], columns: [{key: b}]}\n---\nb: 2\n",
       "r.yaml:4: YAML: found a second document, expected one document"},
      {"report: [x\n",
       "r.yaml:2: YAML: found a syntax error (end of sequence flow not found), expected YAML"},
      {",2", "r.yaml:1: YAML: found a second document, expected one document"},
      {"- 1\n",
       "r.yaml:1: the report is a list, must be a group of report, about, sweep, where, "
       "backbone_parameters, notes, table, figure, ranks, sections"},
      {"report: {}\ntable: 3\n", "r.yaml:1: report is a group of keys, must be a text"},
      {"report: a\nreport: b\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: YAML: found the key 'report' twice, expected it once (first in line 1)"},
      {"report: a\nwhere: {split: {x: y}}\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: where.split is a group of keys, must be a value or a list of values"},
      {"report: a\nwhere: {split: []}\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: where.split is an empty list, which selects nothing"},
      {"report: a\nbackbone_parameters: {x: -1}\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: backbone_parameters.x is -1, must be a whole number > 0"},
      {"report: a\ntable: {rows: [{key: a, each: seed}], columns: [{key: b}]}\n",
       "r.yaml:2: row a has both key and each; each makes the keys of its rows"},
  };
  for (const auto& [text, message] : bad) {
    INFO(text);
    const std::vector<std::string> problems = problems_of(text);
    REQUIRE_FALSE(problems.empty());
    CHECK(problems.front() == message);
  }
}

}  // namespace
}  // namespace petlab::reports
