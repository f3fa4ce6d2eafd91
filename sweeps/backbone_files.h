#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::sweeps {

// The files of a backbone's folder that are read and fetched; all others are ignored.

/// Files besides the weights that determine a backbone's numbers: its configuration and tokenizer.
inline constexpr std::array<std::string_view, 11> kBackboneFiles = {"config.json",
                                                                    "vocab.txt",
                                                                    "vocab.json",
                                                                    "merges.txt",
                                                                    "spiece.model",
                                                                    "tokenizer.model",
                                                                    "sentencepiece.bpe.model",
                                                                    "tokenizer.json",
                                                                    "tokenizer_config.json",
                                                                    "special_tokens_map.json",
                                                                    "added_tokens.json"};

/// Weight files in the trainer's order of preference; only the first existing one is read.
inline constexpr std::array<std::string_view, 4> kWeightFiles = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json"};

/// The files named by the index of a sharded checkpoint, sorted, without repeats. Throws
/// sweeps::Error if it is not such an index, or names anything but files next to it.
std::vector<std::string> shards_of(const std::filesystem::path& index);

/// The weight files of a backbone's folder: one file, or an index followed by its shards. Throws
/// sweeps::Error if there are none.
std::vector<std::string> weight_files(const std::filesystem::path& folder);

}  // namespace petlab::sweeps
