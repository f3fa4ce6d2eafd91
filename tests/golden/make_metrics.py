#!/usr/bin/env python3
"""Creates tests/golden/metrics with sacrebleu, rouge-score, nltk, scikit-learn and scipy.

    make_metrics.py [FOLDER]

Needs sacrebleu 2.6.0, rouge-score 0.1.2, nltk 3.10.4, scikit-learn 1.9.1, scipy 1.17.1 and numpy.
"""
import itertools
import json
import logging
import pathlib
import sys
import warnings

import numpy as np
import rouge_score.rouge_scorer
import rouge_score.scoring
import rouge_score.tokenize
import sacrebleu.significance
import scipy.stats
import sklearn.metrics
from nltk.stem.porter import PorterStemmer
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

SUBJECTS = ["The old lighthouse", "A small boat", "Her brother's letter", "The 3.5-ton crane",
            "Every student", "The committee (all seven)", "My neighbour's dog", "A \"quiet\" street"]
VERBS = ["was painted", "had been repaired", "lay forgotten", "could be seen", "is running",
         "was described", "had stopped", "seemed promising"]
PLACES = ["near the harbour", "in 1,000 pieces", "before the meeting", "at 10:30 a.m.",
          "behind the library's gates", "on a Sunday; it rained", "for twenty-two years",
          "under Europe's largest bridge"]
ODD = ["", " ", ".", "Hello, world!", "U.S. prices rose 3.5%.", "well-known state-of-the-art",
       "a...b", "(x) [y] {z}", "don't can't won't", "&quot;quoted&quot; &amp;lt;tag&amp;gt;",
       "1,234.56 and 7-8 and -9", "“curly” – dash…", "El Niño über naïve Straße", "東京は大きい都市です。",
       "中文句子, 有标点。", "한국어 문장", "tab\tand  double  spaces", "ends with stop.", "$5 + €6 = ?",
       "C++ & C#", "e-mail@example.org", "İstanbul K", "<skipped> word", "hyphen-\nbreak"]


def lines(seed, count):
    random = np.random.default_rng(seed)
    return [f"{SUBJECTS[a]} {VERBS[b]} {PLACES[c]}{'.!?'[d]}" for a, b, c, d in
            zip(*(random.integers(0, n, count) for n in (8, 8, 8, 3)))]


def noisy(texts, seed):
    """Returns the texts with words omitted, doubled, changed or moved."""
    random = np.random.default_rng(seed)
    made = []
    for text in texts:
        words = []
        for word in text.split():
            what = random.integers(0, 12)
            words += {0: [], 1: [word, word], 2: [word.upper()], 3: ["something"]}.get(what, [word])
        if len(words) > 4 and random.integers(0, 3) == 0:
            at = int(random.integers(0, len(words) - 3))
            words = words[:at] + words[at + 2:] + words[at:at + 2]
        made.append(" ".join(words))
    return made


def bleu_row(metric, hyps, refs):
    score = metric.corpus_score(hyps, refs)
    return dict(score=score.score, counts=score.counts, totals=score.totals,
                precisions=score.precisions, bp=score.bp, sys_len=score.sys_len,
                ref_len=score.ref_len)


def signatures(metric):
    signature = metric.get_signature()
    return dict(signature=signature.format(), signature_short=signature.format(short=True))


