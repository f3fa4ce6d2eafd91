#include "sweeps/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "base/shown.h"
#include "sweeps/catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

// Sizes above these are mistakes, and products of them would leave 64 bits.
constexpr std::int64_t kMaxSize = 1 << 20;
constexpr std::int64_t kMaxCount = 1'000'000'000;

bool between(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}
bool positive(double value) { return std::isfinite(value) && value > 0; }

bool set_integer(std::int64_t& target, const json& value) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return false;
  }
  target = value.get<std::int64_t>();
  return true;
}

bool set_number(double& target, const json& value) {
  if (!value.is_number()) return false;
  target = value.get<double>();
  return true;
}

constexpr std::string_view kPositiveNumber = "a number > 0";
constexpr std::string_view kSize = "a whole number from 1 to 1048576";
constexpr std::string_view kCount = "a whole number from 1 to 1000000000";
constexpr std::string_view kCountOrNone = "a whole number from 0 to 1000000000";

// One lambda a column keeps a row readable; MEMBER is a path like training.epochs.
#define PETLAB_INTEGER(NAME, COLUMN, PLACE, USE, MEMBER, LOW, HIGH, WANTED, HASHED, HELP) \
  Field {                                                                                 \
    NAME, COLUMN, PLACE, FieldType::integer, FieldUse::USE, HELP, WANTED,                 \
        [](const TrialConfig& c) { return json(c.MEMBER); },                              \
        [](TrialConfig& c, const json& value) { return set_integer(c.MEMBER, value); },   \
        [](const TrialConfig& c) { return between(c.MEMBER, LOW, HIGH); }, HASHED         \
  }
#define PETLAB_NUMBER(NAME, COLUMN, PLACE, USE, MEMBER, CONDITION, WANTED, HELP)       \
  Field {                                                                              \
    NAME, COLUMN, PLACE, FieldType::number, FieldUse::USE, HELP, WANTED,               \
        [](const TrialConfig& c) { return json(c.MEMBER); },                           \
        [](TrialConfig& c, const json& value) { return set_number(c.MEMBER, value); }, \
        [](const TrialConfig& c) {                                                     \
          const double x = c.MEMBER;                                                   \
          return CONDITION;                                                            \
        },                                                                             \
        true                                                                           \
  }

