#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command_line.h"
#include "reports/builtin.h"
#include "reports/words.h"
#include "results/attempt_events.h"
#include "tests/reports/make_database.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::cli {
namespace {

using testing::TempDir;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran answer(const std::string& command, const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"petlab", command.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const int code = run(static_cast<int>(argv.size()), argv.data(), {in, out, err});
  return {code, out.str(), err.str()};
}

Ran petlab(const std::vector<std::string>& arguments) { return answer("report", arguments); }

// A database with two trials, one of them done.
std::string database(const TempDir& folder) {
  const auto file = folder.path() / "p.db";
  testing::make_database(
      file, "small",
      {{.id = "t1", .variant = "a", .scores = {{"f1", 0.5}}}, {.id = "t2", .variant = "b"}});
  return file.string();
}

TEST_CASE("The sweep report shows any sweep without a definition", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  const Ran ran = petlab({"sweep", "--db", db, "--sweep", "small"});
  CHECK(ran.err.empty());
  CHECK(ran.code == 0);
  CHECK(ran.out == R"(sweep: Every variant of a sweep on every task and metric of its test split
sweep small: 1 of 2 trials done (1 new)

   storage
    (bits)    cola f1
─────────────────────
a    6,400  50.00 (1)
b    3,200      —

mean ± sample deviation (n seeds)
— no value yet
scores that are fractions are times 100
)");
  CHECK(petlab({"sweep", "--db", db}).out == ran.out);
}

TEST_CASE("With --out the table is printed and every format is written", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  const std::string out = (folder.path() / "out").string();
  const Ran ran = petlab({"sweep", "--db", db, "--out", out});
  CHECK(ran.code == 0);
  const std::string table = petlab({"sweep", "--db", db}).out;
  CHECK(ran.out == table + "\nwrote " + out + "/sweep.md\nwrote " + out + "/sweep.csv\nwrote " +
                       out + "/sweep.long.csv\nwrote " + out + "/sweep.html\nwrote " + out +
                       "/sweep.json\nwrote " + out + "/sweep.tex\n");
  CHECK(testing::read_file(out + "/sweep.csv") ==
        petlab({"sweep", "--db", db, "--format", "csv"}).out);
  CHECK(petlab({"sweep", "--db", db, "--out", out, "--format", "json,csv"}).out ==
        "wrote " + out + "/sweep.json\nwrote " + out + "/sweep.csv\n");
}

// A database with variants a, b and c on eight tasks, with two metrics.
std::string database_of_ranks(const TempDir& folder) {
  std::vector<testing::MadeTrial> trials;
  for (int task = 0; task < 8; ++task) {
    for (const std::int64_t seed : {1, 2}) {
      for (const auto& [variant, score] :
           {std::pair("a", 0.25), {"b", task < 5 ? 0.5 : 0.125}, {"c", task == 0 ? 0.0 : 0.75}}) {
        trials.push_back({.id = fmt::format("{}{}{}", variant, task, seed),
                          .variant = variant,
                          .seed = seed,
                          .task = fmt::format("task{}", task),
                          .scores = {{"accuracy", score}, {"f1", 1 - score}}});
      }
    }
  }
  const auto file = folder.path() / "ranks.db";
  testing::make_database(file, "ranked", trials);
  return file.string();
}

TEST_CASE("A report shows the ranks of compare --rank, whose question it reads", "[reports]") {
  const TempDir folder;
  const std::string db = database_of_ranks(folder);
  for (const std::vector<std::string>& metrics :
       {std::vector<std::string>{"accuracy"}, {"f1"}, {"accuracy", "f1"}}) {
    const std::vector<std::string> words = {
        "a",      "variant=b", "c",
        "--rank", "--metric",  fmt::format("{}", fmt::join(metrics, ",")),
        "--db",   db,          "--confidence",
        "0.9"};
    const auto with = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = words;
      all.insert(all.end(), more.begin(), more.end());
      return answer("compare", all);
    };
    const Ran question = with({"--show-question"});
    REQUIRE(question.code == 0);
    const std::string file = folder.write("asked.yaml", question.out).string();
    const auto report = nlohmann::json::parse(petlab({file, "--db", db, "--json"}).out);
    const auto rows = nlohmann::json::parse(with({"--format", "json"}).out);
    REQUIRE(report.at("sections").size() == metrics.size());
    std::size_t at = 0;
    for (const auto& section : report.at("sections")) {
      const auto& tests = section.at("tests");
      CHECK(tests.at("level") == 0.1);
      for (const auto& row : section.at("rows")) {
        const auto& compared = rows.at(at++);
        INFO(compared.dump());
        CHECK(section.at("title") == compared.at("metric"));
        CHECK(row.at("key") == compared.at("side"));
        CHECK(row.at("cells").at(0).at("mean") == compared.at("average_rank"));
        CHECK(row.at("cells").at(1).at("text") == compared.at("nemenyi"));
        CHECK(row.at("cells").at(2).at("text") == compared.at("wilcoxon"));
        CHECK(tests.at("friedman_p") == compared.at("friedman_p"));
        CHECK(tests.at("iman_davenport_p") == compared.at("iman_davenport_p"));
        CHECK(tests.at("critical_difference") == compared.at("critical_difference"));
      }
    }
    CHECK(at == rows.size());
  }
}

