#include "cli/decisions/remark_subjects.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "base/nearest_word.h"
#include "orchestrator/recovery/control.h"
#include "reports/text.h"

namespace petlab::cli {

void add_remark_arguments(CLI::App& app, RemarkArguments& arguments, Streams streams) {
  add_sweep_option(app, arguments.sweeps, arguments, streams,
                   "a sweep's name or file (repeatable)");
  add_stored_arguments(app, arguments);
}

std::vector<results::RemarkSubject> remark_subjects(const results::Reader& reader,
                                                    const RemarkArguments& arguments,
                                                    const std::vector<std::string>& trials) {
  std::vector<results::RemarkSubject> found;
  for (const std::string& text : trials) {
    found.push_back({orchestrator::find_trial(reader, arguments.database_path(), text), ""});
  }
  const std::vector<std::string> names = reader.sweep_names();
  for (const std::string& sweep : arguments.sweeps) {
    if (std::find(names.begin(), names.end(), sweep) == names.end()) {
      const std::vector<std::string_view> known(names.begin(), names.end());
      throw std::invalid_argument("--sweep: " + base::unknown_word("sweep", sweep, known));
    }
    found.push_back({"", sweep});
  }
  return found;
}

std::string subject_text(const results::RemarkSubject& subject) {
  return subject.trial_id.empty() ? "sweep " + reports::printable(subject.sweep) : subject.trial_id;
}

}  // namespace petlab::cli
