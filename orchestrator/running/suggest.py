"""Suggests points of a search with Optuna. petlab run starts it (orchestrator/running/search_rounds.h).

Reads a JSON object from standard input: the fields of the search, the results of its points so far, the seed of this
round, and the number of points to suggest. Prints a JSON object: the points, and Optuna's version. Exits with 69 if
Optuna is missing.
"""
import json
import sys

try:
    import optuna
except ModuleNotFoundError as error:
    if error.name != "optuna":
        raise
    sys.exit(69)


def distribution(field):
    if "choices" in field:
        return optuna.distributions.CategoricalDistribution(list(range(field["choices"])))
    kind = optuna.distributions.IntDistribution if field["whole"] else optuna.distributions.FloatDistribution
    return kind(field["low"], field["high"], log=field["log"])


def main():
    request = json.load(sys.stdin)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {field["name"]: distribution(field) for field in request["fields"]}
    # Points of the same round count as bad ones, so that they differ from each other.
    sampler = optuna.samplers.TPESampler(seed=request["seed"], n_startup_trials=request["startup"],
                                         constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for point in request["told"]:
        study.add_trial(optuna.trial.create_trial(
            state=optuna.trial.TrialState[point["state"]], value=point.get("value"), params=point["values"],
            distributions=space))
    points = [study.ask(space).params for _ in range(request["points"])]
    json.dump({"optuna": optuna.__version__, "points": points}, sys.stdout)


main()
