#!/usr/bin/env python3
"""Writes examples with several lines and times rouge-score's rougeLsum on them; rounds.py starts it.

    summaries.py write CORPUS SUMMARIES    joins every four lines of CORPUS.hyp and .ref into one JSON string per line
    summaries.py time SUMMARIES            scores SUMMARIES.hyp and .ref like a row of metrics_peers.py

For examples with one line, rougeLsum equals rougeL; only with several does it search for sentences.
"""
import json
import sys
import time

SENTENCES = 4


def write(corpus, summaries):
    for side in (".hyp", ".ref"):
        with open(corpus + side, encoding="utf-8", newline="\n") as f:
            lines = f.read().split("\n")[:-1]
        with open(summaries + side, "w", encoding="utf-8", newline="\n") as f:
            for i in range(0, len(lines), SENTENCES):
                f.write(json.dumps("\n".join(lines[i : i + SENTENCES]), ensure_ascii=False) + "\n")


def read(file):
    with open(file, encoding="utf-8", newline="\n") as f:
        return [json.loads(line) for line in f]


def clock(summaries):
    from rouge_score import rouge_scorer

    hypotheses, references = read(summaries + ".hyp"), read(summaries + ".ref")
    scorer = rouge_scorer.RougeScorer(["rougeL", "rougeLsum"], use_stemmer=True)
    if scorer.score(references[0], hypotheses[0])["rougeL"] == scorer.score(references[0], hypotheses[0])["rougeLsum"]:
        sys.exit("the first example has the same rougeL and rougeLsum: it is no example of several lines")
    scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=True)
    wall, cpu = time.perf_counter(), time.process_time()
    value = sum(scorer.score(r, h)["rougeLsum"].fmeasure for h, r in zip(hypotheses, references)) / len(hypotheses)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"seconds_median": wall, "cpu_seconds_min": cpu, "value": value}))


if __name__ == "__main__":
    {"write": write, "time": clock}[sys.argv[1]](*sys.argv[2:])
