#pragma once

#include <cstdint>

#include "trainer/backbones/backbone.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/t5_config.h"

namespace petlab::trainer {

/// Draws the weights of an untrained T5, initialised as in Hugging Face with `factor`
/// (config.json's initializer_factor): embedding and untied output projection N(0, 1), queries N(0,
/// (d_model · d_kv)^-1/2), keys, values, positions and inner projections N(0, d_model^-1/2),
/// projections that read heads or the inner layer N(0, width^-1/2); norms are 1.
Backbone::Weights random_t5_weights(const T5Config& config, double factor, std::uint64_t seed);

/// Draws the weights of an untrained BERT or RoBERTa, initialised as in Hugging Face: matrices and
/// embeddings N(0, deviation) (config.json's initializer_range), but 0 for the embedding of the
/// padding token (and of RoBERTa's padding position); biases are 0, norms 1.
Backbone::Weights random_encoder_weights(const EncoderConfig& config, double deviation,
                                         std::uint64_t seed);

}  // namespace petlab::trainer
