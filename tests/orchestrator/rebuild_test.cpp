#include "orchestrator/records/rebuild.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/sha256.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/records/remark.h"
#include "orchestrator/records/sweep_record.h"
#include "orchestrator/running/turn.h"
#include "protocol/attempt_log.h"
#include "protocol/decisions.h"
#include "protocol/trial_directory.h"
#include "results/query.h"
#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::orchestrator {
namespace {

using results::AttemptRef;
using results::Outcome;
using testing::TempDir;

/// A database's content except row keys, the times of sweeps and notes, as lines of text.
std::vector<std::string> content(const std::filesystem::path& database) {
  const auto columns = [&](const std::string& table, const std::string& without) {
    std::string list;
    const auto names = results::query(
        database, "SELECT name FROM pragma_table_xinfo(?1) WHERE instr(?2, ',' || name || ',') = 0",
        {table, without});
    for (const auto& row : names.rows) list += ", x.\"" + std::get<std::string>(row[0]) + "\"";
    return list;
  };
  const std::string owner =
      " x JOIN attempts a ON a.key = x.attempt JOIN trials t ON t.key = a.trial";
  const std::vector<std::string> statements = {
      "SELECT name" + columns("sweeps", ",key,recorded_at,") + " FROM sweeps x",
      "SELECT w.name, t.trial_id, x.variant, x.place FROM sweep_trials x JOIN sweeps w ON w.key = "
      "x.sweep JOIN trials t ON t.key = x.trial",
      "SELECT a.number" + columns("trials", ",key,result_attempt,") +
          " FROM trials x LEFT JOIN attempts a ON a.key = x.result_attempt",
      "SELECT t.trial_id" + columns("attempts", ",key,trial,note,") +
          " FROM attempts x JOIN trials t ON t.key = x.trial",
      "SELECT t.trial_id, a.number" + columns("progress", ",attempt,") + " FROM progress" + owner,
      "SELECT t.trial_id, a.number" + columns("loss_points", ",attempt,") + " FROM loss_points" +
          owner,
      "SELECT t.trial_id, a.number" + columns("artifacts", ",attempt,") + " FROM artifacts" + owner,
      "SELECT * FROM metrics",
      "SELECT * FROM results",
      "SELECT * FROM sweep_results",
      "SELECT * FROM attempt_provenance",
      "SELECT * FROM attempt_examples",
      "SELECT digest, text FROM sweep_texts",
      "SELECT t.trial_id" + columns("renewals", ",trial,") +
          " FROM renewals x JOIN trials t ON t.key = x.trial",
      "SELECT t.trial_id" + columns("hidden_trials", ",trial,") +
          " FROM hidden_trials x JOIN trials t ON t.key = x.trial",
      "SELECT t.trial_id" + columns("early_stops", ",trial,") +
          " FROM early_stops x JOIN trials t ON t.key = x.trial",
      "SELECT t.trial_id" + columns("retries", ",trial,") +
          " FROM retries x JOIN trials t ON t.key = x.trial",
      "SELECT t.trial_id, x.tag FROM trial_tags x JOIN trials t ON t.key = x.trial",
  };
  std::vector<std::string> lines;
  for (const std::string& sql : statements) {
    const auto result = results::query(database, sql);
    std::vector<std::string> rows;
    for (const auto& row : result.rows) {
      nlohmann::json line;
      for (const auto& value : row) {
        std::visit(
            [&](const auto& v) {
              if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) {
                line.push_back(nullptr);
              } else {
                line.push_back(v);
              }
            },
            value);
      }
      rows.push_back(line.dump());
    }
    std::sort(rows.begin(), rows.end());
    lines.push_back("-- " + sql);
    lines.insert(lines.end(), rows.begin(), rows.end());
  }
  return lines;
}

/// The first line in which two contents differ; empty: they are equal.
std::string difference(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
    const std::string a = i < one.size() ? one[i] : "(the end)";
    const std::string b = i < other.size() ? other[i] : "(the end)";
    if (a != b) return a + "\n" + b;
  }
  return "";
}

