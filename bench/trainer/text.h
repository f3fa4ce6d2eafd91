#pragma once

#include <cstdint>
#include <string>

namespace petlab::bench {

/// Training steps of a ProPETL adapter (bottleneck 64, k 0.5) on a T5, for seq2seq_peers.py --also.
struct TextSteps {
  std::string checkpoint;  // a folder with config.json and model.safetensors
  std::string pairs;       // a file: a batch a line, an example "source:target" in tokens
  int threads = 1;
  int warm = 1;  // times that the first batch is trained before the clock starts
};
void time_text_steps(const TextSteps& options);

/// Texts that a T5 writes, for the same.
struct TextGeneration {
  std::string checkpoint;
  std::string inputs;  // a file: a JSON list of ids a line, the end token last
  std::string ids;     // a file to write: a JSON list of ids a line, in the order of the inputs
  int threads = 1;
  std::int64_t batch = 64;  // inputs at once, in order of length
  std::int64_t beams = 4;
  std::int64_t new_tokens = 32;
};
void time_generation(const TextGeneration& options);

}  // namespace petlab::bench