const std::array kFields = {
    Field{"backbone", "backbone", 1, FieldType::text, FieldUse::always,
          "a folder's name under `PETLAB_HOME/models`; or a path with a slash, relative to the "
          "sweep file; or a model in Hugging Face's cache, with its owner "
          "(`FacebookAI/roberta-base`) or, where one owner has it, without",
          "the name of a folder under PETLAB_HOME/models, or a path with a slash",
          [](const TrialConfig& c) { return json(c.backbone); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            c.backbone = value.get<std::string>();
            return true;
          },
          [](const TrialConfig& c) { return !c.backbone.empty(); }, false},
    Field{"seed", "seed", 2, FieldType::integer, FieldUse::always,
          "of everything random in a trial; the data's split has a fixed seed of its own",
          "a whole number from 0 to 18446744073709551615",
          [](const TrialConfig& c) { return json(c.seed.value); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_number_integer()) return false;
            if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
            c.seed.value = value.get<std::uint64_t>();
            return true;
          },
          [](const TrialConfig&) { return true; }, true},
    Field{"module.kind", "module_kind", 3, FieldType::text, FieldUse::always,
          "what is trained in the backbone", "adapter, lora, prefix, full_finetuning or head_only",
          [](const TrialConfig& c) { return json(c.module.kind); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            c.module.kind = value.get<std::string>();
            return true;
          },
          [](const TrialConfig& c) { return find_module(c.module.kind) != nullptr; }, true},
    Field{"module.share", "module_share", 4, FieldType::boolean, FieldUse::of_kind,
          "one prototype for all layers", "true or false",
          [](const TrialConfig& c) { return json(c.module.share); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_boolean()) return false;
            c.module.share = value.get<bool>();
            return true;
          },
          [](const TrialConfig&) { return true; }, true},
    Field{"module.mask", "module_mask", 5, FieldType::text, FieldUse::of_kind,
          "the binary masks of the layers: none, learned, or drawn once and never learned",
          "none, learned or random",
          [](const TrialConfig& c) { return json(metrics::to_string(c.module.mask)); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            const auto mask = metrics::mask_kind_from(value.get_ref<const std::string&>());
            if (mask) c.module.mask = *mask;
            return mask.has_value();
          },
          [](const TrialConfig&) { return true; }, true},
    PETLAB_NUMBER("module.sparsity_ratio", "module_sparsity_ratio", 20, masked,
                  module.sparsity_ratio, x > 0 && x <= 1, "a number > 0 and <= 1",
                  "k, the fraction of ones in a mask"),
    PETLAB_INTEGER("module.bottleneck", "module_bottleneck", 6, of_kind, module.bottleneck, 1,
                   kMaxSize, kSize, true, "inner dimension of an adapter"),
    PETLAB_INTEGER("module.rank", "module_rank", 22, of_kind, module.rank, 1, kMaxSize, kSize, true,
                   "rank of LoRA"),
    PETLAB_NUMBER("module.alpha", "module_alpha", 23, of_kind, module.alpha, positive(x),
                  kPositiveNumber,
                  "LoRA's update is scaled by alpha / rank (the paper's ProPETL LoRA has 48)"),
    PETLAB_INTEGER("module.prefix_length", "module_prefix_length", 24, of_kind,
                   module.prefix_length, 1, kMaxSize, kSize, true,
                   "positions before keys and values"),
    PETLAB_INTEGER("module.prefix_hidden", "module_prefix_hidden", 25, of_kind,
                   module.prefix_hidden, 1, kMaxSize, kSize, true,
                   "hidden size of the MLP that makes the prefix while training"),
    PETLAB_INTEGER("training.epochs", "training_epochs", 7, always, training.epochs, 1, kMaxCount,
                   kCount, true, "passes over the training data"),
    PETLAB_INTEGER("training.batch_size", "training_batch_size", 8, always, training.batch_size, 1,
                   kMaxSize, kSize, true, "examples a step"),
    PETLAB_INTEGER("training.gradient_accumulation", "training_gradient_accumulation", 9, always,
                   training.gradient_accumulation, 1, kMaxSize, kSize, true,
                   "parts of a batch that are computed one after the other; divides the batch "
                   "size"),
    PETLAB_NUMBER("training.learning_rate", "training_learning_rate", 10, always,
                  training.learning_rate, positive(x), kPositiveNumber, "of module and head"),
    PETLAB_NUMBER("training.mask_learning_rate", "training_mask_learning_rate", 21, learned_mask,
                  training.mask_learning_rate, positive(x), kPositiveNumber,
                  "of the scores of a learned mask"),
    PETLAB_NUMBER("training.weight_decay", "training_weight_decay", 11, always,
                  training.weight_decay, std::isfinite(x) && x >= 0, "a number >= 0",
                  "none on biases and LayerNorms"),
    PETLAB_NUMBER("training.warmup_ratio", "training_warmup_ratio", 12, always,
                  training.warmup_ratio, x >= 0 && x < 1, "a number >= 0 and < 1",
                  "fraction of all steps; then linear decay to zero"),
    PETLAB_NUMBER("training.max_grad_norm", "training_max_grad_norm", 13, always,
                  training.max_grad_norm, std::isfinite(x) && x >= 0, "a number >= 0",
                  "gradients are clipped to this norm; 0 switches clipping off"),
    PETLAB_NUMBER("training.dropout", "training_dropout", 14, always, training.dropout,
                  x == -1 || (x >= 0 && x < 1), "-1, or a number >= 0 and < 1",
                  "of the backbone while training; -1 as its `config.json` says"),
    PETLAB_INTEGER("training.checkpoint_every", "training_checkpoint_every", 15, always,
                   training.checkpoint_every, 0, kMaxCount, kCountOrNone, false,
                   "steps between checkpoints beside those after each epoch; not part of the id"),
    PETLAB_INTEGER("data.max_tokens", "data_max_tokens", 16, always, data.max_tokens, 8, kMaxSize,
                   "a whole number from 8 to 1048576", true, "longer inputs are cut"),
    PETLAB_INTEGER("data.max_train_examples", "data_max_train_examples", 17, always,
                   data.max_train_examples, 0, kMaxCount, kCountOrNone, true,
                   "the first so many training examples after the split's permutation; 0 is all"),
    PETLAB_INTEGER("data.max_validation_examples", "data_max_validation_examples", 18, always,
                   data.max_validation_examples, 0, kMaxCount, kCountOrNone, true,
                   "likewise, of validation"),
    PETLAB_INTEGER("data.max_test_examples", "data_max_test_examples", 19, always,
                   data.max_test_examples, 0, kMaxCount, kCountOrNone, true, "likewise, of test"),
};

#undef PETLAB_INTEGER
#undef PETLAB_NUMBER

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

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field* find_field(std::string_view name) {
  const auto* const found = std::find_if(kFields.begin(), kFields.end(),
                                         [&](const Field& field) { return field.name == name; });
  return found == kFields.end() ? nullptr : &*found;
}

