#include "results/connection.h"
#include "results/snapshot.h"
#include "results/store.h"

namespace petlab::results {

using internal::Query;
using internal::reading;

SweepOutline Reader::outline(const std::string& sweep) const {
  return reading(*connection_, [&] {
    SweepOutline outline;
    Query key(*connection_, "SELECT key FROM sweeps WHERE name = ?1");
    if (!key.with(sweep).step()) return outline;
    const std::int64_t sweep_key = key.integer(0);
    Query count(*connection_, "SELECT count(DISTINCT trial) FROM sweep_trials WHERE sweep = ?1");
    count.with(sweep_key).step();
    outline.trials = count.integer(0);
    const auto add = [&](Query& groups) {
      groups.with(sweep_key);
      while (groups.step()) outline.alike.push_back({groups.text(0), groups.integer(1)});
    };
    Query untried(
        *connection_,
        "SELECT min(t.trial_id), count(*) FROM trials t WHERE t.key IN (SELECT trial FROM "
        "sweep_trials WHERE sweep = ?1) AND NOT EXISTS (SELECT 1 FROM attempts a WHERE "
        "a.trial = t.key) GROUP BY t.cancelled");
    add(untried);
    Query with_result(
        *connection_,
        "SELECT min(t.trial_id), count(*) FROM trials t CROSS JOIN attempts a ON a.key "
        "= t.result_attempt WHERE t.key IN (SELECT trial FROM sweep_trials WHERE sweep "
        "= ?1) AND a.number > t.retried_after AND t.key NOT IN (SELECT trial FROM "
        "attempts WHERE outcome = 'open') GROUP BY a.sweep, a.worker, a.numerics, "
        "a.data_digests");
    add(with_result);
    Query others(*connection_,
                 "SELECT t.trial_id FROM trials t LEFT JOIN attempts a ON a.key = t.result_attempt "
                 "WHERE t.key IN (SELECT trial FROM sweep_trials WHERE sweep = ?1) AND (t.key IN "
                 "(SELECT trial FROM attempts WHERE outcome = 'open') OR a.number <= "
                 "t.retried_after OR (a.key IS NULL AND EXISTS (SELECT 1 FROM attempts b WHERE "
                 "b.trial = t.key))) ORDER BY t.trial_id");
    others.with(sweep_key);
    while (others.step()) outline.others.push_back(others.text(0));
    Query decisions(
        *connection_,
        "SELECT (SELECT count(*) FROM trials t WHERE result_attempt IS NULL AND key IN (SELECT "
        "trial FROM renewals WHERE discarded) AND key IN (SELECT trial FROM sweep_trials WHERE "
        "sweep = ?1)), (SELECT count(*) FROM hidden_trials WHERE trial IN (SELECT trial FROM "
        "sweep_trials WHERE sweep = ?1)), (SELECT coalesce(sum(p.of - p.step), 0) FROM early_stops "
        "e CROSS JOIN trials t ON t.key = e.trial AND t.cancelled AND t.result_attempt IS NULL "
        "CROSS JOIN attempts a ON a.trial = t.key AND a.number = e.after_attempt CROSS JOIN "
        "progress p ON p.attempt = a.key WHERE t.key IN (SELECT trial FROM sweep_trials WHERE "
        "sweep = ?1))");
    decisions.with(sweep_key).step();
    outline.discarded = decisions.integer(0);
    outline.hidden = decisions.integer(1);
    outline.steps_saved = decisions.integer(2);
    return outline;
  });
}

}  // namespace petlab::results
