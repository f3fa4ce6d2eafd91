#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "results/attempt.h"
#include "results/store.h"

namespace petlab::results {

/// Numbers of examples that a trial was trained and scored on, as reported by its worker at the
/// end; empty if it did not. Throws Error, as Reader.
Examples examples_of(const Reader& reader, const AttemptRef& attempt);

/// Does the same for the results of all trials of a sweep, by trial id. Omits hidden trials and
/// those without numbers. Uses one statement; equal numbers are read once and shared.
std::unordered_map<std::string, std::shared_ptr<const Examples>> examples_in(
    const Reader& reader, const std::string& sweep);

namespace internal {

class Connection;

/// The SQL that creates the tables if they are missing, and the SELECT of the view
/// `attempt_examples`.
extern const char* const kExampleTables;
extern const char* const kExamplesView;

/// Stores numbers of examples with an attempt, unless they are empty. Must be called in a
/// transaction. Stores each text once, because most attempts of a run have the same.
void record_examples(Connection& connection, std::int64_t attempt, const Examples& examples);

}  // namespace internal
}  // namespace petlab::results
