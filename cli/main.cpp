#include <iostream>

#include "base/standard_output.h"
#include "cli/command_line.h"

int main(int argc, char** argv) {
  petlab::base::StandardOutput output;
  return output.end("petlab", petlab::cli::run(argc, argv, {std::cin, std::cout, std::cerr}));
}