TEST_CASE("A diagram of ranks is written like a figure", "[reports]") {
  const TempDir folder;
  const std::string db = database_of_ranks(folder);
  const std::string file =
      folder
          .write("r.yaml",
                 "report: r\nwhere: {split: test, name: f1}\nsections:\n"
                 "  - ranks: {key: cd, variants: [{each: variant}], tasks: [{each: task}]}\n")
          .string();
  const std::string out = (folder.path() / "out").string();
  CHECK(petlab({file, "--db", db, "--out", out, "--format", "vega"}).out ==
        "wrote " + out + "/r-cd.vl.json\n");
  CHECK(petlab({file, "--db", db, "--format", "vega"}).out ==
        testing::read_file(out + "/r-cd.vl.json"));
}

TEST_CASE("Mistakes in a report's arguments exit with 2 and list known words", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  const auto message = [](const std::vector<std::string>& arguments) {
    const Ran ran = petlab(arguments);
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  const std::string known = reports::joined(reports::builtin_reports());
  CHECK(message({"swep", "--db", db}) ==
        "petlab: there is no report 'swep'; did you mean sweep? (known: " + known +
            "; or the path of a definition, with a slash or ending in .yaml)\n");
  CHECK(message({"--db", db}) ==
        "petlab: which report? name one of " + known + ", or the file of a definition\n");
  CHECK(message({"sweep", "--db", db, "--format", "htm"}) ==
        "petlab: --format is 'htm', must be one of terminal, markdown, csv, csv-long, html, json, "
        "latex, vega, svg, pdf, png; did you mean html?\n");
  CHECK(message({"sweep", "--db", db, "--format", "html,csv"}) ==
        "petlab: --format names 2 formats, of which one can be printed; write them to files with "
        "--out\n");
  CHECK(message({"sweep", "--db", db, "--format", "terminal", "--out", "x"}) ==
        "petlab: --out writes files, --format terminal is none: name another format too, or leave "
        "--out away\n");
  CHECK(message({"quickstart", "--db", db}) ==
        "petlab: report quickstart is about sweep 'quickstart', which " + db +
            " does not have (it has: small); run that sweep first, or name another with "
            "--sweep\n");
  CHECK(message({(folder.path() / "no.yaml").string(), "--db", db}) ==
        "petlab: " + (folder.path() / "no.yaml").string() +
            ": cannot read it, must be a report's definition (petlab report --list shows those "
            "that need no file)\n");
  const std::string wrong =
      folder
          .write("r.yaml",
                 "report: r\nwhere: {splt: test}\ntable:\n  rows: [{key: a}]\n  columns:\n    - "
                 "{key: c, where: {nam: f1}}\n")
          .string();
  CHECK(message({wrong, "--db", db}) ==
        "petlab: " + wrong + ":2: where: unknown field \"splt\"; did you mean \"split\"?\n" +
            wrong + ":6: column.where: unknown field \"nam\"; did you mean \"name\"?\n");
}

TEST_CASE("A catalog word that no trial has yet gives dashes", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  const auto report = [&](const std::string& where) {
    const std::string file =
        folder
            .write("r.yaml",
                   "report: r\ntable:\n  rows: [{key: a}]\n  columns:\n    - {key: c, "
                   "where: {" +
                       where + "}}\n")
            .string();
    return petlab({file, "--db", db, "--format", "csv"});
  };
  CHECK(report("task: mnli, name: accuracy").out == "row,c\r\na,\r\n");
  CHECK(report("module_kind: lora, name: accuracy").out == "row,c\r\na,\r\n");
  const Ran wrong = report("task: mnly, name: acuracy");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("r.yaml:5: task is 'mnly', which neither petlab nor the database knows; did "
                       "you mean mnli? (known: ") != std::string::npos);
  CHECK(wrong.err.find("r.yaml:5: name is 'acuracy', which neither petlab nor the database knows; "
                       "did you mean accuracy? (known: ") != std::string::npos);
}

