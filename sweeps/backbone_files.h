#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::sweeps {

// Which files of a backbone's folder count, and are fetched; all others are passed over.

/// What decides a backbone's numbers beside its weights: its configuration and its tokenizer.
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

/// In the order in which the trainer looks for weights; only the first that is there is read.
inline constexpr std::array<std::string_view, 4> kWeightFiles = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json"};

/// The files that the index of a sharded checkpoint names, sorted, each once. Throws sweeps::Error
/// where it is no such index, or names something else than files beside it.
std::vector<std::string> shards_of(const std::filesystem::path& index);

/// The weights of a backbone's folder: one file, or an index and behind it its shards. Throws
/// sweeps::Error where there are none.
std::vector<std::string> weight_files(const std::filesystem::path& folder);

}  // namespace petlab::sweeps
