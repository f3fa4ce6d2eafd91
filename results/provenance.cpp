#include "results/provenance.h"

#include "results/connection.h"
#include "results/schema.h"
#include "results/snapshot.h"
#include "results/store.h"
#include "sweeps/worker_catalog.h"

namespace petlab::results {

namespace internal {

void record_provenance(Connection& connection, std::int64_t attempt, ProvenanceSource source,
                       const std::string& text) {
  if (text.empty()) return;
  const auto key_of_text = [&] {
    Query find(connection, "SELECT key FROM provenance_texts WHERE text = ?1");
    return find.with(text).step() ? find.integer(0) : std::int64_t{0};
  };
  std::int64_t key = key_of_text();
  if (key == 0) {
    Query(connection, "INSERT INTO provenance_texts (text) VALUES (?1)").with(text).run();
    key = key_of_text();
  }
  Query(connection, source == ProvenanceSource::petlab
                        ? "INSERT INTO provenance (attempt, petlab) VALUES (?1, ?2) ON CONFLICT "
                          "(attempt) DO UPDATE SET petlab = coalesce(petlab, ?2)"
                        : "INSERT INTO provenance (attempt, worker) VALUES (?1, ?2) ON CONFLICT "
                          "(attempt) DO UPDATE SET worker = ?2")
      .with(attempt)
      .with(key)
      .run();
}

Provenance provenance_of(Connection& connection, std::int64_t attempt) {
  Query row(connection,
            "SELECT (SELECT text FROM provenance_texts WHERE key = petlab), (SELECT text FROM "
            "provenance_texts WHERE key = worker) FROM provenance WHERE attempt = ?1");
  return row.with(attempt).step() ? Provenance{row.text(0), row.text(1)} : Provenance();
}

void record_sweep_text(Connection& connection, std::string_view digest, std::string_view text) {
  Query(connection, "INSERT OR IGNORE INTO sweep_texts (digest, text) VALUES (?1, ?2)")
      .with(digest)
      .with(text)
      .run();
  if (text.starts_with(sweeps::kCatalogStart)) extend_views(connection);
}

}  // namespace internal

Provenance Reader::provenance(const AttemptRef& attempt) const {
  return internal::reading(*connection_,
                           [&] { return internal::provenance_of(*connection_, attempt.key); });
}

std::optional<std::string> Reader::sweep_text(const std::string& digest) const {
  return internal::reading(*connection_, [&]() -> std::optional<std::string> {
    internal::Query row(*connection_, "SELECT text FROM sweep_texts WHERE digest = ?1");
    if (!row.with(digest).step()) return std::nullopt;
    return row.text(0);
  });
}

}  // namespace petlab::results
