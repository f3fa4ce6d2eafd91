#include "sweeps/catalog.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "metrics/metric_table.h"
#include "sweeps/backbone.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"
#include "sweeps/locations.h"
#include "sweeps/trial_state.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/sweeps/fixture.h"

using namespace petlab;
using namespace petlab::sweeps;
using petlab::sweeps::testing::Home;
using petlab::testing::TempDir;

namespace {

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

bool has_problem(const TrialConfig& config, const std::string& field) {
  const std::vector<Problem> problems = validate(config);
  return problems.size() == 1 && problems[0].field == field;
}

}  // namespace

TEST_CASE("The table of modules has only known fields, and each size is a field", "[sweeps]") {
  for (const ModuleRow& row : modules()) {
    if (!row.catalog.empty()) continue;
    INFO(row.kind);
    for (const std::string_view field : row.fields) CHECK(find_field(field) != nullptr);
    for (const KindDefault& preset : row.defaults) CHECK(find_field(preset.field) != nullptr);
    CHECK((row.formula() != nullptr) == !row.size_field().empty());
    if (row.formula() != nullptr) CHECK(row.has_field(row.size_field()));
    TrialConfig config = default_config(row.kind);
    config.backbone = "b";
    config.tasks = {"cola"};
    CHECK(validate(config).empty());
    CHECK(trial_config_from_json(nlohmann::json(to_json(config))) == config);
  }
  CHECK_THROWS_WITH(default_config("adaptor"),
                    "module.kind is 'adaptor', must be adapter, lora, prefix, full_finetuning, "
                    "head_only or hyperformer++");
}

TEST_CASE("Every built-in task is complete, with known metrics", "[sweeps]") {
  std::set<std::string> names;
  std::set<std::string> digests;
  for (const TaskDeclaration& task : tasks()) {
    INFO(task.name);
    CHECK(names.insert(task.name).second);
    CHECK(digests.insert(task_digest(task)).second);
    CHECK_FALSE(task.help.empty());
    CHECK_FALSE(task.source.empty());
    CHECK((task.kind != TaskKind::classification) == task.classes.empty());
    const auto input = task.kind == TaskKind::regression ? metrics::MetricInput::scores
                       : task.kind == TaskKind::text     ? metrics::MetricInput::text
                                                         : metrics::MetricInput::labels;
    for (const std::string& name : task.metrics) {
      REQUIRE(metrics::find_metric(name) != nullptr);
      CHECK(metrics::find_metric(name)->input == input);
    }
    for (const std::string& name : task.select_by) {
      CHECK(std::find(task.metrics.begin(), task.metrics.end(), name) != task.metrics.end());
      CHECK(metrics::find_metric(name)->higher_is_better);
    }
    for (const TaskLayout& layout : task.layouts) {
      CHECK(layout.text_columns.size() == task.layouts[0].text_columns.size());
      CHECK(layout.validation.empty() == (task.split == SplitRule::one_file));
    }
    CHECK(task_from_json(nlohmann::json(to_json(task))) == task);
  }
  CHECK(names.size() == 18);
  CHECK(find_task("wmt16-ro-en")->select_by == std::vector<std::string>{"bleu"});
  CHECK(find_task("xsum")->select_by == std::vector<std::string>{"rouge2"});
  CHECK(find_task("cola")->text_to_text.source == "cola sentence: {text1}");
  CHECK(find_task("mnli")->text_to_text.source == "mnli premise: {text1} hypothesis: {text2}");
  CHECK(find_task("qnli")->text_to_text.source == "qnli question: {text1} sentence: {text2}");
}

TEST_CASE("A task's identity does not depend on its folder and descriptions", "[sweeps]") {
  TaskDeclaration task = *find_task("rte");
  const std::string digest = task_digest(task);
  task.help = "other";
  task.source = "elsewhere";
  task.folder = "/somewhere";
  task.layouts.pop_back();
  CHECK(task_digest(task) == digest);
  task.layouts[0].train = "other.tsv";
  CHECK(task_digest(task) != digest);
}

