#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab tag`.
std::function<int()> make_tag(CLI::App& app, Streams streams);

/// The words of a `petlab tag` command line with `-bad` written as `--remove=bad`, for the parser,
/// which would take it for options. What begins with two dashes, and -h, stays.
std::vector<std::string> tag_words(std::vector<std::string> words);

}  // namespace petlab::cli
