#include "trainer/backbones/padded.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <stdexcept>

namespace petlab::trainer {
namespace {

void require_below(const std::vector<std::int64_t>& ids, std::int64_t bound, const char* what) {
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= bound) {
      throw std::invalid_argument(c10::str(what, " holds ", id, ", must be from 0 to ", bound - 1));
    }
  }
}

}  // namespace

EncoderInput pack_padded(const Tensor& ids, const Tensor& mask, const Tensor& type_ids,
                         const Backbone& backbone) {
  if (ids.dim() != 2 || mask.sizes() != ids.sizes() ||
      (type_ids.defined() && type_ids.sizes() != ids.sizes())) {
    throw std::invalid_argument(
        "input_ids, attention_mask and token_type_ids must be (sequences, length), all alike");
  }
  const Tensor all_ids = ids.to(at::kLong).contiguous();
  const Tensor all_mask = mask.to(at::kLong).contiguous();
  const Tensor all_types =
      type_ids.defined() ? type_ids.to(at::kLong).contiguous() : at::zeros_like(all_ids);
  EncoderInput input;
  PackedSequences& packed = input.sequences;
  const std::int64_t length = ids.size(1);
  for (std::int64_t s = 0; s < ids.size(0); ++s) {
    const std::int64_t* const row = all_ids.const_data_ptr<std::int64_t>() + s * length;
    const std::int64_t* const kept = all_mask.const_data_ptr<std::int64_t>() + s * length;
    const std::int64_t* const types = all_types.const_data_ptr<std::int64_t>() + s * length;
    const std::vector<std::int64_t> positions =
        backbone.positions({row, static_cast<std::size_t>(length)});
    for (std::int64_t i = 0; i < length; ++i) {
      if (kept[i] == 0) continue;
      packed.ids.push_back(row[i]);
      input.type_ids.push_back(types[i]);
      input.position_ids.push_back(positions[static_cast<std::size_t>(i)]);
    }
    const auto tokens = static_cast<std::int64_t>(packed.ids.size());
    if (packed.offsets.back() == tokens) {
      throw std::invalid_argument(c10::str("row ", s, " of attention_mask has no 1"));
    }
    packed.offsets.push_back(tokens);
    packed.examples.push_back(s);
  }
  packed.trial_sequences = {0, packed.sequences()};
  const sweeps::BackboneShape shape = backbone.shape();
  require_below(packed.ids, shape.vocab_size, "input_ids");
  require_below(input.type_ids, std::max<std::int64_t>(1, shape.type_vocab_size), "token_type_ids");
  if (shape.max_positions > 0) {
    require_below(input.position_ids, shape.max_positions, "the positions of input_ids");
  }
  return input;
}

Tensor unpack_padded(const Tensor& packed, const Tensor& mask) {
  const Tensor kept = mask.to(at::kBool);
  Tensor padded = at::zeros({mask.size(0), mask.size(1), packed.size(1)}, packed.options());
  padded.index_put_({kept}, packed);
  return padded;
}

}  // namespace petlab::trainer
