#include "trainer/training/gang.h"

#include <nlohmann/json.hpp>

namespace petlab::trainer {

std::optional<std::string> why_not_in_one_gang(const sweeps::TrialConfig& one,
                                               const sweeps::TrialConfig& other) {
  if (one.tasks.size() > 1) return "tasks: trials with several tasks are trained one by one";
  sweeps::TrialConfig same = other;
  same.seed = one.seed;
  same.training.learning_rate = one.training.learning_rate;
  same.training.mask_learning_rate = one.training.mask_learning_rate;
  same.training.warmup_ratio = one.training.warmup_ratio;
  same.training.max_grad_norm = one.training.max_grad_norm;
  same.training.checkpoint_every = one.training.checkpoint_every;
  if (same == one) return std::nullopt;
  const nlohmann::json wanted = nlohmann::json(sweeps::to_json(one)).flatten();
  const nlohmann::json found = nlohmann::json(sweeps::to_json(same)).flatten();
  const auto named = [](std::string pointer) {
    // Turns /training/batch_size into training.batch_size.
    for (char& c : pointer) c = c == '/' ? '.' : c;
    return pointer.substr(1);
  };
  for (const auto& [field, value] : wanted.items()) {
    const auto match = found.find(field);
    if (match == found.end()) return named(field) + " is " + value.dump() + " and missing";
    if (*match != value) return named(field) + " is " + value.dump() + " and " + match->dump();
  }
  for (const auto& [field, value] : found.items()) {
    if (!wanted.contains(field)) return named(field) + " is missing and " + value.dump();
  }
  // Fields that to_json omits have no effect on either trial.
  return std::nullopt;
}

}  // namespace petlab::trainer
