#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace petlab::cli {

/// The help format of all commands, at most 80 columns wide. The program's own help lists the
/// commands by group.
std::shared_ptr<CLI::FormatterBase> help_format();

/// Marks an option as advanced: the help lists it below the common ones.
CLI::Option* advanced(CLI::Option* option);

/// Marks an option as brief: the help shows only its name, next to options of the same metric. Its
/// description begins with the metric and a colon: "bleu: longest n-grams (4)".
CLI::Option* brief(CLI::Option* option);

/// The descriptions of a command's brief options, one per line.
std::string brief_options_text(const CLI::App& app);

}  // namespace petlab::cli
