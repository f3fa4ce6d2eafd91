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

/// A tensor that is stored in 32 bits an element. Its numbers may lie in a trained model or in a
/// mapped file, so that an artifact as large as its backbone takes no memory of its own.
struct ArtifactTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  SharedFloats values;  // row-major
  bool operator==(const ArtifactTensor&) const = default;
};

/// A mask, stored in one bit an element.
struct ArtifactMask {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> mask;  // row-major, 0 or 1
  bool operator==(const ArtifactMask&) const = default;
};

/// A tensor of which only the kept elements are stored (only_mask); `kept` goes to the section of
/// positions, which the formula does not count.
struct ArtifactSparse {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;       // row-major; read back as +0 where not kept
  std::vector<std::uint8_t> kept;  // row-major, 0 or 1
  bool operator==(const ArtifactSparse&) const = default;
};

/// A trial's trained module, in memory. docs/reference/artifact.md has the format on disk.
struct Artifact {
  std::string trial_id;
  std::string config = "{}";                     // the trial's configuration, JSON as text
  std::string backbone_digest;                   // may be empty
  std::string numerics;                          // the trainer's numerics version
  std::int64_t step = 0;                         // optimizer step that was selected
  std::optional<metrics::ModuleStorage> module;  // where the module has a storage formula
  std::map<std::string, std::vector<std::string>> labels;  // by task; none for regression
  std::vector<ArtifactTensor> values;
  std::vector<ArtifactSparse> sparse;
  std::vector<ArtifactMask> masks;
  std::vector<ArtifactTensor> head;  // not counted
};

/// Bits of values (dense and kept ones) and masks, as stored. Where `module` is given it equals
/// metrics::stored_bits(*module).
std::int64_t stored_bits(const Artifact& artifact);

/// The file's bytes (docs/reference/artifact.md). Throws std::invalid_argument where shapes and
/// sizes disagree, a name is there twice, or where stored_bits is not the formula's.
std::string artifact_bytes(const Artifact& artifact);

/// Writes them under a temporary name, synced and renamed. Throws as artifact_bytes does, and Error
/// naming the file for what the system refuses.
void write_artifact(const std::filesystem::path& file, const Artifact& artifact);

/// Reads it back, bit-identical; dense values and heads are views into the mapped file. Throws
/// std::runtime_error naming the file and what was found and expected (truncated, damaged, older or
/// newer version).
Artifact read_artifact(const std::filesystem::path& file);
/// The same from bytes, which are copied; `name` stands for the file in messages.
Artifact parse_artifact(std::string_view bytes, const std::string& name);

}  // namespace petlab::trainer
