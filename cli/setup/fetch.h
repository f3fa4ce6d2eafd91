#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// The parsed arguments of `petlab fetch`.
struct FetchArguments {
  bool of_backbone = false;  // otherwise data
  std::string backbone;
  std::string revision = "main";
  std::vector<std::string> tasks;
  std::string server;  // server of the data; empty: the default
  std::string into;    // empty: where petlab looks for it
  std::int64_t retries = 5;
  double retry_delay = 1;  // seconds
};

/// Adds the options of `petlab fetch`, which write to `arguments` on parsing.
void add_fetch_options(CLI::App& app, FetchArguments& arguments);

/// `petlab fetch`: downloads backbones and data to the places where petlab looks for them. Only the
/// options are defined here: petlab-fetch (cli/fetching/) does the work.
std::function<int()> make_fetch(CLI::App& app, Streams streams);

}  // namespace petlab::cli
