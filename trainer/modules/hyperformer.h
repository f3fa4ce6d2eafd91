#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sweeps/backbone.h"
#include "trainer/modules/module.h"

namespace petlab::trainer {

/// Hyperformer++ (reference/method.md; Mahabadi et al. 2021): adapters on the self-attention and
/// the feed-forward of each layer, before dropout, with a norm after each: y <-
/// LN(up(gelu(down(y)))) + y.
///
/// Their weights are not trained but generated, by one generator for the encoder and one for the
/// decoder: e = (embedding of the task; of the layer; of the position in the layer), z = LN(W2
/// relu(W1 e + b1) + b2), and each tensor is G z + g in row-major order. Both stacks share a task's
/// embedding.
class Hyperformer final : public Module {
 public:
  /// An adapter's place in its layer, and the row of its embedding.
  enum class Position { feed_forward = 0, attention = 1 };

  /// The backbone must have an encoder and a decoder.
  Hyperformer(const ModuleRequest& request, const sweeps::BackboneShape& shape);

  std::vector<Parameter> parameters() override { return trained_; }
  std::vector<StoredTensor> stored() override;
  /// Generates all adapters for a batch of `task`.
  void merge(std::int64_t task, bool frozen) override;
  void gather() override;
  bool acts_on(Site site) const override {
    return site == Site::attention_output || site == Site::feed_forward_output;
  }
  Tensor before_dropout(const SubLayerOutput& at) const override;

  /// The adapter's tensors at a position of a layer (decoder layers after the encoder's), as
  /// merge() generated them: (out, in) or (out), in the order of tensor_names().
  const std::vector<Tensor>& adapter(std::int64_t layer, Position position) const;
  /// down.weight, down.bias, up.weight, up.bias, post_norm.weight, post_norm.bias.
  std::vector<std::string> tensor_names() const;

 private:
  /// A generated tensor of an adapter.
  struct AdapterTensor {
    std::string name;
    std::vector<std::int64_t> shape;  // (out, in), or (out)
    std::int64_t size = 0;            // number of elements
  };
  /// The generator of a stack's adapters. Its leaves share the memory of the parameters.
  struct WeightGenerator {
    Tensor layer_id, position;    // (layers, E), (2, E)
    Tensor hidden, hidden_bias;   // (H, 3 E), (H)
    Tensor output, output_bias;   // (P, H), (P)
    Tensor norm, norm_bias;       // (P)
    std::vector<Tensor> weights;  // for each AdapterTensor: (size, P)
    std::vector<Tensor> biases;   // for each AdapterTensor: (size)
  };
  /// The initial values of a trained tensor.
  enum class Start { zeros, ones, linear, embedding };

  void add(const std::string& name, const std::vector<std::int64_t>& shape, Start start,
           Tensor& leaf);
  void add_generator(std::size_t side, const std::string& name);
  void place_adapters();
  std::vector<Tensor> generate(const WeightGenerator& generator, const Tensor& task_embedding,
                               std::int64_t layers) const;

  sweeps::ModuleConfig config_;
  std::array<std::int64_t, 2> layers_;  // of the encoder, of the decoder
  std::vector<AdapterTensor> adapter_tensors_;
  Placement placement_;
  std::uint64_t seed_;
  std::uint64_t stream_ = 0;  // for the next tensor with random initial values
  std::vector<Parameter> trained_;
  Tensor task_embeddings_;                     // (tasks, E)
  std::array<WeightGenerator, 2> generators_;  // of the encoder, of the decoder
  Tensor generated_;  // (numbers of all adapters), with the graph back to the generators
  Tensor adapters_, adapters_gradient_;      // the same in the backbone's type
  std::vector<std::vector<Tensor>> leaves_;  // (layer · 2 + position, AdapterTensor)
};

}  // namespace petlab::trainer
