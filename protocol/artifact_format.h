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

/// The sections of an artifact (docs/reference/artifact.md). The paper counts values and masks.
enum class ArtifactSectionKind : std::uint32_t { values = 1, masks = 2, head = 3, positions = 4 };
std::string_view to_string(ArtifactSectionKind kind);

/// A bit sequence in the file; its last byte is padded with zero bits.
struct ArtifactSection {
  ArtifactSectionKind kind = ArtifactSectionKind::values;
  std::uint64_t bits = 0;
  std::string_view bytes;  // (bits + 7) / 8 bytes, in the file's bytes
};

/// The container of an artifact, without an interpretation of its tensors.
struct ArtifactContainer {
  std::uint32_t version = 0;
  std::string header;  // JSON
  std::vector<ArtifactSection> sections;
  /// nullptr if the section does not exist.
  const ArtifactSection* find(ArtifactSectionKind kind) const;
  /// 0 if the section does not exist.
  std::uint64_t bits(ArtifactSectionKind kind) const;
};

constexpr std::uint32_t kArtifactVersion = 1;

/// Checks magic, version, sizes and checksums. The result's sections point into `bytes`. Throws
/// base::Error naming `name`, what was found and what was expected.
ArtifactContainer parse_artifact_container(std::string_view bytes, const std::string& name);

/// A section to be written, with its bytes in separate pieces. The last byte must be padded with
/// zero bits.
struct ArtifactSectionPieces {
  ArtifactSectionKind kind = ArtifactSectionKind::values;
  std::uint64_t bits = 0;
  std::vector<std::string_view> pieces;
};
/// A container's bytes: `beginning` (head, section table and header), then the given pieces with
/// zeros between the sections.
struct ArtifactPieces {
  std::string beginning;
  std::vector<std::string_view> rest;
};
/// Keeps the order of the sections and copies none. `header` is JSON.
ArtifactPieces make_artifact_pieces(const std::string& header,
                                    const std::vector<ArtifactSectionPieces>& sections);

/// The container as bytes, with the sections in the given order. `header` is JSON.
std::string make_artifact_container(const std::string& header,
                                    const std::vector<ArtifactSection>& sections);

/// The contents of `petlab storage ARTIFACT`.
struct ArtifactStorage {
  std::string trial_id;
  std::string config;                            // JSON
  std::optional<metrics::ModuleStorage> module;  // absent if this kind has no storage formula
  std::optional<double> bls_bits;                // by the published formula; absent if `module` is
  std::uint64_t values_bits = 0;                 // as stored
  std::uint64_t masks_bits = 0;
  std::uint64_t positions_bits = 0;  // not counted
  std::uint64_t head_bits = 0;       // not counted
  std::uint64_t file_bytes = 0;
  std::uint64_t stored_bits() const { return values_bits + masks_bits; }
};

/// Computes an artifact's sizes. Throws base::Error naming the file or `name`.
ArtifactStorage artifact_storage(std::string_view bytes, const std::string& name);
ArtifactStorage read_artifact_storage(const std::filesystem::path& file);

/// Converts a module's shape to and from the header's field `module`. Reading throws base::Error
/// naming the field, also for sizes whose storage exceeds 62 bits.
nlohmann::ordered_json to_json(const metrics::ModuleStorage& module);
metrics::ModuleStorage module_storage_from_json(const nlohmann::json& json);

}  // namespace petlab::protocol