/// Performs the steps of an orchestrator by hand.
struct RebuildFixture {
  TempDir folder;
  std::filesystem::path runs = folder.path() / "petlab.runs";
  std::filesystem::path file = folder.path() / "petlab.db";
  results::Store store{file};
  Ingest ingest{store, runs};
  double time = 1000;
  std::int64_t tried = 0;

  static sweeps::TrialConfig config(std::uint64_t seed) {
    sweeps::TrialConfig trial = sweeps::default_config("adapter");
    trial.backbone = "minilm";
    trial.tasks = {"cola"};
    trial.seed.value = seed;
    return trial;
  }
  static results::TrialRow row(const std::string& id, std::uint64_t seed) {
    return {id, sweeps::to_json(config(seed)).dump(), "sha256:b", 100.5, 101};
  }
  void record(const std::string& name, const std::vector<std::string>& ids) {
    const std::string text = "sweep: " + name + "\nabout: é\n";
    results::SweepRow sweep{name, "about é", name + ".yaml", base::sha256(text), {}};
    sweep.text = text;
    sweep.overrides = {"training.epochs=1", "user.é=2"};
    std::vector<results::TrialRow> trials;
    for (const std::string& id : ids) {
      sweep.members.push_back({id, "v-" + id});
      sweep.members.push_back({id, "w"});
      trials.push_back(row(id, std::stoull(id.substr(1))));
    }
    record_sweep(store, runs, sweep, trials, time += 1);
  }
  AttemptRef begin(const std::string& id, const std::optional<protocol::Resume>& resume = {}) {
    results::NewAttempt wanted;
    wanted.trial_id = id;
    wanted.planned_from = store.read().trial_facts(std::vector{id}).at(0).changes;
    wanted.at_least = highest_attempt_directory(runs, id) + 1;
    wanted.resume = resume;
    wanted.sweep = "one";
    wanted.owner = "o";
    wanted.host = "h";
    wanted.device = "cpu:0";
    wanted.launcher = "local";
    wanted.retries = tried % 2 == 0 ? std::optional<std::int64_t>(tried) : std::nullopt;
    ++tried;
    wanted.provenance = tried % 3 == 0 ? "" : R"({"commit":"2d8f6bf","clean":true})";
    wanted.time = time += 0.125;
    results::Batch batch = store.begin();
    const auto attempt = std::get<AttemptRef>(batch.begin_attempt(wanted));
    batch.commit();
    protocol::TrialFile trial;
    trial.trial_id = id;
    trial.attempt = attempt.number;
    trial.config = config(std::stoull(id.substr(1)));
    trial.backbone_digest = "sha256:b";
    trial.resume = resume;
    make_attempt_directory(directory(attempt), trial, wanted);
    const results::Launch launch{11, 22, "", "", "", "cpu:1", "", time += 0.125};
    protocol::log_launch(directory(attempt), launch);
    results::Batch launched = store.begin();
    launched.record_launch(attempt, launch);
    launched.commit();
    return attempt;
  }
  protocol::TrialDirectory directory(const AttemptRef& attempt) const {
    return {runs, attempt.trial_id, attempt.number};
  }
  void events(const AttemptRef& attempt, const std::vector<decltype(protocol::Event::body)>& bodies,
              std::int64_t seq = 0) {
    std::ofstream out(directory(attempt).events(), std::ios::app | std::ios::binary);
    for (const auto& body : bodies) out << protocol::to_line({seq++, time += 0.125, body}) << '\n';
    out.close();
    ingest.read_all(attempt);
  }
  void end(const AttemptRef& attempt, Outcome outcome) {
    const results::Ending ending{outcome, "seen", 1, 9, "last \xff line", time += 0.125};
    results::Ending clean = ending;
    clean.log_tail = "last line";
    protocol::log_ending(directory(attempt), clean);
    results::Batch batch = store.begin();
    batch.record_ending(attempt, clean);
    batch.commit();
  }
};

