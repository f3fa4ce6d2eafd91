#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace petlab::metrics {

/// A backbone of the paper: what storage percentages need, without its files.
struct PublishedBackbone {
  std::string_view name;
  std::int64_t d_model = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;  // 0: an encoder alone
  /// Weights when fully fine-tuned (reference/method.md, "Bit-level storage").
  std::int64_t parameters = 0;
  /// L, the layers that carry a module.
  std::int64_t layers() const { return encoder_layers + decoder_layers; }
};

/// roberta-base, t5-base, t5-3b.
std::span<const PublishedBackbone> published_backbones();

/// The row of that name; nullptr where there is none.
const PublishedBackbone* find_published_backbone(std::string_view name);

}  // namespace petlab::metrics
