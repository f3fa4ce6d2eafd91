#!/usr/bin/env python3
"""Creates tests/golden/statistics: comparisons by scipy, statsmodels, autorank and numpy.

    make_statistics.py [FOLDER]

Needs numpy 2.4.6, scipy 1.17.1, statsmodels 0.15.0 and autorank 1.3.0.
"""
import fractions
import itertools
import json
import math
import pathlib
import sys
import warnings

import autorank
import numpy as np
from scipy import integrate, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

UNDEFINED = "undefined"


def write(folder, name, **content):
    (folder / name).write_text(json.dumps(content, default=float) + "\n")


def mcnemar_cases():
    cases = []
    for only_a, only_b in [(0, 0), (1, 0), (3, 3), (2, 11), (19, 7), (640, 571), (0, 1100)]:
        n, fewer = only_a + only_b, min(only_a, only_b)
        coins = [math.comb(n, k) for k in range(fewer + 1)]
        exact = min(fractions.Fraction(1), fractions.Fraction(2 * sum(coins), 2 ** n))
        mid_p = fractions.Fraction(2 * sum(coins) - coins[-1], 2 ** n)
        library = mcnemar([[9, only_a], [only_b, 4]], exact=True).pvalue
        assert math.isclose(float(exact), library, rel_tol=1e-9, abs_tol=1e-300)
        cases.append({"table": [[9, only_a], [only_b, 4]], "b": only_a, "c": only_b,
                      "exact": float(exact), "midp": float(mid_p),
                      "log10_exact": math.log10(exact.numerator) - math.log10(exact.denominator)})
    return cases


def unpaired_case():
    """Systems whose accuracies an unpaired test cannot distinguish."""
    (both, only_a), (only_b, neither) = table = [[614, 41], [20, 122]]
    n = both + only_a + only_b + neither
    a, b = (both + only_a) / n, (both + only_b) / n
    pooled = (a + b) / 2
    z = (a - b) / math.sqrt(2 * pooled * (1 - pooled) / n)
    fewer = min(only_a, only_b)
    coin = stats.binom(only_a + only_b, 0.5)
    return {"table": table, "examples": n, "accuracy_a": a, "accuracy_b": b,
            "unpaired_p": 2 * stats.norm.sf(abs(z)), "mcnemar_exact": 2 * coin.cdf(fewer),
            "mcnemar_midp": 2 * coin.cdf(fewer) - coin.pmf(fewer)}


def power(pairs, effect, alpha):
    """The power of a paired t test, by integration: statsmodels' is nan far in the tail."""
    freedom, center = pairs - 1, abs(effect) * math.sqrt(pairs)
    critical = stats.t.isf(alpha / 2, freedom)

    def density(s):
        found = stats.norm.cdf(center - critical * s) + stats.norm.cdf(-critical * s - center)
        return found * stats.chi.pdf(s * math.sqrt(freedom), freedom) * math.sqrt(freedom)

    width = 12 / math.sqrt(2 * freedom)
    return sum(integrate.quad(density, *ends, epsabs=1e-13, limit=400)[0]
               for ends in [(max(0, 1 - width), 1), (1, 1 + width)])


def power_cases():
    needed = []
    for mean, deviation in [(0.4, 0.5), (-1.5, 0.9), (0.2, 0.7), (8, 0.1)]:
        effect = abs(mean) / deviation
        pairs = 2
        while power(pairs, effect, 0.05) < 0.8:
            pairs += 1
        if effect < 4:
            exact = np.squeeze(TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8))
            assert math.ceil(exact) == pairs
        needed.append({"mean_difference": mean, "sd": deviation, "alpha": 0.05, "power": 0.8,
                       "pairs": pairs, "power_at_pairs": power(pairs, effect, 0.05),
                       "power_at_one_fewer":
                           power(pairs - 1, effect, 0.05) if pairs > 2 else UNDEFINED})
    for mean, deviation, pairs in [(0.3, 0, UNDEFINED), (0, 0.8, "never"), (0, 0, "never")]:
        needed.append({"mean_difference": mean, "sd": deviation, "alpha": 0.05, "power": 0.8,
                       "pairs": pairs})
    grid = [{"n": n, "effect": effect, "alpha": alpha, "power": power(n, effect, alpha)}
            for n in (2, 4, 30) for effect in (0.2, 1, 4) for alpha in (0.05, 0.001)]
    return {"needed": needed, "power": grid}


