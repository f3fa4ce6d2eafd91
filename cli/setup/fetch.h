#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// What `petlab fetch` was asked for.
struct FetchArguments {
  bool of_backbone = false;  // else data
  std::string backbone;
  std::string revision = "main";
  std::vector<std::string> tasks;
  std::string server;  // of data; empty: the usual one
  std::string into;    // empty: where petlab looks
  std::int64_t retries = 5;
  double retry_delay = 1;  // seconds
};

/// The options of `petlab fetch`, written to `arguments` when the command line is parsed.
void add_fetch_options(CLI::App& app, FetchArguments& arguments);

/// `petlab fetch`: what it reads from elsewhere, brought to where it looks for it. The options
/// alone: petlab-fetch (cli/fetching/) runs it.
std::function<int()> make_fetch(CLI::App& app, Streams streams);

}  // namespace petlab::cli
