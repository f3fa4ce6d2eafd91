#include "cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/nearest_word.h"
#include "cli/command_line.h"
#include "cli/former_names.h"
#include "cli/options/database_option.h"
#include "cli/options/help_format.h"
#include "cli/options/sweep_arguments.h"
#include "cli/options/version.h"
#include "cli/output/answer_output.h"
#include "results/words.h"
#include "sweeps/fields.h"
#include "sweeps/locations.h"

namespace petlab::cli {
namespace {

using results::Value;

struct HelpArguments {
  std::vector<std::string> topic;  // the words of a command, or `fields` or `slurm`
  bool man = false;
  std::filesystem::path database;
  std::string worker;
};

// Prints all words for --where, --by and --pivot, and configuration fields as sweep files spell
// them.
void print_fields(std::ostream& out) {
  std::vector<std::vector<Value>> rows;
  for (const results::Word& word : results::words()) {
    const sweeps::Field* field = nullptr;
    for (const sweeps::Field& row : sweeps::fields()) {
      if (row.column == word.name) field = &row;
    }
    std::string help;
    for (const char c : word.help) help += c == '`' ? std::string() : std::string(1, c);
    rows.push_back({word.name, field == nullptr ? "" : std::string(field->name),
                    field == nullptr ? "" : sweeps::default_text(*field),
                    field == nullptr ? "" : sweeps::use_text(*field), help});
  }
  rows.push_back({"user.KEY", "user.KEY", "", "", "a key of the free group"});
  AnswerOutput().print(out, {"word", "in sweep files", "default", "means something", "what"}, rows);
}

void print_slurm(const CLI::App& root, std::ostream& out) {
  out << "options of petlab run --launcher slurm, in addition to its others\n\n"
      << brief_options_text(*root.get_subcommand("run"), kSlurmOptions);
}

// Escapes text for roff, where a backslash and a leading dot or quote mark are special.
std::string roff(const std::string& text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    begins = c == '\n';
  }
  return result;
}

// A command and its subcommands (`petlab db export archive`).
void print_man_section(CLI::App& command, const std::string& name, const std::string& before,
                       std::ostream& out) {
  out << ".SH PETLAB " << roff(name) << "\n.nf\n" << roff(command.help(before)) << ".fi\n";
  for (CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    print_man_section(*inner, name + " " + inner->get_name(), before + " " + command.get_name(),
                      out);
  }
}

void print_man(CLI::App& root, std::ostream& out) {
  out << fmt::format(".TH PETLAB 1 \"\" \"petlab {}\" \"User Commands\"\n", kVersion)
      << ".SH NAME\npetlab \\- " << roff(root.get_description()) << "\n"
      << ".SH SYNOPSIS\n.B petlab\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
  std::string_view group;
  for (const Subcommand& row : subcommands()) {
    if (row.group != group) out << ".SS " << roff(std::string(row.group)) << "\n";
    group = row.group;
    out << ".TP\n.B " << roff(std::string(row.name)) << "\n" << roff(std::string(row.help)) << "\n";
  }
  for (const Subcommand& row : subcommands()) {
    const std::string name(row.name);
    print_man_section(*root.get_subcommand(name), name, "petlab", out);
  }
  std::ostringstream slurm;
  print_slurm(root, slurm);
  out << ".SH SLURM\n.nf\n" << roff(slurm.str()) << ".fi\n";
  out << ".SH EXIT STATUS\n0: all requested work is done; 1: some of it failed; 2: the command "
         "line or a sweep file has a mistake; 3: interrupted, run the same command to resume.\n";
}

// Prints the help of a command given by its words, such as `db check`.
void print_command_help(const std::vector<std::string>& topic, CLI::App& root, std::ostream& out) {
  CLI::App* command = &root;
  std::string before;
  for (const std::string& word : present_words(topic).words) {
    if (word.starts_with("-")) continue;  // from a former name such as `hide --undo`
    std::vector<std::string> names;
    for (CLI::App* inner : command->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(inner->get_name());
    }
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      if (command == &root) names.insert(names.end(), {"fields", "slurm"});
      throw std::invalid_argument(base::unknown_word(
          "topic", word, std::vector<std::string_view>(names.begin(), names.end())));
    }
    before += (before.empty() ? "" : " ") + command->get_name();
    command = command->get_subcommand(word);
  }
  out << command->help(before);
}

int help(const HelpArguments& arguments, CLI::App& root, std::ostream& out) {
  const bool is_about_fields = !arguments.topic.empty() && arguments.topic.front() == "fields";
  if (!is_about_fields && !(arguments.worker.empty() && arguments.database.empty())) {
    throw std::invalid_argument("--worker and --db only apply to petlab help fields");
  }
  if (arguments.man) {
    print_man(root, out);
  } else if (arguments.topic.empty()) {
    // root.help() would print the help of the chosen command, which is this one.
    out << root.get_formatter()->make_help(&root, "petlab", CLI::AppFormatMode::Normal);
  } else if (is_about_fields) {
    catalog_of_worker(arguments.worker, sweeps::process_environment());
    learn_declared_words(arguments.database);
    print_fields(out);
  } else if (arguments.topic == std::vector<std::string>{"slurm"}) {
    print_slurm(root, out);
  } else {
    print_command_help(arguments.topic, root, out);
  }
  return kDone;
}

}  // namespace

std::function<int()> make_help(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<HelpArguments>();
  auto* const topic = app.add_option("TOPIC", arguments->topic,
                                     "a command; fields: the words of --where and --by; slurm: the "
                                     "options of petlab run for Slurm");
  app.add_flag("--man", arguments->man, "print the manual page (petlab help --man | man -l -)")
      ->excludes(topic);
  add_database_option(app, arguments->database);
  app.add_option("--worker", arguments->worker, "fields: with those that this worker declares")
      ->type_name("COMMAND");
  return [arguments, streams, &app] { return help(*arguments, *app.get_parent(), streams.out); };
}

}  // namespace petlab::cli