TEST_CASE("Labels are names, or numbers if no name is a number", "[sweeps]") {
  const TaskDeclaration& rte = *find_task("rte");
  CHECK(class_of(rte, "entailment") == 0U);
  CHECK(class_of(rte, "not_entailment") == 1U);
  CHECK(class_of(rte, "1", true) == 1U);
  CHECK(class_of(rte, "1.0", true) == 1U);
  CHECK(class_of(rte, "0.0", true) == 0U);
  CHECK(class_of(rte, "-0.0", true) == 0U);
  CHECK_FALSE(class_of(rte, "0.5", true));
  CHECK_FALSE(class_of(rte, "1e300", true));
  CHECK_FALSE(class_of(rte, "1.0", false));
  CHECK_FALSE(class_of(rte, "1", false));
  CHECK_FALSE(class_of(rte, "2", true));
  CHECK_FALSE(class_of(rte, "-1", true));
  TaskDeclaration stars;
  stars.classes = {"1", "2"};
  CHECK(class_of(stars, "2", true) == 1U);
  CHECK_FALSE(class_of(stars, "0", true));
  CHECK_FALSE(class_of(stars, ""));
}

TEST_CASE("The tasks' files are found in the real data", "[sweeps]") {
  const auto data = petlab::testing::real_data();
  if (!data) return;
  const std::vector<std::filesystem::path> folders{*data};
  int found = 0;
  for (const TaskDeclaration& task : tasks()) {
    std::string error;
    try {
      found += find_task_files(task, folders).layout == 0 ? 1 : 0;
    } catch (const Error& missing) {
      error = missing.what();
    }
    CHECK((error.empty() || error.find("task " + task.name + ": ") == 0));
  }
  CHECK(found >= 5);
}

TEST_CASE("A missing data file is reported, with its source", "[sweeps]") {
  const TempDir folder;
  const std::vector<std::filesystem::path> folders{folder.path(), "/nowhere"};
  folder.write("glue/QNLI/dev.tsv", "");
  CHECK_THROWS_WITH(find_task_files(*find_task("qnli"), folders),
                    "task qnli: glue/QNLI/train.tsv is in none of the folders " +
                        folder.path().string() +
                        ", /nowhere; it comes from the official GLUE files, "
                        "gluebenchmark.com/tasks, unpacked to a "
                        "data folder as glue/QNLI; petlab fetch data qnli does that (set "
                        "PETLAB_DATA to add a folder)");
  // JSON Lines files are used instead once they are complete.
  folder.write("glue/QNLI/train.jsonl", "");
  CHECK_THROWS_AS(find_task_files(*find_task("qnli"), folders), Error);
  folder.write("glue/QNLI/dev.jsonl", "");
  const TaskFiles files = find_task_files(*find_task("qnli"), folders);
  CHECK(files.layout == 1);
  CHECK(files.train == folder.path() / "glue/QNLI/train.jsonl");
  CHECK(files.test.empty());
  CHECK_THROWS_WITH(find_task_files(*find_task("rte"), {}),
                    petlab::testing::has_text("is in none of the folders (none are set)"));
}

TEST_CASE("A value out of range is a problem of its field", "[sweeps]") {
  TrialConfig good;
  good.backbone = "minilm";
  good.tasks = {"cola"};
  REQUIRE(validate(good).empty());
  const auto with = [&](auto change) {
    TrialConfig config = good;
    change(config);
    return config;
  };
  CHECK(has_problem(with([](auto& c) { c.backbone = ""; }), "backbone"));
  CHECK(has_problem(with([](auto& c) { c.tasks = {}; }), "task"));
  CHECK(has_problem(with([](auto& c) { c.tasks = {"cola", "cola"}; }), "tasks"));
  CHECK(has_problem(with([](auto& c) { c.module.kind = "x"; }), "module.kind"));
  CHECK(has_problem(with([](auto& c) { c.module.bottleneck = 0; }), "module.bottleneck"));
  CHECK(has_problem(with([](auto& c) { c.training.epochs = 0; }), "training.epochs"));
  CHECK(
      has_problem(with([](auto& c) { c.training.learning_rate = -1; }), "training.learning_rate"));
  CHECK(has_problem(with([](auto& c) { c.training.warmup_ratio = 1; }), "training.warmup_ratio"));
  CHECK(has_problem(with([](auto& c) { c.training.dropout = -0.5; }), "training.dropout"));
  CHECK(has_problem(with([](auto& c) { c.training.gradient_accumulation = 3; }),
                    "training.gradient_accumulation"));
  CHECK(has_problem(with([](auto& c) { c.data.max_tokens = 7; }), "data.max_tokens"));
  CHECK(has_problem(with([](auto& c) { c.user = "[]"; }), "user"));
  CHECK(has_problem(with([](auto& c) { c.user = R"({"a":[1]})"; }), "user.a"));
  CHECK(has_problem(with([](auto& c) {
                      c.module.mask = metrics::MaskKind::learned;
                      c.module.sparsity_ratio = 1.5;
                    }),
                    "module.sparsity_ratio"));
  // Out of range, but the trial does not use this field.
  CHECK(validate(with([](auto& c) { c.module.sparsity_ratio = 1.5; })).empty());
  CHECK(validate(with([](auto& c) { c.training.learning_rate = -0.1; }))[0].message ==
        "is -0.1, must be a number > 0");
}