TEST_CASE("Errors of files and databases exit with 1", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  CHECK(petlab({"sweep", "--db", (folder.path() / "no.db").string()}).code == 1);
  const std::string file = folder.write("file", "").string();
  const Ran ran = petlab({"sweep", "--db", db, "--out", file});
  CHECK(ran.code == 1);
  CHECK(ran.err == "petlab: " + file +
                       ": cannot make the folder: there is a file of that name; name another with "
                       "--out\n");
}

TEST_CASE("A definition is checked without a database", "[reports]") {
  const TempDir folder;
  const std::string good =
      folder
          .write("good.yaml",
                 "report: r\ntable: {rows: [{key: a}], columns: [{key: b, where: {name: f1}}]}\n")
          .string();
  const Ran fine = petlab({"--check", good});
  CHECK(fine.code == 0);
  CHECK(fine.out == good +
                        ": no mistake found; whether its fields and words exist is checked "
                        "where there is a database\n");
  const std::string bad =
      folder
          .write("bad.yaml",
                 "report: r\nfigure:\n  x: {value: step}\n  y: {where: {name: f1}}\n  series:\n    "
                 "- {key: a, published: {table: table14, rows: adpter, x: bls, y: score}}\n")
          .string();
  const Ran wrong = petlab({"--check", bad});
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err.starts_with("petlab: " + bad +
                              ":6: published.rows is 'adpter', with which no row of table14 begins "
                              "(known: adapter bn=12, "));
  CHECK(wrong.err.find(bad + ":6: published is 'bls', which is no column of table14") !=
        std::string::npos);
}

// A database with two adapter sizes in the field `user` and two seeds for each.
std::string database_of_sizes(const TempDir& folder) {
  const auto file = folder.path() / "sizes.db";
  std::vector<testing::MadeTrial> trials;
  for (const std::int64_t seed : {1, 2}) {
    const double more = 0.01 * static_cast<double>(seed);
    trials.push_back({.id = "a" + std::to_string(seed),
                      .variant = "a",
                      .seed = seed,
                      .scores = {{"f1", 0.5 + more}}});
  }
  testing::make_database(file, "sizes", trials);
  return file.string();
}

TEST_CASE("A loss over steps comes from progress events, even of running trials", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  testing::make_database(file, "small",
                         {{.id = "t1", .variant = "a", .scores = {{"f1", 0.5}}},
                          {.id = "t2", .variant = "b", .outcome = results::Outcome::open},
                          {.id = "t3", .variant = "b", .seed = 2}});
  {
    results::Store store(file);
    results::Batch batch = store.begin();
    for (const auto& [id, base] : {std::pair("t1", 0.0), std::pair("t2", 1.0)}) {
      const auto facts = store.read().attempt_facts(id, 1);
      const results::LossReport losses[] = {{1, 10, base + 0.5}, {2, 20, base + 0.25}};
      results::record_progress(batch, facts->attempt, {20, 40, base + 0.25}, 1, losses);
    }
    batch.commit();
  }
  const std::string db = file.string();
  const Ran ran = petlab({"curve", "--x", "step", "--y", "loss", "--db", db, "--format", "json"});
  CHECK(ran.err.empty());
  REQUIRE(ran.code == 0);
  const auto sections = nlohmann::json::parse(ran.out).at("sections");
  std::vector<double> means;
  for (const auto& value : sections.at(0).at("specification").at("data").at("values")) {
    means.push_back(value.at("y").get<double>());
  }
  CHECK(means == std::vector<double>{0.5, 0.25, 1.5, 1.25});
  CHECK(petlab({"curve", "--x", "step", "--y", "loss", "--split", "progress", "--db", db,
                "--format", "json"})
            .out == ran.out);
  // Reports that do not request losses have none.
  CHECK(petlab({"sweep", "--db", db}).out.find("loss") == std::string::npos);
  const auto definition = folder.write("own.yaml", R"(report: own
where: {split: progress, name: loss}
table:
  rows: [{each: variant}]
  columns: [{key: loss, digits: 2}]
)");
  const Ran table = petlab({definition.string(), "--db", db});
  CHECK(table.err.empty());
  CHECK(table.out.find("0.25 (1)") != std::string::npos);
  CHECK(table.out.find("1.25 (1/2)") != std::string::npos);
}

