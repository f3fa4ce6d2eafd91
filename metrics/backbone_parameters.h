#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace petlab::metrics {

/// Sizes of a BERT or RoBERTa encoder.
struct EncoderSize {
  std::int64_t vocab_size = 0;
  std::int64_t positions = 0;  // rows of the position table
  std::int64_t token_types = 0;
  std::int64_t d_model = 0;
  std::int64_t d_ff = 0;
  std::int64_t layers = 0;
};

/// Sizes of a T5.
struct Seq2SeqSize {
  std::int64_t vocab_size = 0;
  std::int64_t d_model = 0;
  std::int64_t d_attention = 0;  // heads · d_head
  std::int64_t heads = 0;
  std::int64_t d_ff = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;
  std::int64_t relative_buckets = 32;
  bool gated_ff = false;        // T5 1.1: two input projections
  bool tied_embeddings = true;  // output projection shared with the embedding
};

/// Weights of the fully fine-tuned backbone as the paper counts them: embeddings, layers and
/// pooler.
std::int64_t backbone_parameters(const EncoderSize& size);
/// Embeddings, both stacks with their final norms, and the output projection where it is untied.
std::int64_t backbone_parameters(const Seq2SeqSize& size);

/// A backbone of the paper, for storage without its files.
struct PublishedBackbone {
  std::string_view name;
  std::int64_t d_model = 0;
  std::int64_t layers = 0;  // L, encoder and decoder together
  std::int64_t parameters = 0;
};

/// roberta-base, t5-base, t5-3b.
std::span<const PublishedBackbone> published_backbones();
/// The row of that name; nullptr where there is none.
const PublishedBackbone* find_published_backbone(std::string_view name);

}  // namespace petlab::metrics
