#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace petlab::cli {

/// How every command prints its help: at most 80 columns wide. The program's own help is the list
/// of commands in their groups.
std::shared_ptr<CLI::FormatterBase> help_format();

/// Lists an option below the common ones in the help.
CLI::Option* advanced(CLI::Option* option);

/// Lists an option of one metric by its name only, next to those of the same metric. Its
/// description begins with the metric and a colon: "bleu: longest n-grams (4)".
CLI::Option* brief(CLI::Option* option);

/// The brief options of a command with their descriptions, one per line.
std::string brief_options_text(const CLI::App& app);

}  // namespace petlab::cli