TEST_CASE("The ends of a range are included or not as its text says", "[sweeps]") {
  TrialConfig good;
  good.backbone = "minilm";
  good.tasks = {"cola"};
  good.module.mask = metrics::MaskKind::learned;
  good.module.share = true;
  REQUIRE(validate(good).empty());
  struct End {
    const char* field;
    double value;
    bool in;
  };
  for (const End& end :
       {End{"training.dropout", 1, false}, End{"training.dropout", 0, true},
        End{"training.dropout", 0.999, true}, End{"training.dropout", -1, true},
        End{"training.dropout", -0.999, false}, End{"training.warmup_ratio", 1, false},
        End{"training.warmup_ratio", 0, true}, End{"training.warmup_ratio", -1e-9, false},
        End{"training.weight_decay", 0, true}, End{"training.weight_decay", -1e-9, false},
        End{"training.max_grad_norm", 0, true}, End{"training.max_grad_norm", -1e-9, false},
        End{"training.learning_rate", 0, false}, End{"training.mask_learning_rate", 0, false},
        End{"module.sparsity_ratio", 0, false}, End{"module.sparsity_ratio", 1, true},
        End{"module.sparsity_ratio", 1.001, false}}) {
    INFO(end.field << " " << end.value);
    TrialConfig config = good;
    REQUIRE(find_field(end.field)->set(config, end.value));
    CHECK(validate(config).empty() == end.in);
  }
}

TEST_CASE("Parameters of backbones are counted as in the paper", "[sweeps]") {
  const Home home;
  const BackboneShape roberta = read_backbone_shape(home.locations().models() / "roberta-base");
  CHECK(roberta.parameters() == 124'645'632);
  CHECK(roberta.layers() == 12);
  home.folder().write("models/t5-base/config.json",
                      R"({"model_type":"t5","d_model":768,"d_kv":64,"d_ff":3072,"num_layers":12,
                          "num_heads":12,"vocab_size":32128,"relative_attention_num_buckets":32})");
  const BackboneShape t5 = read_backbone_shape(home.locations().models() / "t5-base");
  CHECK(t5.parameters() == 222'903'552);
  CHECK(t5.layers() == 24);
  // A T5 1.1 has an output projection. transformers 4 and 5 save its configuration differently.
  for (const char* const fields : {R"("tie_word_embeddings":false)",
                                   R"("tie_word_embeddings":true,"scale_decoder_outputs":false)"}) {
    home.folder().write("models/t5-v1_1/config.json",
                        std::string(R"({"model_type":"t5","d_model":768,"d_kv":64,"d_ff":2048,)"
                                    R"("num_layers":12,"num_heads":12,"vocab_size":32128,)"
                                    R"("feed_forward_proj":"gated-gelu",)") +
                            fields + "}");
    CHECK(read_backbone_shape(home.locations().models() / "t5-v1_1").parameters() == 247'577'856);
  }
  home.folder().write("models/t5-3b/config.json",
                      R"({"model_type":"t5","d_model":1024,"d_kv":128,"d_ff":16384,"num_layers":24,
                          "num_heads":32,"vocab_size":32128,"relative_attention_num_buckets":32})");
  CHECK(read_backbone_shape(home.locations().models() / "t5-3b").parameters() == 2'851'598'336);
}