def signed_rank(differences):
    """The exact signed-rank test by enumeration of all signs. Differences are fractions."""
    sizes = [abs(d) for d in differences if d != 0]
    if not sizes:
        return None
    ranks = [round(2 * rank) for rank in stats.rankdata([float(size) for size in sizes])]
    plus = sum(rank for rank, d in zip(ranks, [d for d in differences if d != 0]) if d > 0)
    sums = [sum(signs) for signs in itertools.product(*([0, rank] for rank in ranks))]
    tail = min(sum(s <= plus for s in sums), sum(s >= plus for s in sums))
    return {"n_used": len(ranks), "w_plus": plus / 2, "w_minus": (sum(ranks) - plus) / 2,
            "p": min(1, 2 * tail / len(sums))}


def decimal(value):
    return fractions.Fraction(str(value))


def wilcoxon_cases():
    lists = {"untied": [0.31, -0.12, 0.77, 1.08, 0.05, 0.49, -0.2], "ties": [0.5, 0.5, -0.5, 1, 1],
             "zeros": [0, 0.25, -0.5, 0, 1.5], "all_zero": [0, 0, 0], "five_positive": [1, 2, 3, 4, 5]}
    return [{"name": name, "d": d, "exact": signed_rank([decimal(x) for x in d]) or UNDEFINED}
            for name, d in lists.items()]


def cliques(count, linked):
    sets = [set(s) for size in range(count, 1, -1) for s in itertools.combinations(range(count), size)
            if all(linked(i, j) for i, j in itertools.combinations(s, 2))]
    return sorted(sorted(s) for s in sets if not any(s < other for other in sets))


def rank_case(name, scores):
    """The case for a (tasks, variants) list of decimal scores."""
    tasks, count = len(scores), len(scores[0])
    ranks = np.array([stats.rankdata([-x for x in row]) for row in scores])
    average = ranks.mean(0)
    pairs = list(itertools.combinations(range(count), 2))
    width = math.sqrt(count * (count + 1) / (12 * tasks))
    q = stats.studentized_range.ppf(0.95, count, np.inf)
    assert math.isclose(autorank._util._critical_distance(0.05, count, tasks), q * width,
                        rel_tol=2e-3)
    case = {"name": name, "tasks": tasks, "variants": count, "scores": scores,
            "average_ranks": average.tolist(), "friedman": {"chi2": UNDEFINED, "p": UNDEFINED}}
    if len(set(average)) > 1:
        chi2, p = stats.friedmanchisquare(*np.array(scores).T)
        freedom = (count - 1, (count - 1) * (tasks - 1))
        f = (tasks - 1) * chi2 / (tasks * (count - 1) - chi2)
        case["friedman"] = {"chi2": chi2, "p": p}
        case["iman_davenport"] = {"F": f, "p": stats.f.sf(f, *freedom)}
    case["nemenyi"] = {
        "cd": q * width,
        "groups": cliques(count, lambda i, j: abs(average[i] - average[j]) <= q * width),
        "p": {f"{i}-{j}": stats.studentized_range.sf(abs(average[i] - average[j]) / width, count, np.inf)
              for i, j in pairs}}
    tests = [signed_rank([decimal(row[i]) - decimal(row[j]) for row in scores]) for i, j in pairs]
    p = [test["p"] if test else 1 for test in tests]
    holm = multipletests(p, method="holm")[1]
    adjusted = dict(zip(pairs, holm))
    case["wilcoxon_holm"] = {
        "p": {f"{i}-{j}": x for (i, j), x in zip(pairs, p)},
        "holm": {f"{i}-{j}": x for (i, j), x in zip(pairs, holm)},
        "cliques": cliques(count, lambda i, j: adjusted[min(i, j), max(i, j)] > 0.05)}
    return case


def rank_cases():
    random = np.random.default_rng(361)
    cases = []
    for tasks, count, spread in [(5, 3, 0.4), (12, 4, 1.5), (14, 5, 2.0)]:
        scores = (random.normal(75, 5, (tasks, 1)) + np.linspace(0, spread, count) +
                  random.normal(0, 0.6, (tasks, count)))
        cases.append(rank_case(f"{count} variants on {tasks} tasks", scores.round(1).tolist()))
    cases.append(rank_case("all tied", [[70.5] * 3] * 6))
    return cases


