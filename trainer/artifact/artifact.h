#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/storage.h"
#include "trainer/artifact/shared_floats.h"

namespace petlab::trainer {

/// A tensor stored with 32 bits per element. Its numbers may be in a trained model or a mapped
/// file, so that an artifact as large as its backbone takes no extra memory.
struct ArtifactTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  SharedFloats values;  // row-major
  bool operator==(const ArtifactTensor&) const = default;
};

/// A mask, stored with one bit per element.
struct ArtifactMask {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> mask;  // row-major, 0 or 1
  bool operator==(const ArtifactMask&) const = default;
};

/// A tensor of which only the kept elements are stored (only_mask). `kept` goes to the section of
/// positions, which does not count as storage.
struct ArtifactSparse {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;       // row-major; elements that are not kept are read back as +0
  std::vector<std::uint8_t> kept;  // row-major, 0 or 1
  bool operator==(const ArtifactSparse&) const = default;
};

/// A trial's trained module in memory. docs/reference/artifact.md describes the format on disk.
struct Artifact {
  std::string trial_id;
  std::string config = "{}";                     // the trial's configuration, JSON as text
  std::string backbone_digest;                   // may be empty
  std::string numerics;                          // the trainer's numerics version
  std::int64_t step = 0;                         // the selected optimizer step
  std::optional<metrics::ModuleStorage> module;  // if the module has a storage formula
  std::map<std::string, std::vector<std::string>> labels;  // by task; regression tasks have none
  std::vector<ArtifactTensor> values;
  std::vector<ArtifactSparse> sparse;
  std::vector<ArtifactMask> masks;
  std::vector<ArtifactTensor> head;  // does not count as storage
};

/// The number of bits of values (dense and kept ones) and masks, as stored. If `module` is set, it
/// equals metrics::stored_bits(*module).
std::int64_t stored_bits(const Artifact& artifact);

/// Returns the file's bytes (docs/reference/artifact.md). Throws std::invalid_argument for shapes
/// that do not fit sizes, duplicate names, or stored_bits that differ from the formula.
std::string artifact_bytes(const Artifact& artifact);

/// Writes the bytes to a temporary file, syncs and renames it. Throws as artifact_bytes, and Error
/// with the file's name for errors of the system.
void write_artifact(const std::filesystem::path& file, const Artifact& artifact);

/// Reads an artifact, bit-identical to the written one. Dense values and heads are views of the
/// mapped file. Throws std::runtime_error, with the file and what was found and expected, for a
/// truncated or damaged file or another version.
Artifact read_artifact(const std::filesystem::path& file);
/// The same from bytes, which are copied. `name` replaces the file in messages.
Artifact parse_artifact(std::string_view bytes, const std::string& name);

}  // namespace petlab::trainer
