#include <iostream>

#include "cli/subcommand.h"

int main(int argc, char** argv) {
  return petlab::cli::run(argc, argv, {std::cin, std::cout, std::cerr});
}
