#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/backbones/backbone.h"
#include "trainer/modules/module.h"

namespace petlab::testing {

/// Calls visit(name, tensor) for each slot of the parameters, named as in the formula folders of
/// golden/petl: module.X or module.layer.l.X, score.layer.l.X, score.task.t.X, head.classifier.X.
template <typename Visit>
void each_slot(const std::vector<trainer::Parameter>& parameters,
               const sweeps::ModuleConfig& config, bool gradients, Visit visit) {
  for (const trainer::Parameter& parameter : parameters) {
    const at::Tensor& all = gradients ? parameter.gradient : parameter.value;
    std::string name = parameter.name;
    const auto cut = [&](const std::string& end) {
      const bool ends = name.ends_with(end);
      if (ends) name.resize(name.size() - end.size());
      return ends;
    };
    if (name.starts_with("head.")) {
      visit("head.classifier." + name.substr(7), all[0]);
    } else if (cut(".scores") || cut(".task_scores")) {
      const char* kind = parameter.name.ends_with(".task_scores") ? "score.task." : "score.layer.";
      for (std::int64_t i = 0; i < all.size(0); ++i) {
        visit(kind + std::to_string(i) + "." + name, all[i]);
      }
    } else if (config.kind == "full_finetuning") {
      visit("module." + name, all);
    } else if (config.share || config.kind == "prefix") {
      visit("module." + name, all[0]);
    } else {
      for (std::int64_t i = 0; i < all.size(0); ++i) {
        visit("module.layer." + std::to_string(i) + "." + name, all[i]);
      }
    }
  }
}

/// Calls visit(name, tensor) for each mask: mask.layer.l.X, mask.task.t.X.
template <typename Visit>
void each_mask(trainer::Module& module, Visit visit) {
  for (const trainer::StoredTensor& stored : module.stored()) {
    if (!stored.masks.defined()) continue;
    for (std::int64_t l = 0; l < stored.masks.size(0); ++l) {
      visit("mask.layer." + std::to_string(l) + "." + stored.name, stored.masks[l]);
    }
    if (!stored.task_masks.defined()) continue;
    for (std::int64_t t = 0; t < stored.task_masks.size(0); ++t) {
      visit("mask.task." + std::to_string(t) + "." + stored.name, stored.task_masks[t]);
    }
  }
}

/// Reads the module request from the "method" of a golden case.
inline trainer::ModuleRequest module_request(const nlohmann::json& method,
                                             const trainer::Backbone& backbone) {
  const std::string variant = method.at("variant");
  trainer::ModuleRequest request;
  request.config.kind = method.at("module");
  request.config.share = variant != "only_mask" && variant != "plain";
  request.config.mask = variant == "only_share" || variant == "plain" ? metrics::MaskKind::none
                        : variant == "random"                         ? metrics::MaskKind::random
                                                                      : metrics::MaskKind::learned;
  request.config.sparsity_ratio = method.at("k");
  request.config.bottleneck = method.value("bn", 1);
  request.config.rank = method.value("r", 1);
  request.config.alpha = method.value("alpha", 1.0);
  request.config.prefix_length = method.value("length", 1);
  request.config.prefix_hidden = method.value("mlp_bottleneck", 1);
  request.tasks = method.value("tasks", 1);
  const std::string combine = method.value("combine", "or");
  request.config.combine = metrics::mask_combination_from(combine).value();
  request.seed = 0;
  request.placement = backbone.placement();
  return request;
}

}  // namespace petlab::testing
