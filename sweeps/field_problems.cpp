#include "sweeps/field_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/shown.h"
#include "metrics/storage.h"
#include "sweeps/backbone.h"
#include "sweeps/catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

void check_tasks(const TrialConfig& config, std::span<const TaskDeclaration> declared,
                 std::vector<FieldProblem>& problems) {
  const std::string field = config.tasks.size() > 1 ? "tasks" : "task";
  if (config.tasks.empty()) {
    problems.push_back({field, "nothing", "the name of a task"});
    return;
  }
  std::set<std::string> seen;
  for (const std::string& name : config.tasks) {
    if (!seen.insert(name).second) {
      problems.push_back({field, fmt::format("{} twice", base::shown(name)), "each task once"});
      continue;
    }
    const auto is_it = [&](const TaskDeclaration& task) { return task.name == name; };
    if (find_task(name) != nullptr || std::any_of(declared.begin(), declared.end(), is_it)) {
      continue;
    }
    std::vector<std::string> known;
    for (const TaskDeclaration& task : tasks()) known.push_back(task.name);
    for (const TaskDeclaration& task : declared) known.push_back(task.name);
    problems.push_back(
        {field, base::shown(name),
         with_nearest("the name of a task, or of a .yaml file that declares one", name, known)});
  }
}

void check_user(const TrialConfig& config, std::vector<FieldProblem>& problems) {
  const json user = json::parse(config.user, nullptr, false);
  if (!user.is_object()) {
    problems.push_back({"user", base::shown(config.user), "a JSON object"});
    return;
  }
  for (const auto& [key, value] : user.items()) {
    if (value.is_structured()) {
      problems.push_back({"user." + key, base::shown(value),
                          "text, a number, true, false or null (user is flat)"});
    }
  }
}

// Checks pairs of fields that determine each other.
void check_pairs(const TrialConfig& config, std::vector<FieldProblem>& problems) {
  const TrialConfig usual = default_config(ModuleConfig{}.kind);
  const TrainingConfig& training = config.training;
  if (training.steps > 0 && training.epochs != usual.training.epochs) {
    problems.push_back({"training.epochs", std::to_string(training.epochs),
                        fmt::format("omitted when training.steps is set ({})", training.steps)});
  }
  if (training.warmup_steps > 0 && training.warmup_ratio != usual.training.warmup_ratio) {
    problems.push_back(
        {"training.warmup_ratio", fmt::format("{}", training.warmup_ratio),
         fmt::format("omitted when training.warmup_steps is set ({})", training.warmup_steps)});
  }
  const DecodingConfig& decoding = config.decoding;
  if (decoding.max_tokens > 0 && decoding.min_tokens > decoding.max_tokens) {
    problems.push_back({"decoding.min_tokens", std::to_string(decoding.min_tokens),
                        fmt::format("at most decoding.max_tokens ({})", decoding.max_tokens)});
  }
}

// Checks that the backbone's config.json has the numbers that a declared storage formula reads.
void check_formula_of_worker(const TrialConfig& config, const BackboneShape& shape,
                             std::vector<FieldProblem>& problems) {
  const ModuleRow* const row = module_of(config);
  if (row == nullptr || row->formula() == nullptr) return;
  try {
    metrics::bls_bits(module_storage(config, shape));
  } catch (const std::invalid_argument& error) {
    problems.push_back({"module.kind", std::string(row->kind),
                        fmt::format("a storage formula that fields and config.json can answer ({})",
                                    error.what())});
  }
}

}  // namespace

FieldProblem kind_problem(const std::string& kind, std::string_view catalog) {
  const std::vector<std::string> kinds = kinds_of(catalog);
  std::string wanted = with_nearest(kinds_text(catalog), kind, kinds);
  const bool similar = wanted.ends_with(')');
  if (catalog.empty() && !similar) wanted += "; a worker may declare more: --worker";
  return {"module.kind", kind.empty() ? "nothing" : base::shown(kind), std::move(wanted)};
}

