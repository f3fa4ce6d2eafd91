#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "results/attempt.h"

namespace petlab::results::internal {

class Connection;

// The origin of numbers. Must be called in a transaction. Each text is stored once, because the
// attempts of a run share most of them.

/// The source of a provenance text.
enum class ProvenanceSource { petlab, worker };

/// The provenance texts of an attempt; empty where it has none.
Provenance provenance_of(Connection& connection, std::int64_t attempt);

/// Stores a provenance text (JSON) with an attempt, unless it is empty.
void record_provenance(Connection& connection, std::int64_t attempt, ProvenanceSource source,
                       const std::string& text);

void record_sweep_text(Connection& connection, std::string_view digest, std::string_view text);

}  // namespace petlab::results::internal
