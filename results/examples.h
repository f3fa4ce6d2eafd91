#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "results/attempt.h"
#include "results/store.h"

namespace petlab::results {

/// On how many examples a trial was trained and scored, as its worker said when it finished.
/// Empty: it said nothing. Throws Error, as Reader.
Examples examples_of(const Reader& reader, const AttemptRef& attempt);

/// The same of the results of a sweep's trials, by trial; those of which nothing was said are left
/// out, and so are hidden trials. One statement; what several trials have in common is read once
/// and shared.
std::unordered_map<std::string, std::shared_ptr<const Examples>> examples_in(
    const Reader& reader, const std::string& sweep);

namespace internal {

class Connection;

/// Their tables, where they are not there yet, and the SELECT of the view `attempt_examples`.
extern const char* const kExampleTables;
extern const char* const kExamplesView;

/// Keeps them with the attempt, within a transaction of the caller's; nothing where there are none.
/// The text is stored once, as most attempts of a run have the same.
void record_examples(Connection& connection, std::int64_t attempt, const Examples& examples);

}  // namespace internal
}  // namespace petlab::results
