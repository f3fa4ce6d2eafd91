#include "metrics/published_backbones.h"

#include <array>

namespace petlab::metrics {
namespace {

constexpr std::array<PublishedBackbone, 3> kBackbones = {{
    {"roberta-base", 768, 12, 0, 124'645'632},
    {"t5-base", 768, 12, 12, 222'903'552},
    {"t5-3b", 1024, 24, 24, 2'851'598'336},
}};

}  // namespace

std::span<const PublishedBackbone> published_backbones() { return kBackbones; }

const PublishedBackbone* find_published_backbone(std::string_view name) {
  for (const PublishedBackbone& row : kBackbones) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace petlab::metrics
