#include <cstdlib>

#include "reports/error.h"
#include "reports/render.h"
#include "reports/vega.h"
#include "tests/reports/make_data.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

std::filesystem::path home() {
  if (const char* named = std::getenv("PETLAB_HOME")) return named;
  if (const char* data = std::getenv("XDG_DATA_HOME"))
    return std::filesystem::path(data) / "petlab";
  const char* user = std::getenv("HOME");
  return std::filesystem::path(user == nullptr ? "" : user) / ".local/share/petlab";
}

Report small_figure() {
  testing::DataMaker make;
  for (const std::int64_t size : {4, 16}) {
    for (const std::int64_t seed : {1, 2}) {
      make.score(make.trial("<script>", seed, "x", {{"module_bottleneck", size}}), "accuracy",
                 0.01 * static_cast<double>(size + seed));
    }
  }
  return make_report(
      testing::definition("where: {split: test}\nfigure: {title: T, x: {value: module_bottleneck}, "
                          "y: {where: {name: accuracy}}, series: [{each: variant}]}\n"),
      make.data, {});
}

TEST_CASE("A figure is drawn as SVG, PDF and PNG without a browser", "[reports]") {
  if (const std::string& missing = page_script(home()).missing; !missing.empty()) {
    testing::skip(missing);
    return;
  }
  const std::string specification = to_vega_lite(std::get<Figure>(small_figure().sections[0]));
  const std::vector<std::string> drawn =
      draw({{specification, "svg"}, {specification, "pdf"}, {specification, "png"}}, home());
  REQUIRE(drawn.size() == 3);
  CHECK(drawn[0].starts_with("<svg"));
  CHECK(drawn[0].find("&lt;script&gt;") != std::string::npos);
  CHECK(drawn[0].find("<script") == std::string::npos);
  CHECK(drawn[1].starts_with("%PDF-"));
  CHECK(drawn[2].starts_with("\x89PNG"));
  CHECK_THROWS_AS(draw({{"{\"mark\": 3}", "svg"}}, home()), NotDrawn);
  // The page contains the script, and no text can end it early.
  RenderOptions options;
  options.home = home();
  const std::string html = to_html(small_figure(), options);
  CHECK(html.find("vegaEmbed") != std::string::npos);
  CHECK(html.find("unsafe-eval") == std::string::npos);
  CHECK(html.find("\\u003cscript>") != std::string::npos);
  CHECK(html.find("Copyright (c) 2015-2024, University of Washington") != std::string::npos);
}

TEST_CASE("Ranks are drawn as a diagram with their names, or as the reason for none", "[reports]") {
  if (const std::string& missing = page_script(home()).missing; !missing.empty()) {
    testing::skip(missing);
    return;
  }
  std::vector<Drawing> drawings;
  for (const int tasks : {8, 1}) {
    testing::DataMaker make;
    for (int task = 0; task < tasks; ++task) {
      for (int variant = 0; variant < 5; ++variant) {
        make.score(make.trial("variant <" + std::to_string(variant) + ">", 1,
                              "task" + std::to_string(task)),
                   "accuracy", variant);
      }
    }
    const Report report = make_report(
        testing::definition("where: {split: test}\nranks: {title: T, variants: [{each: variant}], "
                            "tasks: [{each: task, where: {name: accuracy}}]}\n"),
        make.data, {});
    drawings.push_back({specification_of(report.sections[0]), "svg"});
  }
  const std::vector<std::string> drawn = draw(drawings, home());
  REQUIRE(drawn.size() == 2);
  for (int variant = 0; variant < 5; ++variant) {
    CHECK(drawn[0].find("variant &lt;" + std::to_string(variant) + "&gt;") != std::string::npos);
  }
  CHECK(drawn[0].find("CD = 2.16") != std::string::npos);
  CHECK(drawn[0].find("Friedman") != std::string::npos);
  CHECK(drawn[1].find("no diagram: found 1 task") != std::string::npos);
}

// Installs a program in place of the home's Python.
std::string write_python(const testing::TempDir& folder, const std::string& text) {
  const auto python = folder.write("venv/bin/python3", "#!/bin/sh\n" + text);
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  return python.string();
}

// Does what draw.py does for page-script, and counts the scripts in the file `made`.
std::string write_script_maker(const testing::TempDir& folder) {
  return write_python(folder,
                      "[ \"$1 $3\" = '-I page-script' ] || exit 9\n"
                      "echo v-1.js\n"
                      "[ -e \"$4/v-1.js\" ] && exit\n"
                      "echo made >> '" +
                          (folder.path() / "made").string() +
                          "'\n"
                          "printf script > \"$5\"\n");
}

TEST_CASE("Why figures are not drawn is said with the fix", "[reports]") {
  const testing::TempDir folder;
  CHECK(draw({}, folder.path()).empty());
  const std::string hint = " (--format vega writes the specification, which other tools draw)";
  CHECK_THROWS_WITH(
      draw({{"{}", "svg"}}, folder.path()),
      "SVG, PDF and PNG are not drawn: " + (folder.path() / "venv/bin/python3").string() +
          " is missing; scripts/setup.sh installs it" + hint);
  const std::string python = write_python(folder, "echo no such file >&2\nexit 3\n");
  CHECK_THROWS_WITH(draw({{"{}", "svg"}}, folder.path()),
                    python + ": drawing a figure ended with exit code 3: no such file");
  write_python(folder, "exit 69\n");
  CHECK_THROWS_WITH(draw({{"{}", "svg"}}, folder.path()),
                    "SVG, PDF and PNG are not drawn: vl-convert-python is missing; "
                    "scripts/setup.sh installs it" +
                        hint);
  CHECK(page_script(folder.path()).missing ==
        "vl-convert-python is missing; scripts/setup.sh installs it");
  RenderOptions options;
  options.home = folder.path();
  CHECK(to_html(small_figure(), options)
            .find("the figure is not drawn here: vl-convert-python is missing; scripts/setup.sh "
                  "installs it") != std::string::npos);
}

TEST_CASE("The page's script is created once and kept in the home", "[reports]") {
  const testing::TempDir folder;
  write_script_maker(folder);
  CHECK(page_script(folder.path()).text == "script");
  CHECK(page_script(folder.path()).missing.empty());
  CHECK(testing::read_file(folder.path() / "cache/v-1.js") == "script");
  // Another path of the same home, because a process asks once for each.
  folder.write("cache/v-1.js", "kept");
  CHECK(page_script(folder.path() / ".").text == "kept");
  CHECK(page_script(folder.path()).text == "script");
  CHECK(testing::read_file(folder.path() / "made") == "made\n");
}

TEST_CASE("A home that cannot be written loses only the copy of the page's script", "[reports]") {
  const testing::TempDir folder;
  write_script_maker(folder);
  folder.write("cache", "a file where a folder would be");
  CHECK(page_script(folder.path()).text == "script");
  CHECK(page_script(folder.path() / ".").text == "script");
  CHECK(testing::read_file(folder.path() / "made") == "made\nmade\n");
}

}  // namespace
}  // namespace petlab::reports
