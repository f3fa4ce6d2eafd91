#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "results/store.h"

namespace petlab::results {

/// What an attempt ran, as far as it is recorded: names with their digest or version. The names are
/// `script` (the files of the worker's command), `tree` (the tracked files of its repository),
/// `python`, `libtorch`, `package NAME` and `module NAME` (a file of the user).
using Code = std::map<std::string, std::string>;

/// The code of an attempt.
struct RanCode {
  std::string record;  // digest of its protocol::CodeRecord; empty if it has none
  Code parts;
};

/// The members of petlab's provenance that come from Launch::code, as JSON text; empty if none.
std::string launch_code_of(const Provenance& said);

RanCode code_of(const Provenance& said);

/// The code of the attempts whose values count, or that a trial without a result may resume, by
/// trial. A trial that was resumed has several. Trials without recorded code are missing.
using CodeByTrial = std::unordered_map<std::string, std::vector<std::shared_ptr<const RanCode>>>;
CodeByTrial code_of_trials(const Reader& reader, const std::vector<std::string>& ids);

/// The names that have different values in `all`, with those values. What one of them lacks is
/// unknown there, and no difference.
std::map<std::string, std::set<std::string>> differing_code(
    const std::set<std::shared_ptr<const RanCode>>& all);

/// A difference in words: "script", "tracked files", "module helper", "numpy 1.0 | 2.0".
std::string code_difference_text(const std::string& name, const std::set<std::string>& values);

}  // namespace petlab::results