def corpus_cases(hyps, refs, tokenizers=("13a", "none", "char", "intl", "zh")):
    smoothing = [("exp", None), ("floor", 0.1), ("add-k", 1), ("none", None)]
    for tokenize, (smooth, value), lower, order in itertools.product(
            tokenizers, smoothing, (False, True), (4, 2)):
        if tokenize not in ("13a", "intl") and (lower or order == 2 or smooth != "exp"):
            continue
        metric = BLEU(tokenize=tokenize, smooth_method=smooth, smooth_value=value, lowercase=lower,
                      max_ngram_order=order, effective_order=False)
        yield dict(metric="bleu", tokenize=tokenize, lowercase=lower, smooth_method=smooth,
                   smooth_value=value, max_ngram_order=order, effective_order=False,
                   **bleu_row(metric, hyps, refs), **signatures(metric))
    for char, word, lower, space, eps in [(6, 0, False, False, False), (6, 2, False, False, False),
                                          (6, 0, True, True, False), (4, 1, False, False, True)]:
        metric = CHRF(char_order=char, word_order=word, lowercase=lower, whitespace=space,
                      eps_smoothing=eps)
        score = metric.corpus_score(hyps, refs)
        statistics = np.sum(metric._extract_corpus_statistics(hyps, refs), axis=0)
        yield dict(metric="chrf", char_order=char, word_order=word, beta=2, lowercase=lower,
                   whitespace=space, eps_smoothing=eps, name=score.name, score=score.score,
                   hyp_ref_match_per_order=[int(s) for s in statistics], **signatures(metric))
    for normalized, no_punct, asian, case in [(False, False, False, False), (True, False, False, True),
                                              (True, True, True, False)]:
        metric = TER(normalized=normalized, no_punct=no_punct, asian_support=asian,
                     case_sensitive=case)
        score = metric.corpus_score(hyps, refs)
        yield dict(metric="ter", normalized=normalized, no_punct=no_punct, asian_support=asian,
                   case_sensitive=case, score=score.score, num_edits=score.num_edits,
                   ref_length=score.ref_length, **signatures(metric))


def sentence_row(name, hyp, refs):
    rows = {}
    for smooth, effective, lower, order in itertools.product(("exp", "floor", "add-k", "none"),
                                                             (True, False), (False, True), (4, 2)):
        if (lower or order == 2) and smooth != "exp":
            continue
        metric = BLEU(smooth_method=smooth, effective_order=effective, lowercase=lower,
                      max_ngram_order=order)
        key = f"13a|{smooth}|eff={'yes' if effective else 'no'}"
        key += ("|lc" if lower else "") + ("|order2" if order == 2 else "")
        score = metric.sentence_score(hyp, refs)
        rows[key] = dict(score=score.score, counts=score.counts, totals=score.totals,
                         precisions=score.precisions, bp=score.bp, sys_len=score.sys_len,
                         ref_len=score.ref_len)
    ter = TER().sentence_score(hyp, refs)
    return {"id": name, "hyp": hyp, "refs": refs, "bleu": rows,
            "chrf": CHRF().sentence_score(hyp, refs).score,
            "chrf++": CHRF(word_order=2).sentence_score(hyp, refs).score,
            "ter": dict(score=ter.score, num_edits=ter.num_edits, ref_length=ter.ref_length)}


def tokenize_row(text):
    row = dict(text=text)
    for name in ("13a", "none", "char", "intl", "zh"):
        row[name] = BLEU(tokenize=name)._preprocess_segment(text).split()
    for name in ("13a", "intl"):
        row[name + "_lc"] = BLEU(tokenize=name, lowercase=True)._preprocess_segment(text).split()
    row["ter"] = TercomTokenizer()(text.rstrip()).split()
    row["ter_normalized"] = TercomTokenizer(normalized=True)(text.rstrip()).split()
    row["chrf++_words"] = CHRF(word_order=2)._remove_punctuation(text)
    return row


def significance(systems, references):
    named = list(systems.items())
    for kind, key, n in (("bs", "paired bootstrap", 1000), ("ar", "paired approximate randomisation",
                                                            10000)):
        metrics = {"BLEU": BLEU(references=[references]), "chrF2": CHRF(references=[references])}
        test = sacrebleu.significance.PairedTest(named, metrics, None, test_type=kind, n_samples=n)
        found_signatures, scores = test()
        results = {}
        for metric, rows in scores.items():
            if metric == "System":
                continue
            results[metric] = {
                system: dict(score=row.score, p_value=row.p_value, mean=row.mean,
                             ci_half_width=row.ci)
                for (system, _), row in zip(named, rows)}
        yield dict(test=key, n=n, seed=12345, baseline=named[0][0], results=results,
                   signatures={m: s.format() for m, s in found_signatures.items()})
    n = len(references)
    indices = np.random.default_rng(12345).choice(n, size=(1000, n), replace=True)
    bits = np.random.default_rng(12345).integers(2, size=(10000, n), dtype=bool)
    yield dict(test="rng", segments=n, bootstrap_first_row_first_24=indices[0][:24].tolist(),
               bootstrap_last_row_last_8=indices[-1][-8:].tolist(),
               bootstrap_sum_of_all=int(indices.sum()),
               randomisation_first_row_first_64="".join(
                   str(int(b)) for b in bits.flatten()[:64]),
               randomisation_ones=int(bits.sum()))


TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


def rouge_values(score):
    return [score.precision, score.recall, score.fmeasure]


def scorers():
    return {mode: rouge_score.rouge_scorer.RougeScorer(TYPES, use_stemmer=mode == "stem")
            for mode in ("plain", "stem")}


def rouge_pair(name, target, prediction):
    row = dict(id=name, target=target, prediction=prediction)
    for mode, scorer in scorers().items():
        row[mode] = {t: rouge_values(s) for t, s in scorer.score(target, prediction).items()}
    return row


def rouge_corpus(pairs):
    group = dict(pairs=len(pairs))
    for mode in ("plain", "stem"):
        group[mode] = {}
        for kind in TYPES:
            values = np.array([pair[mode][kind] for pair in pairs])
            np.random.seed(5)
            aggregator = rouge_score.scoring.BootstrapAggregator()
            for p, r, f in values:
                aggregator.add_scores({kind: rouge_score.scoring.Score(p, r, f)})
            bounds = aggregator.aggregate()[kind]
            mean = values.mean(axis=0)
            group[mode][kind] = dict(
                mean_precision=mean[0], mean_recall=mean[1], mean_f=mean[2],
                bootstrap_f_low_mid_high=[bounds.low.fmeasure, bounds.mid.fmeasure,
                                          bounds.high.fmeasure],
                standard_error_of_mean_f=float(values[:, 2].std(ddof=1) / len(values)**0.5))
    return group


def classification(name, gold, pred, classes):
    row = dict(name=name, gold=gold, pred=pred, num_labels=classes)

    def value(metric):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = dict(value=float(metric(gold, pred)))
        if caught:
            found["warnings"] = [str(w.message)[:60] for w in caught]
        return found

    row["accuracy"] = value(sklearn.metrics.accuracy_score)
    row["f1"] = (value(sklearn.metrics.f1_score) if classes == 2 else
                 dict(library="must be refused"))
    row["f1_macro"] = value(lambda g, p: sklearn.metrics.f1_score(g, p, average="macro"))
    row["matthews"] = value(sklearn.metrics.matthews_corrcoef)
    return row


