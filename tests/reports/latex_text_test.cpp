#include "reports/latex_text.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

TEST_CASE("Different letters and signs become different commands", "[reports]") {
  CHECK(escaped_latex("train time [s]") == "train time {[}s{]}");
  CHECK(escaped_latex("* a*") == "{*} a*");
  CHECK(escaped_latex("a-b--c") == "a-b-{}-c");
  CHECK(escaped_latex("λ=0.5") == "$\\lambda$=0.5");
  CHECK(escaped_latex("α→β") == "$\\alpha$$\\rightarrow$$\\beta$");
  CHECK(escaped_latex("naïve_é") == "na\\\"{\\i}ve\\_\\'{e}");
  CHECK(escaped_latex("½ µ °") == "$\\frac{1}{2}$ $\\mu$ $^{\\circ}$");
  // The same letter as one character and as two.
  CHECK(escaped_latex("e\u0301") == escaped_latex("\u00e9"));
  CHECK(escaped_latex("\u1ED9") == "\\^{\\d{o}}");
  CHECK(escaped_latex("a\xff\x1b") == "a??");
}

TEST_CASE("A character without a glyph is refused with its number and text", "[reports]") {
  CHECK_THROWS_WITH(
      escaped_latex("vanilla 中"),
      "LaTeX: found '中' (U+4E2D) in 'vanilla 中', expected characters that pdfLaTeX's standard "
      "fonts have; rename it, or choose another --format");
  for (const char* text : {"😀", "ą", "Ж", "a\u0310", "λ\u0301", "\u200B", "o\u0301\u0302\u0303"}) {
    INFO(text);
    CHECK_THROWS(escaped_latex(text));
  }
}

TEST_CASE("Every accepted character compiles with pdflatex, even as the first of a row",
          "[reports]") {
  if (testing::run_command("command -v pdflatex").exit_code != 0) {
    testing::skip("no pdflatex");
    return;
  }
  std::string document =
      "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\begin{document}\n";
  int rows = 0;
  for (char32_t c = 0x20; c < 0x2600; ++c) {
    std::string text;
    if (c < 0x80) {
      text = static_cast<char>(c);
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text = {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    }
    std::string escaped;
    try {
      escaped = escaped_latex(text + " x" + text);
    } catch (const std::runtime_error&) {
      continue;
    }
    if (rows++ % 30 == 0) {
      document += rows == 1 ? "" : "\\end{tabular}\n\n";
      document += "\\begin{tabular}{ll}\n a & b \\\\\n";
    }
    document += escaped + " & " + escaped + " \\\\\n";
  }
  CHECK(rows > 400);
  document += "\\end{tabular}\n\\end{document}\n";
  const testing::TempDir dir;
  dir.write("all.tex", document);
  const auto ran = testing::run_command("cd " + dir.path().string() +
                                        " && pdflatex -interaction=nonstopmode -halt-on-error all");
  INFO(ran.out);
  CHECK(ran.exit_code == 0);
  // TeX reports a glyph that the font lacks only in its log.
  CHECK(ran.out.find("Missing character") == std::string::npos);
  CHECK(testing::read_file(dir.path() / "all.log").find("Missing character") == std::string::npos);
}

}  // namespace
}  // namespace petlab::reports
