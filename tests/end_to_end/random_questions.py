"""Random questions about a database given as SlowAnswers."""
import json
import re

TEXTS = ("trial_id", "sweep", "variant", "tasks", "module_kind", "task", "tag", "device", "worker_version")
WHOLE = ("seed", "module_bottleneck", "module_rank", "attempt", "stored_bits")
NUMBERS = ("training_learning_rate", "train_seconds", "bls_bits")
SWITCHES = ("module_share",)
FREE = ("user.k", "user.note", "user.none")
ROWS = ("variant", "sweep", "seed", "module_kind", "module_bottleneck", "module_share", "tasks", "training_learning_rate",
        "trial_id", "user.k", "bls_bits", "train_seconds", "attempt")


def written(field, value):
    """A value in the syntax of --where, and its meanings: for user fields a number may also be a text."""
    if value is None:
        return "null", [None]
    if field in SWITCHES:
        return "true" if value else "false", [value]
    if not isinstance(value, str):
        return json.dumps(value), [value, json.dumps(value)] if field in FREE else [value]
    plain = re.fullmatch(r"[\w.+-]+", value) and value not in ("null", "true") and not (field in FREE and value[0].isdigit())
    return value if plain else quoted(value), [value]


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Question:
    """Conditions, rows, metrics and a split. `where` is for SlowAnswers, `text` for --where."""

    def __init__(self, draw, slow):
        self.draw, self.where, self.texts = draw, [], []
        self.fields = [trial.fields | {"sweep": sweep, "variant": variant}
                       for trial in slow.trials for sweep, variant in trial.members]
        values = [value for trial in slow.trials for value in trial.values]
        self.known = {"task": slow.tasks | {value["task"] for value in values},
                      "tag": {tag for trial in slow.trials for tag in trial.tags} | {"paper"}}
        for _ in range(draw.choice([0, 1, 1, 2, 2, 3])):
            self.add_condition()
        self.text = draw.choice([" and ", ", "]).join(self.texts)
        self.split = draw.choice(sorted({value["split"] for value in values}) or ["test"])
        metrics = sorted({value["name"] for value in values}) or ["accuracy"]
        self.metrics = draw.sample(metrics, draw.randint(1, len(metrics)))
        self.by = draw.sample(ROWS, draw.randint(1, 3))

    def add_condition(self):
        draw = self.draw
        field = draw.choice(TEXTS + WHOLE + NUMBERS + SWITCHES + FREE + FREE[:1] * 3)
        known = sorted(self.known.get(field) or {fields.get(field) for fields in self.fields},
                       key=lambda value: (isinstance(value, str), value is None, value))
        comparison = draw.choice(["=", "=", "!=", "<", "<=", ">", ">="])
        values = draw.sample(known, min(len(known), draw.choice([1, 1, 2])))
        if comparison not in ("=", "!="):
            values = [value for value in values if value is not None][:1]
            if field in ("tag", *SWITCHES) or not values:
                comparison = "="
        elif field != "task" and draw.random() < 0.1:
            values.append(None)
        parts = [written(field, value) for value in values or [None]]
        meant = [one for _, all_of_it in parts for one in (all_of_it if comparison in ("=", "!=") else all_of_it[:1])]
        self.where.append((field, comparison, meant))
        self.texts.append(f"{field}{comparison}{','.join(text for text, _ in parts)}")

    def has(self, *fields):
        """True if a condition has one of the fields."""
        return bool({field for field, _, _ in self.where} & set(fields))

    def all_equal(self):
        """True if a mapping from fields to values can express the conditions."""
        return all(one == "=" for _, one, _ in self.where) and len({one for one, _, _ in self.where}) == len(self.where)

    def __repr__(self):
        return f"where {self.text!r} by {self.by} split {self.split} metrics {self.metrics}"
