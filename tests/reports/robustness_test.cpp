#include "tests/fuzz/reports_inputs.h"
#include "tests/fuzz/tampered.h"
#include "tests/support/catch.h"

using namespace petlab;

TEST_CASE("Corrupted report definitions are refused with a line, or have sections", "[reports]") {
  fuzz::try_tampered(
      "report: r\nwhere: {split: test}\nsections:\n  - table:\n      key: t\n"
      "      rows: [{each: variant}, {key: b, where: {seed: [1, 2]}}]\n"
      "      columns: [{key: c, scale: 100, digits: 2, better: higher}]\n"
      "  - figure:\n      key: f\n      x: {value: bls_bits, log: true}\n"
      "      y: {where: {name: accuracy}}\n      series: [{key: s}]\n",
      2000, fuzz::kYaml, fuzz::report_definition);
}