TEST_CASE("A curve needs no definition, and unknown words are reported", "[reports]") {
  const TempDir folder;
  const std::string db = database_of_sizes(folder);
  const Ran ran = petlab({"curve", "--x", "module.bottleneck", "--y", "f1", "--db", db});
  CHECK(ran.err.empty());
  CHECK(ran.out == R"(curve: f1 by module_bottleneck
sweep sizes: 2 of 2 trials done

f1 by module_bottleneck
                               f1 (test)
────────────────────────────────────────
a
  module_bottleneck 16  51.50 ± 0.71 (2)

points: mean over seeds; bars: ± sample deviation
mean ± sample deviation (n seeds)
)");
  const auto message = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "curve");
    arguments.insert(arguments.end(), {"--db", db});
    const Ran wrong = petlab(arguments);
    CHECK(wrong.code == 2);
    return wrong.err;
  };
  CHECK(message({"--y", "f1"}) ==
        "petlab: report curve needs --x FIELD and --y METRIC, as in --x module_bottleneck --y "
        "accuracy\n");
  CHECK(message({"--x", "module_botleneck", "--y", "f1"}) ==
        "petlab: --x: unknown field \"module_botleneck\"; did you mean \"module_bottleneck\"?\n");
  CHECK(message({"--x", "step", "--y", "acuracy"}) ==
        "petlab: --y: unknown metric \"acuracy\"; did you mean \"accuracy\"?\n");
  CHECK(message({"--x", "step", "--y", "f1", "--where", "seed"}) ==
        "petlab: --where: found nothing after 'seed', expected one of = != < <= > >=\n");
  CHECK(message({"--x", "seed", "--y", "f1", "--where", "sed=1"}) ==
        "petlab: unknown field \"sed\"; did you mean \"seed\"?\n");
  CHECK(message({"--x", "seed", "--y", "f1", "--where", "variant=aa"}) ==
        "petlab: no trial has variant aa; there are a\n");
  CHECK(message({"--x", "seed", "--y", "f1", "--where", "variant=a and seed=77"}) ==
        "petlab: --where selects no trial of sweep sizes\n");
  CHECK(message({"--x", "seed", "--y", "f1", "--where", "task!=cola"}) ==
        "petlab: --where selects no trial of sweep sizes\n");
  // All commands share this grammar: comparisons, ranges, and words as in sweep files.
  for (const char* where : {"seed>=2", "seed=2..5", "seed!=1 and module.kind=adapter",
                            "task=cola,"
                            " seed>1",
                            "variant=a and metric=f1 and seed=2"}) {
    const Ran chosen =
        petlab({"curve", "--x", "module.bottleneck", "--y", "f1", "--db", db, "--where", where});
    INFO(chosen.out + chosen.err);
    CHECK(chosen.out.find("  module_bottleneck 16  52.00 (1)") != std::string::npos);
  }
}

TEST_CASE("A curve does not wait for trials of tasks without its metric", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "t.db";
  testing::make_database(
      file, "two",
      {{.id = "t1", .variant = "a", .scores = {{"f1", 0.5}}},
       {.id = "t2", .variant = "a", .seed = 2, .outcome = results::Outcome::open},
       {.id = "t3", .variant = "a", .task = "other", .scores = {{"pearson", 0.25}}},
       {.id = "t4", .variant = "a", .seed = 2, .task = "other", .scores = {{"pearson", 0.75}}}});
  const auto points = [&](const std::string& metric) {
    const Ran ran =
        petlab({"curve", "--x", "module.bottleneck", "--y", metric, "--db", file.string()});
    CHECK(ran.err.empty());
    return ran.out;
  };
  INFO(points("pearson") + points("f1"));
  CHECK(points("pearson").find("50.00 ± 35.36 (2)") != std::string::npos);
  // One of these trials is still running and will have the metric.
  CHECK(points("f1").find("50.00 (1/2)") != std::string::npos);
}