const protocol::Started kStarted{7,
                                 "w",
                                 "1",
                                 R"({"version":"1","threads":1})",
                                 "sha256:b",
                                 {{"cola", "sha256:d"}},
                                 R"({"libtorch":"2.13.0","commit":"2d8f6bf","gpu":"é"})"};
const protocol::Finished kFinished{3,
                                   "artifact.petl",
                                   99.5,
                                   100,
                                   12.5,
                                   0.25,
                                   std::nullopt,
                                   {{"cola", {{"train", 8551}, {"test", 522}}}}};

/// Records attempts with every outcome, and every kind of decision.
void live(RebuildFixture& f) {
  {
    results::Batch batch = f.store.begin();
    batch.record_runs_folder(f.runs);
    batch.commit();
  }
  f.record("one", {"t1", "t2", "t3", "t4", "t5", "t6"});
  f.record("t/w o", {"t1", "t7"});
  const AttemptRef done = f.begin("t1");
  f.events(done, {kStarted, protocol::Progress{1, 3, 0.5},
                  protocol::Metric{1, "train", "cola", "loss", 0.1},
                  protocol::Metric{3, "test", "cola", "f1", std::nullopt}, kFinished});
  const AttemptRef crashed = f.begin("t2");
  f.events(crashed, {kStarted, protocol::Metric{1, "train", "cola", "loss", 1.1},
                     protocol::Checkpoint{1, "checkpoint/1"},
                     protocol::Metric{2, "train", "cola", "loss", 1.2}});
  f.end(crashed, Outcome::crashed);
  const AttemptRef resumed = f.begin("t2", protocol::Resume{1, 1, 2, "../1/checkpoint/1"});
  f.events(resumed, {kStarted, protocol::Metric{2, "train", "cola", "loss", 1.3}, kFinished});
  const AttemptRef failed = f.begin("t3");
  f.events(failed, {kStarted, protocol::Failed{"out of memory", "out_of_memory"}});
  f.end(failed, Outcome::failed);
  decide(f.store, f.runs, "t3", {protocol::Decision::What::cancel, 0, f.time += 1});
  decide(f.store, f.runs, "t3", {protocol::Decision::What::retry, 1, f.time += 1});
  const AttemptRef lost = f.begin("t4");
  f.events(lost, {kStarted});
  f.end(lost, Outcome::lost);
  f.begin("t4");
  f.events(lost, {kFinished}, 1);  // late
  const AttemptRef liar = f.begin("t5");
  f.events(liar, {kStarted});
  f.events(liar, {kFinished}, 7);
  decide(f.store, f.runs, "t6", {protocol::Decision::What::cancel, 0, f.time += 1});
  decide(f.store, f.runs, "t2", {protocol::Decision::What::discard, 2, f.time += 1, "é wrong"});
  decide(f.store, f.runs, "t1", {protocol::Decision::What::rerun, 1, f.time += 1});
  decide(f.store, f.runs, "t4", {protocol::Decision::What::hide, 0, f.time += 1, "far off"});
  decide(f.store, f.runs, "t5", {protocol::Decision::What::hide, 0, f.time += 1, "x"});
  decide(f.store, f.runs, "t5", {protocol::Decision::What::unhide, 0, f.time += 1});
  decide(f.store, f.runs, "t5",
         {protocol::Decision::What::stop_early, 1, f.time += 1, "worse than t2", 3});
  remark(f.store, f.runs, {"t5", ""}, {{protocol::Remark::What::tag, "é", f.time += 1}});
  f.record("one", {"t2", "t3", "t5", "t6"});  // t1 and t4 were taken out of the sweep
}

}  // namespace

TEST_CASE("A database rebuilt from the runs folder equals the recorded one", "[orchestrator]") {
  RebuildFixture f;
  live(f);
  const auto again = f.folder.path() / "again.db";
  const RunsSummary summary = rebuild(f.runs, again);
  CHECK(summary.left_out.empty());
  CHECK(summary.sweeps == 2);
  CHECK(summary.trials == 5);
  CHECK(summary.attempts == 7);
  const auto wanted = content(f.file);
  CHECK(wanted.size() > 40);
  CHECK(difference(content(again), wanted) == "");
}

