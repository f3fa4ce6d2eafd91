#pragma once

#include <string>
#include <vector>

namespace petlab::cli {

/// Words of a command line by the present names of commands.
struct PresentWords {
  std::vector<std::string> words;
  std::string note;  // for the user; empty: there was no former name
};

/// Replaces the former name of a command, which earlier releases had, at the beginning of `words`.
/// Help, completion and the manual page do not show former names.
PresentWords present_words(std::vector<std::string> words);

}  // namespace petlab::cli
