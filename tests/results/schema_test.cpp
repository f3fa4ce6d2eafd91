#include "results/schema.h"

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>

#include "results/attempt_events.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {

// New columns come last, so those of existing databases keep their positions and types.
TEST_CASE("The columns of a trial's configuration stay as they are", "[results]") {
  std::vector<std::string> columns;
  for (const internal::FieldColumn& field : internal::field_columns()) {
    columns.push_back(
        fmt::format("{} {} {}", field.column, fmt::join(field.path, "."), field.type));
  }
  const std::vector<std::string> known = {
      "tasks tasks TEXT",
      "backbone backbone TEXT",
      "seed seed INTEGER",
      "module_kind module.kind TEXT",
      "module_share module.share INTEGER",
      "module_mask module.mask TEXT",
      "module_bottleneck module.bottleneck INTEGER",
      "training_epochs training.epochs INTEGER",
      "training_batch_size training.batch_size INTEGER",
      "training_gradient_accumulation training.gradient_accumulation INTEGER",
      "training_learning_rate training.learning_rate REAL",
      "training_weight_decay training.weight_decay REAL",
      "training_warmup_ratio training.warmup_ratio REAL",
      "training_max_grad_norm training.max_grad_norm REAL",
      "training_dropout training.dropout REAL",
      "training_checkpoint_every training.checkpoint_every INTEGER",
      "data_max_tokens data.max_tokens INTEGER",
      "data_max_train_examples data.max_train_examples INTEGER",
      "data_max_validation_examples data.max_validation_examples INTEGER",
      "data_max_test_examples data.max_test_examples INTEGER",
      "module_sparsity_ratio module.sparsity_ratio REAL",
      "training_mask_learning_rate training.mask_learning_rate REAL",
      "module_rank module.rank INTEGER",
      "module_alpha module.alpha REAL",
      "module_prefix_length module.prefix_length INTEGER",
      "module_prefix_hidden module.prefix_hidden INTEGER",
      "module_combine module.combine TEXT",
      "module_cross_attention module.cross_attention INTEGER",
      "training_steps training.steps INTEGER",
      "training_warmup_steps training.warmup_steps INTEGER",
      "training_label_smoothing training.label_smoothing REAL",
      "training_evaluate_every training.evaluate_every INTEGER",
      "data_max_target_tokens data.max_target_tokens INTEGER",
      "decoding_beams decoding.beams INTEGER",
      "decoding_length_penalty decoding.length_penalty REAL",
      "decoding_early_stopping decoding.early_stopping INTEGER",
      "decoding_min_tokens decoding.min_tokens INTEGER",
      "decoding_max_tokens decoding.max_tokens INTEGER",
      "decoding_no_repeat_ngrams decoding.no_repeat_ngrams INTEGER",
      "evaluation_keep_predictions evaluation.keep_predictions INTEGER",
      "module_hyper_embedding module.hyper_embedding INTEGER",
      "module_hyper_hidden module.hyper_hidden INTEGER",
      "module_hyper_projected module.hyper_projected INTEGER",
      "training_compute training.compute TEXT"};
  REQUIRE(columns.size() >= known.size());
  columns.resize(known.size());
  CHECK(columns == known);
}

TEST_CASE("Fields that a configuration leaves out at their defaults can be queried", "[results]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  const std::string sql =
      "SELECT trial_id, training_label_smoothing, training_steps, module_cross_attention, "
      "evaluation_keep_predictions, module_rank, decoding_beams FROM trials ORDER BY trial_id";
  const std::vector<std::string> filled = {"a|0.0|0|NULL|0|NULL|NULL", "b|0.1|0|0|0|8|NULL",
                                           "c|0.0|0|1|0|8|4"};
  {
    Store store(file);
    Batch batch = store.begin();
    batch.record_trial(trial_row("a"));
    sweeps::TrialConfig config = sweeps::default_config("lora");
    config.backbone = "minilm";
    config.tasks = {"cola"};
    config.module.rank = 8;
    config.training.label_smoothing = 0.1;
    batch.record_trial({"b", sweeps::to_json(config).dump(), "", {}, {}});
    config.training.label_smoothing = 0;
    config.module.cross_attention = true;
    config.decoding.beams = 4;
    batch.record_trial({"c", sweeps::to_json(config).dump(), "", {}, {}});
    batch.commit();
  }
  CHECK(rows(file, sql) == filled);
  {
    // As an earlier petlab left it.
    SQLite::Database database(file.string(), SQLite::OPEN_READWRITE);
    database.exec(
        "UPDATE trials SET training_label_smoothing = NULL WHERE training_label_smoothing = 0; "
        "UPDATE trials SET training_steps = NULL, evaluation_keep_predictions = NULL; "
        "UPDATE trials SET module_cross_attention = NULL WHERE module_cross_attention = 0; "
        "PRAGMA user_version = 1");
  }
  { const Store store(file); }
  CHECK(rows(file, sql) == filled);
  {
    // Columns are filled only once; later gaps stay.
    SQLite::Database database(file.string(), SQLite::OPEN_READWRITE);
    database.exec("UPDATE trials SET training_steps = NULL");
  }
  { const Store store(file); }
  CHECK(rows(file, "SELECT DISTINCT training_steps FROM trials") ==
        std::vector<std::string>{"NULL"});
}

TEST_CASE("The views lead from a score to its artifact", "[results]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  Store store(file);
  Batch batch = store.begin();
  batch.record_runs_folder(folder.path() / "some.runs");
  batch.record_trial(trial_row("t1"));
  const AttemptRef attempt = batch.record_attempt(request("t1"), 2);
  record_started(batch, attempt, {}, 1);
  append_metrics(batch, attempt,
                 {{{1, 10, series_in(batch, "validation", "cola", "f1"), 0.5},
                   {2, 20, series_in(batch, "train", "cola", "loss"), 0.25},
                   {3, 10, series_in(batch, "test", "cola", "f1"), 0.75}}});
  protocol::Finished finished;
  finished.step = 20;
  finished.artifact = "artifact.petl";
  finished.train_seconds = 1.5;
  // The sizes that the worker reports, not those computed from the configuration.
  finished.bls_bits = 990;
  finished.stored_bits = 1016;
  record_finished(batch, attempt, finished, 2);
  batch.commit();
  CHECK(rows(file,
             "SELECT split, folder, artifact, selected_step, train_seconds, bls_bits, stored_bits "
             "FROM results WHERE name = 'f1' ORDER BY seq") ==
        std::vector<std::string>{
            "validation|some.runs/t1/2|some.runs/t1/2/artifact.petl|10|1.5|990.0|1016",
            "test|some.runs/t1/2|some.runs/t1/2/artifact.petl|10|1.5|990.0|1016"});
}

TEST_CASE("A seed of 2^63 or more from an earlier petlab is read, and is shown minus 2^64",
          "[results]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  {
    Store store(file);
    Batch batch = store.begin();
    batch.record_trial(trial_row("t", 9223372036854775809U));
    batch.commit();
  }
  CHECK(rows(file, "SELECT seed FROM trials") == std::vector<std::string>{"-9223372036854775807"});
  CHECK(Reader(file).trial("t")->config.find("\"seed\":9223372036854775809") != std::string::npos);
}

}  // namespace petlab::results
