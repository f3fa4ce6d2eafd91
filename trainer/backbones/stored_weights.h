#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// The weights of a Hugging Face folder as named tensors, whatever file they came from.
struct StoredWeights {
  struct Entry {
    TensorView tensor;
    std::string file;  // where it was read from, for messages
  };
  std::string source;  // the file that was asked for (the index where sharded)
  std::map<std::string, Entry, std::less<>> tensors;
};

/// Reads the first of `model.safetensors`, `model.safetensors.index.json`, `pytorch_model.bin` in
/// `folder`; safetensors are memory-mapped, a .bin's contiguous tensors too. Throws Error: none of
/// them there, or what is wrong with which file and tensor.
StoredWeights open_weights(const std::filesystem::path& folder);
/// One file of any of these kinds, told apart by its extension (.safetensors, .index.json, .bin).
StoredWeights open_weights_file(const std::filesystem::path& file);

/// The weight map of an index, tensor: file. Every file is a plain name, so that nothing outside
/// the index's own folder is ever opened. `file` stands for the index in messages. Throws Error.
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& file);

/// A tensor that a backbone needs.
struct WantedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// The tensors that a backbone asked for, by its own names (without prefix).
struct BackboneWeights {
  std::map<std::string, TensorView, std::less<>> tensors;
  /// Names among the stored weights that nobody asked for and that are no known head or buffer.
  std::vector<std::string> unused;
};

/// Picks `wanted` out of `weights`. The first of `prefixes` ("roberta.") that occurs among
/// them is stripped. Names that begin with one of `ignored` (after stripping) are heads and
/// buffers and are left out silently. Throws Error naming file and tensor: every missing one in
/// one message; a misshapen one with found and expected shape (never reshaped); one that is not
/// F16, BF16 or F32 with its dtype.
BackboneWeights pick_weights(const StoredWeights& weights, std::span<const WantedTensor> wanted,
                             std::span<const std::string_view> prefixes,
                             std::span<const std::string_view> ignored);

}  // namespace petlab::trainer
