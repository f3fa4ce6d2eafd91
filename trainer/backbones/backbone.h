#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

/// A place that can carry a module: a site in one of the layers.
struct Carrier {
  Site site = Site::query;
  std::int64_t layer = 0;
  std::int64_t width_in = 0;   // of what goes into the site: a projection's or sub-layer's input
  std::int64_t width_out = 0;  // of what comes out of it; of the keys and of the values
  bool operator==(const Carrier&) const = default;
};

/// What is computed of the last layer.
enum class LastLayer {
  all_tokens,    // (tokens, d_model)
  first_tokens,  // (sequences, d_model): what a head on the first token needs, at less cost
};

/// The rates of dropout that a checkpoint was trained with.
struct DropoutRates {
  double hidden = 0;
  double attention = 0;
};

/// A pretrained model as modules, objectives and the loop see it. Immutable, usable by several
/// trials one after the other.
class Backbone {
 public:
  using Weights = std::map<std::string, Tensor, std::less<>>;

  virtual ~Backbone() = default;
  virtual sweeps::BackboneShape shape() const = 0;
  /// The carriers of a site in the order of the layers; none where it has no such site.
  virtual std::vector<Carrier> carriers(Site site) const = 0;
  virtual const Placement& placement() const = 0;
  virtual DropoutRates dropout_rates() const = 0;
  /// Tokens that a sequence can have at most, special ones included.
  virtual std::int64_t max_tokens() const = 0;

  /// By the names of the checkpoint, without prefix; (out, in) where they are matrices.
  virtual const Weights& weights() const = 0;
  /// Whether weight decay is for the weight of that name: not for biases and norms.
  virtual bool is_decayed(std::string_view weight) const = 0;
  /// The same model with other weights of the same names and shapes.
  virtual std::unique_ptr<Backbone> with_weights(Weights weights) const = 0;

  /// The last layer's output. `dropout` is nullptr outside training.
  virtual Tensor encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                        const Dropout* dropout) const = 0;
};

/// Whether it writes texts: it reads sources and has a decoder.
inline bool is_text_to_text(const Backbone& backbone) {
  return backbone.shape().decoder_layers > 0;
}

}  // namespace petlab::trainer
