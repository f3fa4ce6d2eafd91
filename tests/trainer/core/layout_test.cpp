// Packed and padded batches must give the same loss and gradients.
#include <cmath>
#include <limits>
#include <map>

#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/core/tiny_world.h"
#include "trainer/backbones/encoder.h"
#include "trainer/backbones/padded.h"
#include "trainer/modules/head.h"
#include "trainer/modules/module.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::check_relative;
using petlab::testing::TinyWorld;

namespace {

constexpr std::int64_t kLength = 9;
const std::vector<std::int64_t> kLengths{3, 9, 1, 5};

struct PaddedBatch {
  Tensor ids, mask;  // (sequences, length); ids after a sequence's end must not matter
  Tensor classes;    // (sequences)
};

PaddedBatch make_batch() {
  PaddedBatch batch;
  const auto sequences = static_cast<std::int64_t>(kLengths.size());
  batch.ids = at::empty({sequences, kLength}, at::kLong);
  batch.mask = at::zeros({sequences, kLength}, at::kLong);
  for (std::int64_t s = 0; s < sequences; ++s) {
    for (std::int64_t i = 0; i < kLength; ++i) batch.ids[s][i] = 1 + (5 * s + 3 * i) % 13;
    batch.mask[s].narrow(0, 0, kLengths[static_cast<std::size_t>(s)]).fill_(1);
  }
  batch.classes = at::tensor({0, 1, 1, 0}, at::kLong);
  return batch;
}

/// The encoder on (sequences · length) rows, padding included, computed by LibTorch's operations.
class PaddedEncoder {
 public:
  PaddedEncoder(const Encoder& encoder, const Module& module, const Dropout& dropout,
                const PaddedBatch& batch)
      : encoder_(encoder), module_(module), dropout_(dropout), batch_(batch) {
    for (std::int64_t s = 0; s < batch.ids.size(0); ++s) {
      for (std::int64_t i = 0; i < kLength; ++i) keys_.push_back({0, s, i});
    }
    rows_ = {0, static_cast<std::int64_t>(keys_.size())};
  }

  /// The states of the first tokens, (sequences, d_model).
  Tensor forward() const {
    const Tensor positions = at::arange(kLength, at::kLong).repeat({batch_.ids.size(0)});
    Tensor x = at::embedding(weight("embeddings.word_embeddings.weight"), batch_.ids.flatten()) +
               at::embedding(weight("embeddings.position_embeddings.weight"), positions) +
               weight("embeddings.token_type_embeddings.weight")[0];
    x = drop(norm("embeddings.LayerNorm")(x), Purpose::embedding_dropout, 0);
    for (std::int64_t l = 0; l < encoder_.config().num_layers; ++l) x = layer(l, x);
    return x.view({batch_.ids.size(0), kLength, -1}).select(1, 0);
  }

 private:
  const Tensor& weight(const std::string& name) const { return encoder_.weights().at(name); }
  LayerNorm norm(const std::string& name) const {
    return {weight(name + ".weight"), weight(name + ".bias"), encoder_.config().layer_norm_eps};
  }
  Tensor linear(const std::string& name, const Tensor& x) const {
    return at::linear(x, weight(name + ".weight"), weight(name + ".bias"));
  }
  Tensor drop(const Tensor& x, Purpose purpose, std::int64_t l) const {
    return x * dropout_multipliers({dropout_, dropout_.hidden, purpose, l, keys_}, x.size(1),
                                   x.scalar_type());
  }

  Tensor close(Site site, std::int64_t l, const Tensor& output, const Tensor& residual,
               const LayerNorm& after, Purpose purpose) const {
    const Tensor dropped = drop(output, purpose, l);
    if (!module_.acts_after_dropout(site)) return after(dropped + residual);
    const Tensor sum = after(dropped + residual);
    return after(module_.after_dropout({{site, l, rows_}, dropped, sum}) + dropped + residual);
  }

  Tensor layer(std::int64_t l, const Tensor& x) const {
    const std::string name = "encoder.layer." + std::to_string(l) + ".";
    const auto projection = [&](const char* which) {
      return linear(name + "attention.self." + which, x);
    };
    const auto changed = [&](Site site, const Tensor& output) {
      return module_.acts_on(site) ? module_.projected({{site, l, rows_}, x, output}) : output;
    };
    const Tensor seen = attention(l, changed(Site::query, projection("query")), projection("key"),
                                  changed(Site::value, projection("value")));
    const Tensor attended =
        close(Site::attention_output, l, linear(name + "attention.output.dense", seen), x,
              norm(name + "attention.output.LayerNorm"), Purpose::attention_output_dropout);
    const Tensor inner = at::gelu(linear(name + "intermediate.dense", attended));
    return close(Site::feed_forward_output, l, linear(name + "output.dense", inner), attended,
                 norm(name + "output.LayerNorm"), Purpose::feed_forward_output_dropout);
  }

