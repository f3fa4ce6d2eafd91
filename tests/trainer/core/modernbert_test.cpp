#include "trainer/backbones/modernbert.h"

#include <stdexcept>

#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/core/tiny_world.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::check_relative;

namespace {

/// Two trials' sequences of tiny-modernbert's words, two of them longer than its windows.
EncoderInput modern_input() {
  EncoderInput input;
  PackedSequences& sequences = input.sequences;
  sequences.ids = {2, 5, 3, 2, 10, 7, 9, 11, 5, 3, 2, 3, 2, 6, 12, 8, 13, 3};
  sequences.offsets = {0, 3, 10, 12, 18};
  sequences.examples = {4, 1, 0, 2};
  sequences.trial_sequences = {0, 2, 4};
  return input;
}

ModernBert tiny_modernbert(const testing::TinyWorld& world) {
  return ModernBert::load(world.folder.path() / "tiny-modernbert");
}

}  // namespace

TEST_CASE("a ModernBERT's first tokens alone equal those of all tokens", "[trainer]") {
  const testing::TinyWorld world;
  const ModernBert model = tiny_modernbert(world);
  const EncoderInput input = modern_input();
  const at::NoGradGuard no_grad;
  const Tensor all = model.encode(input, Hooks(), LastLayer::all_tokens);
  const Tensor firsts = model.encode(input, Hooks(), LastLayer::first_tokens);
  check_relative("first tokens", firsts, all.index_select(0, at::tensor({0, 3, 10, 12}, at::kLong)),
                 1e-5);
}

TEST_CASE("a ModernBERT refuses positions with a gap and accepts shifted ones", "[trainer]") {
  const testing::TinyWorld world;
  const ModernBert model = tiny_modernbert(world);
  EncoderInput input = modern_input();
  const at::NoGradGuard no_grad;
  const Tensor wanted = model.encode(input, Hooks(), LastLayer::all_tokens);
  input.position_ids = {4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 1, 2, 0, 1, 2, 3, 4, 5};
  // Rotary positions are relative, so padding before a text changes nothing.
  check_relative("shifted", model.encode(input, Hooks(), LastLayer::all_tokens), wanted, 1e-5);
  input.position_ids[2] = 7;
  CHECK_THROWS_WITH(model.encode(input, Hooks(), LastLayer::all_tokens),
                    "sequence 0 has a gap in its positions, must have none: a window of "
                    "ModernBERT's attention would not count it");
}

TEST_CASE("a ModernBERT's dropout acts where Hugging Face's does", "[trainer]") {
  const testing::TinyWorld world;
  const ModernBert model = tiny_modernbert(world);
  CHECK(model.dropout_rates().hidden == 0.1);
  CHECK(model.dropout_rates().attention == 0.1);
  const EncoderInput input = modern_input();
  const at::NoGradGuard no_grad;
  Dropout dropout;
  dropout.hidden = 0.5;
  dropout.seeds = {1, 2};
  std::vector<Tensor> hidden, plain;
  model.encode(input, Hooks(), LastLayer::all_tokens, &dropout, &hidden);
  model.encode(input, Hooks(), LastLayer::all_tokens, nullptr, &plain);
  // About half of the embeddings are 0 and the others doubled. No sub-layer's end zeroes a value.
  const Tensor kept = hidden[0] != 0;
  CHECK(kept.to(at::kDouble).mean().item<double>() == Approx(0.5).margin(0.1));
  check_relative("kept", hidden[0], at::where(kept, 2 * plain[0], at::zeros_like(plain[0])), 1e-6);
  // Layers without feed-forward weights differ only by dropout of attention's output: x + 2 · y or
  // x.
  ModernBert::Weights weights = model.weights();
  for (auto& [name, tensor] : weights) {
    if (name.ends_with("mlp.Wo.weight")) tensor = at::zeros_like(tensor);
    if (name.ends_with("attn.Wo.weight") && !name.starts_with("layers.0.")) {
      tensor = at::zeros_like(tensor);
    }
  }
  const auto attentive = model.with_weights(weights);
  dropout.hidden = 0.5;
  hidden.clear();
  attentive->encode(input, Hooks(), LastLayer::all_tokens, &dropout, &hidden);
  const Tensor change = hidden[1] - hidden[0];
  CHECK((change == 0).to(at::kDouble).mean().item<double>() == Approx(0.5).margin(0.1));
  for (std::size_t l = 2; l + 1 < hidden.size(); ++l) CHECK(at::equal(hidden[l], hidden[1]));
}
