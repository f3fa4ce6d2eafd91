#pragma once

#include <cstdint>
#include <string>

namespace petlab::bench {

/// Training steps of a ProPETL adapter (bottleneck 64, k 0.5) on a T5, for seq2seq_peers.py --also.
struct TextSteps {
  std::string checkpoint;  // a folder with config.json and model.safetensors
  std::string pairs;  // a file with one batch per line, an example being "source:target" in tokens
  int threads = 1;
  int warm = 1;  // number of times the first batch is trained before timing starts
};
void time_text_steps(const TextSteps& options);

/// Text generation by a T5, for the same script.
struct TextGeneration {
  std::string checkpoint;
  std::string inputs;  // a file with one JSON list of ids per line, the end token last
  std::string ids;     // output file: one JSON list of ids per line, in the order of the inputs
  int threads = 1;
  std::int64_t batch = 64;  // inputs per batch, in order of length
  std::int64_t beams = 4;
  std::int64_t new_tokens = 32;
};
void time_generation(const TextGeneration& options);

}  // namespace petlab::bench
