#include "orchestrator/launching/worker_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <system_error>

#include "base/programs.h"

namespace petlab::orchestrator {
namespace {

struct FoundProgram {
  std::filesystem::path file;  // empty: none is executable
  bool seen = false;           // a file was found, executable or not
};

FoundProgram program_named(const std::string& name, const std::string& search_path) {
  std::vector<std::filesystem::path> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(std::filesystem::absolute(name));
  } else if (!name.empty()) {
    for (const std::string& place : base::places_on_path(name, search_path)) {
      candidates.emplace_back(place);
    }
  }
  FoundProgram found;
  for (const std::filesystem::path& candidate : candidates) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(candidate, error)) continue;
    found.seen = true;
    if (::access(candidate.c_str(), X_OK) != 0) continue;
    found.file = candidate;
    break;
  }
  return found;
}

std::vector<std::string> words_of_command(const std::string& text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool more = at + 1 < text.size();
    if (c == '\\' && more &&
        (quote == 0 || (quote == '"' && (text[at + 1] == '"' || text[at + 1] == '\\')))) {
      word = word.value_or("") + text[++at];
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        *word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      word = word.value_or("");
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (word) words.push_back(*word);
      word.reset();
    } else {
      word = word.value_or("") + c;
    }
  }
  if (quote != 0) {
    throw std::invalid_argument(
        fmt::format("--worker is {}, must have a closing {} after the opening one", text, quote));
  }
  if (word) words.push_back(*word);
  return words;
}

std::string absolute_if_file(const std::string& argument) {
  std::error_code error;
  return std::filesystem::is_regular_file(argument, error)
             ? std::filesystem::absolute(argument).lexically_normal().string()
             : argument;
}

std::string as_typed(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\") == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::vector<std::string> WorkerCommand::arguments_and(const std::string& last) const {
  std::vector<std::string> all = arguments;
  all.push_back(last);
  return all;
}

std::string WorkerCommand::text() const {
  // A program without arguments is a path, which find_worker() accepts unquoted.
  if (arguments.empty()) return program.string();
  std::string all = as_typed(program.string());
  for (const std::string& argument : arguments) all += " " + as_typed(argument);
  return all;
}

std::filesystem::path WorkerCommand::check_program() const {
  if (!arguments.empty() || program.empty()) return {};
  return program.string() + "-check";
}

WorkerCommand find_worker(const std::string& named, const std::string& search_path) {
  // Tries the whole text as a program first, since a path may contain spaces.
  FoundProgram whole = program_named(named, search_path);
  if (!whole.file.empty()) return {whole.file};
  std::vector<std::string> words;
  if (!whole.seen) words = words_of_command(named);
  if (words.size() > 1) {
    const FoundProgram program = program_named(words.front(), search_path);
    if (!program.file.empty()) {
      WorkerCommand command(program.file);
      for (std::size_t at = 1; at < words.size(); ++at) {
        command.arguments.push_back(absolute_if_file(words[at]));
      }
      return command;
    }
    whole.seen = program.seen;
  } else if (words.size() == 1 && words.front() != named) {  // quoted
    const FoundProgram program = program_named(words.front(), search_path);
    if (!program.file.empty()) return {program.file};
    whole.seen = program.seen;
  }
  std::error_code error;
  const bool script =
      named.ends_with(".py") && words.size() < 2 && std::filesystem::is_regular_file(named, error);
  throw std::invalid_argument(
      (whole.seen ? fmt::format("--worker is '{}', which is not executable", named)
                  : fmt::format("--worker is '{}', must be a program's path, or its name on PATH, "
                                "followed by its arguments",
                                named)) +
      (script ? fmt::format("; for a script: --worker \"python3 {}\"", named) : ""));
}

}  // namespace petlab::orchestrator
