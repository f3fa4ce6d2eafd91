#include "sweeps/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sweeps/catalog.h"
#include "sweeps/vocabulary.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

// Larger sizes are mistakes, and their products would exceed 64 bits.
constexpr std::int64_t kMaxSize = 1 << 20;
constexpr std::int64_t kMaxCount = 1'000'000'000;
constexpr std::int64_t kMaxBeams = 1024;
// The number of generated weights is a product of three sizes.
constexpr std::int64_t kMaxHyperSize = 1 << 16;

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
constexpr std::string_view kHyperSize = "a whole number from 1 to 65536";
constexpr std::string_view kSizeOrNone = "a whole number from 0 to 1048576";
constexpr std::string_view kCount = "a whole number from 1 to 1000000000";
constexpr std::string_view kCountOrNone = "a whole number from 0 to 1000000000";

// For fields newer than some trials, whose trial.json has neither of them.
Field left_out_at_default(Field field) {
  field.written_at_default = false;
  return field;
}

bool set_boolean(bool& target, const json& value) {
  if (value.is_boolean()) target = value.get<bool>();
  return value.is_boolean();
}

// One lambda per column keeps rows readable; MEMBER is a path like training.epochs.
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
#define PETLAB_BOOLEAN(NAME, COLUMN, PLACE, USE, MEMBER, HASHED, HELP)                  \
  Field {                                                                               \
    NAME, COLUMN, PLACE, FieldType::boolean, FieldUse::USE, HELP, "true or false",      \
        [](const TrialConfig& c) { return json(c.MEMBER); },                            \
        [](TrialConfig& c, const json& value) { return set_boolean(c.MEMBER, value); }, \
        [](const TrialConfig&) { return true; }, HASHED                                 \
  }

