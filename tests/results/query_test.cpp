#include "results/query.h"

#include "results/error.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

struct QueryFixture {
  TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};
  std::string failure(const std::string& sql, const std::vector<Value>& parameters = {}) {
    try {
      query(file, sql, parameters);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no failure";
  }
};

}  // namespace

TEST_CASE("A query returns columns and rows of every type", "[results]") {
  const QueryFixture f;
  const QueryResult result =
      query(f.file, "SELECT 1 AS a, 1.5 AS b, 'x' AS c, NULL AS d, x'00ff' AS e, ?1 AS f; -- done",
            {std::string("p")});
  CHECK(result.columns == Lines{"a", "b", "c", "d", "e", "f"});
  REQUIRE(result.rows.size() == 1);
  CHECK(result.rows[0] == std::vector<Value>{std::int64_t{1}, 1.5, std::string("x"), Value(),
                                             std::string("x'00ff'"), std::string("p")});
}

TEST_CASE("A mistake in SQL is shown with its position", "[results]") {
  QueryFixture f;
  CHECK(f.failure("SELECT a\nFRM results") ==
        "SQL:2:5: near \"results\": syntax error\n  FRM results\n      ^");
  CHECK(f.failure("SELECT 'é', trail_id FROM results") ==
        "SQL:1:13: no such column: trail_id\n  SELECT 'é', trail_id FROM results\n"
        "              ^");
  CHECK(f.failure("SELECT") == "SQL: incomplete input");
  CHECK(f.failure("") == "SQL: there is no statement, want a SELECT");
  CHECK(f.failure("-- nothing") == "SQL: there is no statement, want a SELECT");
  CHECK(f.failure("SELECT json('x')") == "SQL: malformed JSON");
  CHECK(f.failure("SELECT ?1, ?2", {Value()}) == "SQL: it has 2 parameters, 1 values were given");
}

TEST_CASE("A query cannot write, in any way", "[results]") {
  QueryFixture f;
  const std::string refused = "SQL: it writes; only reading is allowed";
  for (const char* sql :
       {"DELETE FROM trials", "INSERT INTO trials (trial_id, config) VALUES ('a', '')",
        "CREATE TABLE x (a)", "DROP VIEW results", "PRAGMA user_version = 7",
        "WITH x AS (SELECT 1) UPDATE trials SET config = ''"}) {
    CAPTURE(sql);
    CHECK(f.failure(sql) == refused);
  }
  CHECK(f.failure("SELECT 1; DELETE FROM trials") ==
        "SQL: found more than one statement, want one (the second begins at character 10)");
  CHECK(f.failure("VACUUM INTO '" + (f.folder.path() / "copy.db").string() + "'") != "no failure");
  CHECK(f.failure("ATTACH '" + (f.folder.path() / "other.db").string() + "' AS o") ==
        "SQL: too many attached databases - max 0");
  CHECK_FALSE(std::filesystem::exists(f.folder.path() / "copy.db"));
  CHECK_FALSE(std::filesystem::exists(f.folder.path() / "other.db"));
}

TEST_CASE("The columns that reports depend on exist", "[results]") {
  const QueryFixture f;
  const auto columns = query(f.file, "SELECT * FROM sweep_results").columns;
  for (const char* name : {"sweep",
                           "variant",
                           "trial_id",
                           "attempt",
                           "step",
                           "split",
                           "task",
                           "name",
                           "value",
                           "seed",
                           "backbone",
                           "tasks",
                           "module_kind",
                           "module_share",
                           "module_mask",
                           "module_sparsity_ratio",
                           "module_bottleneck",
                           "module_rank",
                           "module_alpha",
                           "module_prefix_length",
                           "module_prefix_hidden",
                           "training_epochs",
                           "training_batch_size",
                           "training_gradient_accumulation",
                           "training_learning_rate",
                           "training_mask_learning_rate",
                           "training_weight_decay",
                           "training_warmup_ratio",
                           "training_max_grad_norm",
                           "training_dropout",
                           "training_checkpoint_every",
                           "data_max_tokens",
                           "data_max_train_examples",
                           "data_max_validation_examples",
                           "data_max_test_examples",
                           "user",
                           "bls_bits",
                           "stored_bits",
                           "numerics"}) {
    CAPTURE(name);
    CHECK(std::count(columns.begin(), columns.end(), name) == 1);
  }
}

}  // namespace petlab::results
