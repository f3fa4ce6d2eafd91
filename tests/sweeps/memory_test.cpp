#include "sweeps/memory.h"

#include <vector>

#include "sweeps/catalog.h"
#include "tests/support/catch.h"

namespace petlab::sweeps {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

/// Two layers with width 8, feed-forward width 16 and two heads; 1,544 parameters with embeddings
/// and pooler.
BackboneShape small_encoder() {
  BackboneShape shape;
  shape.model_type = "bert";
  shape.d_model = 8;
  shape.encoder_layers = 2;
  shape.heads = 2;
  shape.d_head = 4;
  shape.d_ff = 16;
  shape.vocab_size = 10;
  shape.max_positions = 20;
  shape.type_vocab_size = 2;
  return shape;
}

BackboneShape small_t5() {
  BackboneShape shape = small_encoder();
  shape.model_type = "t5";
  shape.encoder_layers = 1;
  shape.decoder_layers = 1;
  shape.vocab_size = 100;
  shape.max_positions = 0;
  shape.type_vocab_size = 0;
  shape.relative_buckets = 32;
  return shape;
}

/// Steps of 512 texts with 8 tokens each.
TrialConfig config_of(const std::string& kind) {
  TrialConfig config = default_config(kind);
  config.tasks = {"cola"};
  config.training.batch_size = 512;
  config.data.max_tokens = 8;
  config.module.bottleneck = 2;
  config.module.rank = 2;
  return config;
}

const std::vector<TaskDeclaration> kCola{*find_task("cola")};

TaskDeclaration texts() {
  TaskDeclaration task;
  task.name = "texts";
  task.kind = TaskKind::text;
  return task;
}

TEST_CASE("An adapter's memory matches a hand count", "[sweeps]") {
  const MemoryEstimate found =
      estimate_memory(config_of("adapter"), small_encoder(), kCola, MemoryDevice::cpu);
  CHECK(found.peak == MemoryPeak::step);
  CHECK(found.tokens == 4096);
  CHECK(found.target_tokens == 0);
  CHECK(found.mapped == 4 * 1544);
  // A layer's adapter has 2·8 + 2 + 8·2 + 8 parameters, the head 8·8 + 8 + 2·8 + 2.
  constexpr std::int64_t kTrained = 2 * 42 + 90;
  CHECK(found.weights == found.mapped + 4 * kTrained);
  CHECK(found.optimizer == 16 * kTrained);  // gradient, two moments, best value
  // The first layer keeps the adapter's input, its inner activation and the output of the next
  // norm.
  constexpr std::int64_t kFirst = 4096 * (8 + 2 + 8);
  // The last layer has queries only for each text's first token.
  constexpr std::int64_t kLast = 512 * 8 + 2 * 4096 * 8 + 512 * (8 + 16 + 8) + 512 * (8 + 2 + 8);
  constexpr std::int64_t kHead = 512 * 3 * 8;
  constexpr std::int64_t kProbabilities = 512 * 2 * 16;  // a row of 8 is padded to 16
  constexpr std::int64_t kFlags = 512 * (8 + 8) + 512 * 2 * 8;
  CHECK(found.activations == 4 * (kFirst + kLast + kHead + kProbabilities) + kFlags);
  // The first layer's two wide and four narrow blocks.
  CHECK(found.workspace == 4 * 4096 * (2 * 16 + 4 * 8));
  CHECK(found.total() ==
        found.program + found.weights + found.optimizer + found.activations + found.workspace);
}

TEST_CASE("A gang has program and backbone once, and its trials' parts each", "[sweeps]") {
  TrialConfig config = config_of("adapter");
  const MemoryEstimate large = estimate_memory(config, small_encoder(), kCola, MemoryDevice::cpu);
  config.training.batch_size = 1;
  const MemoryEstimate small = estimate_memory(config, small_encoder(), kCola, MemoryDevice::cpu);
  REQUIRE(small.peak == MemoryPeak::evaluation);
  CHECK(large.backbone == large.mapped);
  CHECK(large.at_step == large.activations + large.workspace);
  CHECK(small.at_evaluation == small.workspace);
  CHECK(gang_memory(std::vector{large}) == large.total());
  CHECK(gang_memory(std::vector{small}) == small.total());
  const std::int64_t own = large.weights - large.backbone + large.optimizer;
  CHECK(gang_memory(std::vector{large, large}) == large.total() + own + large.at_step);
  CHECK(gang_memory(std::vector{small, small}) ==
        small.total() + small.weights - small.backbone + small.optimizer);
}

TEST_CASE("A gang keeps of each trial what the one whose gradient reaches deepest needs",
          "[sweeps]") {
  const auto of = [](const char* kind) {
    return estimate_memory(config_of(kind), small_encoder(), kCola, MemoryDevice::cpu);
  };
  const MemoryEstimate head = of("head_only");
  const MemoryEstimate adapter = of("adapter");
  const MemoryEstimate lora = of("lora");
  const auto beside = [](const MemoryEstimate& one, const MemoryEstimate& other) {
    return one.at_step_beside[static_cast<std::size_t>(other.reach)];
  };
  CHECK((head.reach < adapter.reach && adapter.reach < lora.reach));
  for (const MemoryEstimate& one : {head, adapter, lora}) {
    CHECK(beside(one, one) == one.at_step);
    CHECK(beside(one, head) == one.at_step);
  }
  CHECK(beside(lora, adapter) == lora.at_step);
  CHECK(beside(adapter, lora) > adapter.at_step);
  // All but the adapter's own inner activations: the input and the inner one of each layer.
  CHECK(beside(head, adapter) == adapter.at_step - 4 * (4096 + 512) * (8 + 2));
  // In a T5's first layer, the adapter of Hyperformer++ follows the attention.
  const auto of_t5 = [](const char* kind) {
    return estimate_memory(config_of(kind), small_t5(), kCola, MemoryDevice::cpu);
  };
  const MemoryEstimate adapter_of_t5 = of_t5("adapter");
  const std::int64_t first = beside(adapter_of_t5, of_t5("hyperformer++"));
  CHECK(first > adapter_of_t5.at_step);
  CHECK(beside(adapter_of_t5, of_t5("lora")) > first);
  const auto step = [](const MemoryEstimate& gang, std::int64_t at_step) {
    return gang.total() - gang.activations - gang.workspace + at_step;
  };
  const MemoryEstimate pair[] = {head, adapter};
  CHECK(gang_memory(pair) == step(adapter, beside(head, adapter) + adapter.at_step) + head.weights -
                                 head.backbone + head.optimizer);
}

TEST_CASE("A GPU keeps probabilities twice and their dropout flags, and maps nothing", "[sweeps]") {
  TrialConfig config = config_of("adapter");
  config.training.batch_size = 2048;  // more tokens than an evaluation on a GPU
  const auto on_gpu = [&] {
    return estimate_memory(config, small_encoder(), kCola, MemoryDevice::gpu);
  };
  constexpr std::int64_t kNumbers = 4 * 181248;
  constexpr std::int64_t kProbabilities = 2048 * 2 * 8;
  constexpr std::int64_t kDropout = 4 * 16384;
  const MemoryEstimate found = on_gpu();
  CHECK(found.mapped == 0);
  CHECK(found.weights == 4 * (1544 + 174));
  CHECK(found.activations == 4 * (kNumbers + 2 * kProbabilities) + kProbabilities + kDropout);
  CHECK(found.workspace == 4 * 16384 * 64);
  config.training.dropout = 0;
  CHECK(on_gpu().activations == 4 * (kNumbers + kProbabilities));
  config.training.dropout = -1;
  config.training.compute = ComputeType::bf16;
  const MemoryEstimate half = on_gpu();
  // Scores have 32 bits: the softmax, and the queries and keys for it.
  constexpr std::int64_t kWide = kProbabilities + (2048 + 4 * 4096) * 8;
  CHECK(half.activations ==
        2 * (kNumbers + 2 * kProbabilities + kWide) + kProbabilities + kDropout);
  // Trained parameters stay in float32, with bfloat16 copies for products.
  CHECK(half.weights == 2 * 1544 + (4 + 2) * 174);
  CHECK(half.optimizer == (16 + 2) * 174);
}

TEST_CASE("With bf16 a CPU keeps two bfloat16 copies of each matrix and no page of the file",
          "[sweeps]") {
  TrialConfig config = config_of("adapter");
  const MemoryEstimate plain = estimate_memory(config, small_encoder(), kCola, MemoryDevice::cpu);
  config.training.compute = ComputeType::bf16;
  const MemoryEstimate half = estimate_memory(config, small_encoder(), kCola, MemoryDevice::cpu);
  constexpr std::int64_t kMatrices = 2 * (4 * 8 * 8 + 2 * 8 * 16);
  CHECK(half.weights == plain.weights);
  CHECK(half.mapped == plain.mapped - 4 * kMatrices);
  // Activations inside the feed-forward have 16 bits. The last layer keeps gelu's derivative, for
  // one token of each of 512 texts.
  CHECK(plain.activations - half.activations == 2 * 512 * 16);
  CHECK(plain.workspace - half.workspace == 2 * 2 * 4096 * 16);
}

TEST_CASE("Masks cost a merged weight, scores and their moments for each layer", "[sweeps]") {
  TrialConfig config = config_of("adapter");
  config.module.share = true;
  config.module.mask = metrics::MaskKind::learned;
  const MemoryEstimate found = estimate_memory(config, small_encoder(), kCola, MemoryDevice::cpu);
  constexpr std::int64_t kPlain = 42 + 90;                            // one prototype, the head
  constexpr std::int64_t kMasked = 2 * 2 * 16;                        // two matrices in two layers
  CHECK(found.weights - found.mapped == 4 * (kPlain + 3 * kMasked));  // merged, masks, scores
  // Merged weights have gradients; scores have gradients, moments and best values.
  CHECK(found.optimizer == 16 * kPlain + 4 * (kMasked + 4 * kMasked));
}

TEST_CASE("LoRA's memory on a T5 matches a hand count", "[sweeps]") {
  TrialConfig config = config_of("lora");
  config.data.max_target_tokens = 4;
  config.decoding.max_tokens = 4;
  const std::vector<TaskDeclaration> tasks{texts()};
  const MemoryEstimate found = estimate_memory(config, small_t5(), tasks, MemoryDevice::cpu);
  CHECK(found.peak == MemoryPeak::step);
  CHECK(found.tokens == 4096);
  CHECK(found.target_tokens == 2048);
  constexpr std::int64_t kTrained = 2 * 4 * (2 * 8);  // layers · matrices · (rank · width)
  CHECK(found.weights == 4 * (small_t5().parameters() + kTrained));
  constexpr std::int64_t kSources = 4096, kTargets = 2048;
  // Query, key and value; LoRA's input and its two inner activations. The norms' inputs are added
  // below, without the first one: embeddings have no gradient.
  constexpr std::int64_t kSelf = 3 * 8 + 8 + 2 * 2;
  constexpr std::int64_t kEncoder = kSources * (kSelf + 8 + 8);
  constexpr std::int64_t kDecoder = kTargets * (kSelf + 8 + 8 + 8 + 8) + 2 * kSources * 8;
  constexpr std::int64_t kEnds = kSources * 8 + kTargets * 8;
  constexpr std::int64_t kProbabilities = 512 * 2 * (8 + 4 + 4) * 16;
  constexpr std::int64_t kFlags = kSources * (8 + 16 + 8 + 8) + kTargets * (8 + 8 + 16 + 8 + 8);
  CHECK(found.activations == 4 * (kEncoder + kDecoder + kEnds + kProbabilities) + kFlags);
  constexpr std::int64_t kLogits = 2 * 4 * kTargets * 100;
  CHECK(found.workspace == kLogits);
}

TEST_CASE("Full fine-tuning keeps four copies of the checkpoint and the inputs of all products",
          "[sweeps]") {
  const MemoryEstimate found =
      estimate_memory(config_of("full_finetuning"), small_encoder(), kCola, MemoryDevice::cpu);
  CHECK(found.weights == 4 * (1544 + 1544 + 90));
  CHECK(found.optimizer == 16 * (1544 + 90));
  const MemoryEstimate adapter =
      estimate_memory(config_of("adapter"), small_encoder(), kCola, MemoryDevice::cpu);
  CHECK(found.activations > 2 * adapter.activations);
}

TEST_CASE("A step's tokens are limited by accumulation, by few examples and by the position table",
          "[sweeps]") {
  TrialConfig config = config_of("adapter");
  const auto tokens = [&] {
    return estimate_memory(config, small_encoder(), kCola, MemoryDevice::cpu).tokens;
  };
  CHECK(tokens() == 512 * 8);
  config.training.gradient_accumulation = 4;
  CHECK(tokens() == 128 * 8);
  config.data.max_train_examples = 10;  // the largest of four parts has three
  CHECK(tokens() == 3 * 8);
  config.data.max_tokens = 128;
  CHECK(tokens() == 3 * 20);
}

TEST_CASE("The peak is decoding, if it needs more than a step", "[sweeps]") {
  TrialConfig config = config_of("adapter");
  config.training.batch_size = 1;
  config.decoding.beams = 4;
  config.decoding.max_tokens = 20;
  const std::vector<TaskDeclaration> tasks{texts()};
  const MemoryEstimate found = estimate_memory(config, small_t5(), tasks, MemoryDevice::cpu);
  CHECK(found.peak == MemoryPeak::evaluation);
  CHECK(found.activations == 0);
  // 256 sources of 8 tokens, 1,024 beams with room for 48 tokens each, and a copy of the trained
  // parameters: evaluation keeps the last step's next to the best.
  constexpr std::int64_t kTrained = 4 * 2 * (2 * 16 + 2 + 8);
  CHECK(found.workspace ==
        4 * (2 * 8 * (2048 + 1024 * 48) + 2048 * 8) + 2 * 4 * 1024 * 100 + kTrained);
}

TEST_CASE("Classes and scores are at most as long as their texts", "[sweeps]") {
  TrialConfig config = config_of("adapter");
  TaskDeclaration classes = texts();
  classes.kind = TaskKind::classification;
  classes.classes = {"0", "1"};
  classes.text_to_text.targets = {"bad", "excellent"};
  const auto target_tokens = [&](const TaskDeclaration& task) {
    const std::vector<TaskDeclaration> tasks{task};
    return estimate_memory(config, small_t5(), tasks, MemoryDevice::cpu).target_tokens;
  };
  CHECK(target_tokens(classes) == 512 * (9 + 2));
  config.data.max_target_tokens = 3;
  CHECK(target_tokens(classes) == 512 * 3);
}

TEST_CASE("MiB are rounded up", "[sweeps]") {
  CHECK(to_mib(0) == 0);
  CHECK(to_mib(1) == 1);
  CHECK(to_mib(kMib) == 1);
  CHECK(to_mib(kMib + 1) == 2);
}

}  // namespace
}  // namespace petlab::sweeps
