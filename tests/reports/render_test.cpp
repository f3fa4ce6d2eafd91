#include "reports/render.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/script_digest.h"
#include "reports/cell_text.h"
#include "reports/show.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;

const char kDefinition[] = R"(report: demo
about: Two variants
where: {split: test}
table:
  published: table1
  cells: {scale: 100, digits: 2}
  rows:
    - {key: a, name: "first|one", where: {variant: a}}
    - {key: b, where: {variant: b}}
    - {key: c, where: {variant: c}}
  columns:
    - {key: bits, name: storage (bits), value: bls_bits, scale: 1, digits: 0}
    - {key: acc, name: "x, accuracy", where: {name: accuracy}}
    - {key: mcc, where: {name: matthews}}
)";

// Variant a has both seeds, b one of two with an undefined Matthews, and c none.
Report demo() {
  DataMaker make;
  for (const std::int64_t seed : {1, 2}) {
    const std::size_t a = make.trial("a", seed, "x");
    make.data.trials[a].fields["bls_bits"] = 2376000.0;
    make.score(a, "accuracy", seed == 1 ? 0.75 : 0.76);
    make.score(a, "matthews", seed == 1 ? -0.05 : -0.06);
    const std::size_t b = make.trial("b", seed, "x");
    if (seed == 1) {
      make.score(b, "accuracy", 0.8);
      make.score(b, "matthews", std::nullopt);
    } else {
      make.data.trials[b].state = "new";
    }
    make.data.trials[make.trial("c", seed, "x")].state = "new";
  }
  const Published published(R"({"v": 1, "source": "Paper", "tables": {"table1": {"title": "Main",
    "columns": ["acc"], "rows": {"a": [75.0]}}}, "errata": []})");
  return make_report(parse_definition(kDefinition, "demo.yaml"), make.data, published);
}

TEST_CASE("The terminal table is aligned and explains its signs", "[reports]") {
  CHECK(to_terminal(demo(), {}) ==
        R"(demo: Two variants
sweep s: 3 of 6 trials done (3 new)

                storage
                 (bits)       x, accuracy               mcc
───────────────────────────────────────────────────────────
first|one     2,376,000  75.50 ± 0.71 (2)  −5.50 ± 0.71 (2)
  published              75.00
  difference             +0.50
b                     —  80.00 (1/2)              undefined
c                     —      —                 —

mean ± sample deviation (n seeds)
(1/2) partial: 1 of the 2 planned seeds has a value
— no value yet
undefined: the metric has no value for the predictions of a seed
published: Paper, table1: Main
)");
}

