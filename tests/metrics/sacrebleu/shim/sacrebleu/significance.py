import dataclasses
import os

from .metrics import ask


@dataclasses.dataclass
class Result:
    score: float
    p_value: "float | None" = None
    mean: "float | None" = None
    ci: "float | None" = None


class PairedTest:
    """Compares each system with the first one, the baseline, by one run of petlab."""

    def __init__(self, named_systems, metrics, references, test_type="ar", n_samples=0):
        self.systems, self.metrics, self.test, self.n_samples = named_systems, metrics, test_type, n_samples

    def __call__(self):
        scores = {"System": [name for name, _ in self.systems]}
        _, baseline = self.systems[0]
        words = [f"--paired-{self.test}", f"--paired-{self.test}-n", self.n_samples, "--seed",
                 os.environ.get("SACREBLEU_SEED", "12345")]
        for name, metric in self.metrics.items():
            found = scores[name] = [Result(metric.corpus_score(baseline, metric.references).score)]
            for _, system in self.systems[1:]:
                answer = ask(metric.name, system, metric.references, *metric.words, *words, baseline=baseline)
                found.append(Result(answer.score, answer.p_value))
        return {}, scores
