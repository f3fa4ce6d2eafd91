#include "metrics/backbone_parameters.h"

#include <array>

namespace petlab::metrics {
namespace {

constexpr std::int64_t linear(std::int64_t in, std::int64_t out) { return in * out + out; }

constexpr std::int64_t count(const EncoderSize& size) {
  const std::int64_t d = size.d_model;
  const std::int64_t norm = 2 * d;
  const std::int64_t embeddings = (size.vocab_size + size.positions + size.token_types) * d + norm;
  const std::int64_t attention = 4 * linear(d, d) + norm;
  const std::int64_t feed_forward = linear(d, size.d_ff) + linear(size.d_ff, d) + norm;
  return embeddings + size.layers * (attention + feed_forward) + linear(d, d);
}

// T5's projections have no bias, its norms a weight only.
constexpr std::int64_t count(const Seq2SeqSize& size) {
  const std::int64_t d = size.d_model;
  const std::int64_t embedding = size.vocab_size * d;
  const std::int64_t attention = 4 * d * size.d_attention + d;
  const std::int64_t feed_forward = (size.gated_ff ? 3 : 2) * d * size.d_ff + d;
  const std::int64_t encoder = size.encoder_layers * (attention + feed_forward) + d;
  const std::int64_t decoder = size.decoder_layers * (2 * attention + feed_forward) + d;
  // One table of position biases a stack.
  const std::int64_t positions = 2 * size.relative_buckets * size.heads;
  return embedding * (size.tied_embeddings ? 1 : 2) + encoder + decoder + positions;
}

constexpr EncoderSize kRobertaBase{50265, 514, 1, 768, 3072, 12};
constexpr Seq2SeqSize kT5Base{32128, 768, 768, 12, 3072, 12, 12};
constexpr Seq2SeqSize kT53b{32128, 1024, 4096, 32, 16384, 24, 24};

constexpr std::array<PublishedBackbone, 3> kTable = {{
    {"roberta-base", kRobertaBase.d_model, 12, count(kRobertaBase)},
    {"t5-base", kT5Base.d_model, 24, count(kT5Base)},
    {"t5-3b", kT53b.d_model, 48, count(kT53b)},
}};

}  // namespace

std::int64_t backbone_parameters(const EncoderSize& size) { return count(size); }
std::int64_t backbone_parameters(const Seq2SeqSize& size) { return count(size); }

std::span<const PublishedBackbone> published_backbones() { return kTable; }

const PublishedBackbone* find_published_backbone(std::string_view name) {
  for (const PublishedBackbone& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace petlab::metrics