TEST_CASE("A table wider than the terminal is printed in blocks that repeat the rows",
          "[reports]") {
  const std::string text = to_terminal(demo(), {.colour = false, .width = 46, .home = {}});
  CHECK(text.find(R"(
                storage
                 (bits)       x, accuracy
─────────────────────────────────────────
first|one     2,376,000  75.50 ± 0.71 (2)
  published              75.00
  difference             +0.50
b                     —  80.00 (1/2)
c                     —      —

                           mcc
──────────────────────────────
first|one     −5.50 ± 0.71 (2)
  published
  difference
b                    undefined
c                 —
)") != std::string::npos);
}

TEST_CASE("Colours are used only on request, and change no character", "[reports]") {
  Report report = demo();
  testing::only_table(report).cells[1][1].standing.best = true;
  const std::string plain = to_terminal(report, {});
  CHECK(plain.find('\033') == std::string::npos);
  std::string coloured = to_terminal(report, {.colour = true, .width = 0, .home = {}});
  CHECK(coloured.find("\033[1m  80.00 (1/2)") == std::string::npos);
  CHECK(coloured.find("\033[1m80.00 (1/2)\033[0m") != std::string::npos);
  std::size_t at = 0;
  while ((at = coloured.find('\033')) != std::string::npos) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  CHECK(coloured == plain);
}

TEST_CASE("The Markdown table escapes characters that would end a cell", "[reports]") {
  Report report = demo();
  testing::only_table(report).cells[1][1].standing.best = true;
  CHECK(to_markdown(report) == R"(## demo

Two variants

sweep s: 3 of 6 trials done (3 new)

|   | storage (bits) | x, accuracy | mcc |
| --- | ---: | ---: | ---: |
| first\|one | 2,376,000 | 75.50 ± 0.71 (2) | −5.50 ± 0.71 (2) |
| *published* |  | *75.00* |  |
| *difference* |  | *+0.50* |  |
| b | — | **80.00 (1/2)** | undefined |
| c | — | — | — |

- mean ± sample deviation (n seeds)
- (1/2) partial: 1 of the 2 planned seeds has a value
- — no value yet
- undefined: the metric has no value for the predictions of a seed
- published: Paper, table1: Main
)");
}

TEST_CASE("A published value refers to its erratum by a letter in every format", "[reports]") {
  DataMaker make;
  for (const char* variant : {"a", "b", "c_d"}) {
    make.score(make.trial(variant, 1, "x"), "accuracy", 0.75);
  }
  const Published published(R"({"v": 1, "source": "Paper", "tables": {"table1": {"title": "Main",
    "columns": ["acc"], "rows": {"a": [75.0], "b": [74.0], "c_d": [73.0]}}},
    "errata": [{"table": "table1", "rows": ["b"], "columns": ["acc"], "says": "a slip"},
               {"table": "table1", "rows": ["c_d"], "columns": ["acc"], "says": "a & b"}]})");
  const auto report_with_errata = [&] {
    return make_report(parse_definition("report: r\ntable:\n  published: table1\n  rows:\n"
                                        "    - {key: a, where: {variant: a}}\n"
                                        "    - {key: b, where: {variant: b}}\n"
                                        "    - {key: c_d, where: {variant: c_d}}\n"
                                        "  columns:\n    - {key: acc, where: {name: accuracy}}\n",
                                        "r.yaml"),
                       make.data, published);
  };
  const std::string terminal = to_terminal(report_with_errata(), {});
  for (const char* part : {"  published   74.00ᵃ\n", "  published   73.00ᵇ\n",
                           "\nᵃ erratum of the published value: a slip\n",
                           "\nᵇ erratum of the published value: a & b\n"}) {
    INFO(terminal);
    CHECK(terminal.find(part) != std::string::npos);
  }
  const std::string markdown = to_markdown(report_with_errata());
  CHECK(markdown.find("*74.00*ᵃ") != std::string::npos);
  CHECK(markdown.find("\n- ᵇ erratum of the published value: a & b\n") != std::string::npos);
  const std::string html = to_html(report_with_errata());
  CHECK(html.find("74.00<span class=\"marks\">ᵃ</span>") != std::string::npos);
  CHECK(html.find("<li>ᵇ erratum of the published value: a &amp; b</li>") != std::string::npos);
  // Lines may break in a long name, which stays one name.
  CHECK(html.find("data-text=\"c_d\"><span>c_<wbr>d</span></th>") != std::string::npos);
  const std::string latex = to_latex(report_with_errata());
  CHECK(latex.find("74.00\\textsuperscript{a}") != std::string::npos);
  CHECK(latex.find("\\textsuperscript{b} erratum: a \\& b\\par") != std::string::npos);
  // The letter is also shown when only differences are.
  CHECK(to_terminal(shown(report_with_errata(), Show::difference), {}).find("+1.00ᵃ\n") !=
        std::string::npos);
}

TEST_CASE("The CSV has all digits, follows RFC 4180 in quoting and leaves missing cells empty",
          "[reports]") {
  CHECK(to_csv(demo()) ==
        "row,storage (bits),\"x, accuracy\",\"x, accuracy sd\",\"x, accuracy n\","
        "\"x, accuracy published\",mcc,mcc sd,mcc n\r\n"
        "first|one,2376000,75.5,0.7071067811865476,2,75,-5.5,0.7071067811865476,2\r\n"
        "b,,80,,1,,undefined,,1\r\n"
        "c,,,,0,,,,0\r\n");
}

