#pragma once

#include <string>
#include <vector>

namespace petlab::cli {

/// A command line with the current names of commands.
struct PresentWords {
  std::vector<std::string> words;
  std::string note;  // for the user; empty if no name was replaced
};

/// Replaces a command name of earlier releases at the beginning of `words`. Help, completion and
/// the manual page do not show these names.
PresentWords present_words(std::vector<std::string> words);

}  // namespace petlab::cli
