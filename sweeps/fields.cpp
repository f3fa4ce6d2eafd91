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
#define PETLAB_INTEGER(NAME, MEMBER, WANTED, LOW, HIGH, HASHED)                         \
  Field {                                                                               \
    NAME, WANTED, [](const TrialConfig& c) { return json(c.MEMBER); },                  \
        [](TrialConfig& c, const json& value) { return set_integer(c.MEMBER, value); }, \
        [](const TrialConfig& c) { return between(c.MEMBER, LOW, HIGH); }, HASHED       \
  }
#define PETLAB_NUMBER(NAME, MEMBER, WANTED, CONDITION)                                 \
  Field {                                                                              \
    NAME, WANTED, [](const TrialConfig& c) { return json(c.MEMBER); },                 \
        [](TrialConfig& c, const json& value) { return set_number(c.MEMBER, value); }, \
        [](const TrialConfig& c) {                                                     \
          const double x = c.MEMBER;                                                   \
          return CONDITION;                                                            \
        },                                                                             \
        true                                                                           \
  }

const std::array kFields = {
    Field{"backbone", "the name of a folder under PETLAB_HOME/models, or a path with a slash",
          [](const TrialConfig& c) { return json(c.backbone); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            c.backbone = value.get<std::string>();
            return true;
          },
          [](const TrialConfig& c) { return !c.backbone.empty(); }, false},
    Field{"seed", "a whole number from 0 to 18446744073709551615",
          [](const TrialConfig& c) { return json(c.seed.value); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_number_integer()) return false;
            if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
            c.seed.value = value.get<std::uint64_t>();
            return true;
          },
          [](const TrialConfig&) { return true; }, true},
    Field{"module.kind", "adapter, lora, prefix, full_finetuning or head_only",
          [](const TrialConfig& c) { return json(c.module.kind); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            c.module.kind = value.get<std::string>();
            return true;
          },
          [](const TrialConfig& c) { return find_module(c.module.kind) != nullptr; }, true},
    Field{"module.share", "true or false",
          [](const TrialConfig& c) { return json(c.module.share); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_boolean()) return false;
            c.module.share = value.get<bool>();
            return true;
          },
          [](const TrialConfig&) { return true; }, true},
    Field{"module.mask", "none, learned or random",
          [](const TrialConfig& c) { return json(metrics::to_string(c.module.mask)); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            const auto mask = metrics::mask_kind_from(value.get_ref<const std::string&>());
            if (mask) c.module.mask = *mask;
            return mask.has_value();
          },
          [](const TrialConfig&) { return true; }, true},
    PETLAB_NUMBER("module.sparsity_ratio", module.sparsity_ratio, "a number > 0 and <= 1",
                  x > 0 && x <= 1),
    PETLAB_INTEGER("module.bottleneck", module.bottleneck, kSize, 1, kMaxSize, true),
    PETLAB_INTEGER("module.rank", module.rank, kSize, 1, kMaxSize, true),
    PETLAB_NUMBER("module.alpha", module.alpha, kPositiveNumber, positive(x)),
    PETLAB_INTEGER("module.prefix_length", module.prefix_length, kSize, 1, kMaxSize, true),
    PETLAB_INTEGER("module.prefix_hidden", module.prefix_hidden, kSize, 1, kMaxSize, true),
    PETLAB_INTEGER("training.epochs", training.epochs, kCount, 1, kMaxCount, true),
    PETLAB_INTEGER("training.batch_size", training.batch_size, kSize, 1, kMaxSize, true),
    PETLAB_INTEGER("training.gradient_accumulation", training.gradient_accumulation, kSize, 1,
                   kMaxSize, true),
    PETLAB_NUMBER("training.learning_rate", training.learning_rate, kPositiveNumber, positive(x)),
    PETLAB_NUMBER("training.mask_learning_rate", training.mask_learning_rate, kPositiveNumber,
                  positive(x)),
    PETLAB_NUMBER("training.weight_decay", training.weight_decay, "a number >= 0",
                  std::isfinite(x) && x >= 0),
    PETLAB_NUMBER("training.warmup_ratio", training.warmup_ratio, "a number >= 0 and < 1",
                  x >= 0 && x < 1),
    PETLAB_NUMBER("training.max_grad_norm", training.max_grad_norm, "a number >= 0",
                  std::isfinite(x) && x >= 0),
    PETLAB_NUMBER("training.dropout", training.dropout, "-1, or a number >= 0 and < 1",
                  x == -1 || (x >= 0 && x < 1)),
    PETLAB_INTEGER("training.checkpoint_every", training.checkpoint_every, kCountOrNone, 0,
                   kMaxCount, false),
    PETLAB_INTEGER("data.max_tokens", data.max_tokens, "a whole number from 8 to 1048576", 8,
                   kMaxSize, true),
    PETLAB_INTEGER("data.max_train_examples", data.max_train_examples, kCountOrNone, 0, kMaxCount,
                   true),
    PETLAB_INTEGER("data.max_validation_examples", data.max_validation_examples, kCountOrNone, 0,
                   kMaxCount, true),
    PETLAB_INTEGER("data.max_test_examples", data.max_test_examples, kCountOrNone, 0, kMaxCount,
                   true),
};

#undef PETLAB_INTEGER
#undef PETLAB_NUMBER

bool is_module_field(std::string_view name) {
  return name.starts_with("module.") && name != "module.kind";
}

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

bool is_active(const Field& field, const TrialConfig& config) {
  // Most fields mean something for every module, and sweeps ask for each of a million trials.
  const bool of_mask = field.name == "training.mask_learning_rate";
  if (!of_mask && !is_module_field(field.name)) return true;
  const bool masked = config.module.mask != metrics::MaskKind::none;
  const ModuleRow* const row = find_module(config.module.kind);
  const auto has = [&](std::string_view name) {
    return row != nullptr &&
           std::find(row->fields.begin(), row->fields.end(), name) != row->fields.end();
  };
  if (field.name == "module.sparsity_ratio") return has(field.name) && masked;
  if (of_mask) return has("module.mask") && config.module.mask == metrics::MaskKind::learned;
  return has(field.name);
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
