#include "metrics/backbone_parameters.h"

#include "tests/support/catch.h"

using namespace petlab::metrics;

TEST_CASE("the paper's backbones have the parameter counts that reproduce its percentages",
          "[metrics]") {
  CHECK(find_published_backbone("roberta-base")->parameters == 124'645'632);
  CHECK(find_published_backbone("t5-base")->parameters == 222'903'552);
  CHECK(find_published_backbone("t5-3b")->parameters == 2'851'598'336);
  CHECK(find_published_backbone("gpt2") == nullptr);
}

TEST_CASE("an encoder counts embeddings, layers and pooler", "[metrics]") {
  // 2 tokens, 3 positions, 1 type, d 2, ff 4, 1 layer, worked by hand.
  const std::int64_t embeddings = (2 + 3 + 1) * 2 + 4;
  const std::int64_t layer = 4 * (4 + 2) + 4 + (8 + 4) + (8 + 2) + 4;
  const std::int64_t pooler = 4 + 2;
  CHECK(backbone_parameters(EncoderSize{2, 3, 1, 2, 4, 1}) == embeddings + layer + pooler);
}

TEST_CASE("a gated T5 with an output projection of its own counts both", "[metrics]") {
  Seq2SeqSize size{10, 4, 8, 2, 16, 1, 1};
  const std::int64_t plain = backbone_parameters(size);
  size.gated_ff = true;
  CHECK(backbone_parameters(size) == plain + 2 * 4 * 16);
  size.tied_embeddings = false;
  CHECK(backbone_parameters(size) == plain + 2 * 4 * 16 + 10 * 4);
}
