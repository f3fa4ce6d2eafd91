#pragma once

#include <cstdint>

#include "trainer/backbones/backbone.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/t5_config.h"

namespace petlab::trainer {

/// Weights of a T5 that was not trained, drawn from the seed as Hugging Face initialises them with
/// `factor` (config.json's initializer_factor): embedding and own output projection N(0, 1),
/// queries N(0, (d_model · d_kv)^-1/2), keys, values, positions and inner projections
/// N(0, d_model^-1/2), what reads heads or the inner layer N(0, width^-1/2); norms are 1.
Backbone::Weights random_t5_weights(const T5Config& config, double factor, std::uint64_t seed);

/// Weights of a BERT or RoBERTa that was not trained, as Hugging Face initialises them: matrices
/// and embeddings N(0, deviation) (config.json's initializer_range), but 0 for the padding token's
/// words (and RoBERTa's padding position); biases are 0, norms 1.
Backbone::Weights random_encoder_weights(const EncoderConfig& config, double deviation,
                                         std::uint64_t seed);

}  // namespace petlab::trainer
