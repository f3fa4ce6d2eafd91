#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_info.h"
#include "base/nearest_word.h"
#include "base/shown.h"
#include "cli/answers/best.h"
#include "cli/answers/compare.h"
#include "cli/answers/diff.h"
#include "cli/answers/history.h"
#include "cli/answers/query.h"
#include "cli/answers/report.h"
#include "cli/answers/results.h"
#include "cli/answers/serve.h"
#include "cli/answers/show.h"
#include "cli/completion.h"
#include "cli/decisions/cancel.h"
#include "cli/decisions/discard.h"
#include "cli/decisions/hide.h"
#include "cli/decisions/note.h"
#include "cli/decisions/retry.h"
#include "cli/decisions/tag.h"
#include "cli/exchange/database_commands.h"
#include "cli/former_names.h"
#include "cli/help.h"
#include "cli/options/help_format.h"
#include "cli/options/version.h"
#include "cli/quickstart.h"
#include "cli/running/logs.h"
#include "cli/running/plan.h"
#include "cli/running/run.h"
#include "cli/running/status.h"
#include "cli/running/stop.h"
#include "cli/scoring/score.h"
#include "cli/scoring/storage.h"
#include "cli/setup/doctor.h"
#include "cli/setup/fetch.h"
#include "cli/setup/init.h"
#include "cli/setup/schema.h"
#include "results/notices.h"
#include "results/store.h"

namespace petlab::cli {

std::span<const Subcommand> subcommands() {
  // Rows are in the order of the help. To add a command, write a file with its `make` function and
  // add a row here.
  static const std::vector<Subcommand> table = {
      {"quickstart", "Start", "train a small sweep and print its table", make_quickstart},
      {"init", "Start", "write a starter sweep for this machine", make_init},
      {"schema", "Start", "print the JSON Schema of a file, for editors", make_schema},
      {"fetch", "Start", "download backbones and data", make_fetch},
      {"doctor", "Start", "check this machine and report what is missing", make_doctor},
      {"plan", "Run", "show a sweep's trials, the state of each and why", make_plan},
      {"run", "Run", "train the trials that a sweep has left", make_run},
      {"status", "Run", "show the progress of sweeps and of running trials", make_status},
      {"logs", "Run", "print a trial's log", make_logs},
      {"stop", "Run", "ask running sweeps to stop", make_stop},
      {"results", "Look", "show the mean, deviation and number of seeds", make_results},
      {"best", "Look", "show the best trials of each task and their artifacts", make_best},
      {"show", "Look", "show everything about one trial: state, attempts, metrics", make_show},
      {"diff", "Look", "show how two trials differ", make_diff},
      {"history", "Look", "show a metric step by step", make_history},
      {"query", "Look", "query the database in SQL, read-only", make_query},
      {"cancel", "Decide", "cancel trials, including running ones", make_cancel},
      {"retry", "Decide", "retry trials that failed or were cancelled", make_retry},
      {"discard", "Decide", "invalidate results; the next run recomputes them", make_discard},
      {"hide", "Decide", "exclude trials from reports and answers; delete nothing", make_hide},
      {"tag", "Decide", "add tags to trials and sweeps, or remove them", make_tag},
      {"note", "Decide", "write a note on a trial or a sweep", make_note},
      {"compare", "Compare and report", "compare variants with a baseline, paired by seed and task",
       make_compare},
      {"report", "Compare and report", "make tables and figures from the database", make_report},
      {"serve", "Compare and report", "show reports in a browser, live while sweeps run",
       make_serve},
      {"db", "Tools", "check, back up, clean, rebuild, merge, import, export a database", make_db},
      {"score", "Tools", "score predictions against references", make_score},
      {"storage", "Tools", "compute how many bits a trained module takes", make_storage},
      {"completion", "Tools", "print a completion script for your shell", make_completion, true},
      {"help", "Tools", "show the help of a command, or the words of questions", make_help, true},
  };
  return table;
}

namespace {

// Explains the first word that CLI11 does not recognize and suggests the nearest known one. Empty
// if that is not the problem.
std::string unknown_word_of(std::span<const Subcommand> table, const CLI::App& app,
                            std::span<const std::string> given) {
  if (app.get_subcommands().empty()) {
    std::vector<std::string_view> names;
    for (const Subcommand& row : table) names.push_back(row.name);
    const std::string& first = given.front();
    if (!first.starts_with("-")) return base::unknown_word("subcommand", first, names);
    return fmt::format(
        "{} comes before the subcommand, where only --db, --runs, --help and --version are "
        "allowed; expected one of {}",
        base::excerpt(first), fmt::join(names, ", "));
  }
  const CLI::App* innermost = app.get_subcommands().front();
  std::string name_of_sub = innermost->get_name();
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    name_of_sub += " " + innermost->get_name();
  }
  const CLI::App& sub = *innermost;
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return {};
  if (const auto inner = sub.get_subcommands([](const CLI::App*) { return true; });
      !inner.empty() && !words.front().starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::App* each : inner) names.push_back(each->get_name());
    return base::unknown_word("subcommand of " + name_of_sub, words.front(),
                              std::vector<std::string_view>(names.begin(), names.end()));
  }
  const auto option = std::find_if(words.begin(), words.end(),
                                   [](const auto& word) { return word.starts_with("-"); });
  if (option == words.end()) {
    return fmt::format("{}: unexpected argument \"{}\"", name_of_sub, base::excerpt(words.front()));
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* each : sub.get_options()) {
    // Compared without the leading dashes, which would make all options similar.
    for (const std::string& word : each->get_lnames()) known.push_back(word);
  }
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view bare = std::string_view(name).substr(name.find_first_not_of('-'));
  const std::string_view nearest = base::nearest_word(bare, views);
  return fmt::format("{} has no option {}", name_of_sub, base::excerpt(name)) +
         (nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest));
}

