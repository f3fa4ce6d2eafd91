from ..metrics import TER


class TercomTokenizer:
    """petlab prints no tokens. A text and its tokens, which are tokenized no further, are one text to TER
    exactly where the tokens are right: no edits, and as many words."""

    def __init__(self, normalized=False, no_punct=False, asian_support=False, case_sensitive=False):
        self.options = {"normalized": normalized, "no_punct": no_punct, "asian_support": asian_support,
                        "case_sensitive": case_sensitive}

    def __call__(self, text):
        return Tokens(text, self.options)


class Tokens:
    def __init__(self, text, options):
        self.text, self.options = text, options

    def __eq__(self, wanted):
        if not self.text and not wanted:
            return True
        # The wanted tokens as words; the text by its options. Both ways, as TER counts by references.
        told = TER(**self.options).corpus_score([self.text], [[wanted]])
        if told.num_edits != 0:
            return False
        return int(told.ref_length) == len(wanted.split())
