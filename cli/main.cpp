#include <iostream>

#include "cli/subcommand.h"
#include "sweeps/standard_output.h"

int main(int argc, char** argv) {
  petlab::sweeps::StandardOutput output;
  return output.end("petlab", petlab::cli::run(argc, argv, {std::cin, std::cout, std::cerr}));
}
