#include "trainer/modules/hyperformer.h"

#include <stdexcept>
#include <utility>

#include "trainer/backbones/blocks.h"
#include "trainer/compute/operations.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {
namespace {

constexpr std::int64_t kPositions = 2;
/// The eps of the norm over the MLP's output, and of the norms after the adapters.
constexpr double kProjectionEps = 1e-6;
constexpr double kAdapterEps = 1e-5;
/// The standard deviation of the initial weights of all linear layers, from the authors' code.
/// Biases start at 0, and embeddings as N(0, 1).
constexpr double kGeneratorDeviation = 0.01;

}  // namespace

Hyperformer::Hyperformer(const ModuleRequest& request, const sweeps::BackboneShape& shape)
    : config_(request.config),
      layers_{shape.encoder_layers, shape.decoder_layers},
      placement_(request.placement),
      seed_(request.seed) {
  const auto make = [&](const char* name, std::vector<std::int64_t> tensor_shape) {
    const std::int64_t size = elements(tensor_shape);
    adapter_tensors_.push_back({name, std::move(tensor_shape), size});
  };
  make("down.weight", {config_.bottleneck, shape.d_model});
  make("down.bias", {config_.bottleneck});
  make("up.weight", {shape.d_model, config_.bottleneck});
  make("up.bias", {shape.d_model});
  make("post_norm.weight", {shape.d_model});
  make("post_norm.bias", {shape.d_model});
  stream_ = static_cast<std::uint64_t>(Init::hyper_task_embedding);
  add("task_embedding", {request.tasks, config_.hyper_embedding}, Start::embedding,
      task_embeddings_);
  // A task's embedding has no gradient before the first batch of that task.
  trained_.back().by_task = true;
  stream_ = static_cast<std::uint64_t>(Init::hyper_encoder);
  add_generator(0, "encoder.");
  stream_ = static_cast<std::uint64_t>(Init::hyper_decoder);
  add_generator(1, "decoder.");
  place_adapters();
}

/// Adds a trained tensor and its leaf.
void Hyperformer::add(const std::string& name, const std::vector<std::int64_t>& shape, Start start,
                      Tensor& leaf) {
  const bool is_random = start == Start::linear || start == Start::embedding;
  Parameter added{name, at::zeros(shape, placement_.trained()),
                  at::zeros(shape, placement_.trained()), Rate::module, /*decayed=*/is_random};
  if (start == Start::ones) added.value.fill_(1);
  if (is_random) {
    const double deviation = start == Start::linear ? kGeneratorDeviation : 1;
    init_normal(added.value, seed_, Init{stream_++}, deviation);
  }
  leaf = added.value.detach().requires_grad_(true);
  leaf.mutable_grad() = added.gradient;
  trained_.push_back(std::move(added));
}

void Hyperformer::add_generator(std::size_t side, const std::string& name) {
  const std::int64_t embedding = config_.hyper_embedding;
  const std::int64_t hidden = config_.hyper_hidden;
  const std::int64_t projected = config_.hyper_projected;
  WeightGenerator& made = generators_[side];
  add(name + "layer_id", {layers_[side], embedding}, Start::embedding, made.layer_id);
  add(name + "position", {kPositions, embedding}, Start::embedding, made.position);
  add(name + "mlp.0.weight", {hidden, 3 * embedding}, Start::linear, made.hidden);
  add(name + "mlp.0.bias", {hidden}, Start::zeros, made.hidden_bias);
  add(name + "mlp.2.weight", {projected, hidden}, Start::linear, made.output);
  add(name + "mlp.2.bias", {projected}, Start::zeros, made.output_bias);
  add(name + "norm.weight", {projected}, Start::ones, made.norm);
  add(name + "norm.bias", {projected}, Start::zeros, made.norm_bias);
  made.weights.resize(adapter_tensors_.size());
  made.biases.resize(adapter_tensors_.size());
  for (std::size_t i = 0; i < adapter_tensors_.size(); ++i) {
    const std::string full_name = name + adapter_tensors_[i].name;
    add(full_name + ".weight", {adapter_tensors_[i].size, projected}, Start::linear,
        made.weights[i]);
    add(full_name + ".bias", {adapter_tensors_[i].size}, Start::zeros, made.biases[i]);
  }
}