TEST_CASE("A curve waits for tasks whose trials are all still running", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "t.db";
  testing::make_database(file, "two",
                         {{.id = "t1", .variant = "a", .scores = {{"f1", 0.5}}},
                          {.id = "t2",
                           .variant = "a",
                           .seed = 2,
                           .task = "other",
                           .outcome = results::Outcome::open}});
  const auto curve = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"curve", "--x", "module.bottleneck", "--y", "f1", "--db"});
    more.insert(more.begin() + 6, file.string());
    const Ran ran = petlab(more);
    CHECK(ran.err.empty());
    return ran.out;
  };
  CHECK(curve({}).find("50.00 (1/2)") != std::string::npos);
  CHECK(curve({"--where", "task=cola"}).find("50.00 (1)") != std::string::npos);
}

TEST_CASE("A figure's specification is written without a drawing program, with the reason",
          "[reports]") {
  const TempDir folder;
  const std::string db = database_of_sizes(folder);
  const std::string out = (folder.path() / "out").string();
  ::setenv("PETLAB_HOME", (folder.path() / "home").c_str(), 1);
  const std::vector<std::string> curve = {"curve", "--x", "seed", "--y", "f1", "--db", db};
  std::vector<std::string> all = curve;
  all.insert(all.end(), {"--out", out});
  const Ran ran = petlab(all);
  CHECK(ran.code == 0);
  CHECK(ran.out.find("wrote " + out + "/curve.vl.json\n") != std::string::npos);
  CHECK(ran.out.find(".svg") == std::string::npos);
  CHECK(ran.err == "petlab: SVG, PDF and PNG are not drawn: " +
                       (folder.path() / "home/venv/bin/python3").string() +
                       " is missing; scripts/setup.sh installs it (--format vega writes the "
                       "specification, which other tools draw)\n");
  all.insert(all.end(), {"--format", "svg,vega"});
  CHECK(petlab(all).code == 1);
  std::vector<std::string> shown = curve;
  shown.insert(shown.end(), {"--format", "vega"});
  CHECK(petlab(shown).out == testing::read_file(out + "/curve.vl.json"));
  ::unsetenv("PETLAB_HOME");
}

TEST_CASE("A table of the paper can show published values without any trial", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  const Ran ran = petlab({"table5", "--db", db, "--show", "published", "--format", "csv"});
  CHECK(ran.err.empty());
  CHECK(ran.out ==
        "row,vanilla,prune 50%\r\nprefix l=64,84.97,84.5\r\nlora bn=32,84.96,85.44\r\n"
        "adapter bn=64,85.65,86.56\r\n");
  const Ran all = petlab({"all", "--db", db});
  CHECK(all.code == 0);
  CHECK(all.out.find("\ntable16: ") != std::string::npos);
  CHECK(all.out.find("\nfigure4: GLUE average by sparsity ratio\n") != std::string::npos);
  CHECK(all.out.find("table2: ") < all.out.find("table11: "));
  CHECK(petlab({"table5", "--db", db, "--show", "none"}).err ==
        "petlab: --show is 'none', must be one of both, measured, published, difference\n");
}

TEST_CASE("A user's definition is read from its file", "[reports]") {
  const TempDir folder;
  const std::string db = database(folder);
  const std::string file =
      folder
          .write("own.yaml",
                 "report: own\ntable:\n  rows: [{each: variant}]\n  columns:\n    - {key: F1, "
                 "where: {split: test, name: f1}}\n")
          .string();
  const Ran ran = petlab({file, "--db", db, "--format", "csv"});
  CHECK(ran.err.empty());
  CHECK(ran.out == "row,F1,F1 sd,F1 n\r\na,50,,1\r\nb,,,0\r\n");
}

}  // namespace
}  // namespace petlab::cli
