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

// Groups of options of which the help shows only the names.
inline constexpr const char* kMetricOptions =
    "Options of one metric (petlab score --list describes them)";
inline constexpr const char* kSlurmOptions = "Slurm options (petlab help slurm describes them)";

/// Adds an option of one metric. In the help, it shares a line with that metric's others, so its
/// description begins with the metric and a colon: "bleu: longest n-grams (4)".
CLI::Option* of_metric(CLI::Option* option);
/// Adds an option of the Slurm launcher.
CLI::Option* for_slurm(CLI::Option* option);

/// The descriptions of the command's options in such a group, one per line.
std::string brief_options_text(const CLI::App& app, const std::string& group);

}  // namespace petlab::cli