std::string_view sql_type(FieldType type) {
  switch (type) {
    case FieldType::text:
      return "TEXT";
    case FieldType::number:
      return "REAL";
    case FieldType::integer:
    case FieldType::boolean:
      break;
  }
  return "INTEGER";
}

bool is_active(const Field& field, const TrialConfig& config) {
  // Most fields mean something for every module, and sweeps ask for each of a million trials.
  if (field.use == FieldUse::always) return true;
  const ModuleRow* const row = find_module(config.module.kind);
  const auto has = [&](std::string_view name) {
    return row != nullptr &&
           std::find(row->fields.begin(), row->fields.end(), name) != row->fields.end();
  };
  switch (field.use) {
    case FieldUse::masked:
      return has(field.name) && config.module.mask != metrics::MaskKind::none;
    case FieldUse::learned_mask:
      return has("module.mask") && config.module.mask == metrics::MaskKind::learned;
    case FieldUse::always:
    case FieldUse::of_kind:
      break;
  }
  return has(field.name);
}

std::string use_text(const Field& field) {
  std::string kinds;
  const std::string_view listed = field.use == FieldUse::learned_mask ? "module.mask" : field.name;
  for (const ModuleRow& row : modules()) {
    if (std::find(row.fields.begin(), row.fields.end(), listed) == row.fields.end()) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(row.kind);
  }
  switch (field.use) {
    case FieldUse::masked:
      return kinds + " with a mask";
    case FieldUse::learned_mask:
      return kinds + " with a learned mask";
    case FieldUse::always:
      return "always";
    case FieldUse::of_kind:
      break;
  }
  return kinds;
}

std::string default_text(const Field& field) {
  const auto text = [](const json& value) {
    return value.is_string()         ? value.get<std::string>()
           : value.is_number_float() ? fmt::format("{}", value.get<double>())
                                     : value.dump();
  };
  const std::string usual = text(field.get(TrialConfig()));
  std::string all = usual;
  for (const ModuleRow& row : modules()) {
    const std::string own = text(field.get(default_config(row.kind)));
    if (field.name != "module.kind" && own != usual) {
      all += fmt::format("; {} {}", row.kind, own);
    }
  }
  return all;
}

namespace {

std::string initials(std::string_view name) {
  std::string letters;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') letters += name[i];
  }
  return letters;
}

}  // namespace

std::string nearest_field(const std::string& word) {
  std::vector<std::string> names{"task", "tasks", "user", "priority"};
  std::vector<std::string> last_parts;
  std::vector<std::string> of_last;
  for (const Field& field : fields()) {
    names.emplace_back(field.name);
    last_parts.emplace_back(field.name.substr(field.name.find('.') + 1));
    of_last.emplace_back(field.name);
  }
  const std::string full = nearest_word(word, names);
  if (!full.empty()) return full;
  // `lr`, `bs`: the first letters of a name's words.
  for (std::size_t i = 0; i < last_parts.size(); ++i) {
    if (last_parts[i].find('_') != std::string::npos && initials(last_parts[i]) == word) {
      return of_last[i];
    }
  }
  const std::string part = nearest_word(word.substr(word.rfind('.') + 1), last_parts);
  for (std::size_t i = 0; i < last_parts.size(); ++i) {
    if (last_parts[i] == part) return of_last[i];
  }
  return "";
}

std::vector<FieldProblem> field_problems(const TrialConfig& config,
                                         std::span<const TaskDeclaration> declared) {
  std::vector<FieldProblem> problems;
  const ModuleRow* const row = find_module(config.module.kind);
  if (row == nullptr) {
    std::vector<std::string> kinds;
    for (const ModuleRow& module : modules()) kinds.emplace_back(module.kind);
    problems.push_back(
        {"module.kind", base::shown(config.module.kind),
         with_nearest(std::string(find_field("module.kind")->wanted), config.module.kind, kinds)});
  }
  for (const Field& field : kFields) {
    if (field.name == "module.kind" || !is_active(field, config) || field.in_range(config)) {
      continue;
    }
    const bool absent = field.name == "backbone";  // its only fault
    problems.push_back({std::string(field.name),
                        absent ? "nothing" : base::shown(field.get(config)),
                        std::string(field.wanted)});
  }
  check_tasks(config, declared, problems);
  check_user(config, problems);
  if (row != nullptr && !row->family) {
    if (config.module.share) {
      problems.push_back(
          {"module.share", "true", fmt::format("false with module.kind {}", row->kind)});
    }
    if (config.module.mask != metrics::MaskKind::none) {
      problems.push_back({"module.mask", std::string(metrics::to_string(config.module.mask)),
                          fmt::format("none with module.kind {}", row->kind)});
    }
  }
  if (row != nullptr && row->family && !config.module.share &&
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
  return problems;
}

}  // namespace petlab::sweeps
