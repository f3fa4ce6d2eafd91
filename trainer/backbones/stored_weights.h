#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// The weights of a Hugging Face folder as named tensors, independent of the file format.
struct StoredWeights {
  struct Entry {
    TensorView tensor;
    std::string file;  // the file that contains it, for messages
  };
  std::string source;  // the file that was opened (the index if sharded)
  std::map<std::string, Entry, std::less<>> tensors;
};

/// Reads the first of `model.safetensors`, `model.safetensors.index.json`, `pytorch_model.bin` in
/// `folder`. Safetensors and contiguous tensors of a .bin are memory-mapped. Throws Error if none
/// exists, or naming the faulty file and tensor.
StoredWeights open_weights(const std::filesystem::path& folder);
/// Reads one of these files; its extension decides the format (.safetensors, .index.json, .bin).
StoredWeights open_weights_file(const std::filesystem::path& file);

/// Parses the weight map of an index: tensor to file. File names must be plain, so that no file
/// outside the index's folder is ever opened. `file` names the index in messages. Throws Error.
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& file);

/// A tensor that a backbone needs.
struct WantedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// The tensors of a backbone, by its own names (without prefix).
struct BackboneWeights {
  std::map<std::string, TensorView, std::less<>> tensors;
  /// Names of stored weights that the backbone does not use and that are no known head or buffer.
  std::vector<std::string> unused;
};

/// Selects `wanted` from `weights`. Strips the first of `prefixes` (such as "roberta.") that occurs
/// among the names. Names that then begin with one of `ignored` are heads and buffers, and are
/// skipped silently. Throws Error with file and tensor: all missing tensors in one message; a
/// tensor of the wrong shape, with both shapes (never reshaped); a dtype other than F16, BF16 and
/// F32.
BackboneWeights pick_weights(const StoredWeights& weights, std::span<const WantedTensor> wanted,
                             std::span<const std::string_view> prefixes,
                             std::span<const std::string_view> ignored);

}  // namespace petlab::trainer
