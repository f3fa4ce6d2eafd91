"""Answers to questions about results, computed slowly from the files of a runs folder.

The rules are those of docs/guides/explore-results.md and docs/reference/sql.md, implemented without SQL and
without petlab's code. A condition is (field, operator, values); the values have the field's type.
"""
import json
import math
import operator
import statistics
from collections import defaultdict
from fractions import Fraction

FIELDS = ("module_kind", "module_share", "module_bottleneck", "module_rank", "module_alpha", "training_learning_rate", "user")
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def tags_in(file):
    last = {line.get("tag") or line["untag"]: "tag" in line for line in lines(file)}
    return {tag for tag, is_set in last.items() if is_set}


def holds(value, comparison, given):
    """True if the condition holds. A text never equals a number. None equals None and has no order."""
    if comparison in ("=", "!="):
        return any(value == one and isinstance(value, str) == isinstance(one, str) for one in given) == (comparison == "=")
    return value is not None and isinstance(value, str) == isinstance(given[0], str) and ORDERS[comparison](value, given[0])


class Trial:
    def __init__(self, line, members, sweep_tags, folder):
        self.id, self.members, config = line["trial"], members, line["config"]
        self.tasks = config.get("tasks") or [config["task"]]
        self.tags = sweep_tags | tags_in(folder / "remarks.jsonl")
        self.varying = {f"{group}_{name}": value for group in ("module", "training") for name, value in config[group].items()}
        self.varying["user"] = json.dumps(config["user"], sort_keys=True)
        user = {f"user.{name}": value for name, value in config["user"].items()}
        self.fields = {name: int(value) if isinstance(value, bool) else value for name, value in {
            "trial_id": self.id, "tasks": ",".join(self.tasks), "seed": config["seed"], "artifact": None,
            "bls_bits": line["bls_bits"], "stored_bits": line["stored_bits"], **self.varying, **user}.items()}
        self.attempts = {}
        for part in sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name)):
            (begun, *ended), events = lines(part / "attempt.jsonl"), lines(part / "events.jsonl")
            self.attempts[int(part.name)] = {**begun, "ended": ended, "events": events}
        decisions = lines(folder / "decisions.jsonl")
        self.hidden = ([one["decision"] for one in decisions if "hide" in one["decision"]] or [""])[-1] == "hide"
        stopped, self.stopped_early = False, False
        for what in (one["decision"] for one in decisions):
            if what == "cancel" or what == "stop_early" and not stopped:
                stopped, self.stopped_early = True, what == "stop_early"
            elif what in ("uncancel", "retry", "rerun", "discard"):
                stopped, self.stopped_early = False, False
        finished = [number for number, one in self.attempts.items() if one["events"][-1]["type"] == "finished"]
        for one in decisions:
            if one["decision"] in ("discard", "rerun", "retry"):
                later = [number for number in finished if number > one["after_attempt"]]
                finished = later if one["decision"] == "discard" else later or finished
        self.result = min(finished, default=None)
        self.values = []  # of the result, in the order of reporting
        number, last = self.result, math.inf
        while number:
            attempt = self.attempts[number]
            self.values[:0] = [event | {"attempt": number} for event in attempt["events"]
                               if event["type"] == "metric" and event["seq"] <= last]
            number, last = (attempt.get("resume") or {}).get("attempt"), (attempt.get("resume") or {}).get("seq")
        if self.result:
            attempt = self.attempts[self.result]
            started, end = attempt["events"][0], attempt["events"][-1]
            self.fields |= {name: end.get(name) for name in ("train_seconds", "peak_memory_mib")}
            self.fields |= {name: end[name] for name in ("bls_bits", "stored_bits", "artifact") if name in end}
            self.fields |= {"attempt": self.result, "device": attempt["device"], "worker_version": started["version"]}
        tests = [one for one in self.values if one["split"] == "test"]
        own = [one for one in tests if one["task"] in self.tasks] or tests
        self.selected_step = own[-1]["step"] if own else None

    def selected(self):
        """The value that counts of each metric."""
        series = defaultdict(list)
        for value in self.values:
            series[value["split"], value["task"], value["name"]].append(value)
        return [([one for one in values if one["step"] == self.selected_step and one["split"] != "test"] or values)[-1]
                for values in series.values()]