std::vector<FieldProblem> field_problems(const TrialConfig& config,
                                         std::span<const TaskDeclaration> declared) {
  std::vector<FieldProblem> problems;
  const ModuleRow* const row = module_of(config);
  if (row == nullptr) problems.push_back(kind_problem(config.module.kind, config.catalog));
  for (const Field& field : fields()) {
    if (field.name == "module.kind" || !is_active(field, config) || field.in_range(config)) {
      continue;
    }
    const json value = field.get(config);
    const bool absent = value.is_null() || value == "";  // only backbone can be empty
    problems.push_back({std::string(field.name), absent ? "nothing" : base::shown(value),
                        std::string(field.wanted)});
  }
  check_tasks(config, declared, problems);
  check_user(config, problems);
  if (row != nullptr && !row->has_field("module.share")) {
    if (config.module.share) {
      problems.push_back(
          {"module.share", "true", fmt::format("false with module.kind {}", row->kind)});
    }
    if (config.module.mask != metrics::MaskKind::none) {
      problems.push_back({"module.mask", std::string(metrics::to_string(config.module.mask)),
                          fmt::format("none with module.kind {}", row->kind)});
    }
  }
  if (row != nullptr && row->has_field("module.share") && !config.module.share &&
      config.module.mask != metrics::MaskKind::none && config.tasks.size() > 1) {
    problems.push_back({"module.share", "false", "true with a mask and several tasks"});
  }
  const TrainingConfig& training = config.training;
  if (training.gradient_accumulation > 0 && training.batch_size > 0 &&
      training.batch_size % training.gradient_accumulation != 0) {
    problems.push_back({"training.gradient_accumulation",
                        std::to_string(training.gradient_accumulation),
                        fmt::format("a divisor of training.batch_size ({})", training.batch_size)});
  }
  check_pairs(config, problems);
  return problems;
}

std::vector<FieldProblem> backbone_problems(const TrialConfig& config,
                                            std::span<const TaskDeclaration> declared,
                                            const BackboneShape& shape) {
  std::vector<FieldProblem> problems;
  if (shape.d_model == 0) {  // only the worker knows what fits
    check_formula_of_worker(config, shape, problems);
    return problems;
  }
  const bool is_encoder = shape.decoder_layers == 0;
  const std::string encoder = fmt::format("an encoder ({})", shape.model_type);
  for (const std::string& name : config.tasks) {
    const auto found = std::find_if(declared.begin(), declared.end(),
                                    [&](const TaskDeclaration& task) { return task.name == name; });
    const TaskDeclaration* const task = found == declared.end() ? find_task(name) : &*found;
    if (task == nullptr) continue;  // reported by field_problems()
    const std::string field = config.tasks.size() > 1 ? "tasks" : "task";
    if (is_encoder && task->kind == TaskKind::text) {
      problems.push_back({field, fmt::format("{}, which generates texts, on {}", name, encoder),
                          "a T5 as backbone, or a task with labels or scores"});
    }
    if (is_encoder && task->kind == TaskKind::regression && config.training.label_smoothing > 0) {
      problems.push_back(
          {"training.label_smoothing", fmt::format("{}", config.training.label_smoothing),
           fmt::format("0 with task {}, whose targets are scores, on {}", name, encoder)});
    }
  }
  const ModuleRow* const row = module_of(config);
  const ModuleBackbones wanted = row == nullptr ? ModuleBackbones::any : row->declared->backbones;
  if (!is_encoder) {
    if (wanted == ModuleBackbones::encoder) {
      problems.push_back(
          {"module.kind", config.module.kind,
           fmt::format("another kind with {}, which has no head", shape.model_type)});
    }
    return problems;
  }
  if (wanted == ModuleBackbones::text_to_text) {
    problems.push_back({"module.kind", config.module.kind,
                        fmt::format("another kind with {}, which has no decoder", encoder)});
  }
  static const TrialConfig usual;
  if (config.decoding == usual.decoding && !config.module.cross_attention &&
      config.data.max_target_tokens == usual.data.max_target_tokens) {
    return problems;  // most of a million trials have no such settings
  }
  for (const Field& field : fields()) {
    const bool of_t5 = field.use == FieldUse::t5 || field.use == FieldUse::beams ||
                       field.name == "module.cross_attention";
    if (!of_t5 || !is_written(field, config)) continue;
    problems.push_back(
        {std::string(field.name), base::shown(field.get(config)),
         fmt::format("{} (the default) with {}", base::shown(field.get(usual)), encoder)});
  }
  return problems;
}

}  // namespace petlab::sweeps