TEST_CASE("ModernBERT's parameters are all of its weights", "[sweeps]") {
  const Home home;
  const auto parameters = [&](const std::string& more) {
    home.folder().write(
        "models/modern/config.json",
        R"({"model_type":"modernbert","hidden_size":768,"num_hidden_layers":22,"vocab_size":50368,
            "num_attention_heads":12,"intermediate_size":1152,"max_position_embeddings":8192)" +
            more + "}");
    const BackboneShape shape = read_backbone_shape(home.locations().models() / "modern");
    CHECK(shape.layers() == 22);
    CHECK(shape.max_positions == 8192);
    return shape.parameters();
  };
  CHECK(parameters("") == 149'014'272);  // of ModernBERT-base
  // 22 · (4 · 768), 22 · (2 · 1152 + 768), and 45 norms but one
  CHECK(parameters(R"(,"attention_bias":true)") == 149'014'272 + 67'584);
  CHECK(parameters(R"(,"mlp_bias":true)") == 149'014'272 + 67'584);
  CHECK(parameters(R"(,"norm_bias":true)") == 149'014'272 + 34'560);
}

TEST_CASE("A config.json without a usable shape is refused with its field", "[sweeps]") {
  const TempDir folder;
  const auto check = [&](const std::string& text, const std::string& message) {
    folder.write("config.json", text);
    CHECK_THROWS_WITH(read_backbone_shape(folder.path()),
                      folder.path().string() + "/config.json: " + message);
  };
  check("", "found something else than a JSON object, expected a Hugging Face configuration");
  check("{}", "model_type: found nothing, expected bert, roberta, t5 or modernbert");
  check(R"({"model_type":"bert"})", "hidden_size is missing, must be a whole number > 0");
  check(R"({"model_type":"bert","hidden_size":-8})",
        "hidden_size: found -8, expected a whole number from 1 to 4194304");
  check(R"({"model_type":"bert","hidden_size":10,"num_hidden_layers":2,"num_attention_heads":3,
            "intermediate_size":8,"vocab_size":9,"max_position_embeddings":9,"type_vocab_size":2})",
        "num_attention_heads: found 3, expected a divisor of hidden_size (10)");
}

TEST_CASE("Locations come from the given environment", "[sweeps]") {
  const Locations all = find_locations(environment_of(
      {{"PETLAB_HOME", "/h"}, {"XDG_DATA_HOME", "/x"}, {"HOME", "/u"}, {"PETLAB_DATA", "/d"}}));
  CHECK(all.home == "/h");
  CHECK(all.data_folders == std::vector<std::filesystem::path>{"/d", "/h/data"});
  CHECK(find_locations(environment_of({{"XDG_DATA_HOME", "/x"}, {"PETLAB_HOME", ""}})).home ==
        "/x/petlab");
  const Locations user = find_locations(environment_of({{"HOME", "/u"}}));
  CHECK(user.home == "/u/.local/share/petlab");
  CHECK(user.data_folders.size() == 1);
  CHECK_THROWS_WITH(
      find_locations(environment_of({})),
      "none of PETLAB_HOME, XDG_DATA_HOME and HOME is set; set one to place petlab's folder");
}

TEST_CASE("Trial states have their documented names", "[sweeps]") {
  const std::vector<std::string> words = {"new",    "running",   "interrupted",
                                          "done",   "cached",    "stale",
                                          "failed", "cancelled", "stopped early"};
  for (const std::string& word : words) {
    REQUIRE(trial_state_from(word).has_value());
    CHECK(to_string(*trial_state_from(word)) == word);
  }
  CHECK_FALSE(trial_state_from("fresh"));
}

TEST_CASE("The nearest word is similar or empty", "[sweeps]") {
  const std::vector<std::string> words{"seed", "training.epochs", "module"};
  CHECK(nearest_word("sede", words) == "seed");
  CHECK(nearest_word("training.epoch", words) == "training.epochs");
  CHECK(nearest_word("zzzz", words).empty());
  CHECK(nearest_word("", words).empty());
  CHECK(nearest_word(std::string(1000, 'x'), words).empty());
}
