// The formula of sweeps/memory.h, compared with the trainer's tensors.
#include "sweeps/memory.h"
#include "tests/trainer/core/tiny_text_world.h"
#include "trainer/backbones/backbone_kinds.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/training/trial_model.h"

using namespace petlab;
using namespace petlab::trainer;
using metrics::MaskKind;

namespace {

/// The bytes of each trained parameter's gradient, two moments and best value, and of the gradients
/// of merged weights and of weights computed from trained parameters.
std::int64_t optimizer_bytes(TrialModel& model) {
  std::int64_t numbers = 0;
  for (const Parameter& parameter : model.parameters()) numbers += 4 * parameter.value.numel();
  for (const MaskedWeight* weight : model.module().weights()) {
    const WeightPlan& plan = weight->plan();
    if (!plan.trained) numbers += weight->values().numel();
    if (plan.mask != MaskKind::none) numbers += plan.layers * weight->layer(0).numel();
  }
  return 4 * numbers;
}

}  // namespace

TEST_CASE("The memory formula counts the optimizer's tensors for every kind of module",
          "[trainer]") {
  const testing::TinyTextWorld world;
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    for (const char* folder : {"tiny", "tiny-modernbert", "tiny-t5"}) {
      const auto backbone = load_backbone(world.folder.path() / folder, Placement());
      const bool text = is_text_to_text(*backbone);
      const auto other =
          text ? sweeps::ModuleBackbones::encoder : sweeps::ModuleBackbones::text_to_text;
      if (row.declared->backbones == other) continue;
      const auto tokenizer = load_tokenizer(world.folder.path() / folder);
      for (const auto& [share, mask] : {std::pair{false, MaskKind::none},
                                        {true, MaskKind::learned},
                                        {false, MaskKind::random}}) {
        if (mask != MaskKind::none && !row.has_field("module.mask")) continue;
        protocol::TrialFile trial = world.trial(std::string(row.kind));
        trial.config.module.share = share;
        trial.config.module.mask = mask;
        if (text && row.kind == "lora") trial.config.module.cross_attention = true;
        for (const std::size_t tasks : {1, 2}) {
          trial.config.tasks.resize(tasks, "tiny-task");
          trial.tasks.resize(tasks, world.task());
          for (auto& task : trial.tasks) task.text_to_text.source = "the {text1}";
          INFO(row.kind << " on " << folder << ", " << tasks << " tasks, mask " << int(mask));
          TrialModel model(trial.config, trial.tasks, {*backbone, tokenizer.get()});
          const sweeps::MemoryEstimate estimate = sweeps::estimate_memory(
              trial.config, backbone->shape(), trial.tasks, sweeps::MemoryDevice::cpu);
          std::int64_t expected = optimizer_bytes(model);
          // The paper counts BERT's pooler, which the trainer does not load.
          const bool pooled = backbone->shape().model_type == "bert";
          if (row.kind == "full_finetuning" && pooled) expected += 16 * (16 * 16 + 16);
          CHECK(estimate.optimizer == expected);
        }
      }
    }
  }
}
