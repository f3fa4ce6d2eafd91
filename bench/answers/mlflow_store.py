"""Copies a database of make_database into MLflow's SQLite store and queries it with MLflow's client.

  mlflow_store.py fill PETLABS_DATABASE MLFLOWS_DATABASE
  mlflow_store.py QUESTION MLFLOWS_DATABASE      (prints the answer as JSON)

Each trial becomes a run, with its configuration as params and its values as metrics SPLIT/NAME. The rows are written
directly into MLflow's tables, many runs per transaction. `fill` also creates one run with the client and compares both.
"""
import json
import logging
import os
import sqlite3
import sys
import uuid

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
logging.getLogger("alembic").setLevel(logging.ERROR)

import mlflow  # noqa: E402
from mlflow.entities import Metric, Param  # noqa: E402
from mlflow.store.tracking.dbmodels import models  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402

EXPERIMENT = "large"
AT_ONCE = 200  # runs per transaction


def flat(config, prefix=""):
    for key, value in config.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, json.dumps(value).strip('"')


def latest(metrics):
    """The row of the last step for each name, which MLflow stores in addition to the history."""
    return {name: (step, value) for name, step, value in metrics}


def insert_of(model, columns):
    return (f"INSERT INTO {model.__tablename__} ({', '.join(columns)}) "
            f"VALUES ({', '.join('?' * len(columns))})")


def fill(source, file):
    client = MlflowClient(f"sqlite:///{file}")
    experiment = client.create_experiment(EXPERIMENT, artifact_location="/nowhere")
    petlab = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
    trials = petlab.execute(
        "SELECT t.key, t.trial_id, t.config, m.variant FROM trials t JOIN sweep_trials m ON m.trial = t.key "
        "ORDER BY t.key").fetchall()

    def values_of(trial):
        return petlab.execute(
            "SELECT s.split || '/' || s.name, v.step, v.value FROM attempts a "
            "JOIN metric_values v ON v.attempt = a.key JOIN series s ON s.key = v.series WHERE a.trial = ? ORDER BY v.seq", [trial]).fetchall()

    def params_of(config, variant):
        return {**dict(flat(json.loads(config))), "variant": variant}

    # Created by MLflow itself, which also shows the format of a row of `runs`.
    key, trial_id, config, variant = trials[0]
    by_client = client.create_run(experiment, run_name=trial_id)
    metrics = values_of(key)
    client.log_batch(by_client.info.run_id, params=[Param(*pair) for pair in params_of(config, variant).items()])
    for at in range(0, len(metrics), 1000):
        client.log_batch(by_client.info.run_id, metrics=[Metric(name, value, 0, step)
                                                         for name, step, value in metrics[at:at + 1000]])
    client.set_terminated(by_client.info.run_id)

    database = sqlite3.connect(file)
    run_columns = [row[1] for row in database.execute("PRAGMA table_info(runs)")]
    pattern = dict(zip(run_columns, database.execute("SELECT * FROM runs").fetchone()))
    statements = [insert_of(model, columns) for model, columns in (
        (models.SqlRun, run_columns),
        (models.SqlParam, ("run_uuid", "key", "value")),
        (models.SqlTag, ("run_uuid", "key", "value")),
        (models.SqlMetric, ("run_uuid", "key", "step", "value", "timestamp", "is_nan")),
        (models.SqlLatestMetric, ("run_uuid", "key", "step", "value", "timestamp", "is_nan")))]
    for begin in range(0, len(trials), AT_ONCE):
        rows = [[] for _ in statements]
        for key, trial_id, config, variant in trials[begin:begin + AT_ONCE]:
            run = uuid.uuid5(uuid.NAMESPACE_OID, trial_id).hex
            metrics = values_of(key)
            rows[0].append([{**pattern, "run_uuid": run, "name": trial_id}[name] for name in run_columns])
            rows[1] += [(run, *pair) for pair in params_of(config, variant).items()]
            rows[2].append((run, "mlflow.runName", trial_id))
            rows[3] += [(run, name, step, value, 0, 0) for name, step, value in metrics]
            rows[4] += [(run, name, step, value, 0, 0) for name, (step, value) in latest(metrics).items()]
        with database:
            for statement, some in zip(statements, rows):
                database.executemany(statement, some)
    first = uuid.uuid5(uuid.NAMESPACE_OID, trials[0][1]).hex
    same_as_the_clients(client, by_client.info.run_id, first)
    client.delete_run(by_client.info.run_id)
    database.close()


def same_as_the_clients(client, one, other):
    parts = []
    for run in (client.get_run(one), client.get_run(other)):
        history = {name: sorted((m.step, m.value) for m in client.get_metric_history(run.info.run_id, name))
                   for name in run.data.metrics}
        parts.append((run.data.params, run.data.metrics, history, run.info.status, run.info.run_name))
    if parts[0] != parts[1]:
        sys.exit(f"the rows that were written are not those of MLflow's client: {parts}")


def runs(client, where="", **more):
    """All runs as a data frame."""
    return mlflow.search_runs(experiment_names=[EXPERIMENT], filter_string=where, **more)


def seed_aggregated(frame, by):
    columns = ["metrics.test/accuracy", "metrics.test/f1"]
    return frame.groupby(by)[columns].agg(["mean", "std", "count"])


def pivot(client):
    by = ["params.variant", "params.task"]
    return seed_aggregated(runs(client), by).unstack(by[1])


def all_rows(client):
    frame = runs(client)
    differing = [name for name in frame.columns
                 if name.startswith("params.") and name != "params.seed" and frame[name].nunique() > 1]
    return seed_aggregated(frame, differing)


def some(client):
    frame = runs(client, "params.task = 'cola' AND params.`module.bottleneck` = '8'")
    return seed_aggregated(frame, ["params.variant"])


def best(client):
    """Ordered by the value of the last reported step, the only order that MLflow offers."""
    found = [runs(client, f"params.task = '{task}'", order_by=["metrics.`validation/accuracy` DESC"],
                  max_results=1)[["params.task", "tags.mlflow.runName", "metrics.validation/accuracy"]]
             for task in ("cola", "mrpc", "rte", "sst2")]
    return [row for frame in found for row in frame.to_dict("records")]


def first_run(client):
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    return client.search_runs([experiment], max_results=1)[0].info.run_id


def show(client):
    return client.get_run(first_run(client)).to_dictionary()


def history(client):
    return [(metric.step, metric.value) for metric in client.get_metric_history(first_run(client), "train/loss")]


QUESTIONS = {
    "start": lambda client: client.get_experiment_by_name(EXPERIMENT).name,
    "results, a pivot over seeds": pivot,
    "results, all rows": all_rows,
    "results, some trials": some,
    "best of each task": best,
    "show": show,
    "history": history,
}


def main():
    word, *files = sys.argv[1:]
    if word == "fill":
        fill(*files)
        return
    mlflow.set_tracking_uri(f"sqlite:///{files[0]}")
    answer = QUESTIONS[word](MlflowClient())
    if hasattr(answer, "to_json"):
        answer.columns = ["|".join(map(str, name)) for name in answer.columns]
        answer = answer.reset_index().to_dict("records")
    print(json.dumps(answer, default=str))


if __name__ == "__main__":
    main()
