// petlab-fetch: `petlab fetch` replaces itself by this program, with the same arguments. Some
// thirty libraries for downloads would double the start-up time of every `petlab`.
#include <array>
#include <iostream>

#include "base/standard_output.h"
#include "cli/command_line.h"
#include "cli/fetching/downloads.h"

int main(int argc, char** argv) {
  using petlab::cli::Subcommand;
  petlab::base::StandardOutput output;
  const std::array<Subcommand, 1> table = {
      Subcommand{"fetch", "", "download backbones and data", petlab::cli::make_downloads}};
  return output.end("petlab",
                    petlab::cli::run(table, argc, argv, {std::cin, std::cout, std::cerr}));
}
