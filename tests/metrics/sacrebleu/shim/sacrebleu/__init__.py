"""The functions that sacrebleu's own tests call, computed by `petlab score` (../../own_tests.py runs them).

Each call runs the program in the environment variable PETLAB once.
"""
from . import compat, metrics  # noqa: F401
from .compat import corpus_bleu, corpus_chrf, raw_corpus_bleu, sentence_bleu, sentence_chrf  # noqa: F401
