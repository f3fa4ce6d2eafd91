#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab tag`.
std::function<int()> make_tag(CLI::App& app, Streams streams);

/// Rewrites `-bad` as `--remove=bad` in the words of a `petlab tag` command line, because the
/// parser would read it as an option. Words with two leading dashes, and -h, are kept.
std::vector<std::string> tag_words(std::vector<std::string> words);

}  // namespace petlab::cli
