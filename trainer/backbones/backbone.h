#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/backbone.h"
#include "trainer/backbones/hooks.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/placement.h"
#include "trainer/compute/torch.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

/// A site in one layer, where a module can be attached.
struct Carrier {
  Site site = Site::query;
  std::int64_t layer = 0;
  std::int64_t width_in = 0;   // of the site's input: a projection's or a sub-layer's
  std::int64_t width_out = 0;  // of its output; for prefixes, of keys and of values
  bool operator==(const Carrier&) const = default;
};

/// The part of the last layer that is computed.
enum class LastLayer {
  all_tokens,    // (tokens, d_model)
  first_tokens,  // (sequences, d_model): enough for a head on the first token, and cheaper
};

/// The dropout rates from the checkpoint's config.json.
struct DropoutRates {
  double hidden = 0;
  double attention = 0;
};

/// A pretrained model, as modules, objectives and the training loop see it. Immutable, so trials
/// can share it one after another.
class Backbone {
 public:
  using Weights = std::map<std::string, Tensor, std::less<>>;

  virtual ~Backbone() = default;
  virtual sweeps::BackboneShape shape() const = 0;
  /// The carriers of a site, in the order of the layers; empty if the backbone lacks the site.
  virtual std::vector<Carrier> carriers(Site site) const = 0;
  virtual const Placement& placement() const = 0;
  virtual DropoutRates dropout_rates() const = 0;
  /// The maximum number of tokens in a sequence, special ones included.
  virtual std::int64_t max_tokens() const = 0;

  /// Weights by their names in the checkpoint, without prefix. Matrices are (out, in).
  virtual const Weights& weights() const = 0;
  /// Whether weight decay applies to this weight: not to biases and norms.
  virtual bool is_decayed(std::string_view weight) const = 0;
  /// Creates the same model with other weights of the same names and shapes.
  virtual std::unique_ptr<Backbone> with_weights(Weights weights) const = 0;

  /// Computes the last layer's output. `dropout` is nullptr outside training. If `hidden_states` is
  /// given, it receives (tokens, d_model) of the embeddings and of each layer (for the last one, as
  /// `last` says).
  virtual Tensor encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                        const Dropout* dropout = nullptr,
                        std::vector<Tensor>* hidden_states = nullptr) const = 0;
  /// The positions of a padded row's tokens: 0, 1, 2, …, unless the model counts them otherwise.
  virtual std::vector<std::int64_t> positions(std::span<const std::int64_t> ids) const;
};

inline std::vector<std::int64_t> Backbone::positions(std::span<const std::int64_t> ids) const {
  std::vector<std::int64_t> counted(ids.size());
  std::iota(counted.begin(), counted.end(), 0);
  return counted;
}

/// Whether the backbone generates texts: it has a decoder.
inline bool is_text_to_text(const Backbone& backbone) {
  return backbone.shape().decoder_layers > 0;
}

}  // namespace petlab::trainer
