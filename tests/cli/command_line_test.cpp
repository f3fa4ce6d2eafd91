#include "cli/command_line.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <utility>

#include "cli/former_names.h"
#include "tests/support/catch.h"

namespace petlab::cli {
namespace {

// The error message for a wrong command line. CLI11 2.4 and later write a range as [1 - 4096].
std::string refused(std::vector<const char*> words) {
  words.insert(words.begin(), "petlab");
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run(static_cast<int>(words.size()), words.data(), {in, out, err}) == kUsage);
  CHECK(out.str().empty());
  static const std::regex range(R"(\[(-?\d+) - (-?\d+)\])");
  return std::regex_replace(err.str(), range, "$1 to $2");
}

// The standard error of a command that fails.
std::string printed(const std::vector<std::string>& words) {
  std::vector<const char*> all = {"petlab"};
  for (const std::string& word : words) all.push_back(word.c_str());
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run(static_cast<int>(all.size()), all.data(), {in, out, err}) != kDone);
  return err.str();
}

TEST_CASE("An unknown word is reported with the nearest known one", "[cli]") {
  CHECK(refused({"repotr"}) ==
        "petlab: unknown subcommand \"repotr\"; did you mean \"report\"? (see --help)\n");
  CHECK(refused({"run", "--slot", "3", "sweep.yaml"}) ==
        "petlab: run has no option --slot; did you mean --slots? (see --help)\n");
  CHECK(refused({"run", "--qq", "sweep.yaml"}) == "petlab: run has no option --qq (see --help)\n");
  CHECK(
      refused({"zzzz"}).starts_with("petlab: unknown subcommand \"zzzz\"; known are quickstart, "
                                    "init, schema, fetch, doctor, plan, run"));
  CHECK(refused({"retry", "--declare-daed=1"}) ==
        "petlab: retry has no option --declare-daed; did you mean --declare-dead? (see --help)\n");
  CHECK(refused({"plan", "--zzzzzzzzzzzz", "sweep.yaml"}) ==
        "petlab: plan has no option --zzzzzzzzzzzz (see --help)\n");
  CHECK(refused({"run", "a.yaml", "b.yaml"}) ==
        "petlab: run: unexpected argument \"b.yaml\" (see --help)\n");
  CHECK(refused({"plan"}) == "petlab: FILE is required (see --help)\n");
  CHECK(refused({"run", "sweep.yaml", "--slots", "0"}) ==
        "petlab: --slots: Value 0 not in range 1 to 4096 (see --help)\n");
}

TEST_CASE("A number out of range is reported with the range", "[cli]") {
  const auto check = [](std::vector<const char*> words, const std::string& message) {
    words.insert(words.begin(), {"run", "sweep.yaml"});
    CHECK(refused(words) == "petlab: " + message + " (see --help)\n");
  };
  check({"--retries=-1"}, "--retries: Value -1 not in range 0 to 1000000");
  check({"--retries", "99999999999999999999"},
        "--retries: Value 99999999999999999999 not in range 0 to 1000000");
  check({"--grace=-5s"}, "--grace: found -5s, expected a duration such as 90s");
  check({"--grace", "s"}, "--grace: found s, expected a duration such as 90s");
  check({"--time-limit", "36501d"}, "--time-limit: found 3.15369e+09 s, expected 0s to 36500d");
  check({"--pack", "2", "--trial-memory", "-3"},
        "--trial-memory: found -3, expected a size such as 6GiB");
  CHECK(refused({"logs", "--attempt", "0", "x"}) ==
        "petlab: --attempt: Value 0 not in range 1 to 1000000000 (see --help)\n");
}

TEST_CASE("Options of plan that cannot be combined are refused by name", "[cli]") {
  CHECK(refused({"plan", "a.yaml", "--device", "gpu"}) == "petlab: --device requires --memory\n");
  CHECK(refused({"plan", "a.yaml", "b.yaml", "--memory"}) ==
        "petlab: --memory estimates trials of one sweep: found 2 sweep files\n");
  CHECK(refused({"plan", "a.yaml", "b.yaml", "--only", "seed=1"}) ==
        "petlab: --only chooses trials of one sweep: found 2 sweep files\n");
  CHECK(refused({"plan", "a.yaml", "--memory", "--device", "tpu"})
            .starts_with("petlab: --device: tpu not in "));
}

TEST_CASE("The options --db and --runs may come before the subcommand", "[cli]") {
  using Words = std::vector<std::string>;
  CHECK(subcommand_first({"--db", "s.db", "results"}) == Words{"results", "--db", "s.db"});
  CHECK(subcommand_first({"--runs=r", "--db", "s.db", "run", "a.yaml"}) ==
        Words{"run", "a.yaml", "--runs=r", "--db", "s.db"});
  CHECK(subcommand_first({"--db", "s.db", "note", "x", "--", "--text"}) ==
        Words{"note", "x", "--db", "s.db", "--", "--text"});
  CHECK(subcommand_first({"results", "--db", "s.db"}) == Words{"results", "--db", "s.db"});
  CHECK(subcommand_first({"--db"}) == Words{"--db"});
  CHECK(printed({"--db", "/nowhere/s.db", "results"}).find("/nowhere/s.db") != std::string::npos);
  CHECK(refused({"--db", "s.db", "score"}) == "petlab: score has no option --db (see --help)\n");
  CHECK(refused({"--jsn", "results"}) ==
        "petlab: results has no option --jsn; did you mean --json? (see --help)\n");
  CHECK(refused({"--jsn"}).starts_with(
      "petlab: --jsn comes before the subcommand, where only --db, --runs, --help and --version "
      "are allowed; expected one of quickstart, init, schema, fetch, doctor, plan, "));
}

