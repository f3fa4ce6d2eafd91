#include "results/code.h"

#include <memory>
#include <utility>
#include <variant>

#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

std::shared_ptr<const RanCode> ran(Code parts) {
  return std::make_shared<const RanCode>(RanCode{"", std::move(parts)});
}

}  // namespace

TEST_CASE("Code comes from what petlab and the worker said", "[results]") {
  const RanCode code = code_of(
      {R"({"commit":"c","code":"sha256:r","script":"sha256:s","tree":"sha256:t"})",
       R"({"python":"3.11","libtorch":2,"packages":{"numpy":"2.0","odd":[1]},"modules":{"a.b":"m"}})"});
  CHECK(code.record == "sha256:r");
  CHECK(code.parts == Code{{"script", "sha256:s"},
                           {"tree", "sha256:t"},
                           {"python", "3.11"},
                           {"package numpy", "2.0"},
                           {"module a.b", "m"}});
  CHECK(code_of({"", "[]"}).parts.empty());
  CHECK(code_of({"{\"code\":1}", R"({"packages":"numpy"})"}).record.empty());
}

TEST_CASE("Only values that both sides know can differ", "[results]") {
  const auto one = ran({{"tree", "a"}, {"package x", "1"}, {"python", "3.10"}});
  const auto two = ran({{"tree", "b"}, {"package y", "1"}, {"python", "3.10"}});
  CHECK(differing_code({one}).empty());
  CHECK(differing_code({one, ran(one->parts)}).empty());
  CHECK(differing_code({one, two}) ==
        std::map<std::string, std::set<std::string>>{{"tree", {"a", "b"}}});
  CHECK(code_difference_text("tree", {"a", "b"}) == "tracked files");
  CHECK(code_difference_text("script", {"a", "b"}) == "script");
  CHECK(code_difference_text("module a.b", {"a", "b"}) == "module a.b");
  CHECK(code_difference_text("package x", {"1", "2"}) == "x 1 | 2");
  CHECK(code_difference_text("python", {"3.10", "3.11"}) == "python 3.10 | 3.11");
}

TEST_CASE(
    "A launch adds its code to petlab's provenance, and a finished event replaces the worker's",
    "[results]") {
  const testing::TempDir folder;
  Store store(folder.path() / "petlab.db");
  NewAttempt wanted = request("t1");
  wanted.provenance = R"({"commit":"c"})";
  Batch claim = store.begin();
  claim.record_trial(trial_row("t1"));
  const auto attempt = std::get<AttemptRef>(claim.begin_attempt(wanted));
  claim.commit();
  Launch launch{77, 88, "node", "boot", "pid", "cpu-1", "", 6};
  launch.code = R"({"code":"sha256:r","script":"s"})";
  protocol::Finished finished;
  finished.provenance = R"({"packages":{"numpy":"2.0"}})";
  Batch started = store.begin();
  started.record_launch(attempt, launch);
  record_started(started, attempt, {5, "w", "2", "{}", "", {}, R"({"python":"3"})"}, 7);
  started.commit();
  CHECK(code_of(store.read().provenance(attempt)).parts == Code{{"script", "s"}, {"python", "3"}});
  CHECK(launch_code_of(store.read().provenance(attempt)) == launch.code);
  CHECK(code_of_trials(store.read(), {"t1"}).empty());
  launch.code.clear();  // a job's later launch
  Batch over = store.begin();
  over.record_launch(attempt, launch);
  record_finished(over, attempt, finished, 8);
  over.commit();
  const Provenance said = store.read().provenance(attempt);
  CHECK(said.petlab == R"({"commit":"c","code":"sha256:r","script":"s"})");
  CHECK(said.worker == finished.provenance);
  const CodeByTrial known = code_of_trials(store.read(), {"t1", "t2"});
  REQUIRE(known.size() == 1);
  CHECK(known.at("t1").front()->parts == Code{{"script", "s"}, {"package numpy", "2.0"}});
}

}  // namespace petlab::results