TEST_CASE("Texts that a spreadsheet would compute are marked as texts in its CSV, but not numbers",
          "[reports]") {
  DataMaker make;
  const std::vector<std::string> variants = {"=1+1", "+x", "-5", "@sum", "\tx", "\rx", "a=b", "+4"};
  for (const std::string& variant : variants) {
    make.score(make.trial(variant, 1, "x"), "accuracy", -0.5);
  }
  const Report report = make_report(
      parse_definition("report: r\ntable:\n  rows: [{each: variant}]\n  columns:\n"
                       "    - {key: v, name: \"=a\", value: variant}\n    - {key: acc}\n",
                       "r.yaml"),
      make.data, {});
  CHECK(to_csv(report) ==
        "row,'=a,acc,acc sd,acc n\r\n"
        "'=1+1,'=1+1,-50,,1\r\n"
        "'+x,'+x,-50,,1\r\n"
        "-5,-5,-50,,1\r\n"
        "'@sum,'@sum,-50,,1\r\n"
        "'\tx,'\tx,-50,,1\r\n"
        "\"'\rx\",\"'\rx\",-50,,1\r\n"
        "a=b,a=b,-50,,1\r\n"
        "+4,+4,-50,,1\r\n");
  // The long CSV is for programs and keeps texts unchanged.
  CHECK(to_long_csv(report).find("\r\nr,=1+1,,=1+1,v,=a,text,=1+1,") != std::string::npos);
}

TEST_CASE("The long CSV has a line for each cell with its flags and samples", "[reports]") {
  const std::string text = to_long_csv(demo());
  CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 3 * 3);
  CHECK(text.find("\r\ndemo,b,,b,acc,\"x, accuracy\",number,80,,,1,2,0,,,0.95,,,true,false,"
                  "\"{\"\"version\"\":\"\"1\"\"}\",,,1,80,t1\r\n") != std::string::npos);
  CHECK(text.find("\r\ndemo,b,,b,mcc,mcc,undefined,undefined,,,1,2,1,") != std::string::npos);
  CHECK(text.find("\r\ndemo,c,,c,mcc,mcc,missing,,,,0,2,0,") != std::string::npos);
}

TEST_CASE("The JSON has every statistic, or null", "[reports]") {
  const auto json = nlohmann::json::parse(to_json(demo()));
  CHECK(json["report"] == "demo");
  CHECK(json["sweeps"][0]["states"] == nlohmann::json({{"done", 3}, {"new", 3}}));
  const auto& a = json["rows"][0]["cells"][1];
  CHECK(a["mean"] == 75.5);
  CHECK(a["published"] == 75.0);
  CHECK(a["difference"] == 0.5);
  CHECK(a["n"] == 2);
  CHECK(a["samples"][1]["trials"][0] == "t3");
  const auto& undefined = json["rows"][1]["cells"][2];
  CHECK(undefined["kind"] == "undefined");
  CHECK(undefined["mean"].is_null());
  CHECK(undefined["samples"][0]["value"].is_null());
  CHECK(json["rows"][2]["cells"][2]["reason"] == "no value yet of 2 trials: 2 new");
}