def regression(name, gold, pred):
    row = dict(name=name, gold=gold, pred=pred)
    for key, function in (("pearson", scipy.stats.pearsonr), ("spearman", scipy.stats.spearmanr)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = float(function(gold, pred)[0])
        row[key] = (dict(library="undefined") if np.isnan(value) else
                    dict(library=value, tolerance=1e-12))
    return row


def write_lines(file, rows):
    # Writes numpy's numbers as floats.
    file.write_text("".join(json.dumps(row, default=float) + "\n" for row in rows))


def main():
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).parent / "metrics")
    (folder / "corpora").mkdir(parents=True, exist_ok=True)
    references = lines(1, 60)
    systems = {"streets": noisy(references, 2), "streets_b": noisy(references, 3),
               "streets_c": noisy(noisy(references, 4), 5)}
    (folder / "corpora/streets.ref").write_text("\n".join(references) + "\n")
    for name, hyps in systems.items():
        (folder / f"corpora/{name}.hyp").write_text("\n".join(hyps) + "\n")
    plain_odd = [text for text in ODD if "\n" not in text]
    odd_refs = [plain_odd[::-1], [text if i % 3 else None for i, text in enumerate(plain_odd)]]
    write_lines(folder / "corpora/odd.jsonl",
                [dict(hyp=h, refs=list(r)) for h, *r in zip(plain_odd, *odd_refs)])
    rows = []
    for corpus, hyps, refs in (("streets", systems["streets"], [references]),
                               ("odd", plain_odd, odd_refs)):
        rows += [dict(corpus=corpus, **row) for row in corpus_cases(hyps, refs)]
    write_lines(folder / "bleu_corpus.jsonl", rows)
    tiny = [("identical", ["A cat sat down here."], [["A cat sat down here."]]),
            ("nothing matches", ["one two three four"], [["five six seven eight"]]),
            ("shorter", ["the cat sat on"], [["the cat sat on the mat today"]]),
            ("clipped", ["the the the the the"], [["the cat is on the mat"]]),
            ("nearest reference", ["a b c d e"], [["a b c d"], ["a b c d e f"]])]
    write_lines(folder / "bleu_tiny.jsonl",
                [dict(name=name, hyps=hyps, refs=refs,
                      cases=list(corpus_cases(hyps, refs, ("13a", "char"))))
                 for name, hyps, refs in tiny])
    write_lines(folder / "bleu_sentences.jsonl",
                [sentence_row(f"streets:{i}", systems["streets"][i], [references[i], references[i + 1]])
                 for i in range(10)])
    write_lines(folder / "tokenize.jsonl",
                [tokenize_row(text) for text in ODD + references[:8] + systems["streets"][:8]])
    write_lines(folder / "significance.jsonl", significance(systems, references))

    pairs = [rouge_pair(f"streets:{i}", references[i], systems["streets_c"][i]) for i in range(24)]
    pairs += [rouge_pair(f"summary:{i}", "\n".join(references[i:i + 3]),
                         "\n".join(systems["streets_b"][i:i + 2])) for i in range(8)]
    write_lines(folder / "rouge_pairs.jsonl", pairs)
    groups = {name: rouge_corpus([pair for pair in pairs if pair["id"].startswith(name)])
              for name in ("streets", "summary")}
    (folder / "rouge_corpus.json").write_text(json.dumps(groups, indent=1) + "\n")
    multi = []
    for i in range(8):
        targets = references[i:i + 3]
        row = dict(id=f"streets:{i}", targets=targets, prediction=systems["streets"][i])
        for mode, scorer in scorers().items():
            row[mode] = {t: rouge_values(s)
                         for t, s in scorer.score_multi(targets, row["prediction"]).items()}
        multi.append(row)
    write_lines(folder / "rouge_multi.jsonl", multi)
    stemmer = PorterStemmer()
    write_lines(folder / "rouge_tokenize.jsonl",
                [dict(text=text, plain=rouge_score.tokenize.tokenize(text, None),
                      stem=rouge_score.tokenize.tokenize(text, stemmer))
                 for text in ODD + references[:8]])
    words = sorted({word for text in references for word in rouge_score.tokenize.tokenize(text, None)
                    if word.isalpha()} |
                   set("""skies dying lying tying news innings inning outings cannings howe proceed
                   exceed succeed generalisations oscillators happily relational conditional
                   vietnamization decisiveness hopefulness electricity adjustment controlling
                   agreed plastered motoring hopping falling hissing failing filing sky caresses
                   ponies ties cats feed bled sized probate rate cease roll triplicate formalize
                   electrical hopeful goodness revival allowance inference airliner gyroscopic
                   irritant replacement dependent adoption communism activate homologous effective
                   bowdlerize""".split()))
    (folder / "porter_stems.tsv").write_text("#word\tstem\ttoken\n" + "".join(
        f"{word}\t{stemmer.stem(word)}\t{rouge_score.tokenize.tokenize(word, stemmer)[0]}\n"
        for word in words))

    random = np.random.default_rng(9)
    label_cases = []
    for classes, n in ((2, 12), (2, 40), (3, 30), (4, 25)):
        gold = random.integers(0, classes, n)
        pred = np.where(random.random(n) < 0.7, gold, random.integers(0, classes, n))
        label_cases.append(classification(f"{classes} classes, {n}", gold.tolist(), pred.tolist(),
                                          classes))
    label_cases += [classification("no positive", [0, 0, 0], [0, 0, 0], 2),
                    classification("one side constant", [0, 1, 1, 0], [1, 1, 1, 1], 2),
                    classification("opposite", [0, 1, 0, 1], [1, 0, 1, 0], 2)]
    write_lines(folder / "glue_classification.jsonl", label_cases)
    number_cases = []
    for n in (2, 5, 30):
        gold = np.round(random.random(n) * 5, 1)
        number_cases.append(regression(f"{n} numbers", gold.tolist(),
                                       (gold * 0.7 + random.random(n)).tolist()))
    number_cases += [regression("ties", [1.0, 1.0, 2.0, 3.0, 3.0], [2.0, 2.0, 2.0, 5.0, 4.0]),
                     regression("constant", [1.0, 2.0, 3.0], [4.0, 4.0, 4.0])]
    write_lines(folder / "glue_regression.jsonl", number_cases)
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            print(f"{file.stat().st_size:7} {file.relative_to(folder)}")


if __name__ == "__main__":
    main()