const std::array kFields = {
    Field{"backbone", "backbone", 1, FieldType::text, FieldUse::always,
          "a folder's name under `PETLAB_HOME/models`, a path with a slash (relative to the "
          "sweep file), or a model in Hugging Face's cache, such as `FacebookAI/roberta-base`",
          "the name of a folder under PETLAB_HOME/models, or a path with a slash",
          [](const TrialConfig& c) { return json(c.backbone); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            c.backbone = value.get<std::string>();
            return true;
          },
          [](const TrialConfig& c) { return !c.backbone.empty(); }, false},
    Field{"seed", "seed", 2, FieldType::integer, FieldUse::always,
          "seed of everything random in a trial; the data split has its own fixed seed",
          "a whole number from 0 to 9223372036854775807",
          [](const TrialConfig& c) { return json(c.seed.value); },
          [](TrialConfig& c, const json& value) {
            // A trial.json of an earlier petlab may contain a larger value; SettingReader rejects
            // it.
            if (!value.is_number_integer()) return false;
            if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
            c.seed.value = value.get<std::uint64_t>();
            return true;
          },
          [](const TrialConfig&) { return true; }, true},
    Field{"module.kind", "module_kind", 3, FieldType::text, FieldUse::always,
          "the kind of module that is trained in the backbone", internal::builtin_kinds_text(),
          [](const TrialConfig& c) { return json(c.module.kind); },
          [](TrialConfig& c, const json& value) {
            if (!value.is_string()) return false;
            c.module.kind = value.get<std::string>();
            return true;
          },
          [](const TrialConfig& c) { return module_of(c) != nullptr; }, true},
    PETLAB_BOOLEAN("module.share", "module_share", 4, of_kind, module.share, true,
                   "one prototype for all layers"),
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
                   "hidden size of the MLP that generates the prefix during training"),
    left_out_at_default(Field{
        "module.combine", "module_combine", 26, FieldType::text, FieldUse::task_masks,
        "how to combine the masks of a layer and of a task: or, and, or their sum (add)",
        "or, and or add",
        [](const TrialConfig& c) { return json(metrics::to_string(c.module.combine)); },
        [](TrialConfig& c, const json& value) {
          if (!value.is_string()) return false;
          const auto way = metrics::mask_combination_from(value.get_ref<const std::string&>());
          if (way) c.module.combine = *way;
          return way.has_value();
        },
        [](const TrialConfig&) { return true; }, true}),
    left_out_at_default(PETLAB_BOOLEAN("module.cross_attention", "module_cross_attention", 27,
                                       of_kind, module.cross_attention, true,
                                       "on a T5, also in the decoder's attention to the encoder")),
    PETLAB_INTEGER("module.hyper_embedding", "module_hyper_embedding", 40, of_kind,
                   module.hyper_embedding, 1, kMaxHyperSize, kHyperSize, true,
                   "size of the embeddings of a task, a layer and a position"),
    PETLAB_INTEGER("module.hyper_hidden", "module_hyper_hidden", 41, of_kind, module.hyper_hidden,
                   1, kMaxHyperSize, kHyperSize, true,
                   "hidden size of the MLP over the embeddings"),
    PETLAB_INTEGER("module.hyper_projected", "module_hyper_projected", 42, of_kind,
                   module.hyper_projected, 1, kMaxHyperSize, kHyperSize, true,
                   "output size of that MLP, from which all weights are generated"),
    PETLAB_INTEGER("training.epochs", "training_epochs", 7, no_steps, training.epochs, 1, kMaxCount,
                   kCount, true, "passes over the training data"),
    left_out_at_default(PETLAB_INTEGER(
        "training.steps", "training_steps", 28, always, training.steps, 0, kMaxCount, kCountOrNone,
        true, "total optimizer steps, instead of `training.epochs`; 0: use `training.epochs`")),
    PETLAB_INTEGER("training.batch_size", "training_batch_size", 8, always, training.batch_size, 1,
                   kMaxSize, kSize, true, "examples per step"),
    PETLAB_INTEGER("training.gradient_accumulation", "training_gradient_accumulation", 9, always,
                   training.gradient_accumulation, 1, kMaxSize, kSize, true,
                   "parts of a batch computed one after the other; divides the batch size"),
    PETLAB_NUMBER("training.learning_rate", "training_learning_rate", 10, always,
                  training.learning_rate, positive(x), kPositiveNumber,
                  "learning rate of module and head"),
    PETLAB_NUMBER("training.mask_learning_rate", "training_mask_learning_rate", 21, learned_mask,
                  training.mask_learning_rate, positive(x), kPositiveNumber,
                  "learning rate of a learned mask's scores"),
    PETLAB_NUMBER("training.weight_decay", "training_weight_decay", 11, always,
                  training.weight_decay, std::isfinite(x) && x >= 0, "a number >= 0",
                  "weight decay, except on biases and LayerNorms"),
    PETLAB_NUMBER("training.warmup_ratio", "training_warmup_ratio", 12, no_warmup_steps,
                  training.warmup_ratio, x >= 0 && x < 1, "a number >= 0 and < 1",
                  "warmup as a fraction of all steps; then linear decay to zero"),
    left_out_at_default(PETLAB_INTEGER(
        "training.warmup_steps", "training_warmup_steps", 29, always, training.warmup_steps, 0,
        kMaxCount, kCountOrNone, true,
        "warmup as a number of steps, instead of `training.warmup_ratio`; 0: use the ratio")),
    left_out_at_default(PETLAB_NUMBER(
        "training.label_smoothing", "training_label_smoothing", 30, always,
        training.label_smoothing, x >= 0 && x < 1, "a number >= 0 and < 1",
        "share of the loss spread over all classes, or with a T5 over its vocabulary")),
    left_out_at_default(PETLAB_INTEGER(
        "training.evaluate_every", "training_evaluate_every", 31, always, training.evaluate_every,
        0, kMaxCount, kCountOrNone, true,
        "steps between validations, plus one after the last step; 0: after each epoch")),
    PETLAB_NUMBER("training.max_grad_norm", "training_max_grad_norm", 13, always,
                  training.max_grad_norm, std::isfinite(x) && x >= 0, "a number >= 0",
                  "clip gradients to this norm; 0: no clipping"),
    PETLAB_NUMBER("training.dropout", "training_dropout", 14, always, training.dropout,
                  x == -1 || (x >= 0 && x < 1), "-1, or a number >= 0 and < 1",
                  "dropout of the backbone during training; -1: as in its `config.json`"),
    left_out_at_default(Field{
        "training.compute", "training_compute", 43, FieldType::text, FieldUse::always,
        "number type of the backbone's matrices and products; trained weights stay in float32",
        "float32 or bf16", [](const TrialConfig& c) { return json(to_string(c.training.compute)); },
        [](TrialConfig& c, const json& value) {
          if (!value.is_string()) return false;
          const auto type = compute_type_from(value.get_ref<const std::string&>());
          if (type) c.training.compute = *type;
          return type.has_value();
        },
        [](const TrialConfig&) { return true; }, true}),
    PETLAB_INTEGER("training.checkpoint_every", "training_checkpoint_every", 15, always,
                   training.checkpoint_every, 0, kMaxCount, kCountOrNone, false,
                   "steps between checkpoints, in addition to one after each epoch; not part of "
                   "the id"),
    PETLAB_INTEGER("data.max_tokens", "data_max_tokens", 16, always, data.max_tokens, 8, kMaxSize,
                   "a whole number from 8 to 1048576", true, "truncate longer inputs"),
    left_out_at_default(PETLAB_INTEGER("data.max_target_tokens", "data_max_target_tokens", 32, t5,
                                       data.max_target_tokens, 2, kMaxSize,
                                       "a whole number from 2 to 1048576", true,
                                       "truncate longer training targets; the end token counts")),
    PETLAB_INTEGER("data.max_train_examples", "data_max_train_examples", 17, always,
                   data.max_train_examples, 0, kMaxCount, kCountOrNone, true,
                   "use the first N training examples of the split's permutation; 0: all"),
    PETLAB_INTEGER("data.max_validation_examples", "data_max_validation_examples", 18, always,
                   data.max_validation_examples, 0, kMaxCount, kCountOrNone, true,
                   "use the first N validation examples; 0: all"),
    PETLAB_INTEGER("data.max_test_examples", "data_max_test_examples", 19, always,
                   data.max_test_examples, 0, kMaxCount, kCountOrNone, true,
                   "use the first N test examples; 0: all"),
    left_out_at_default(PETLAB_INTEGER("decoding.beams", "decoding_beams", 33, t5, decoding.beams,
                                       1, kMaxBeams, "a whole number from 1 to 1024", true,
                                       "beams of beam search; 1: greedy decoding")),
    left_out_at_default(
        PETLAB_NUMBER("decoding.length_penalty", "decoding_length_penalty", 34, beams,
                      decoding.length_penalty, std::isfinite(x), "a number",
                      "a text's score is its log probability / its length to the power of this")),
    left_out_at_default(PETLAB_BOOLEAN("decoding.early_stopping", "decoding_early_stopping", 35,
                                       beams, decoding.early_stopping, true,
                                       "stop an input once one text per beam has ended")),
    left_out_at_default(PETLAB_INTEGER("decoding.min_tokens", "decoding_min_tokens", 36, t5,
                                       decoding.min_tokens, 0, kMaxSize, kSizeOrNone, true,
                                       "minimum length of a text; 0: none")),
    left_out_at_default(PETLAB_INTEGER("decoding.max_tokens", "decoding_max_tokens", 37, t5,
                                       decoding.max_tokens, 0, kMaxSize, kSizeOrNone, true,
                                       "maximum length of a text with its end token; 0: 128, or "
                                       "for classes and scores the longest "
                                       "target")),
    left_out_at_default(PETLAB_INTEGER("decoding.no_repeat_ngrams", "decoding_no_repeat_ngrams", 38,
                                       t5, decoding.no_repeat_ngrams, 0, kMaxSize, kSizeOrNone,
                                       true, "never repeat an n-gram of this length; 0: off")),
    left_out_at_default(PETLAB_BOOLEAN("evaluation.keep_predictions", "evaluation_keep_predictions",
                                       39, always, evaluation.keep_predictions, false,
                                       "also store predicted test texts; classes and scores are "
                                       "always stored; not part of the id")),
};