/// Allocates the adapters of all layers as one row of numbers, in the order in which merge()
/// generates them. Each of their tensors is a leaf in that memory.
void Hyperformer::place_adapters() {
  const std::int64_t adapters = kPositions * (layers_[0] + layers_[1]);
  std::int64_t numbers = 0;
  for (const AdapterTensor& tensor : adapter_tensors_) numbers += tensor.size;
  adapters_ = at::zeros({numbers * adapters}, placement_.computing());
  adapters_gradient_ = at::zeros_like(adapters_);
  leaves_.resize(static_cast<std::size_t>(adapters), std::vector<Tensor>(adapter_tensors_.size()));
  std::int64_t from = 0;
  std::size_t first = 0;  // index of the stack's first adapter
  for (const std::int64_t layers : layers_) {
    const auto rows = static_cast<std::size_t>(layers * kPositions);
    for (std::size_t i = 0; i < adapter_tensors_.size(); ++i) {
      const AdapterTensor& tensor = adapter_tensors_[i];
      const auto part = [&](const Tensor& all) {
        return all.narrow(0, from, tensor.size).view(tensor.shape);
      };
      for (std::size_t row = 0; row < rows; ++row) {
        Tensor leaf = part(adapters_).detach().requires_grad_(true);
        leaf.mutable_grad() = part(adapters_gradient_);
        leaves_[first + row][i] = std::move(leaf);
        from += tensor.size;
      }
    }
    first += rows;
  }
}

std::vector<StoredTensor> Hyperformer::stored() {
  std::vector<StoredTensor> all;
  for (const Parameter& parameter : trained_) all.push_back({parameter.name, parameter.value});
  return all;
}

/// Generates a stack's adapters: one tensor (layers · 2, size) per AdapterTensor, for all layers
/// and positions.
std::vector<Tensor> Hyperformer::generate(const WeightGenerator& generator,
                                          const Tensor& task_embedding, std::int64_t layers) const {
  const auto at_each_place = [&](const Tensor& embedding) {
    return embedding.expand({layers, kPositions, -1}).flatten(0, 1);
  };
  const Tensor all =
      at::cat({at_each_place(task_embedding), at_each_place(generator.layer_id.unsqueeze(1)),
               at_each_place(generator.position)},
              1);
  const Tensor inner = at::relu(at::linear(all, generator.hidden, generator.hidden_bias));
  const Tensor projected = at::layer_norm(
      at::linear(inner, generator.output, generator.output_bias), {config_.hyper_projected},
      generator.norm, generator.norm_bias, kProjectionEps);
  std::vector<Tensor> generated;
  for (std::size_t i = 0; i < adapter_tensors_.size(); ++i) {
    generated.push_back(at::linear(projected, generator.weights[i], generator.biases[i]));
  }
  return generated;
}

void Hyperformer::merge(std::int64_t task, bool frozen) {
  const at::AutoGradMode with_graph(!frozen && at::GradMode::is_enabled());
  std::vector<Tensor> parts;
  for (std::size_t side = 0; side < layers_.size(); ++side) {
    for (const Tensor& tensor :
         generate(generators_[side], task_embeddings_.select(0, task), layers_[side])) {
      parts.push_back(tensor.flatten());
    }
  }
  generated_ = at::cat(parts);
  const at::NoGradGuard no_grad;
  adapters_.copy_(generated_);
  adapters_gradient_.zero_();
}

void Hyperformer::gather() {
  generated_.backward(adapters_gradient_.to(generated_.scalar_type()));
  generated_.reset();
  adapters_gradient_.zero_();
}

const std::vector<Tensor>& Hyperformer::adapter(std::int64_t layer, Position position) const {
  return leaves_[static_cast<std::size_t>(layer * kPositions +
                                          static_cast<std::int64_t>(position))];
}

std::vector<std::string> Hyperformer::tensor_names() const {
  std::vector<std::string> names;
  for (const AdapterTensor& tensor : adapter_tensors_) names.push_back(tensor.name);
  return names;
}

Tensor Hyperformer::before_dropout(const SubLayerOutput& at) const {
  const bool attends = at.place.site == Site::attention_output;
  const std::vector<Tensor>& tensors =
      adapter(at.place.layer, attends ? Position::attention : Position::feed_forward);
  const Tensor inner =
      activate(apply_linear(at.output, tensors[0], tensors[1]), Activation::gelu_tanh);
  const Tensor outer = apply_linear(inner, tensors[2], tensors[3]);
  return at::layer_norm(outer, {outer.size(1)}, tensors[4], tensors[5], kAdapterEps) + at.output;
}

std::unique_ptr<Module> make_hyperformer(const ModuleRequest& request, const Backbone& backbone) {
  const sweeps::BackboneShape shape = backbone.shape();
  if (shape.decoder_layers == 0) {
    throw std::invalid_argument("module.kind is '" + request.config.kind +
                                "', which needs an encoder and a decoder: the backbone (" +
                                shape.model_type + ") has no decoder");
  }
  return std::make_unique<Hyperformer>(request, shape);
}

}  // namespace petlab::trainer