def metric(name, gold, predicted):
    """The metric of one sample."""
    if name == "pearson":
        return float(np.corrcoef(gold, predicted)[0, 1])
    hits = float(((gold == 1) & (predicted == 1)).sum())
    wrong = float((gold != predicted).sum())
    if name == "accuracy":
        return 1 - wrong / len(gold)
    return 2 * hits / (2 * hits + wrong) if hits + wrong else 0.0


def bootstrap_case(name, gold, a, b, metrics):
    """The bootstrap with a loop instead of arrays, and the same draws as petlab's."""
    seeds, n = a.shape
    design = "crossed" if seeds > 1 else "nested"

    def difference(chosen, examples):
        return {m: np.mean([metric(m, gold[examples], a[s, examples]) -
                            metric(m, gold[examples], b[s, examples]) for s in chosen])
                for m in metrics}

    everything = (range(seeds), np.arange(n))
    observed = difference(*everything)
    replicates = {m: [] for m in metrics}
    random = np.random.default_rng(12345)
    for _ in range(4):
        chosen = random.integers(0, seeds, (250, seeds))
        examples = random.integers(0, n, (250, n))
        for one in zip(chosen, examples):
            for m, value in difference(*one).items():
                replicates[m].append(value)
    without_seed = [difference([s for s in range(seeds) if s != left], everything[1])
                    for left in range(seeds)] if seeds > 1 else []
    without_example = [difference(everything[0], np.delete(everything[1], left)) for left in range(n)]
    case = {"name": name, "seeds": seeds, "examples": n, "gold": gold.tolist(), "a": a.tolist(),
            "b": b.tolist(), "metrics": {}}
    for m in metrics:
        squares = cubes = 0
        for without in (without_seed, without_example):
            values = np.array([one[m] for one in without])
            if len(values) > 1:
                influence = (len(values) - 1) * (values.mean() - values) / len(values)
                squares += (influence ** 2).sum()
                cubes += (influence ** 3).sum()
        acceleration = cubes / (6 * squares ** 1.5)
        drawn = np.array(replicates[m])
        share = ((drawn < observed[m] - 1e-9).mean() + (drawn < observed[m] + 1e-9).mean()) / 2
        z0 = stats.norm.ppf(share)
        ends = [z0 + (z0 + z) / (1 - acceleration * (z0 + z)) for z in stats.norm.ppf([0.025, 0.975])]
        case["metrics"][m] = {
            "difference": observed[m], "acceleration": acceleration,
            design: {"numpy_run": {"mean": drawn.mean(),
                                   "percentile": np.percentile(drawn, [2.5, 97.5]).tolist(),
                                   "bca": np.percentile(drawn, 100 * stats.norm.cdf(ends)).tolist(),
                                   "exact_ties": True}}}
    return case


def bootstrap_cases():
    random = np.random.default_rng(362)
    cases = []
    for seeds, n in [(1, 40), (3, 60), (4, 90)]:
        gold = random.integers(0, 2, n)
        right = random.normal(0.9, 0.2, (2, seeds, 1)) + random.normal(0, 1, (2, seeds, n)) > 0
        a, b = np.where(right, gold, 1 - gold)
        cases.append(bootstrap_case(f"classes_{seeds}x{n}", gold, a, b, ["accuracy", "f1"]))
        gold = random.integers(0, 500, n)
        a, b = gold + random.integers(-90, 90, (2, seeds, n))
        cases.append(bootstrap_case(f"scores_{seeds}x{n}", gold, a, b, ["pearson"]))
    return cases


def main():
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else \
        pathlib.Path(__file__).parent / "statistics"
    folder.mkdir(exist_ok=True)
    write(folder, "mcnemar.json", cases=mcnemar_cases())
    write(folder, "unpaired_z.json", cases=[unpaired_case()])
    write(folder, "power.json", **power_cases())
    write(folder, "wilcoxon.json", wilcoxon=wilcoxon_cases())
    write(folder, "ranks.json", cases=rank_cases(),
          q_table={str(k): stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2)
                   for k in (2, 5, 20)})
    write(folder, "bootstrap.json", cases=bootstrap_cases())


if __name__ == "__main__":
    main()
