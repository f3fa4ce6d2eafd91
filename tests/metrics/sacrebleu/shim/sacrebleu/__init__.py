"""What sacrebleu's own tests call, answered by `petlab score` (../../own_tests.py runs them).

Each call is one run of the program that PETLAB names; nothing is computed here.
"""
from . import compat, metrics  # noqa: F401
from .compat import corpus_bleu, corpus_chrf, raw_corpus_bleu, sentence_bleu, sentence_chrf  # noqa: F401
