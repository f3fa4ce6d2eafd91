#pragma once

#include <memory>
#include <string>

namespace CLI {
class FormatterBase;
class Option;
}  // namespace CLI

namespace petlab::cli {

/// How every command prints its help: at most 80 columns wide. The program's own help is the list
/// of commands in their groups.
std::shared_ptr<CLI::FormatterBase> help_format();

/// Lists an option below the common ones in the help.
CLI::Option* advanced(CLI::Option* option);

}  // namespace petlab::cli
