#include "reports/definition.h"

#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

std::vector<std::string> problems_of(const std::string& text) {
  try {
    parse_definition(text, "r.yaml");
  } catch (const DefinitionError& error) {
    return error.problems();
  }
  return {};
}

TEST_CASE("A definition is read with its selections and what cells show", "[reports]") {
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
  CHECK(read.table.published == "table1");
  CHECK(read.table.cells.scale == 100.0);
  const Line& x = read.table.rows.at(0);
  CHECK(x.name == "The x");
  CHECK(x.group == "G");
  REQUIRE(x.where.conditions.size() == 3);
  CHECK(x.where.conditions[0].any_of.at(0) == results::Value(std::int64_t{1}));
  CHECK(x.where.conditions[1].any_of.at(0) == results::Value("x"));
  CHECK(x.where.conditions[1].any_of.at(1) == results::Value("1"));
  CHECK(x.where.conditions[2].any_of.at(0) == results::Value());
  CHECK(read.table.rows.at(1).each == std::vector<std::string>{"variant", "seed"});
  CHECK(read.table.rows.at(1).separate);
  const Line& bits = read.table.columns.at(0);
  CHECK(bits.name == "bits");
  CHECK(bits.cells.value == "bls_bits");
  CHECK(bits.cells.better == Better::lower);
  CHECK(bits.published == "bls_percent");
  CHECK(read.table.columns.at(1).cells.average_over.size() == 2);
}

TEST_CASE("All problems of a definition are reported at once with their lines", "[reports]") {
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
           "sweep, where, backbone_parameters, notes, table)",
           "r.yaml:4: table.cells.scale is 'zero', must be a number other than 0",
           "r.yaml:6: a row has no key 'wheer'; did you mean where? (known: key, name, where, "
           "each, published, group, separate, value, text, average_over, scale, digits, better)",
           "r.yaml:7: row a is also the key of line 6, keys must be unique",
           "r.yaml:8: a row has neither key nor each, must have one",
           "r.yaml:10: column.digits is '99', must be a whole number from 0 to 12",
           "r.yaml:10: column.better is 'more', must be higher, lower or none",
           "r.yaml:10: column c has more than one of value, text and average_over; a cell shows "
           "one of them",
           "r.yaml:11: column.where is a list, must be a map of names and values",
       });
}

TEST_CASE("A definition without its main parts says which", "[reports]") {
  CHECK(problems_of("about: x\n") ==
        std::vector<std::string>{"r.yaml:1: there is no key 'report' with its name",
                                 "r.yaml:1: there is no key 'table'"});
  CHECK(problems_of("report: r\ntable: {}\n") ==
        std::vector<std::string>{"r.yaml:2: table has no rows", "r.yaml:2: table has no columns"});
  CHECK(problems_of("report: r\ntable: {rows: [], columns: x}\n") ==
        std::vector<std::string>{"r.yaml:2: table.rows is an empty list, must be a list of rows",
                                 "r.yaml:2: table.columns is 'x', must be a list of columns"});
}

TEST_CASE("Texts that are no definition at all are refused with a line", "[reports]") {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "r.yaml:1: the file holds 0 YAML documents, must hold one"},
      {"a: 1\n---\nb: 2\n", "r.yaml:1: the file holds 2 YAML documents, must hold one"},
      {"report: [x\n", "r.yaml:2: this is no YAML: end of sequence flow not found"},
      {"- 1\n",
       "r.yaml:1: the report is a list, must be a map of report, about, sweep, where, "
       "backbone_parameters, notes, table"},
      {"report: {}\ntable: 3\n", "r.yaml:1: report is a map, must be a text"},
      {"report: a\nreport: b\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: the report has report twice"},
      {"report: a\nwhere: {split: {x: y}}\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: where.split is a map, must be a value or a list of values"},
      {"report: a\nwhere: {split: []}\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: where.split is an empty list, which selects nothing"},
      {"report: a\nbackbone_parameters: {x: -1}\ntable: {rows: [{key: a}], columns: [{key: b}]}\n",
       "r.yaml:2: backbone_parameters.x is '-1', must be a whole number > 0"},
      {"report: a\ntable: {rows: [{key: a, each: seed}], columns: [{key: b, each: [{}]}]}\n",
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
