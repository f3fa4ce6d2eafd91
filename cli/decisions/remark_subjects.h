#pragma once

#include <string>
#include <vector>

#include "cli/options/trial_arguments.h"
#include "results/remarks.h"

namespace petlab::cli {

/// --sweep, --db and --runs of the commands that tag or annotate trials and sweeps.
struct RemarkArguments : StoredArguments {
  std::vector<std::string> sweeps;
};
void add_remark_arguments(CLI::App& app, RemarkArguments& arguments, Streams streams);

/// The trials with the given id prefixes and the sweeps of --sweep. Throws std::invalid_argument if
/// one of them does not exist, before anything is written.
std::vector<results::RemarkSubject> remark_subjects(const results::Reader& reader,
                                                    const RemarkArguments& arguments,
                                                    const std::vector<std::string>& trials);

/// The id, or `sweep NAME`.
std::string subject_text(const results::RemarkSubject& subject);

}  // namespace petlab::cli