class SlowAnswers:
    def __init__(self, runs):
        sweeps = sorted((lines(file) for file in (runs / "sweeps").glob("*.jsonl")), key=lambda sweep: sweep[0]["time"])
        configs, members, tags = {}, defaultdict(list), {}
        for header, *rest in sweeps:
            tags[header["sweep"]] = tags_in(runs / "sweeps" / f"{header['sweep']}.remarks")
            for line in rest:
                if "trial" in line:
                    configs.setdefault(line["trial"], line)
                else:
                    members[line["member"]].append((header["sweep"], line["variant"] or None))
        self.sweeps = list(tags)
        self.trials = [Trial(line, members[trial], set().union(*(tags[sweep] for sweep, _ in members[trial])), runs / trial)
                       for trial, line in configs.items()]
        self.tasks = {task for trial in self.trials for task in trial.tasks}

    def members_of(self, where):
        """Yields trials that are not hidden with their fields, for each selected sweep and variant."""
        for trial in self.trials:
            for sweep, variant in [] if trial.hidden else trial.members or [(None, None)]:
                fields = trial.fields | {"sweep": sweep, "variant": variant}
                if all(bool(trial.tags & set(values) or None in values and not trial.tags) == (comparison == "=")
                       if field == "tag" else holds(fields.get(field), comparison, values)
                       for field, comparison, values in where if field != "task"):
                    yield trial, fields

    def counts(self, trial, value):
        return value["task"] in trial.tasks or value["task"] not in self.tasks

    def scores(self, where, splits, metrics, every=False):
        """Yields (trial, fields, value) for all selected values, once for each sweep and variant of a trial."""
        for trial, fields in self.members_of(where):
            for value in trial.values if every else trial.selected():
                if (value["split"] in splits and value["name"] in metrics and self.counts(trial, value) and all(
                        holds(value["task"], comparison, values) for field, comparison, values in where if field == "task")):
                    yield trial, fields, value

    def table(self, where, by, split, metrics):
        """Mean, deviation and number of trials by the fields `by`, task and metric. Each trial counts once."""
        groups = defaultdict(dict)
        for trial, fields, value in self.scores(where, [split], metrics):
            groups[(*map(fields.get, by), value["task"], value["name"])][trial.id] = value["value"]
        return {key: summary(list(values.values())) for key, values in groups.items()}

    def best(self, where, metric, split, highest, top):
        """The best trials of each task. Of equal values, the first recorded is better."""
        found = defaultdict(lambda: defaultdict(dict))
        for trial, _, value in self.scores(where, [split, "test"], [metric]):
            found[value["task"]][trial.id][value["split"]] = value["value"]
        return [(task, trial, values[split], values.get("test")) for task in sorted(found) for trial, values in sorted(
            ((trial, values) for trial, values in found[task].items() if values.get(split) is not None),
            key=lambda one: -one[1][split] if highest else one[1][split])[:top]]

    def varied(self, where):
        """The configuration fields with several values, except seed and tasks, with these values."""
        values = defaultdict(set)
        for trial, _ in self.members_of(where):
            for name in FIELDS:
                values[name].add(trial.varying.get(name))
        return {name: those for name, those in values.items() if len(those) > 1}

    def side(self, where, split, metrics, shared):
        """The values by seed and shared fields, for each task and metric. None without values, or if pairs are ambiguous."""
        found, trials = defaultdict(dict), {}
        for trial, _, value in self.scores(where, [split], metrics):
            pair = trial.fields["seed"], *(trial.varying.get(name) for name in shared)
            if trials.setdefault((value["task"], value["name"], pair), trial) is not trial:
                return None
            found[value["task"], value["name"]][pair] = value["value"]
        return found or None


def summary(values):
    if None in values:
        return None, None, len(values)
    exact = list(map(Fraction, values))
    return float(sum(exact) / len(exact)), statistics.stdev(exact) if len(exact) > 1 else None, len(exact)


def compared(a, b):
    """Pairs, unpaired scores, mean difference and p of the paired t test (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    pairs = a.keys() & b.keys()
    differences = [] if None in [*a.values(), *b.values()] else [Fraction(b[pair]) - Fraction(a[pair]) for pair in pairs]
    n, p, size = len(differences), None, max([abs(value) for pair in pairs for value in (a[pair], b[pair]) if value] or [0])
    if n >= 3 and max(differences) - min(differences) > Fraction(size) / 10**10:
        t = abs(statistics.mean(differences)) / statistics.stdev(differences) * math.sqrt(n)
        angle, odd = math.atan(t / math.sqrt(n - 1)), n % 2 == 0
        term = total = math.cos(angle) if odd else 1
        for k in range(3 if odd else 2, n - 2, 2):
            term *= math.cos(angle) ** 2 * (k - 1) / k
            total += term
        p = 1 - (2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total)
    return len(pairs), len(a.keys() ^ b.keys()), float(sum(differences) / n) if n else None, p


def over_tasks(tasks):
    pairs = set.intersection(*(set(task) for task in tasks))
    return {pair: None if None in [task[pair] for task in tasks] else statistics.mean(Fraction(task[pair]) for task in tasks)
            for pair in pairs}
