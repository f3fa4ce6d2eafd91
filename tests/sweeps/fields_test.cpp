#include "sweeps/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::sweeps {
namespace {

TEST_CASE("Each row of the table of fields is consistent", "[sweeps]") {
  std::set<int> places;
  for (const Field& field : fields()) {
    INFO(field.name);
    std::string column(field.name);
    std::replace(column.begin(), column.end(), '.', '_');
    CHECK(field.column == column);
    CHECK(places.insert(field.place).second);
    CHECK_FALSE(field.help.empty());
    const nlohmann::json value = field.get(TrialConfig());
    CHECK(value.is_string() == (field.type == FieldType::text));
    CHECK(value.is_boolean() == (field.type == FieldType::boolean));
    CHECK(value.is_number_float() == (field.type == FieldType::number));
    CHECK(value.is_number_integer() == (field.type == FieldType::integer));
  }
  CHECK(*places.begin() == 1);
  CHECK(*places.rbegin() == static_cast<int>(fields().size()));
}

TEST_CASE("The texts of a row match its rules", "[sweeps]") {
  CHECK(use_text(*find_field("seed")) == "always");
  CHECK(use_text(*find_field("training.epochs")) == "where `training.steps` is 0");
  CHECK(use_text(*find_field("module.combine")) ==
        "adapter, lora, prefix shared and with a mask, on several tasks");
  CHECK(use_text(*find_field("module.cross_attention")) == "lora");
  CHECK(use_text(*find_field("decoding.beams")) == "with a T5");
  CHECK(use_text(*find_field("decoding.length_penalty")) ==
        "with a T5, where `decoding.beams` is above 1");
  CHECK(use_text(*find_field("module.rank")) == "lora");
  CHECK(use_text(*find_field("module.bottleneck")) == "adapter, hyperformer++");
  CHECK(use_text(*find_field("module.hyper_hidden")) == "hyperformer++");
  CHECK(use_text(*find_field("module.sparsity_ratio")) == "adapter, lora, prefix with a mask");
  CHECK(use_text(*find_field("training.mask_learning_rate")) ==
        "adapter, lora, prefix with a learned mask");
  CHECK(default_text(*find_field("backbone")).empty());
  CHECK(default_text(*find_field("module.share")) == "false");
  CHECK(default_text(*find_field("module.bottleneck")) == "64; hyperformer++ 24");
  CHECK(default_text(*find_field("module.kind")) == "adapter");
  CHECK(default_text(*find_field("training.learning_rate")) == "0.0001");
  CHECK(default_text(*find_field("training.mask_learning_rate")) ==
        "0.003; lora 0.03; prefix 0.0001");
}

TEST_CASE("Fields added later are written only if they differ from their default", "[sweeps]") {
  TrialConfig config = default_config("lora");
  config.backbone = "b";
  config.tasks = {"cola", "rte"};
  config.module.share = true;
  config.module.mask = metrics::MaskKind::learned;
  const nlohmann::json before = to_json(config);
  CHECK_FALSE(before.contains("decoding"));
  CHECK_FALSE(before.contains("evaluation"));
  for (const Field& field : fields()) {
    if (field.written_at_default) continue;
    INFO(field.name);
    CHECK_FALSE(is_written(field, config));
    TrialConfig changed = config;
    changed.decoding.beams = 4;  // length penalties need beams
    const nlohmann::json value = field.get(config);
    const nlohmann::json other =
        value.is_boolean()        ? nlohmann::json(true)
        : value.is_string()       ? nlohmann::json(value == "or" ? "and" : "bf16")
        : value.is_number_float() ? nlohmann::json(0.5)
                                  : nlohmann::json(value.get<std::int64_t>() + 7);
    REQUIRE(field.set(changed, other));
    CHECK(is_written(field, changed));
    CHECK(trial_config_from_json(to_json(changed)) == changed);
  }
}

TEST_CASE("Steps replace epochs, and warm-up steps the warm-up ratio", "[sweeps]") {
  TrialConfig config = default_config("adapter");
  CHECK(is_active(*find_field("training.epochs"), config));
  CHECK(is_active(*find_field("training.warmup_ratio"), config));
  config.training.steps = 100;
  config.training.warmup_steps = 10;
  CHECK_FALSE(is_active(*find_field("training.epochs"), config));
  CHECK_FALSE(is_active(*find_field("training.warmup_ratio"), config));
  const nlohmann::json training = to_json(config).at("training");
  CHECK(training.at("steps") == 100);
  CHECK_FALSE(training.contains("epochs"));
  CHECK_FALSE(training.contains("warmup_ratio"));
}

TEST_CASE("Conflicting fields are reported, in any configuration", "[sweeps]") {
  TrialConfig config = default_config("adapter");
  config.backbone = "b";
  config.tasks = {"cola"};
  config.training.steps = 100;
  config.training.epochs = 3;
  config.training.warmup_steps = 10;
  config.training.warmup_ratio = 0.25;
  config.decoding.min_tokens = 9;
  config.decoding.max_tokens = 8;
  CHECK(validate(config) ==
        std::vector<Problem>{
            {"training.epochs", "is 3, must be omitted when training.steps is set (100)"},
            {"training.warmup_ratio",
             "is 0.25, must be omitted when training.warmup_steps is set (10)"},
            {"decoding.min_tokens", "is 9, must be at most decoding.max_tokens (8)"}});
  config = default_config("adapter");
  config.backbone = "b";
  config.tasks = {"cola"};
  config.decoding.min_tokens = 9;
  config.decoding.beams = 0;
  config.training.label_smoothing = 1;
  config.data.max_target_tokens = 1;
  CHECK(validate(config) ==
        std::vector<Problem>{
            {"training.label_smoothing", "is 1.0, must be a number >= 0 and < 1"},
            {"data.max_target_tokens", "is 1, must be a whole number from 2 to 1048576"},
            {"decoding.beams", "is 0, must be a whole number from 1 to 1024"}});
}

TEST_CASE("The page on fields describes every field as in the table", "[sweeps]") {
  const std::string page =
      petlab::testing::read_file(petlab::testing::source_dir() / "docs/reference/fields.md");
  for (const Field& field : fields()) {
    const std::string row = fmt::format("\n| `{}` | {} | {} | {}", field.name, default_text(field),
                                        use_text(field), field.help);
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

}  // namespace
}  // namespace petlab::sweeps
