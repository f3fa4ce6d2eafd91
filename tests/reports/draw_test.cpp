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
  if (!std::filesystem::exists(figure_tools(home()) / ".package")) {
    testing::skip(figure_tools(home()).string() + " is not there (scripts/setup.sh makes it)");
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

TEST_CASE("The error about a missing drawing program has its path", "[reports]") {
  const testing::TempDir folder;
  CHECK(draw({}, folder.path()).empty());
  CHECK_THROWS_WITH(
      draw({{"{}", "svg"}}, folder.path()),
      Catch::Matchers::StartsWith((folder.path() / "figures/bin/python3").string() +
                                  ": not there, and SVG, PDF and PNG are drawn by it"));
  // If the program fails, the error has its output.
  const auto python =
      folder.write("figures/bin/python3", "#!/bin/sh\necho no such module >&2\nexit 3\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  CHECK_THROWS_WITH(draw({{"{}", "svg"}}, folder.path()),
                    python.string() + ": drawing a figure ended with exit code 3: no such module");
}

}  // namespace
}  // namespace petlab::reports
