#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "metrics/storage.h"

namespace petlab::protocol {

/// The sections of an artifact (docs/reference/artifact.md). Values and masks are what the paper
/// counts.
enum class ArtifactSectionKind : std::uint32_t { values = 1, masks = 2, head = 3, positions = 4 };
std::string_view to_string(ArtifactSectionKind kind);

/// A run of bits in the file; the last byte is filled up with zero bits.
struct ArtifactSection {
  ArtifactSectionKind kind = ArtifactSectionKind::values;
  std::uint64_t bits = 0;
  std::string_view bytes;  // into the file's bytes, (bits + 7) / 8 of them
};

/// The container of an artifact: what is known without looking at tensors.
struct ArtifactContainer {
  std::uint32_t version = 0;
  std::string header;  // JSON as text
  std::vector<ArtifactSection> sections;
  /// nullptr where there is no such section.
  const ArtifactSection* find(ArtifactSectionKind kind) const;
  /// 0 where there is no such section.
  std::uint64_t bits(ArtifactSectionKind kind) const;
};

constexpr std::uint32_t kArtifactVersion = 1;

/// Checks magic, version, sizes and checksums. The result's sections point into `bytes`. Throws
/// base::Error naming `name`, what was found and what was expected.
ArtifactContainer parse_artifact_container(std::string_view bytes, const std::string& name);

/// A section to be written, its bytes in pieces wherever they lie; the last byte of the last is
/// filled up with zero bits.
struct ArtifactSectionPieces {
  ArtifactSectionKind kind = ArtifactSectionKind::values;
  std::uint64_t bits = 0;
  std::vector<std::string_view> pieces;
};
/// A container's bytes: `beginning` (head, section table and header), then the pieces of the
/// sections as they were given, with zeros between.
struct ArtifactPieces {
  std::string beginning;
  std::vector<std::string_view> rest;
};
/// Sections in the given order; `header` is JSON as text. Copies no section.
ArtifactPieces make_artifact_pieces(const std::string& header,
                                    const std::vector<ArtifactSectionPieces>& sections);

/// The container as bytes. Sections in the given order; `header` is JSON as text.
std::string make_artifact_container(const std::string& header,
                                    const std::vector<ArtifactSection>& sections);

/// What `petlab storage ARTIFACT` shows.
struct ArtifactStorage {
  std::string trial_id;
  std::string config;                            // JSON as text
  std::optional<metrics::ModuleStorage> module;  // absent: the kind has no storage formula
  std::optional<double> bls_bits;                // as published: the formula; absent as `module`
  std::uint64_t values_bits = 0;                 // as stored
  std::uint64_t masks_bits = 0;
  std::uint64_t positions_bits = 0;  // not counted
  std::uint64_t head_bits = 0;       // not counted
  std::uint64_t file_bytes = 0;
  std::uint64_t stored_bits() const { return values_bits + masks_bits; }
};

/// An artifact's sizes. Throws base::Error naming the file, resp. `name`.
ArtifactStorage artifact_storage(std::string_view bytes, const std::string& name);
ArtifactStorage read_artifact_storage(const std::filesystem::path& file);

/// The module's shape as the header's field `module`. from: throws base::Error naming the field,
/// also for sizes whose storage does not fit 62 bits.
nlohmann::ordered_json to_json(const metrics::ModuleStorage& module);
metrics::ModuleStorage module_storage_from_json(const nlohmann::json& json);

}  // namespace petlab::protocol