// The row of the command in the first word, or nullptr if the command needs the options of all
// commands.
const Subcommand* named_alone(std::span<const Subcommand> table,
                              std::span<const std::string> words) {
  for (const Subcommand& row : table) {
    if (!words.empty() && row.name == words.front()) return row.describes_others ? nullptr : &row;
  }
  return nullptr;
}

// Prints notices about updates of databases: any command can open one of an earlier version.
struct DatabaseNotices {
  explicit DatabaseNotices(std::ostream& err) {
    results::set_notice_printer([&err](const std::string& text) {
      err << "petlab: " << base::printable_message(text) << std::endl;
    });
  }
  ~DatabaseNotices() {
    results::print_copy_notices();
    results::set_notice_printer({});
  }
};

}  // namespace

std::vector<std::string> subcommand_first(std::vector<std::string> words) {
  std::size_t begin = 0;
  while (begin < words.size()) {
    const std::string& word = words[begin];
    if (word == "--db" || word == "--runs") {
      if (begin + 1 == words.size()) break;
      begin += 2;
    } else if (word.starts_with("--db=") || word.starts_with("--runs=")) {
      begin += 1;
    } else {
      break;
    }
  }
  const auto first = words.begin() + static_cast<std::ptrdiff_t>(begin);
  std::rotate(words.begin(), first, words.end());
  // Insert before `--`: all words after it are the subcommand's arguments.
  const auto end = words.end() - static_cast<std::ptrdiff_t>(begin);
  std::rotate(std::find(words.begin(), end, "--"), end, words.end());
  return words;
}

int run(int argc, const char* const* argv, Streams streams) {
  return run(subcommands(), argc, argv, streams);
}

int run(std::span<const Subcommand> table, int argc, const char* const* argv, Streams streams) {
  const DatabaseNotices notices(streams.err);
  CLI::App app("petlab runs ablation sweeps of parameter-efficient transfer learning", "petlab");
  const base::BuildInfo& build = base::build_info();
  app.set_version_flag("--version", fmt::format("petlab {} ({}, {}, {}), database version {}",
                                                kVersion, base::commit_text(build), build.compiler,
                                                build.flags, results::kDatabaseVersion));
  app.formatter(help_format());
  app.set_help_flag("-h,--help", "show this help");
  app.require_subcommand(1);
  std::function<int()> chosen;
  PresentWords present = present_words(subcommand_first({argv + std::min(argc, 1), argv + argc}));
  if (!present.note.empty()) streams.err << "petlab: " << present.note << "\n";
  const std::vector<std::string> given = std::move(present.words);
  // Creating the options of all commands takes longer than most commands.
  const Subcommand* const named = named_alone(table, given);
  for (const Subcommand& row : named == nullptr ? table : std::span(named, 1)) {
    CLI::App* sub = app.add_subcommand(std::string(row.name), std::string(row.help));
    std::function<int()> body = row.make(*sub, streams);
    sub->group(std::string(row.group));  // set last, because commands in it would inherit its group
    sub->callback([&chosen, body = std::move(body)] { chosen = body; });
  }
  try {
    // The parser expects the words in reverse order.
    std::vector<std::string> words = given;
    if (!words.empty() && words.front() == "score") words = score_words(std::move(words));
    if (!words.empty() && words.front() == "tag") words = tag_words(std::move(words));
    // `petlab` and `petlab db` print the commands.
    if (words.empty() || (words.size() == 1 && words.front() == "db")) words.push_back("--help");
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    return chosen();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, streams.out, streams.err);
    const std::string unknown = unknown_word_of(table, app, given);
    streams.err << "petlab: " << base::printable_message(unknown.empty() ? error.what() : unknown)
                << " (see --help)\n";
    return kUsage;
  } catch (const std::invalid_argument& error) {
    streams.err << "petlab: " << base::printable_message(error.what()) << "\n";
    return kUsage;
  } catch (const std::bad_alloc&) {
    streams.err << "petlab: out of memory: the machine has too little, or a limit such as ulimit "
                   "-v is too low\n";
    return kSomeFailed;
  } catch (const std::exception& error) {
    streams.err << "petlab: " << base::printable_message(error.what()) << "\n";
    return kSomeFailed;
  }
}

}  // namespace petlab::cli
