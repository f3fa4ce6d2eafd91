#include "metrics/storage.h"

namespace petlab::metrics {

std::string_view to_string(MaskKind mask) {
  switch (mask) {
    case MaskKind::none:
      return "none";
    case MaskKind::learned:
      return "learned";
    case MaskKind::random:
      return "random";
  }
  return "none";
}

std::optional<MaskKind> mask_kind_from(std::string_view text) {
  for (const MaskKind mask : {MaskKind::none, MaskKind::learned, MaskKind::random}) {
    if (text == to_string(mask)) return mask;
  }
  return std::nullopt;
}

std::int64_t zeros_in_mask(double sparsity_ratio, std::int64_t n) {
  return static_cast<std::int64_t>((1.0 - sparsity_ratio) * static_cast<double>(n));
}

double bls_percent(double bits, std::int64_t backbone_parameters) {
  return 100.0 * bits / (32.0 * static_cast<double>(backbone_parameters));
}

}  // namespace petlab::metrics
