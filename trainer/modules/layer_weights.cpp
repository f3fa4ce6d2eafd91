#include "trainer/modules/layer_weights.h"

namespace petlab::trainer {

std::vector<LayerWeight> layer_weights(std::string_view kind, std::int64_t d, std::int64_t size) {
  if (kind == "adapter") {
    return {{"down.weight", {size, d}},
            {"down.bias", {size}},
            {"up.weight", {d, size}},
            {"up.bias", {d}}};
  }
  if (kind == "lora") {
    return {{"query.lora_A", {size, d}},
            {"query.lora_B", {d, size}},
            {"value.lora_A", {size, d}},
            {"value.lora_B", {d, size}}};
  }
  if (kind == "prefix") return {{"P", {size, 2 * d}}};
  return {};
}

}  // namespace petlab::trainer
