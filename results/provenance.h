#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::results::internal {

class Connection;

// Where numbers come from, within a transaction of the caller's. Texts are stored once, as the
// attempts of a run have few that differ.

/// Who says it.
enum class Teller { petlab, worker };

/// Keeps what is said of an attempt, JSON as text; nothing where it is empty.
void record_provenance(Connection& connection, std::int64_t attempt, Teller teller,
                       const std::string& text);

void record_sweep_text(Connection& connection, std::string_view digest, std::string_view text);

}  // namespace petlab::results::internal
