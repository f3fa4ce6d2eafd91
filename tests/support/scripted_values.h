#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace petlab::testing {

/// The next state of a worker without a model (splitmix64): any wrong resume changes all that
/// follow.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
/// A value in [0, 1).
inline double unit(std::uint64_t x) { return static_cast<double>(x >> 11) * 0x1.0p-53; }

/// The files of a backbone that such a worker does not read. Creates the folder.
inline void write_unread_backbone(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2,
 "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100,
 "max_position_embeddings": 64, "type_vocab_size": 2})";
  std::ofstream(folder / "model.safetensors") << "weights\n";
  std::ofstream(folder / "vocab.txt") << "[PAD]\n";
}

}  // namespace petlab::testing
