from .metrics import BLEU, CHRF


def corpus_bleu(hypotheses, references, smooth_method="exp", smooth_value=None, force=False, lowercase=False,
                tokenize="13a", use_effective_order=False):
    return BLEU(lowercase=lowercase, tokenize=tokenize, smooth_method=smooth_method, smooth_value=smooth_value,
                effective_order=use_effective_order).corpus_score(hypotheses, references)


def raw_corpus_bleu(hypotheses, references, smooth_value=None):
    return corpus_bleu(hypotheses, references, smooth_method="floor", smooth_value=smooth_value, tokenize="none",
                       use_effective_order=True)


def sentence_bleu(hypothesis, references, smooth_method="exp", smooth_value=None, lowercase=False, tokenize="13a",
                  use_effective_order=True):
    return BLEU(lowercase=lowercase, tokenize=tokenize, smooth_method=smooth_method, smooth_value=smooth_value,
                effective_order=use_effective_order).sentence_score(hypothesis, references)


def corpus_chrf(hypotheses, references, char_order=6, word_order=0, beta=2, remove_whitespace=True,
                eps_smoothing=False):
    return CHRF(char_order=char_order, word_order=word_order, beta=beta, whitespace=not remove_whitespace,
                eps_smoothing=eps_smoothing).corpus_score(hypotheses, references)


def sentence_chrf(hypothesis, references, char_order=6, word_order=0, beta=2, remove_whitespace=True,
                  eps_smoothing=False):
    return CHRF(char_order=char_order, word_order=word_order, beta=beta, whitespace=not remove_whitespace,
                eps_smoothing=eps_smoothing).sentence_score(hypothesis, references)
