"""Milliseconds per trial in the first and the last thousand of a run, by finishing times.

    python pace.py DATABASE NAME
"""
import json
import sqlite3
import sys

database, name = sys.argv[1:]
times = [row[0] for row in sqlite3.connect(database).execute(
    "SELECT event_at FROM attempts WHERE event_outcome = 'finished' ORDER BY event_at")]
block = min(1000, len(times) // 3)


def pace(part):
    return round(1000 * (part[-1] - part[0]) / (len(part) - 1), 3)


print(json.dumps({"run": name, "finished": len(times), "block": block,
                  "ms_per_trial_first": pace(times[:block]), "ms_per_trial_last": pace(times[-block:]),
                  "ms_per_trial": pace(times)}))