#undef PETLAB_INTEGER
#undef PETLAB_NUMBER
#undef PETLAB_BOOLEAN

}  // namespace

std::span<const Field> internal::builtin_fields() { return kFields; }

std::span<const Field> fields() { return internal::vocabulary().fields; }

const Field* find_field(std::string_view name) {
  const auto all = fields();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool is_group_of_fields(std::string_view name) {
  const auto all = fields();
  return std::any_of(all.begin(), all.end(), [&](const Field& field) {
    return field.name.size() > name.size() && field.name.starts_with(name) &&
           field.name[name.size()] == '.';
  });
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
  if (!config.catalog.empty()) {
    const ModuleRow* const declared = module_of(config);
    if (declared == nullptr || !declared->has_field(field.name)) return false;
  } else if (field.declared != nullptr) {
    return false;
  }
  // Most fields apply to every module, and sweeps ask this for each of a million trials.
  switch (field.use) {
    case FieldUse::always:
    case FieldUse::t5:
      return true;
    case FieldUse::no_steps:
      return config.training.steps == 0;
    case FieldUse::no_warmup_steps:
      return config.training.warmup_steps == 0;
    case FieldUse::beams:
      return config.decoding.beams > 1;
    case FieldUse::of_kind:
    case FieldUse::masked:
    case FieldUse::learned_mask:
    case FieldUse::task_masks:
      break;
  }
  const ModuleRow* const row = module_of(config);
  const auto has = [&](std::string_view name) { return row != nullptr && row->has_field(name); };
  const bool masked = config.module.mask != metrics::MaskKind::none;
  if (field.use == FieldUse::learned_mask) {
    return has("module.mask") && config.module.mask == metrics::MaskKind::learned;
  }
  if (field.use == FieldUse::masked) return has(field.name) && masked;
  if (field.use == FieldUse::task_masks) {
    return has(field.name) && masked && config.module.share && config.tasks.size() > 1;
  }
  return has(field.name);
}

bool is_written(const Field& field, const TrialConfig& config) {
  static const TrialConfig usual;
  return is_active(field, config) &&
         (field.written_at_default || field.get(config) != field.get(usual));
}

std::optional<json> value_where_left_out(const Field& field, std::string_view module_kind) {
  static const TrialConfig usual;
  if (field.written_at_default) return std::nullopt;
  if (field.use == FieldUse::of_kind) {
    const ModuleRow* const row = find_module(module_kind);
    if (row == nullptr || !row->has_field(field.name)) return std::nullopt;
  } else if (field.use != FieldUse::always) {
    return std::nullopt;
  }
  return field.get(usual);
}

std::string use_text(const Field& field) {
  std::string kinds;
  const std::string_view listed = field.use == FieldUse::learned_mask ? "module.mask" : field.name;
  for (const ModuleRow& row : modules()) {
    if ((field.declared == nullptr) != row.catalog.empty() || !row.has_field(listed)) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(row.kind);
  }
  switch (field.use) {
    case FieldUse::masked:
      return kinds + " with a mask";
    case FieldUse::learned_mask:
      return kinds + " with a learned mask";
    case FieldUse::task_masks:
      return kinds + " shared and with a mask, on several tasks";
    case FieldUse::always:
      return "always";
    case FieldUse::t5:
      return "with a T5";
    case FieldUse::beams:
      return "with a T5, where `decoding.beams` is above 1";
    case FieldUse::no_steps:
      return "where `training.steps` is 0";
    case FieldUse::no_warmup_steps:
      return "where `training.warmup_steps` is 0";
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
  if (field.declared != nullptr) {
    return field.declared->usual.is_null() ? "" : text(field.declared->usual);
  }
  const std::string usual = text(field.get(TrialConfig()));
  std::string all = usual;
  for (const ModuleRow& row : internal::builtin_modules()) {
    const std::string kind_default = text(field.get(default_config(row.kind)));
    if (field.name != "module.kind" && kind_default != usual) {
      all += fmt::format("; {} {}", row.kind, kind_default);
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

std::string nearest_field(const std::string& word, std::string_view catalog) {
  std::vector<std::string> names{"task", "tasks", "user", "priority", "resources.gpus"};
  std::vector<std::string> last_parts;
  std::vector<std::string> of_last;
  for (const Field& field : fields()) {
    if (!is_field_of(field, catalog)) continue;
    names.emplace_back(field.name);
    last_parts.emplace_back(field.name.substr(field.name.find('.') + 1));
    of_last.emplace_back(field.name);
  }
  const std::string full = nearest_word(word, names);
  if (!full.empty()) return full;
  // `lr`, `bs`: the initials of a name's words.
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

}  // namespace petlab::sweeps
