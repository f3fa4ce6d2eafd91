#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace petlab::metrics {

/// A backbone of the paper, with the numbers for storage percentages; its files are not needed.
struct PublishedBackbone {
  std::string_view name;
  std::int64_t d_model = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;  // 0: encoder only
  /// Number of weights when fully fine-tuned (reference/method.md, "Bit-level storage").
  std::int64_t parameters = 0;
  /// L, the number of layers with a module.
  std::int64_t layers() const { return encoder_layers + decoder_layers; }
};

/// roberta-base, t5-base, t5-3b.
std::span<const PublishedBackbone> published_backbones();

/// The row with that name, or nullptr.
const PublishedBackbone* find_published_backbone(std::string_view name);

}  // namespace petlab::metrics
