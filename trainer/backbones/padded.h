#pragma once

#include "trainer/backbones/backbone.h"

namespace petlab::trainer {

/// Packs a padded batch in the format of Hugging Face models: ids, mask (1 = token) and type ids
/// (sequences, length), int64; `type_ids` may be undefined (all 0). Positions are those in the
/// padded rows. Throws std::invalid_argument for other shapes, ids outside the tables or a row
/// without tokens.
EncoderInput pack_padded(const Tensor& ids, const Tensor& mask, const Tensor& type_ids,
                         const Backbone& backbone);

/// The inverse for hidden states: (tokens, d) to (sequences, length, d), zero where mask is 0.
Tensor unpack_padded(const Tensor& packed, const Tensor& mask);

}  // namespace petlab::trainer
