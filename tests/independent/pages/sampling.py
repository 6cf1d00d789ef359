"""spec/sampling.md: from a row of logits to a token. Integers, but for sampling.6."""

import math
from dataclasses import dataclass
from fractions import Fraction

from arithmetic.library import LIBRARY, f32
from arithmetic.mutation import active

MASK = 2**32 - 1


@dataclass(frozen=True)
class Parameters:
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    min_p: float = 0.0
    epsilon_cutoff: float = 0.0
    stream: int = 0

    @classmethod
    def of(cls, given):
        """Those of a receipt's `input`."""
        return cls(
            given["do_sample"], f32(float(given["temperature"])), given["top_k"],
            f32(float(given["top_p"])), int(given["seed"]),
            f32(float(given.get("min_p", 0))), f32(float(given.get("epsilon_cutoff", 0))),
            int(given.get("stream", "0")),
        )  # fmt: skip


def fixed40(x):
    """sampling.1; round() of a fraction takes ties to even."""
    exact = Fraction(x) * 2**40
    return math.floor(exact) if active("fixed40_truncates") else round(exact)


def philox(counter, key):
    """sampling.2"""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(7 if active("philox_7_rounds") else 10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        if active("philox_swaps_keys"):
            k0, k1 = k1, k0
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def random_number(seed, position, stream=0):
    """sampling.3"""
    counter = (position & MASK, position >> 32, stream & MASK, stream >> 32)
    if active("counter_is_stream_first"):
        counter = counter[2:] + counter[:2]
    c0, c1, _, _ = philox(counter, (seed & MASK, seed >> 32))
    return c1 + (c0 << 32) if active("random_words_swap") else c0 + (c1 << 32)


def weight(logit, greatest, temperature):
    """sampling.6"""
    if logit == greatest:
        return 2**40
    d = f32(f32(logit - greatest) / temperature)
    if active("temperature_divides_first"):
        d = f32(f32(logit / temperature) - f32(greatest / temperature))
    if active("weights_in_binary64"):
        return fixed40(math.exp(d))
    return fixed40(LIBRARY.law_exp(d))


def probable(weights, parameters):
    """sampling.18 and sampling.19"""
    least, epsilon = fixed40(parameters.min_p), fixed40(parameters.epsilon_cutoff)
    whole = sum(weights.values())
    if active("min_p_of_all"):
        least = least * whole >> 40
    weights = {i: w for i, w in weights.items() if w >= min(least, 2**40)}
    if not active("epsilon_before_min_p"):
        whole = sum(weights.values())
    if active("epsilon_of_the_best"):
        whole = 2**40
    return {i: w for i, w in weights.items() if w == 2**40 or w << 40 >= epsilon * whole}


def remaining(logits, parameters):
    """The tokens that may be drawn, with their weights."""
    return probable(likely(logits, parameters), parameters)


def likely(logits, parameters):
    """sampling.5 to sampling.8"""
    order = [i for i, x in enumerate(logits) if x == x and x != -math.inf]
    if not order:
        raise ValueError("no logit is left to draw from")
    order.sort(key=lambda i: (-logits[i], -i if active("ties_to_highest_index") else i))
    greatest = logits[order[0]]
    before = order
    if parameters.top_k and not active("top_k_off"):
        order = order[: parameters.top_k + active("top_k_one_more")]
    weights = {i: weight(logits[i], greatest, parameters.temperature) for i in order}
    if parameters.top_p < 1:
        total, p, so_far = sum(weights.values()), fixed40(parameters.top_p), 0
        if active("top_p_before_top_k"):
            total = sum(weight(logits[i], greatest, parameters.temperature) for i in before)
        for n, i in enumerate(order):
            so_far += weights[i]
            if (so_far << 40) >= p * total:
                cut = n if active("top_p_leaves_last_out") and n > 0 else n + 1
                return {i: weights[i] for i in order[:cut]}
    return weights


def draw(logits, parameters, position):
    """sampling.9, or sampling.5 without sampling"""
    if not parameters.do_sample:
        kept = [i for i, x in enumerate(logits) if x == x and x != -math.inf]
        return min(kept, key=lambda i: (-logits[i], i))
    weights = remaining(logits, parameters)
    total = sum(weights.values())
    u = random_number(parameters.seed, position, 0 if active("one_stream") else parameters.stream)
    r = u % total if active("remainder_for_product") else u * total >> 64
    so_far = 0
    for i in weights if active("walks_by_weight") else sorted(weights):
        so_far += weights[i]
        if so_far >= r if active("sum_reaches") else so_far > r:
            return i
    raise AssertionError("sums end above r")
