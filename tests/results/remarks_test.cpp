#include "results/remarks.h"

#include <algorithm>

#include "results/one_state.h"
#include "results/scores.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using protocol::Remark;
using testing::TempDir;
using What = protocol::Remark::What;

/// Trials t1 and t2 of sweep one, t2 and t3 of sweep two, t4 of none.
class TaggedTrials {
 public:
  TaggedTrials() {
    Batch batch = store.begin();
    for (const char* id : {"t1", "t2", "t3", "t4"}) batch.record_trial(trial_row(id));
    batch.record_sweep({"one", "", "", "", {{"t1", "a"}, {"t2", "b"}}}, {}, 1);
    batch.record_sweep({"two", "", "", "", {{"t3", ""}, {"t2", ""}}}, {}, 2);
    batch.commit();
  }

  void add(const RemarkSubject& subject, std::vector<Remark> remarks) {
    Batch batch = store.begin();
    for (const Remark& one : remarks) record_remark(batch, subject, one);
    batch.commit();
  }
  std::string trials(Condition::Op op, std::vector<Value> values) const {
    ScoreQuestion question;
    question.fields = {word_named("tag")};
    question.where = {{word_named("tag"), op, std::move(values)}};
    question.splits = {"test"};
    std::string found;
    ScoreReader(store.file()).each(question, [&](const ScoredTrial& trial) {
      const auto* tags = std::get_if<std::string>(&trial.fields[0]);
      found += trial.trial_id + (tags == nullptr ? "" : ":" + *tags) + " ";
    });
    return found;
  }

  TempDir folder;
  Store store{folder.path() / "a.db"};
};

}  // namespace

TEST_CASE("The latest remark by time sets or clears a tag in any order of recording", "[results]") {
  const std::vector<Remark> all = {{What::tag, "good", 1},   {What::untag, "good", 2},
                                   {What::tag, "good", 3},   {What::tag, "fast", 4},
                                   {What::untag, "fast", 5}, {What::note, "good", 6}};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
  do {
    TaggedTrials world;
    for (const std::size_t at : order) world.add({"t1", ""}, {all[at], all[at]});
    const Remarks found = remarks_of(world.store.read(), {"t1", ""});
    CHECK(found.all == all);
    CHECK(found.tags == std::vector<std::string>{"good"});
  } while (std::next_permutation(order.begin() + 3, order.end()));
}

TEST_CASE("Tagging and untagging at the same time leaves a tag unset", "[results]") {
  TaggedTrials world;
  world.add({"t1", ""}, {{What::untag, "x", 1}, {What::tag, "x", 1}});
  CHECK(remarks_of(world.store.read(), {"t1", ""}).tags.empty());
}

TEST_CASE("A condition on tags applies to the tags of a trial and of its sweeps", "[results]") {
  TaggedTrials world;
  world.add({"t1", ""}, {{What::tag, "good", 1}, {What::tag, "a,b", 1}});
  world.add({"t4", ""}, {{What::tag, "bad", 1}});
  world.add({"", "two"}, {{What::tag, "paper", 1}, {What::note, "of 2023", 2}});
  using Op = Condition::Op;
  CHECK(world.trials(Op::equal, {"good"}) == "t1:a,b,good ");
  CHECK(world.trials(Op::equal, {"paper"}) == "t2:paper t3:paper ");
  CHECK(world.trials(Op::equal, {"paper", "bad"}) == "t2:paper t3:paper t4:bad ");
  CHECK(world.trials(Op::unequal, {"paper", "bad"}) == "t1:a,b,good ");
  CHECK(world.trials(Op::equal, {"x' OR 1 --"}).empty());
  world.add({"t4", ""}, {{What::untag, "bad", 2}});
  CHECK(world.trials(Op::equal, {Value()}) == "t4 ");
  CHECK(world.trials(Op::unequal, {Value()}) == "t1:a,b,good t2:paper t3:paper ");
  CHECK(world.trials(Op::equal, {Value(), "good"}) == "t1:a,b,good t4 ");
  using Tags = std::map<std::string, std::vector<std::string>>;
  CHECK(tags_by_trial(world.store.read()) ==
        Tags{{"t1", {"a,b", "good"}}, {"t2", {"paper"}}, {"t3", {"paper"}}});
  CHECK(all_tags(world.store.read()) ==
        std::vector<std::pair<std::string, std::int64_t>>{{"a,b", 1}, {"good", 1}, {"paper", 2}});
  CHECK(remarks_of(world.store.read(), {"", "two"}).all.size() == 2);
  CHECK(rows(world.store.file(), "SELECT tags FROM sweep_results").empty());
}

TEST_CASE("Remarks on unknown trials and sweeps are refused", "[results]") {
  TaggedTrials world;
  CHECK_THROWS_AS(world.add({"t9", ""}, {{What::note, "x", 1}}), std::invalid_argument);
  CHECK_THROWS_AS(world.add({"", "three"}, {{What::note, "x", 1}}), std::invalid_argument);
  CHECK(remarks_of(world.store.read(), {"t9", ""}).all.empty());
}

TEST_CASE("One state does not change while others write", "[results]") {
  TaggedTrials world;
  const OneState state(world.store.file());
  const auto tags = [&](const OneState& one) {
    std::string text;
    one.rows(
        "SELECT tag, ?1 AS more FROM trial_tags ORDER BY 1", {Value(2.5)},
        [&](const auto& names) { text += names.at(0) + " " + names.at(1); },
        [&](const auto& values) { text += " " + std::get<std::string>(values.at(0)); });
    return text;
  };
  CHECK(tags(state) == "tag more");
  world.add({"t1", ""}, {{What::tag, "good", 1}});
  CHECK(tags(state) == "tag more");
  CHECK(remarks_of(state.reader(), {"t1", ""}).tags.empty());
  CHECK(tags(OneState(world.store.file())) == "tag more good");
}

}  // namespace petlab::results
