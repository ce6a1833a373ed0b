"""A language model whose probabilities are known: words of a fixed lexicon, likelier if the prompt mentions them."""

from __future__ import annotations

import math
import re

from tracebridge.confidence.surrogate import ScoredToken

MENTIONED, UNMENTIONED = 0.9, 0.01
_TOKEN = re.compile(r"\w+|\W", re.ASCII)


class MentionModel:
    """A word has probability .9 if it stands in the text before it, else .01; punctuation is certain.

    ``overrides`` gives the probability of single words wherever they are scored.
    """

    def __init__(self, overrides=None):
        self.overrides = overrides or {}
        self.prompts = []

    def score(self, prompt, continuation):
        self.prompts.append(prompt)
        tokens = []
        for match in _TOKEN.finditer(continuation):
            word, before = match.group(), prompt + continuation[: match.start()]
            if not word[0].isalnum():
                p = 1.0
            elif word in self.overrides:
                p = self.overrides[word]
            else:
                p = MENTIONED if re.search(rf"\b{re.escape(word)}\b", before) else UNMENTIONED
            tokens.append(ScoredToken(word, math.log(p) if p > 0 else -math.inf, *match.span()))
        return tokens
