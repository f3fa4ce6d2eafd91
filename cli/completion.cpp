#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <ostream>
#include <set>
#include <stdexcept>

#include "cli/command_line.h"
#include "cli/former_names.h"
#include "cli/options/database_option.h"
#include "reports/builtin.h"
#include "reports/render.h"
#include "reports/text.h"
#include "results/remarks.h"
#include "results/scores.h"
#include "results/store.h"
#include "sweeps/fields.h"

namespace petlab::cli {
namespace {

// Each script passes the words after `petlab` up to the one being typed.
constexpr const char* kBash = R"sh(_petlab() {
  local IFS=$'\n'
  COMPREPLY=($(petlab completion --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _petlab petlab
)sh";
constexpr const char* kZsh = R"sh(#compdef petlab
_petlab() {
  local -a found
  found=(${(f)"$(petlab completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -Q -- $found; else _files; fi
}
compdef _petlab petlab
)sh";
constexpr const char* kFish = R"sh(function __petlab_words
  set -l words (commandline -opc) (commandline -ct)
  petlab completion --words -- $words[2..-1] 2>/dev/null
end
complete -c petlab -a '(__petlab_words)'
)sh";

constexpr int kMostTrials = 200;
constexpr std::array kOfTrials = {"show",  "diff",    "history", "logs", "cancel",
                                  "retry", "discard", "hide",    "tag",  "note"};

// Commands that print for people or one JSON document.
constexpr std::array kOfOneDocument = {"plan",  "status",   "show",      "doctor",
                                       "tag",   "note",     "storage",   "db check",
                                       "db gc", "db merge", "db import", "db export archive"};

struct CompletionArguments {
  std::string shell;
  bool words = false;
  std::vector<std::string> typed;
};

// Possible values of an option; empty if it takes a file, a number or free text.
std::vector<std::string> values_behind(const std::string& command, const std::string& option,
                                       const std::filesystem::path& database) {
  std::vector<std::string> values;
  if (option == "--by" || option == "--pivot" || option == "--where" || option == "--only" ||
      option == "--set") {
    learn_declared_words(database);
  }
  if (option == "--by" || option == "--pivot" || option == "--where" || option == "--only") {
    for (const results::Word& word : results::words()) {
      const bool condition = option == "--where" || option == "--only";
      values.push_back(condition ? word.name + "=" : word.name);
    }
    return values;
  }
  if (option == "--set") {
    for (const sweeps::Field& field : sweeps::fields()) {
      values.push_back(std::string(field.name) + "=");
    }
    values.insert(values.end(), {"task=", "tasks=", "priority=", "resources.gpus="});
    return values;
  }
  std::set<std::string> names;
  if (option == "--metric" || option == "--split" || option == "--task") {
    for (const results::SeriesName& one :
         results::ScoreReader(database_to_read(database)).series()) {
      names.insert(option == "--metric" ? one.name : option == "--split" ? one.split : one.task);
    }
  } else if (option == "--sweep") {
    const std::vector<std::string> all = results::Reader(database_to_read(database)).sweep_names();
    names.insert(all.begin(), all.end());
  } else if (option == "--rerun") {
    names = {"stale", "failed", "all"};
  } else if (option == "--add" || option == "--remove") {
    for (const auto& [tag, trials] :
         results::all_tags(results::Reader(database_to_read(database)))) {
      names.insert(tag);
    }
  } else if (option == "--what") {
    names = {"checkpoints", "artifacts", "leftovers"};
  } else if (option == "--artifacts") {
    names = {"result", "all", "none"};
  } else if (option == "--format") {
    if (command == "report") {
      for (const reports::Format& format : reports::formats()) names.emplace(format.name);
    } else if (command == "score") {
      names = {"text", "json", "latex"};
    } else if (command == "db export") {
      names = {"csv", "json"};
    } else if (command == "run") {
      names = {"table", "jsonl"};
    } else if (std::find(kOfOneDocument.begin(), kOfOneDocument.end(), command) !=
               kOfOneDocument.end()) {
      names = {"table", "json"};
    } else {
      names = {"table", "markdown", "csv", "json", "jsonl"};
    }
  }
  values.assign(names.begin(), names.end());
  return values;
}

std::vector<std::string> candidates(CLI::App& root, const std::vector<std::string>& typed) {
  std::vector<std::string> all;
  const std::string last = typed.empty() ? "" : typed.back();
  if (typed.size() < 2) {
    for (const Subcommand& row : subcommands()) all.emplace_back(row.name);
    return all;
  }
  std::string command = typed.front();
  const auto is_it = [&](const Subcommand& row) { return row.name == command; };
  if (std::none_of(subcommands().begin(), subcommands().end(), is_it)) return all;
  const CLI::App* sub = root.get_subcommand(command);
  // For `petlab db export archive`: first the command's subcommands, then the words of the typed
  // one.
  for (std::size_t depth = 1; depth < typed.size(); ++depth) {
    const auto inner = sub->get_subcommands([](const CLI::App*) { return true; });
    if (inner.empty()) break;
    if (typed.size() == depth + 1 && !last.starts_with("-")) {
      for (const CLI::App* each : inner) all.push_back(each->get_name());
      return all;
    }
    const auto named = std::find_if(inner.begin(), inner.end(), [&](const CLI::App* each) {
      return each->get_name() == typed[depth];
    });
    if (named == inner.end()) break;
    sub = *named;
    command += " " + typed[depth];
  }
  std::filesystem::path database;
  for (std::size_t i = 1; i + 2 < typed.size(); ++i) {
    if (typed[i] == "--db") database = typed[i + 1];
  }
  if (command == "tag" &&
      (last.starts_with("+") || (last.starts_with("-") && !last.starts_with("--")))) {
    for (const auto& [tag, trials] :
         results::all_tags(results::Reader(database_to_read(database)))) {
      all.push_back(last.front() + tag);
    }
    if (last == "-") {
      for (const CLI::Option* option : sub->get_options()) {
        for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
      }
    }
    return all;
  }
  if (last.starts_with("-")) {
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
    }
    return all;
  }
  const std::string& before = typed[typed.size() - 2];
  if (before.starts_with("--")) {
    const CLI::Option* option = sub->get_option_no_throw(before);
    if (option != nullptr && option->get_items_expected_max() > 0) {
      return values_behind(command, before, database);
    }
  }
  if (command == "help") {
    all.insert(all.end(), {"fields", "slurm"});
    for (const Subcommand& row : subcommands()) all.emplace_back(row.name);
  } else if (command == "completion") {
    all = {"bash", "zsh", "fish"};
  } else if (command == "report") {
    all = reports::builtin_reports();
    all.insert(all.end(), {"all", "curve"});
  } else if (command == "compare") {
    all = results::ScoreReader(database_to_read(database))
              .values_of(results::word_named("variant"), kMostTrials);
  } else if (std::find(kOfTrials.begin(), kOfTrials.end(), command) != kOfTrials.end()) {
    all = results::Reader(database_to_read(database)).trials_with_prefix(last, kMostTrials);
  }
  return all;
}

int complete(const CompletionArguments& arguments, CLI::App& root, std::ostream& out) {
  if (!arguments.words) {
    out << (arguments.shell == "bash" ? kBash : arguments.shell == "zsh" ? kZsh : kFish);
    return kDone;
  }
  std::vector<std::string> found;
  try {
    // The last word is being typed, so it keeps its place.
    std::vector<std::string> typed = arguments.typed;
    if (!typed.empty()) {
      std::string last = std::move(typed.back());
      typed.pop_back();
      typed = present_words(subcommand_first(std::move(typed))).words;
      typed.push_back(std::move(last));
    }
    found = candidates(root, typed);
  } catch (const std::exception&) {
    // Shells show no messages during completion, for example about a missing database.
    return kSomeFailed;
  }
  // In a list of words or conditions, the last part is being typed.
  const std::string last = arguments.typed.empty() ? "" : arguments.typed.back();
  const std::size_t begun = last.find_last_of(", ");
  const std::string kept = begun == std::string::npos ? "" : last.substr(0, begun + 1);
  const std::string part = last.substr(kept.size());
  for (const std::string& word : found) {
    if (word.starts_with(part)) out << kept << reports::printable(word) << "\n";
  }
  return kDone;
}

}  // namespace

std::function<int()> make_completion(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<CompletionArguments>();
  app.add_flag("--words", arguments->words,
               "for the scripts: print what can complete the last word");
  app.add_option("WORDS", arguments->typed,
                 "bash, zsh or fish, as in source <(petlab completion bash); with --words, the "
                 "words typed so far");
  return [arguments, streams, &app] {
    if (!arguments->words) {
      const std::set<std::string> shells = {"bash", "zsh", "fish"};
      if (arguments->typed.size() != 1 || !shells.contains(arguments->typed.front())) {
        throw std::invalid_argument(
            fmt::format("completion: found {}, expected bash, zsh or fish",
                        arguments->typed.empty() ? "nothing" : arguments->typed.front()));
      }
      arguments->shell = arguments->typed.front();
    }
    return complete(*arguments, *app.get_parent(), streams.out);
  };
}

}  // namespace petlab::cli