TEST_CASE("The HTML page is self-contained and escapes all texts", "[reports]") {
  Report report = demo();
  Table& table = testing::only_table(report);
  report.about = "<script>alert(1)</script> & \"more\"";
  table.rows[0].name = "<b>";
  table.cells[2][2].measured.reason = "</template><script>";
  const std::string html = to_html(report);
  CHECK(html.starts_with("<!doctype html>"));
  for (const char* outside : {"http:", "https:", " src=", "@import", "url("}) {
    INFO(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
  // The only link is the empty icon, which keeps browsers from requesting one.
  CHECK(html.find("href=") == html.find("href=\"data:,\""));
  CHECK(html.find("href=", html.find("href=") + 1) == std::string::npos);
  CHECK(html.find("<script>alert") == std::string::npos);
  CHECK(html.find("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;") !=
        std::string::npos);
  CHECK(html.find("</template><script>") == std::string::npos);
  CHECK(html.find("<dt>sample deviation</dt><dd>0.7071067811865476</dd>") != std::string::npos);
  CHECK(html.find("<code>t3</code>") != std::string::npos);
}

TEST_CASE("The page's policy lists the digest of each script, and blocks all others", "[reports]") {
  const std::string html = to_html(demo());
  const std::size_t begin = html.find("<script>") + 8;
  REQUIRE(begin > 8);
  const std::string script = html.substr(begin, html.find("</script>", begin) - begin);
  CHECK(html.find("script-src '" + base::script_digest(script) + "'; base-uri 'none'") !=
        std::string::npos);
  CHECK(html.find("<script>", begin) == std::string::npos);
  for (const char* event : {" onclick=", " onload=", " onerror="}) {
    CHECK(html.find(event) == std::string::npos);
  }
}

TEST_CASE("A page shows the progress of each sweep, and folds long lists", "[reports]") {
  Report report = demo();
  report.progress = {{"s", 8, {{"cached", 1}, {"done", 3}, {"failed", 2}, {"new", 2}}}};
  CHECK(
      to_html(report).find(
          "<li><span class=\"bar\" aria-hidden=\"true\"><i class=\"done\" style=\"width:50%\"></i>"
          "<i class=\"failed\" style=\"width:25%\"></i></span> "
          "<span>sweep s: 4 of 8 trials done (2 failed, 2 new)</span></li>") != std::string::npos);
  report.progress.assign(4, report.progress.front());
  CHECK(to_html(report).find("<summary>") == std::string::npos);
  report.progress.assign(5, report.progress.front());
  CHECK(to_html(report).find("<summary>5 sweeps: 20 of 40 trials done</summary>") !=
        std::string::npos);
}

TEST_CASE("A cell's details list twelve samples and count the others", "[reports]") {
  const auto details = [](std::int64_t seeds) {
    testing::DataMaker make;
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
      make.score(make.trial("a", seed, "x"), "f1", 0.001 * static_cast<double>(seed));
    }
    const std::string html = to_html(make_report(
        testing::definition("table: {rows: [{each: variant}], columns: [{each: name}]}\n"),
        make.data, Published()));
    std::size_t listed = 0;
    for (std::size_t at = html.find("<dt>seed "); at != std::string::npos;
         at = html.find("<dt>seed ", at + 1)) {
      ++listed;
    }
    const std::size_t more = html.find("<dt>and</dt><dd>");
    return std::to_string(listed) +
           (more == std::string::npos ? "" : " " + html.substr(more + 16, 6));
  };
  CHECK(details(2) == "2");
  CHECK(details(12) == "12");
  CHECK(details(13) == "12 1 more");
  CHECK(details(70) == "12 58 mor");
}

TEST_CASE("Texts are escaped for LaTeX", "[reports]") {
  Report report = demo();
  Table& table = testing::only_table(report);
  table.rows[0].name = "\\input{x}&$#%_^~<|>\"=cmd()";
  table.rows[1].name = "[s] naïve_é λ→½ µ °";
  table.cells[0][1].standing.best = true;
  table.cells[1][1].standing.second = true;
  const std::string latex = to_latex(report);
  CHECK(latex.find("\\textbackslash{}input\\{x\\}\\&\\$\\#\\%\\_\\textasciicircum{}"
                   "\\textasciitilde{}$<$$|$$>$''=cmd()") != std::string::npos);
  CHECK(latex.find("\\input{x}") == std::string::npos);
  CHECK(latex.find("\n{[}s{]} na\\\"{\\i}ve\\_\\'{e} $\\lambda$$\\rightarrow$$\\frac{1}{2}$ $\\mu$ "
                   "$^{\\circ}$ & ") != std::string::npos);
  CHECK(latex.find("\\textbf{75.50}\\,{\\small $\\pm$ 0.71 (2)}") != std::string::npos);
  CHECK(latex.find("\\underline{80.00}") != std::string::npos);
  CHECK(latex.find("\\begin{tabular}{lrrr}") != std::string::npos);
}

TEST_CASE("In LaTeX a long narrow table has published values next to measured ones", "[reports]") {
  Report report;
  report.name = "long";
  Table table;
  table.columns = {{"bls", "", "%BLS"}, {"score", "", "GLUE average score"}, {"n", "", "n"}};
  const auto add_rows = [&](int rows) {
    for (int row = 0; row < rows; ++row) {
      table.rows.push_back({"r" + std::to_string(row), "", "bn=" + std::to_string(row)});
      Cell plain;
      plain.measured.kind = Measured::Kind::number;
      plain.measured.mean = 3;
      plain.measured.spread = false;
      plain.digits = 2;
      Cell published = plain;
      published.published.number = 4;
      Cell text;
      text.measured.kind = Measured::Kind::text;
      text.measured.text = "rate";
      text.digits = 2;
      text.published.number = 0.003;  // must not be shown as 0.00
      table.cells.push_back({published, text, plain});
    }
  };
  add_rows(5);
  report.sections = {table};
  const std::string few = to_latex(report);
  CHECK(few.find("\\begin{tabular}{lrrr}") != std::string::npos);
  CHECK(few.find("\\quad published & \\small 4.00 & \\small 0.003 &  \\\\\n") != std::string::npos);
  CHECK(few.find("\\petlabhead{GLUE\\\\average\\\\score}") != std::string::npos);
  add_rows(10);
  report.sections = {table};
  const std::string many = to_latex(report);
  CHECK(many.find("\\begin{tabular}{lrrrrrr}") != std::string::npos);
  CHECK(many.find("\\multicolumn{3}{c}{\\petlabhead{\\%BLS}} & "
                  "\\multicolumn{2}{c}{\\petlabhead{GLUE\\\\average\\\\score}} & "
                  "\\petlabhead{n} \\\\\n\\cmidrule(lr){2-4}\\cmidrule(lr){5-6}\n & measured & "
                  "published & difference & measured & published &  \\\\\n") != std::string::npos);
  CHECK(many.find("bn=0 & 3.00 & \\small 4.00 & \\small $-$1.00 & rate & \\small 0.003 & 3.00 "
                  "\\\\\n") != std::string::npos);
}

// Programs and people rely on these files. Changing them changes the format.
TEST_CASE("A report of one table equals its golden file byte for byte", "[reports]") {
  for (const Format& format : formats()) {
    if (format.name == "html" || format.name == "latex" || format.of_figures) continue;
    INFO(format.name);
    const auto file = testing::source_dir() / "tests/reports/golden" /
                      ("demo." + std::string(format.name) + ".txt");
    CHECK(format.render(demo(), {}) == testing::read_file(file));
  }
}

TEST_CASE("Rendering twice gives the same bytes in every format", "[reports]") {
  for (const Format& format : formats()) {
    INFO(format.name);
    CHECK(find_format(format.name) == &format);
    if (format.of_figures) continue;
    CHECK(format.render(demo(), {}) == format.render(demo(), {}));
  }
  CHECK(find_format("doc") == nullptr);
}

TEST_CASE("Signs mark what a reader must know about a cell", "[reports]") {
  Cell cell;
  CHECK(cell_text(cell).whole() == "—");
  cell.measured.kind = Cell::Kind::number;
  cell.measured.mean = 1.234;
  cell.measured.samples = {{{"t"}, 1, 1.234}};
  cell.measured.planned = 1;
  CHECK(cell_text(cell).whole() == "1.234 (1)");
  cell.digits = 1;
  cell.trials.stale = true;
  cell.trials.numerics = {"a", "b"};
  cell.trials.mixed_code = {"numpy 1.0 | 2.0"};
  cell.trials.mixed_fields = {"training_epochs"};
  CHECK(cell_text(cell).whole() == "1.2 (1)†‡¶§");
  cell.measured.kind = Cell::Kind::undefined;
  cell.measured.samples = {{{"t"}, 1, 1.234}, {{"u"}, 2, std::nullopt}};
  CHECK(cell_text(cell).whole() == "undefined (1 of 2)†‡¶§");
}

}  // namespace
}  // namespace petlab::reports