  Tensor attention(std::int64_t l, const Tensor& query, const Tensor& key,
                   const Tensor& value) const {
    const std::int64_t sequences = batch_.ids.size(0);
    const std::int64_t heads = encoder_.config().num_heads;
    const auto split = [&](const Tensor& rows, std::int64_t from) {
      return rows.view({from, -1, heads, rows.size(1) / heads}).transpose(1, 2);
    };
    Tensor k = split(key, sequences);
    Tensor v = split(value, sequences);
    Tensor mask = batch_.mask;
    if (const auto prefix = module_.prefix({Site::keys_and_values, l, rows_})) {
      const auto repeated = [&](const Tensor& all) {
        const Tensor values = split(all[0], 1);
        return values.expand({sequences, values.size(1), values.size(2), values.size(3)});
      };
      k = at::cat({repeated(prefix->keys), k}, 2);
      v = at::cat({repeated(prefix->values), v}, 2);
      mask = at::cat({at::ones({sequences, prefix->keys.size(1)}, at::kLong), mask}, 1);
    }
    const Tensor q = split(query, sequences);
    const Tensor logits =
        at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
    const Tensor hidden = (mask == 0).view({sequences, 1, 1, -1});
    const Tensor seen =
        at::softmax(logits.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    return at::matmul(seen, v).transpose(1, 2).reshape({-1, query.size(1)});
  }

  const Encoder& encoder_;
  const Module& module_;
  const Dropout& dropout_;
  const PaddedBatch& batch_;
  std::vector<RowKey> keys_;
  std::vector<std::int64_t> rows_;
};

}  // namespace

TEST_CASE("Packed and padded batches give the same loss and gradients", "[trainer]") {
  const TinyWorld world;
  const PaddedBatch batch = make_batch();
  for (const std::string kind : {"adapter", "lora", "prefix"}) {
    for (const metrics::MaskKind mask : {metrics::MaskKind::none, metrics::MaskKind::learned}) {
      const Encoder encoder = Encoder::load(world.folder.path() / "tiny");
      ModuleRequest request;
      request.config = world.trial(kind).config.module;
      request.config.share = mask != metrics::MaskKind::none;
      request.config.mask = mask;
      request.seed = 5;
      const auto module = make_module(request, encoder);
      Head head(encoder.config().d_model, 2, request.seed, 0, Placement());
      std::vector<Parameter> parameters = module->parameters();
      for (const Parameter& parameter : head.parameters()) parameters.push_back(parameter);
      for (Parameter& parameter : parameters) {
        // LoRA's B starts at 0, which would leave A without a gradient.
        if (parameter.name.ends_with("lora_B")) parameter.value.fill_(0.1);
      }
      Dropout dropout;
      dropout.hidden = 0.2;
      dropout.step = 3;
      dropout.seeds = {request.seed};
      const EncoderInput packed = pack_padded(batch.ids, batch.mask, {}, encoder);

      const auto run = [&](bool padded) {
        for (Parameter& parameter : parameters) parameter.gradient.zero_();
        module->merge();
        const Tensor first =
            padded ? PaddedEncoder(encoder, *module, dropout, batch).forward()
                   : encoder.encode(packed, *module, LastLayer::first_tokens, &dropout);
        const Tensor loss = summed_loss(
            sweeps::TaskKind::classification,
            head.forward(first, first_token_rows(packed.sequences), &dropout), batch.classes);
        loss.backward();
        module->gather();
        std::map<std::string, Tensor> found{{"loss", loss.detach().clone()}};
        for (const Parameter& parameter : parameters) {
          found.emplace(parameter.name, parameter.gradient.clone());
        }
        return found;
      };
      const auto wanted = run(true);
      const auto found = run(false);
      REQUIRE(found.size() == parameters.size() + 1);
      for (const auto& [name, gradient] : wanted) {
        CHECK(gradient.abs().max().item<double>() > 0);
        check_relative(kind + " " + name, found.at(name), gradient, 1e-5);
      }
    }
  }
}
