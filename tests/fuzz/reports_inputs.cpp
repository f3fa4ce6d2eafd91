#include "tests/fuzz/reports_inputs.h"

#include <stdexcept>
#include <string>

#include "base/file_problems.h"
#include "reports/definition.h"

namespace petlab::fuzz {

void report_definition(std::string_view input) {
  try {
    const reports::Definition read = reports::parse_definition(std::string(input), "r.yaml");
    if (read.name.empty() || read.sections.empty()) {
      throw std::logic_error("an accepted definition has no name or no section");
    }
  } catch (const base::FileProblemsError& error) {
    for (const std::string& problem : error.problems()) {
      if (problem.rfind("r.yaml:", 0) != 0) {
        throw std::logic_error("a problem does not name its file: " + problem);
      }
    }
    if (error.problems().empty()) throw std::logic_error("a refused definition has no problem");
  }
}

}  // namespace petlab::fuzz
