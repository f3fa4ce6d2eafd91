#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "protocol/trial_directory.h"
#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::protocol;
using petlab::testing::TempDir;

namespace {

TrialFile some_trial() {
  TrialFile content;
  content.trial_id = "4f1c000000000000";
  content.attempt = 2;
  content.config = sweeps::default_config("lora");
  content.config.backbone = "minilm";
  content.config.tasks = {"rte"};
  content.config.user = R"({"note":"x"})";
  content.tasks = {*sweeps::find_task("rte")};
  content.backbone_folder = "/models/minilm";
  content.data_folders = {"/data", "/more data"};
  content.backbone_digest = "sha256:aa";
  content.data_digests = {{"rte", "sha256:bb"}};
  content.threads = 3;
  content.resume = Resume{1, 120, 37, "../1/checkpoint/step-120.ckpt"};
  return content;
}

std::string error_of(const std::filesystem::path& file) {
  try {
    read_trial_file(file);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace

TEST_CASE("trial.json reads back as it was written", "[sweeps]") {
  const TempDir folder;
  const std::filesystem::path file = folder.path() / "trial.json";
  const TrialFile content = some_trial();
  write_trial_file(file, content);
  const TrialFile read = read_trial_file(file);
  CHECK(read.trial_id == content.trial_id);
  CHECK(read.attempt == content.attempt);
  CHECK(read.config == content.config);
  CHECK(read.tasks == content.tasks);
  CHECK(read.backbone_folder == content.backbone_folder);
  CHECK(read.data_folders == content.data_folders);
  CHECK(read.backbone_digest == content.backbone_digest);
  CHECK(read.data_digests == content.data_digests);
  CHECK(read.threads == 3);
  CHECK(read.device == "cpu");
  CHECK(read.resume == content.resume);
  int files = 0;  // nothing temporary is left
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  CHECK(files == 1);
}

TEST_CASE("A trial.json written by hand may leave out fields with a default", "[sweeps]") {
  const TempDir folder;
  const auto file = folder.write("trial.json", R"({"v":1,"trial":"ab","attempt":1,
    "config":{"backbone":"minilm","task":"cola","module":{"kind":"prefix"}},
    "backbone_folder":"/m","data_folders":["/d"],"comment":"unknown keys are ignored"})");
  const TrialFile read = read_trial_file(file);
  CHECK(read.config.training.mask_learning_rate == 1e-4);
  CHECK(read.config.module.prefix_length == 64);
  REQUIRE(read.tasks.size() == 1);
  CHECK(read.tasks[0] == *sweeps::find_task("cola"));
  CHECK_FALSE(read.resume.has_value());
}

TEST_CASE("A bad trial.json is refused with file, found and expected", "[sweeps]") {
  const TempDir folder;
  const auto check = [&](const std::string& text, const std::string& message) {
    const auto file = folder.write("trial.json", text);
    INFO(text);
    const std::string error = error_of(file);
    CHECK(error.find(file.string() + ": ") == 0);
    CHECK(error.find(message) != std::string::npos);
  };
  const std::string head = R"({"v":1,"trial":"ab","attempt":1,"backbone_folder":"/m",)"
                           R"("data_folders":[],"config":)";
  check("", "found no JSON, expected a trial");
  check("[]", "the file is a list, must be an object");
  check("{}", "v is missing");
  check(R"({"v":2})", "v is 2, must be 1 (written by a newer petlab)");
  check(R"({"v":0})", "v is 0, must be 1 (written by an older petlab)");
  check(R"({"v":1,"trial":7})", "trial is 7, must be text");
  check(R"({"v":1,"trial":"a","attempt":0})", "attempt is 0, must be a whole number >= 1");
  check(head + R"({"backbone":"b","task":"cola","module":{"bottelneck":3}}})",
        "module.bottelneck is not a field of a trial, nearest: module.bottleneck");
  check(head + R"({"backbone":"b","task":"cola","seed":"x"}})",
        "seed is 'x', must be a whole number from 0");
  check(head + R"({"backbone":"b","task":"colla","training":{"learning_rate":-0.1}}})",
        "config.training.learning_rate is -0.1, must be a number > 0; config.task is 'colla', must "
        "be the name of a task, or of a .yaml file that declares one (nearest: cola)");
  check(head + R"({"backbone":"b","task":"cola"},"tasks":[]})",
        "tasks has 0 entries, must have one for each of the 1 tasks of config");
  check(head + R"({"backbone":"b","task":"cola"},"resume":{"attempt":1,"step":-1}})",
        "resume.step is -1, must be a whole number >= 0");
  CHECK(error_of(folder.path() / "none.json").find("none.json: cannot be read: No such file") !=
        std::string::npos);
}

TEST_CASE("trial.json lists each trial's own tasks, as JSON with an indent of one", "[sweeps]") {
  const TempDir folder;
  const std::filesystem::path file = folder.path() / "trial.json";
  TrialFile content = some_trial();
  for (const std::vector<const char*>& tasks :
       {std::vector<const char*>{"rte"}, {"cola", "rte"}, {"cola"}, {"rte"}, {"rte"}}) {
    content.config.tasks.clear();
    content.tasks.clear();
    for (const char* task : tasks) {
      content.config.tasks.emplace_back(task);
      content.tasks.push_back(*sweeps::find_task(task));
    }
    content.config.user = R"({"note":"\n \"backbone_folder\":"})";
    write_trial_file(file, content);
    CHECK(read_trial_file(file).tasks == content.tasks);
    const std::string text = base::read_file(file, 1 << 20);
    const auto json = nlohmann::ordered_json::parse(text);
    CHECK(json.dump(1) + "\n" == text);
    std::vector<std::string> keys;
    for (const auto& [key, value] : json.items()) keys.push_back(key);
    CHECK(
        fmt::format("{}", fmt::join(keys, " ")) ==
        "v trial attempt config tasks backbone_folder data_folders digests threads device resume");
  }
}

TEST_CASE("trial.json in a folder that cannot be written names the file", "[sweeps]") {
  const TempDir folder;
  const auto file = folder.path() / "missing" / "trial.json";
  CHECK_THROWS_WITH(write_trial_file(file, some_trial()),
                    file.string() + ": cannot be written: No such file or directory");
}

TEST_CASE("One class builds and parses the directory of an attempt", "[sweeps]") {
  const TrialDirectory built("runs", "4f1c", 3);
  CHECK(built.folder() == "runs/4f1c/3");
  const TrialDirectory parsed(std::filesystem::path("runs/4f1c/3/"));
  CHECK(parsed.trial_id() == "4f1c");
  CHECK(parsed.attempt() == 3);
  CHECK(parsed.events() == "runs/4f1c/3/events.jsonl");
  CHECK_THROWS_WITH(TrialDirectory(std::filesystem::path("runs/4f1c/x")),
                    "runs/4f1c/x: the last part is 'x', must be the number of an attempt "
                    "(runs/TRIAL/1)");
}
