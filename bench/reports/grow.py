#!/usr/bin/env python3
"""Enlarges the database of a rehearsal (scripts/rehearse_paper.sh) to the size of a long project's.

usage: grow.py DATABASE COPIES METRICS

Each sweep gets COPIES copies of its trials with other seeds. Each copy has METRICS metric rows (the training loss,
then the scores of the original) and a progress curve. One copy in 100 is a failed trial without scores.
"""
import hashlib
import sqlite3
import sys

CURVE = 256  # points per progress curve; the store keeps up to 512


def columns(database, table):
    return [f'"{row[1]}"' for row in database.execute(f"PRAGMA table_info({table})")]


def copied(database, table, replaced, where="1"):
    """A statement that copies the rows of a table with other keys."""
    names = columns(database, table)
    values = [replaced.get(name.strip('"'), name) for name in names]
    database.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table} "
                     f"WHERE {where}")


def grow(database, copies, metrics):
    def one(sql):
        return database.execute(sql).fetchone()[0]
    database.create_function("trial_id", 1, lambda config: hashlib.sha256(config.encode()).hexdigest()[:16])
    trials, attempts = one("SELECT max(key) FROM trials"), one("SELECT max(key) FROM attempts")
    places = one("SELECT max(place) FROM sweep_trials") + 1
    scores = one("SELECT max(n) FROM (SELECT count(*) AS n FROM metric_values GROUP BY attempt)")
    losses = metrics - scores
    if losses < scores:
        sys.exit(f"--metrics: found {metrics}, expected at least {2 * scores}: a trial has {scores} scores")
    # Move the training losses before the scores, which then belong to the last steps.
    database.execute("UPDATE metric_values SET seq = -seq")
    database.execute("UPDATE metric_values SET seq = ? - seq, step = ? - 2 + step", (losses, losses))
    database.execute("UPDATE attempts SET counts_to = counts_to + ?, events_lines = events_lines + ?, "
                     "events_next_seq = events_next_seq + ?", (losses,) * 3)
    database.execute("DELETE FROM loss_points")
    database.execute("INSERT OR IGNORE INTO series (split, task, name) VALUES ('train', 'all', 'loss')")
    series = one("SELECT key FROM series WHERE split = 'train' AND task = 'all' AND name = 'loss'")
    database.execute("CREATE TEMP TABLE steps AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                     "WHERE i < ?) SELECT i FROM n", (max(losses, CURVE),))
    for copy in range(1, copies):
        first_trial, first_attempt = trials * copy, attempts * copy
        config = f"json_set(config, '$.seed', seed + {100 * copy})"
        copied(database, "trials", {
            "key": f"key + {first_trial}", "trial_id": f"trial_id({config})", "config": config,
            "seed": f"seed + {100 * copy}", "result_attempt": f"result_attempt + {first_attempt}"},
            f"key <= {trials}")
        copied(database, "sweep_trials", {"trial": f"trial + {first_trial}", "place": f"place + {places * copy}"},
               f"trial <= {trials}")
        copied(database, "attempts", {"key": f"key + {first_attempt}", "trial": f"trial + {first_trial}"},
               f"key <= {attempts}")
        for table in ("artifacts", "provenance", "examples", "progress"):
            copied(database, table, {"attempt": f"attempt + {first_attempt}"}, f"attempt <= {attempts}")
        copied(database, "metric_values", {"attempt": f"attempt + {first_attempt}"}, f"attempt <= {attempts}")
    database.execute("INSERT INTO metric_values SELECT a.key, i, i, ?, 1.0 / i + 0.1 * abs(random() % 1000) / 1000 "
                     "FROM attempts a CROSS JOIN steps WHERE i <= ?", (series, losses))
    database.execute(f"INSERT INTO loss_points SELECT a.key, i - 1, i * ?, i * ?, ?, 1, 1.0 / i FROM attempts a "
                     f"CROSS JOIN steps WHERE i <= {CURVE}", (losses // CURVE or 1,) * 3)
    failed = f"SELECT key FROM trials WHERE key > {trials} AND key % 100 = 7"
    database.execute(f"UPDATE attempts SET event_outcome = 'failed', event_kind = 'diverged', event_reason = "
                     f"'the loss is not finite', counts_to = NULL WHERE trial IN ({failed})")
    database.execute(f"UPDATE trials SET result_attempt = NULL WHERE key IN ({failed})")
    return one("SELECT count(*) FROM trials"), one("SELECT count(*) FROM metric_values")


def grown(file, copies, metrics):
    """Grows the database and returns its numbers of trials and metric rows."""
    opened = sqlite3.connect(file)
    with opened:
        numbers = grow(opened, copies, metrics)
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened.close()
    return numbers


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print("{} trials, {} rows of metrics".format(*grown(sys.argv[1], *map(int, sys.argv[2:]))))
