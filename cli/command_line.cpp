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
#include "cli/exchange/backup.h"
#include "cli/exchange/check.h"
#include "cli/exchange/export.h"
#include "cli/exchange/gc.h"
#include "cli/exchange/import.h"
#include "cli/exchange/ingest.h"
#include "cli/exchange/merge.h"
#include "cli/help.h"
#include "cli/options/version.h"
#include "cli/running/explain.h"
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

namespace petlab::cli {

std::span<const Subcommand> subcommands() {
  // In the order of the help. A new subcommand is a file with its `make` function, and a row here.
  static const std::vector<Subcommand> table = {
      {"init", "write a first sweep file for what this machine has", make_init},
      {"plan", "say how many trials a sweep has, the state of each and why", make_plan},
      {"run", "train what a sweep has left", make_run},
      {"status", "say where sweeps are and what runs now", make_status},
      {"explain", "say why a trial is where it is, with its attempts", make_explain},
      {"logs", "print what a trial's worker printed", make_logs},
      {"cancel", "take trials out of their sweeps, also while they run", make_cancel},
      {"retry", "let trials be tried again that have failed or were cancelled", make_retry},
      {"discard", "let results count no more; the next run makes them again", make_discard},
      {"hide", "take trials out of reports and answers, nothing is deleted", make_hide},
      {"unhide", "let hidden trials be seen again", make_unhide},
      {"tag", "put tags on trials and sweeps, and take them off", make_tag},
      {"note", "write a note on a trial or a sweep", make_note},
      {"stop", "ask the runs that go on to finish", make_stop},
      {"results", "scores over seeds: mean, deviation, n", make_results},
      {"best", "the best trials of each task, and their artifacts", make_best},
      {"compare", "one variant beside others, paired over seeds and tasks", make_compare},
      {"show", "all that is known of a trial", make_show},
      {"diff", "in what two trials differ", make_diff},
      {"history", "a trial's metric, step by step", make_history},
      {"report", "make a table from the database", make_report},
      {"serve", "show the reports in a browser, live while sweeps run", make_serve},
      {"query", "ask the database in SQL, read-only", make_query},
      {"ingest", "read run directories into the database, or make it anew from them", make_ingest},
      {"check", "hold the database against runs folder and artifacts", make_check},
      {"backup", "copy a database that is in use", make_backup},
      {"gc", "remove checkpoints and artifacts that nobody needs", make_gc},
      {"export", "write tables, TensorBoard's event files, or one portable archive", make_export},
      {"merge", "take over what another machine's database has of its own", make_merge},
      {"import", "take over a runs folder of another machine, or an archive", make_import},
      {"score", "score predictions against references", make_score},
      {"storage", "bits that a trained module takes", make_storage},
      {"fetch", "download backbones and data", make_fetch},
      {"doctor", "say what this machine has, and what is missing", make_doctor},
      {"help", "tell of a command, or of the words of questions", make_help, true},
      {"completion", "a script with which a shell completes petlab's words", make_completion, true},
  };
  return table;
}

namespace {

// What is wrong with the command line, where CLI11 only counts words: the first that means nothing,
// with the nearest that does. Empty for all else.
std::string unknown_word_of(std::span<const Subcommand> table, const CLI::App& app,
                            std::span<const std::string> given) {
  if (app.get_subcommands().empty()) {
    std::vector<std::string_view> names;
    for (const Subcommand& row : table) names.push_back(row.name);
    if (given.empty()) {
      return fmt::format("found no subcommand, wanted one of {}", fmt::join(names, ", "));
    }
    const std::string& first = given.front();
    if (!first.starts_with("-")) return base::unknown_word("subcommand", first, names);
    return fmt::format(
        "{} stands before the subcommand, where only --db, --runs, --help and "
        "--version may stand; wanted one of {}",
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
    return fmt::format("{}: \"{}\" is one word too many", name_of_sub,
                       base::excerpt(words.front()));
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* each : sub.get_options()) {
    // Without the dashes, which make all of them alike.
    for (const std::string& word : each->get_lnames()) known.push_back(word);
  }
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view bare = std::string_view(name).substr(name.find_first_not_of('-'));
  const std::string_view nearest = base::nearest_word(bare, views);
  return fmt::format("{} has no option {}", name_of_sub, base::excerpt(name)) +
         (nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest));
}

// The row that the first word names and whose options are enough; nullptr: it takes those of all.
const Subcommand* named_alone(std::span<const Subcommand> table,
                              std::span<const std::string> words) {
  for (const Subcommand& row : table) {
    if (!words.empty() && row.name == words.front()) return row.tells_of_others ? nullptr : &row;
  }
  return nullptr;
}

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
  // Before `--`, behind which all words are a subcommand's arguments.
  const auto end = words.end() - static_cast<std::ptrdiff_t>(begin);
  std::rotate(std::find(words.begin(), end, "--"), end, words.end());
  return words;
}

int run(int argc, const char* const* argv, Streams streams) {
  return run(subcommands(), argc, argv, streams);
}

int run(std::span<const Subcommand> table, int argc, const char* const* argv, Streams streams) {
  CLI::App app("petlab runs ablation sweeps of parameter-efficient transfer learning", "petlab");
  app.set_version_flag("--version", std::string("petlab ") + kVersion);
  app.require_subcommand(1);
  std::function<int()> chosen;
  const std::vector<std::string> given = subcommand_first({argv + std::min(argc, 1), argv + argc});
  // Options of commands that nobody asked for take more time than most commands.
  const Subcommand* const named = named_alone(table, given);
  for (const Subcommand& row : named == nullptr ? table : std::span(named, 1)) {
    CLI::App* sub = app.add_subcommand(std::string(row.name), std::string(row.help));
    std::function<int()> body = row.make(*sub, streams);
    sub->callback([&chosen, body = std::move(body)] { chosen = body; });
  }
  try {
    // The parser takes the last word first.
    std::vector<std::string> words = given;
    if (!words.empty() && words.front() == "score") words = score_words(std::move(words));
    if (!words.empty() && words.front() == "tag") words = tag_words(std::move(words));
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    return chosen();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, streams.out, streams.err);
    const std::string unknown = unknown_word_of(table, app, given);
    streams.err << "petlab: " << base::printable_message(unknown.empty() ? error.what() : unknown)
                << " (--help tells more)\n";
    return kUsage;
  } catch (const std::invalid_argument& error) {
    streams.err << "petlab: " << base::printable_message(error.what()) << "\n";
    return kUsage;
  } catch (const std::bad_alloc&) {
    streams.err << "petlab: the memory ran out: there is less than this needs (of the machine, or "
                   "a limit such as ulimit -v)\n";
    return kSomeFailed;
  } catch (const std::exception& error) {
    streams.err << "petlab: " << base::printable_message(error.what()) << "\n";
    return kSomeFailed;
  }
}

}  // namespace petlab::cli