TEST_CASE("The order of the lines decides, whichever process commits last", "[orchestrator]") {
  using What = protocol::Decision::What;
  RebuildFixture f;
  f.record("one", {"t1", "t2"});
  std::latch opened(1);
  std::latch held(1);
  std::jthread other([&] {
    results::Store store(f.file);
    opened.count_down();
    held.wait();
    decide(store, f.runs, "t1", {What::hide, 0, 1, "far off"});
  });
  opened.wait();
  {
    results::Batch batch = f.store.begin();
    held.count_down();
    while (protocol::read_decisions(f.runs, "t1").empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    log_decisions(f.runs, {{"t1", {What::unhide, 0, 2}}});
    store_decisions(batch, "t1", protocol::read_decisions(f.runs, "t1"));
    batch.commit();
  }
  other.join();

  f.end(f.begin("t2"), Outcome::crashed);
  Changes changes;
  changes.stopped = {{"t2", 1, {What::stop_early, 1, 3, "worse than t1", 5}}};
  log_decisions(f.runs, {{"t2", changes.stopped.front().decision}});
  decide(f.store, f.runs, "t2", {What::retry, 1, 4});
  results::Batch batch = f.store.begin();
  store({}, changes, f.runs, f.ingest, batch);
  batch.commit();

  const auto again = f.folder.path() / "again.db";
  rebuild(f.runs, again);
  CHECK(difference(content(again), content(f.file)) == "");
}

TEST_CASE("Importing a runs folder again changes nothing", "[orchestrator]") {
  RebuildFixture f;
  live(f);
  const auto before = content(f.file);
  const RunsSummary summary = ingest_runs(f.store, f.runs);
  CHECK(summary.events == 0);
  CHECK(difference(content(f.file), before) == "");
}

TEST_CASE("A rebuild reports files that it cannot understand and leaves them out",
          "[orchestrator]") {
  RebuildFixture f;
  live(f);
  f.folder.write("petlab.runs/t9/1/events.jsonl", "");
  f.folder.write("petlab.runs/sweeps/broken.jsonl", "no JSON\n");
  f.folder.write("petlab.runs/sweeps/lacking.jsonl",
                 R"({"v":1,"time":1.5,"sweep":"l","about":"","file":"l.yaml","digest":"d"})"
                 "\n{\"member\":\"m\"}\n");
  f.folder.write("petlab.runs/t8/decisions.jsonl", "{\"v\":1,\"decision\":\"cancel\"}\n");
  f.folder.write("petlab.runs/notes.txt", "of the user");
  const auto again = f.folder.path() / "again.db";
  const RunsSummary summary = rebuild(f.runs, again);
  REQUIRE(summary.left_out.size() == 4);
  CHECK(summary.left_out[2].find("t9/1/trial.json") != std::string::npos);
  CHECK(summary.left_out[1].find("sweeps/lacking.jsonl:2: cannot be understood") !=
        std::string::npos);
  CHECK(summary.left_out[0].find("sweeps/broken.jsonl:1: cannot be understood") !=
        std::string::npos);
  CHECK(summary.left_out[3].find("t8/decisions.jsonl: no sweep and no attempt records") !=
        std::string::npos);
  CHECK(difference(content(again), content(f.file)) == "");
}

TEST_CASE("An attempt with a damaged trial.json counts if a sweep records its configuration",
          "[orchestrator]") {
  RebuildFixture f;
  live(f);
  f.folder.write("petlab.runs/t1/1/trial.json", "{");
  const auto again = f.folder.path() / "again.db";
  CHECK(rebuild(f.runs, again).left_out.empty());
  CHECK(difference(content(again), content(f.file)) == "");
  // `petlab db check` reads each trial.json all the same.
  results::Store other(f.folder.path() / "other.db");
  const RunsSummary all = ingest_runs(other, f.runs, {}, Configurations::all);
  REQUIRE(all.left_out.size() == 1);
  CHECK(all.left_out[0].find("t1/1/trial.json") != std::string::npos);
}

TEST_CASE("A rebuild never touches an existing database", "[orchestrator]") {
  RebuildFixture f;
  live(f);
  CHECK_THROWS_WITH(rebuild(f.runs, f.file),
                    f.file.string() + ": the database exists; move it, or name another with --db");
  CHECK_THROWS_WITH(
      rebuild(f.folder.path() / "nowhere", f.folder.path() / "new.db"),
      (f.folder.path() / "nowhere").string() + ": cannot be read: No such file or directory");
  CHECK_FALSE(std::filesystem::exists(f.folder.path() / "new.db"));
}

TEST_CASE("A resumed attempt keeps its checkpoint, even if the writer replaces or removes it",
          "[orchestrator]") {
  RebuildFixture f;
  f.record("one", {"t1"});
  const AttemptRef first = f.begin("t1");
  const std::filesystem::path written = f.directory(first).checkpoint() / "step-2.ckpt";
  f.folder.write(written.lexically_relative(f.folder.path()).string(), "state");
  const protocol::TrialDirectory second(f.runs, "t1", 2);
  protocol::TrialFile trial;
  trial.config = RebuildFixture::config(1);
  results::NewAttempt begun;
  begun.resume =
      protocol::Resume{1, 2, 3, protocol::kept_checkpoint("../1/checkpoint/step-2.ckpt")};
  CHECK(begun.resume->checkpoint == "resume/step-2.ckpt");
  trial.resume = begun.resume;
  REQUIRE(make_attempt_directory(second, trial, begun, written));
  // A writer that still runs replaces the file, and then removes it.
  f.folder.write("other", "newer");
  std::filesystem::rename(f.folder.path() / "other", written);
  CHECK(testing::read_file(second.resume() / "step-2.ckpt") == "state");
  std::filesystem::remove(written);
  CHECK(testing::read_file(second.resume() / "step-2.ckpt") == "state");
  CHECK(protocol::read_attempt_log(second).begun->resume == begun.resume);
  // The checkpoint was removed before it could be kept, so no directory is created.
  const protocol::TrialDirectory third(f.runs, "t1", 3);
  CHECK_FALSE(make_attempt_directory(third, trial, begun, written));
  for (const auto& entry : std::filesystem::directory_iterator(f.runs / "t1")) {
    CHECK(protocol::attempt_number(entry.path().filename().string()).value_or(9) < 3);
  }
}

TEST_CASE("An attempt's directory is created completely or not at all, and never twice",
          "[orchestrator]") {
  RebuildFixture f;
  f.record("one", {"t1"});
  const AttemptRef attempt = f.begin("t1");
  protocol::TrialFile trial;
  trial.config = RebuildFixture::config(1);
  CHECK_THROWS_AS(make_attempt_directory(f.directory(attempt), trial, {}), std::runtime_error);
  CHECK(highest_attempt_directory(f.runs, "t1") == 1);
  CHECK(highest_attempt_directory(f.runs, "t2") == 0);
  const protocol::AttemptLog log = protocol::read_attempt_log(f.directory(attempt));
  CHECK(log.begun->owner == "o");
  CHECK(log.launch->device == "cpu:1");
  CHECK_FALSE(log.ending);
}

TEST_CASE("Recording an unchanged sweep again only updates its time", "[orchestrator]") {
  RebuildFixture f;
  f.record("one", {"t1", "t2"});
  const auto file = protocol::sweep_file(f.runs, "one");
  const SweepFile first = read_sweep_file(file);
  f.record("one", {"t1", "t2"});
  const SweepFile second = read_sweep_file(file);
  CHECK(second.time == first.time + 1);
  CHECK(second.sweep == first.sweep);
  CHECK(second.trials == first.trials);
  CHECK(second.sweep == *f.store.read().sweep("one"));
  CHECK(second.trials.at(0) == *f.store.read().trial("t1"));
  f.record("one", {"t2"});
  CHECK(read_sweep_file(file).trials.size() == 2);
  CHECK(read_sweep_file(file).sweep.members.size() == 2);
}

}  // namespace petlab::orchestrator