TEST_CASE("A message fits a screen, however long the arguments are", "[cli]") {
  const std::string huge(2 << 20, 'x');
  for (const std::vector<std::string>& words : {std::vector<std::string>{huge},
                                                {"results", "--" + huge},
                                                {"results", huge},
                                                {"run", huge},
                                                {"score", huge},
                                                {"results", "--db", "\x1b]0;t\x07" + huge}}) {
    const std::string message = printed(words);
    CHECK(message.size() < 2200);
    CHECK(message.find('\x1b') == std::string::npos);
  }
}

// The output of a command that succeeds; standard error must be empty.
std::string helped(std::vector<std::string> words) {
  std::vector<const char*> all = {"petlab"};
  for (const std::string& word : words) all.push_back(word.c_str());
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run(static_cast<int>(all.size()), all.data(), {in, out, err}) == kDone);
  CHECK(err.str().empty());
  return out.str();
}

// The number of lines, and the width of the widest.
std::pair<int, std::size_t> extent(const std::string& text) {
  std::istringstream in(text);
  std::pair<int, std::size_t> found;
  for (std::string line; std::getline(in, line); ++found.first) {
    found.second = std::max(found.second, line.size());
  }
  return found;
}

TEST_CASE("Help goes to standard output and succeeds", "[cli]") {
  CHECK_THAT(
      helped({"--version"}),
      Catch::Matchers::Matches(
          R"(petlab [0-9.]+ \((unknown|[0-9a-z.-]+(\+changes)?), (GNU|Clang) .*\), database version 3\n)"));
  CHECK(helped({"--help"}) == helped({}));
  CHECK(helped({"help"}) == helped({}));
  CHECK(helped({"db"}) == helped({"db", "--help"}));
  CHECK(helped({"help", "db", "export", "archive"}) == helped({"db", "export", "archive", "-h"}));
}

TEST_CASE("The program's help lists every command under its group on one screen", "[cli]") {
  const std::string help = helped({});
  const auto [lines, columns] = extent(help);
  CHECK(lines <= 40);
  CHECK(columns <= 80);
  std::string group;
  for (const Subcommand& row : subcommands()) {
    INFO(row.name);
    CHECK(row.help.size() <= 64);
    const std::size_t heading = help.find("\n" + std::string(row.group) + "\n");
    REQUIRE(heading != std::string::npos);
    const std::size_t line = help.find("\n  " + std::string(row.name) + " ");
    REQUIRE(line != std::string::npos);
    CHECK(heading < line);
    if (row.group == group) continue;
    CHECK(help.find("\n" + std::string(row.group) + "\n", heading + 1) == std::string::npos);
    group = row.group;
  }
  CHECK(help.find("unhide") == std::string::npos);
}

TEST_CASE("The help of each command fits a screen", "[cli]") {
  std::vector<std::vector<std::string>> commands = {
      {"db", "check"},   {"db", "backup"},     {"db", "gc"},
      {"db", "rebuild"}, {"db", "update"},     {"db", "merge"},
      {"db", "import"},  {"db", "export"},     {"db", "export", "archive"},
      {"fetch", "data"}, {"fetch", "backbone"}};
  for (const Subcommand& row : subcommands()) commands.push_back({std::string(row.name)});
  for (std::vector<std::string>& words : commands) {
    INFO(words.front());
    const bool is_score = words.front() == "score";
    words.emplace_back("--help");
    const std::string help = helped(words);
    const auto [lines, columns] = extent(help);
    CHECK(lines <= 40);
    CHECK(columns <= 80);
    const bool grouped = help.find("\nAdvanced options:\n") != std::string::npos;
    CHECK(grouped == (is_score || words.front() == "run"));
  }
}

TEST_CASE("A former name runs the command and reports its present name", "[cli]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> former = {
      {{"explain", "x"}, "petlab explain is now petlab show"},
      {{"unhide", "x"}, "petlab unhide is now petlab hide --undo"},
      {{"ingest"}, "petlab ingest is now petlab db import"},
      {{"ingest", "--rebuild"}, "petlab ingest --rebuild is now petlab db rebuild"},
      {{"check"}, "petlab check is now petlab db check"},
      {{"backup", "copy.db"}, "petlab backup is now petlab db backup"},
      {{"gc"}, "petlab gc is now petlab db gc"},
      {{"merge", "x.db"}, "petlab merge is now petlab db merge"},
      {{"import", "x"}, "petlab import is now petlab db import"},
      {{"export", "x"}, "petlab export is now petlab db export"},
      {{"export", "archive", "x"}, "petlab export is now petlab db export"}};
  for (const auto& [words, note] : former) {
    INFO(note);
    std::vector<std::string> typed = {"--db", "/nowhere/s.db", "--runs", "/nowhere/r"};
    typed.insert(typed.end(), words.begin(), words.end());
    const std::string text = printed(typed);
    CHECK(text.starts_with("petlab: " + note + "\npetlab: "));
    // The present command's message about the database or folder follows.
    const PresentWords present = present_words(words);
    typed.resize(4);
    typed.insert(typed.end(), present.words.begin(), present.words.end());
    CHECK(text == "petlab: " + note + "\n" + printed(typed));
  }
  CHECK(present_words({"run", "check"}).note.empty());
  CHECK(present_words({}).words.empty());
}

}  // namespace
}  // namespace petlab::cli
