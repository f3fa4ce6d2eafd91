"""Texts written for the golden values: sentences, and difficult texts for tokenizers."""

SENTENCES = [
    "The old lighthouse near the harbour was painted again before the winter.",
    "Her brother's letter had lain in the drawer for twenty-two years.",
    "Nobody expected the 3.5-ton crane to be repaired by 10:30 on Sunday!",
    "Did the committee (all seven of them) really agree on the library's gates?",
    "In 1999, prices rose 4% to $1,250.00; since then they have fallen.",
    "A \"quiet\" street under Europe's largest bridge isn't quiet at all.",
    "Running, runners, ran: the runner's running shoes were rerun-proof.",
    "We've told you: they'd come, I'm sure, and he'll bring what she's got.",
]
LETTERS = [
    "", " ", "  ", ".", "a", "A b", "\ttab and\nline", "trailing  ", "  leading", "naïve café Über",
    "Ångström e\u0301clair", "東京は大きい", "中文 text 混合", "한국어", "Привет, мир", "İstanbul ß ﬁ",
    "emoji 😀👩‍🚀 here", "a\u200bzero width", "soft\u00adhyphen", "nbsp\u00a0here", "\u2028line",
    "control\u0001char", "x\ufffdy", "[CLS] and [SEP] in text", "<s> and </s> and <mask> in text",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaa", "1234567890", "!?...", "C++ & C#", "don't DON'T", "\u00bd \u2460 \u2167",
]
