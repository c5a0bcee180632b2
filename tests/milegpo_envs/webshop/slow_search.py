"""The search as its formula reads, product by product, for comparison."""

import math
from collections import Counter

import numpy as np

from milegpo_envs.webshop.search import document
from milegpo_envs.webshop.words import Analyzer

F = np.float32


class SlowSearch:
    def __init__(self, products):
        analyze = Analyzer()
        self.products = products
        self.counts = [Counter(analyze(document(product))) for product in products]
        self.lengths = [counts.total() for counts in self.counts]

    def top(self, query, k=50):
        scores = {i: self.score(query, i) for i in range(len(self.products))}
        found = [i for i, score in scores.items() if score > 0]
        return sorted(found, key=lambda i: (-scores[i], self.products[i].asin))[:k]

    def score(self, query, i):
        with_words = sum(length > 0 for length in self.lengths)
        mean = F(sum(self.lengths) / with_words)
        k1, b, one = F(0.9), F(0.4), F(1)
        norm = one / (k1 * ((one - b) + b * F(as_kept_in_a_byte(self.lengths[i])) / mean))
        total = 0.0
        for term, repeats in Counter(Analyzer()(query)).items():
            have = sum(term in counts for counts in self.counts)
            if not self.counts[i][term]:
                continue
            idf = F(math.log(1 + (with_words - have + 0.5) / (have + 0.5)))
            weight = F(repeats) * idf
            total += float(weight - weight / (one + F(self.counts[i][term]) * norm))
        return F(total)


def as_kept_in_a_byte(length):
    """SmallFloat.intToByte4 and back: 4 significant bits of what exceeds 24."""
    if length < 24:
        return length
    rest, lost = length - 24, 0
    while rest >= 16:
        rest, lost = rest // 2, lost + 1
    return 24 + rest * 2**lost
