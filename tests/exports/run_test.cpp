#include "exports/run.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exports/mlflow.h"
#include "exports/wandb.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::exports {
namespace {

Run failed_run() {
  Run run;
  run.sweep = "a/b \"c\"";
  run.variant = "small";
  run.trial = "162f2aff48641f39";
  run.attempt = 2;
  run.state = "failed";
  run.end = RunEnd::failure;
  run.begun = 1000.5;
  run.ended = 1003;
  run.parameters = {{"seed", 3}, {"module.share", false}, {"user.a/b", "x"}, {"task", "films"}};
  run.points = {{"train", "", "loss", 1, 1001, 0.1},
                {"train", "loss", "f1", 1, 1001, 0.5},
                {"validation", "..", "é", 2, 1002.25, std::nullopt},
                {"train", "", "loss", 2, 1002, 1e-300},
                {"train", "", "loss", 2, 1003, 3}};
  return run;
}

/// All files below a folder, by path.
std::map<std::string, std::string> files_below(const std::filesystem::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      found[entry.path().lexically_relative(folder).string()] = testing::read_file(entry.path());
    }
  }
  return found;
}

}  // namespace

TEST_CASE("A restricted name keeps what is allowed and keeps different names apart", "[exports]") {
  CHECK(restricted_name("a.b-c", ".-", 20) == "a.b-c");
  CHECK(restricted_name("a b", "-", 20) == "a_b-c8687a08aa5d");
  CHECK(restricted_name("a/b", "-", 20) == "a_b-c14cddc033f6");
  CHECK(restricted_name("", "", 20) == "_-e3b0c44298fc");
  CHECK(restricted_name("..", ".", 20) == "_-5ec1f7e700f3");
  CHECK(restricted_name("abcdefghijklmnopqrstuvwxyz", "", 20).size() == 20);
}

TEST_CASE("Rows have the points of a step in the order of reports", "[exports]") {
  const Run run = failed_run();
  const std::vector<Row> rows = rows_of(run);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].step == 1);
  CHECK(rows[0].points.size() == 2);
  CHECK(rows[1].time == 1003);
  REQUIRE(rows[1].points.size() == 3);
  CHECK(rows[1].points[2]->value == 3);
}

TEST_CASE("MLflow's files hold a run's metrics, parameters, tags, status and times", "[exports]") {
  const testing::TempDir folder;
  MlflowWriter writer(folder.path(), "/final");
  writer.write(failed_run());
  CHECK(writer.exported().runs == 1);
  CHECK(writer.exported().values == 5);
  std::map<std::string, std::string> files = files_below(folder.path());
  const std::string experiment = files.begin()->first.substr(0, files.begin()->first.find('/'));
  const std::string id = failed_run().id();
  CHECK(id.size() == 32);
  CHECK(files.at(experiment + "/meta.yaml") ==
        "experiment_id: \"" + experiment +
            "\"\nname: \"a/b \\\"c\\\"\"\nartifact_location: \"/final/" + experiment +
            "\"\nlifecycle_stage: \"active\"\ncreation_time: 1000500\nlast_update_time: 1000500\n");
  const std::string run = experiment + "/" + id + "/";
  CHECK(files.at(run + "meta.yaml") ==
        "artifact_uri: \"/final/" + run +
            "artifacts\"\ndeleted_time: null\nend_time: 1003000\nentry_point_name: \"\"\n"
            "experiment_id: \"" +
            experiment + "\"\nlifecycle_stage: \"active\"\nrun_id: \"" + id +
            "\"\nrun_name: \"small 162f2aff48641f39\"\nrun_uuid: \"" + id +
            "\"\nsource_name: \"\"\nsource_type: 4\nsource_version: \"\"\nstart_time: 1000500\n"
            "status: 4\ntags: []\nuser_id: \"\"\n");
  CHECK(files.at(run + "metrics/train/loss") == "1001000 0.1 1\n1002000 1e-300 2\n1003000 3 2\n");
  // A task that has the name of the loss, whose file cannot also be a folder.
  CHECK(files.at(run + "metrics/train/loss_-86d08f4c2d3a/f1") == "1001000 0.5 1\n");
  CHECK(files.at(run + "metrics/validation/_-5ec1f7e700f3/__-4a99557e4033") == "1002250 nan 2\n");
  CHECK(files.at(run + "params/seed") == "3");
  CHECK(files.at(run + "params/module.share") == "false");
  CHECK(files.at(run + "params/user.a_b-63cd3a4ff6bc") == "x");
  CHECK(files.at(run + "tags/petlab.state") == "failed");
  CHECK(files.at(run + "tags/petlab.sweep") == "a/b \"c\"");
  CHECK_FALSE(files.contains(run + "tags/petlab.host"));  // unknown
  CHECK(std::filesystem::is_directory(folder.path() / run / "artifacts"));
}

TEST_CASE("MLflow's texts are cut between characters", "[exports]") {
  const testing::TempDir folder;
  Run run = failed_run();
  run.parameters = {{"user.text", std::string("x") + [] {
                       std::string text;
                       for (int i = 0; i < 4000; ++i) text += "é";
                       return text;
                     }()}};
  MlflowWriter(folder.path(), "/final").write(run);
  for (const auto& [name, text] : files_below(folder.path())) {
    if (!name.ends_with("user.text")) continue;
    CHECK(text.size() == 1 + 2 * 2998 + 3);
    CHECK(text.ends_with("éé…"));
  }
}

TEST_CASE("A W&B run has the name of its start and its id", "[exports]") {
  const testing::TempDir folder;
  WandbWriter writer(folder.path());
  writer.write(failed_run());
  const std::map<std::string, std::string> files = files_below(folder.path());
  REQUIRE(files.size() == 1);
  const std::string id = failed_run().id();
  CHECK(files.begin()->first == "offline-run-19700101_001640-" + id + "/run-" + id + ".wandb");
  const std::string& log = files.begin()->second;
  // A SummaryItem: nested_key and value_json. Of two values at a step, the last.
  CHECK(log.find("\x12\x0atrain/loss\x82\x01\x03"
                 "3.0") != std::string::npos);
  CHECK(log.find("1e-300") == std::string::npos);
  CHECK(log.find("\x82\x01\x03NaN") != std::string::npos);
}

}  // namespace petlab::exports
