#!/usr/bin/env python3
"""An independent reading of spec/sampling.md, and the known answers that both it and the C++ are
tested with.

    python3 tools/sampling/vectors.py

writes three files of src/sample, one case per line, floats as hexadecimal bits, choices as
token:weight or "-" where greedy. Needs numpy.

vectors.txt            do_sample temperature top_k top_p seed position stream | logits | choices ->
                       token
processor_vectors.txt  settings | prompt | answer | stop tokens | max_new_tokens | logits | the
                       logits behind the processors | choices | token (-1: none is left)
logprob_vectors.txt    logits, or "long" with their number and the generator's state | the
                       log-probabilities, or token:log-probability
"""

import math
import random
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[2] / "src/sample"
getcontext().prec = 60
MASK = 0xFFFFFFFF


def f32(bits):
    return np.uint32(bits).view(np.float32)


def bits(x):
    return int(np.float32(x).view(np.uint32))


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def random_u64(seed, position, stream):  # sampling.3
    c = philox(
        [position & MASK, position >> 32, stream & MASK, stream >> 32], [seed & MASK, seed >> 32]
    )
    return c[1] << 32 | c[0]


def nearest_even(x):  # of a Fraction
    return round(x)  # Python's round is to nearest, ties to even, and exact for Fraction


def exp32(x):
    """exp(x) rounded once to fp32, for -40 < x <= 0: the result is normal."""
    e = Fraction(Decimal(float(x)).exp())
    power = 0
    while e < 1:
        e, power = e * 2, power + 1
    m = nearest_even(e * 2**23)
    return Fraction(m, 2**23) / 2**power


def fixed40(x):  # sampling.1
    return nearest_even(Fraction(x) * 2**40)


def choices(logits, temperature, top_k, top_p, min_p=0, epsilon_cutoff=0):
    live = [i for i, l in enumerate(logits) if not np.isnan(l) and l != -np.inf]
    top = max(logits[i] for i in live)
    order = sorted(live, key=lambda i: (-float(logits[i]), i))  # sampling.7
    if top_k > 0:
        order = order[:top_k]

    def weight(i):  # sampling.6
        if logits[i] == top:
            return 2**40
        with np.errstate(all="ignore"):
            d = np.float32(np.float32(logits[i] - top) / temperature)
        return 0 if d < -40 else fixed40(exp32(d))

    order = [(i, weight(i)) for i in order]
    if top_p < 1:  # sampling.8
        whole, share, total, n = sum(w for _, w in order), fixed40(float(top_p)), 0, 0
        while n == 0 or total * 2**40 < share * whole:
            total, n = total + order[n][1], n + 1
        order = order[:n]
    order = [(i, w) for i, w in order if w >= fixed40(float(min_p))]  # sampling.18
    least = fixed40(float(epsilon_cutoff)) * sum(w for _, w in order)  # sampling.19
    order = [(i, w) for i, w in order if w == 2**40 or w * 2**40 >= least]
    return sorted((i, w) for i, w in order if w > 0)


def draw(chosen, u):  # sampling.9
    r = u * sum(w for _, w in chosen) >> 64
    for i, w in chosen:
        r -= w
        if r < 0:
            return i
    raise AssertionError


def greedy(logits):  # sampling.5
    live = [i for i, l in enumerate(logits) if not np.isnan(l) and l != -np.inf]
    return min(live, key=lambda i: (-float(logits[i]), i))


def processed(logits, settings, prompt, answer, stop, limit):  # sampling.10
    out, h, i = list(logits), prompt + answer, len(answer)

    def never(tokens):
        for t in tokens:
            if t < len(out):
                out[t] = np.float32(-np.inf)

    with np.errstate(all="ignore"):
        penalty = np.float32(settings.get("repetition_penalty", 1))
        for t in set(h) if penalty != 1 else ():  # sampling.11
            if t < len(out):
                out[t] = np.float32(out[t] * penalty if out[t] < 0 else out[t] / penalty)
        for t, bias in settings.get("logit_bias", ()):  # sampling.22
            out[t] = np.float32(out[t] + np.float32(bias))
        frequency, presence = (
            np.float32(settings.get(f"{name}_penalty", 0)) for name in ("frequency", "presence")
        )
        for t in set(answer) if frequency or presence else ():  # sampling.23
            if t < len(out):
                share = np.float32(np.float32(answer.count(t)) * frequency)
                out[t] = np.float32(np.float32(out[t] - share) - presence)
    n = settings.get("no_repeat_ngram_size", 0)
    if n:  # sampling.12
        grams = [h[j : j + n] for j in range(len(h) - n + 1)]
        never({g[-1] for g in grams if g[:-1] == h[len(h) - n + 1 :]})
    for *before, last in settings.get("bad_words_ids", ()):  # sampling.13
        if h[len(h) - len(before) :] == before and len(before) <= len(h):
            never([last])
    if i < settings.get("min_new_tokens", 0):  # sampling.14
        never(stop)
    bos, eos = settings.get("forced_bos_token_id"), settings.get("forced_eos_token_id")
    for forced, now in (([bos], bos is not None and len(h) == 1), (eos, eos and i == limit - 1)):
        if now:  # sampling.15
            out = [np.float32(0 if t in forced else -np.inf) for t in range(len(out))]
    if settings.get("remove_invalid_values"):  # sampling.16
        most = np.finfo(np.float32).max
        out = [np.float32(0) if np.isnan(x) else min(max(x, -most), most) for x in out]
    never(settings.get("suppress_tokens", ()))  # sampling.17
    if i == (1 if len(prompt) == 1 and bos is not None else 0):
        never(settings.get("begin_suppress_tokens", ()))
    if (begin := settings.get("timestamp_begin")) is not None:
        out = timed(out, begin, settings.get("max_initial_timestamp_index"), answer, stop)
    return out


def timed(logits, begin, most, answer, stop):  # sampling.32
    out = list(logits)

    def never(tokens):
        for t in tokens:
            if t < len(out):
                out[t] = np.float32(-np.inf)

    times = [t for t in answer if t >= begin]
    last = answer[-1:] == times[-1:] and times != []
    alone = last and len(answer) > 1 and answer[-2] < begin
    never([begin - 1])
    if last and not alone:
        never(range(begin, len(out)))
    if alone:
        never(range(min([*stop, begin])))
    if times:
        never(range(begin, times[-1] + (0 if alone else 1)))
    if not answer:
        never(range(begin))
        if most is not None:
            never(range(begin + most + 1, len(out)))
    weight = dict(choices(out, np.float32(1), 0, 1)) if any(x > -np.inf for x in out) else {}
    words = [w for t, w in weight.items() if t < begin]
    if sum(w for t, w in weight.items() if t >= begin) > max(words, default=0):
        never(range(begin))
    return out


def case(do_sample, temperature, top_k, top_p, seed, position, stream, logits):
    logits = [np.float32(x) for x in logits]
    t, p = np.float32(temperature), np.float32(top_p)
    if do_sample:
        chosen = choices(logits, t, top_k, p)
        token = draw(chosen, random_u64(seed, position, stream))
        shown = " ".join(f"{i}:{w}" for i, w in chosen)
    else:
        token, shown = greedy(logits), "-"
    return (
        f"{int(do_sample)} {bits(t):08x} {top_k} {bits(p):08x} {seed} {position} {stream} | "
        + " ".join(f"{bits(l):08x}" for l in logits)
        + f" | {shown} -> {token}"
    )


def cases():
    rng = random.Random(20)
    inf, nan = np.inf, np.nan
    spec = [1.5, -0.25, 1.5, 0.0, -np.inf, 3.0]  # the worked example of the specification
    yield case(True, 0.8, 4, 0.9, 42, 0, 0, spec)
    yield case(False, 1, 0, 1, 0, 0, 0, spec)
    for special in (
        [0.0, -0.0],
        [-0.0, 0.0],
        [nan, 1, nan, 2],
        [-inf, -inf, -5],
        [inf, 1, inf, -inf, nan],
        [-3e38, 3e38, 3.4e38],
        [7],
        [1e-38, 0, 2e-38],
        [5, 5, 5, 5, 5, 5, 5],
    ):
        yield case(False, 1, 0, 1, 0, 0, 0, special)
        for t, k, p in (
            (1, 0, 1),
            (0.5, 2, 1),
            (1.2e-38, 0, 0.5),
            (3e38, 3, 0.3),
            (1, 1, 1e-30),
            (2, 100, 0.999),
        ):
            yield case(True, t, k, p, 2**64 - 1, 2**63 + 5, 3, special)
    for _ in range(150):
        n = rng.choice([2, 3, 5, 17, 40])
        scale = rng.choice([0.01, 1, 5, 30])
        logits = [rng.gauss(0, scale) for _ in range(n)]
        for _ in range(n // 3):  # ties
            logits[rng.randrange(n)] = logits[rng.randrange(n)]
        yield case(
            rng.random() < 0.95,
            rng.choice([1, 0.8, 0.1, 1.7, 10]),
            rng.choice([0, 0, 1, 2, n // 2 + 1, n, 50]),
            rng.choice([1, 1, 0.95, 0.9, 0.5, 0.01]),
            rng.getrandbits(64),
            rng.choice([0, 1, rng.getrandbits(64)]),
            rng.choice([0, 0, 1, rng.getrandbits(64)]),
            logits,
        )


FLOATS = (
    *("temperature", "top_p", "min_p", "epsilon_cutoff", "repetition_penalty"),
    *("frequency_penalty", "presence_penalty"),
)


def setting(name, value):
    if name in FLOATS:
        return f"{name}={bits(value):08x}"
    if name == "logit_bias":
        return f"{name}={','.join(f'{t}:{bits(bias):08x}' for t, bias in value)}"
    if name == "bad_words_ids":
        return f"{name}={';'.join(','.join(map(str, word)) for word in value)}"
    if isinstance(value, list):
        return f"{name}={','.join(map(str, value))}"
    return f"{name}={int(value)}"


def processor_case(settings, prompt, answer, stop, limit, logits):
    logits = [np.float32(x) for x in logits]
    out = processed(logits, settings, prompt, answer, stop, limit)
    shown, token = "-", -1
    if any(not np.isnan(x) and x != -np.inf for x in out):
        if settings["do_sample"]:
            t, p, m, e = (np.float32(settings.get(n, d)) for n, d in zip(FLOATS, (1, 1, 0, 0)))
            chosen = choices(out, t, settings.get("top_k", 0), p, m, e)
            token = draw(
                chosen, random_u64(settings["seed"], len(answer), settings.get("stream", 0))
            )
            shown = " ".join(f"{i}:{w}" for i, w in chosen)
        else:
            token = greedy(out)
    numbers = ([f"{bits(x):08x}" for x in row] for row in (logits, out))
    words = [[setting(n, v) for n, v in settings.items()]]
    words += [map(str, ids) for ids in (prompt, answer, stop, [limit])]
    words += [*numbers, [shown], [str(token)]]
    return " | ".join(" ".join(w) for w in words)


def random_settings(rng, ids):
    """Each setting in a third of the cases. ids(n): n tokens."""
    some = {
        "repetition_penalty": lambda: rng.choice([1.1, 1.3, 0.5, 2, 1e30, 1e-30]),
        "no_repeat_ngram_size": lambda: rng.choice([1, 2, 2, 3]),
        "bad_words_ids": lambda: [ids(rng.choice([1, 1, 2, 3])) for _ in range(rng.randint(1, 4))],
        "min_new_tokens": lambda: rng.randint(1, 4),
        "forced_bos_token_id": lambda: ids(1)[0],
        "forced_eos_token_id": lambda: ids(rng.choice([1, 2])),
        "remove_invalid_values": lambda: True,
        "suppress_tokens": lambda: ids(rng.randint(1, 4)),
        "begin_suppress_tokens": lambda: ids(rng.randint(1, 4)),
        "temperature": lambda: rng.choice([0.1, 0.8, 1.7]),
        "top_k": lambda: rng.choice([1, 2, 5, 50]),
        "top_p": lambda: rng.choice([0.01, 0.5, 0.9, 0.95]),
        "min_p": lambda: rng.choice([0.01, 0.05, 0.1, 0.5, 1]),
        "epsilon_cutoff": lambda: rng.choice([3e-4, 0.02, 0.1, 0.5]),
    }
    return {name: make() for name, make in some.items() if rng.random() < 1 / 3}


def later_settings(rng, ids):
    """The same of those of sampling.22 to sampling.24."""
    some = {
        "stream": lambda: rng.choice([1, 2, 2**64 - 1]),
        "logit_bias": lambda: [
            (t, rng.choice([-100, 100, 0.1, -1.5, 1.2e-38])) for t in sorted(set(ids(3)))
        ],
        "frequency_penalty": lambda: rng.choice([-2, 2, 0.1, -0.7, 1.2e-38]),
        "presence_penalty": lambda: rng.choice([-2, 2, 0.1, -0.7, 1.2e-38]),
    }
    return {name: make() for name, make in some.items() if rng.random() < 1 / 2}


def timestamp_settings(rng, ids):
    """Those of sampling.32, of tokens half of which are times or more."""
    begin = max(1, ids(1)[0] // 2)
    most = {"max_initial_timestamp_index": rng.choice([0, 1, 2, 9])} if rng.random() < 0.5 else {}
    some = {"suppress_tokens": lambda: ids(2), "temperature": lambda: rng.choice([0.1, 1.7])}
    extra = {name: make() for name, make in some.items() if rng.random() < 1 / 4}
    return {"timestamp_begin": begin} | most | extra


def random_generation(rng, vocab, *makers):
    """Settings and a moment of a generation: (settings, prompt, answer, stop tokens, limit)."""

    def ids(n):
        return [rng.randrange(vocab) for _ in range(n)]

    settings = {"do_sample": rng.random() < 0.7, "seed": rng.getrandbits(64)}
    for make in makers:
        settings |= make(rng, ids)
    few = ids(3)  # so that tokens repeat
    prompt = [rng.choice(few) for _ in range(rng.choice([1, 1, 2, 9]))]
    answer = [rng.choice(few) for _ in range(rng.choice([0, 0, 1, 3, 6]))]
    stop = ids(rng.choice([0, 1, 2]))
    return settings, prompt, answer, stop, len(answer) + rng.choice([1, 1, 2, 5])


def processor_cases():
    yield from random_processor_cases(22, 400, random_settings)
    yield from random_processor_cases(42, 200, random_settings, later_settings)
    yield from random_processor_cases(32, 200, timestamp_settings)


def random_processor_cases(seed, count, *makers):
    rng = random.Random(seed)
    for _ in range(count):
        vocab = rng.choice([4, 9, 30])
        logits = [rng.gauss(0, rng.choice([1, 5])) for _ in range(vocab)]
        for special in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40):
            if rng.random() < 0.1:
                logits[rng.randrange(vocab)] = special
        yield processor_case(*random_generation(rng, vocab, *makers), logits)


def f32_of(x):
    """A Decimal > 0, or below 0, as the nearest normal binary32 number; +0 below all of them."""
    unit = Fraction(2) ** (math.frexp(float(x))[1] - 24)
    rounded = nearest_even(Fraction(x) / unit) * unit
    return np.float32(float(rounded)) if abs(rounded) >= Fraction(2) ** -126 else np.float32(0)


def row_sum(row):  # reduction.1 to reduction.5
    total = np.float32(0)
    for begin in range(0, len(row), 4096):
        lanes = [np.float32(0)] * 256
        for i, x in enumerate(row[begin : begin + 4096]):
            lanes[i % 256] = np.float32(lanes[i % 256] + x)
        stride = 128
        while stride:
            lanes = [np.float32(lanes[j] + lanes[j + stride]) for j in range(stride)]
            stride //= 2
        total = np.float32(total + lanes[0])
    return total


def logprobs(logits):  # softmax.1 to softmax.3, softmax.6, softmax.7
    if any(np.isnan(x) or x == np.inf for x in logits) or max(logits) == -np.inf:
        return [np.float32(np.nan)] * len(logits)
    with np.errstate(all="ignore"):
        d = [np.float32(x - max(logits)) for x in logits]
    weights = [np.float32(0) if x < -200 else f32_of(Decimal(float(x)).exp()) for x in d]
    total = Decimal(float(row_sum(weights))).ln()
    log_sum = f32_of(total) if total else np.float32(0)
    return [np.float32(x - log_sum) for x in d]


def long_row(n, state):
    row = []
    for _ in range(n):
        state = (state * 1664525 + 1013904223) & MASK
        row.append(np.float32((state >> 16) / 2048 - 16))
    return row


def logprob_cases():
    rng = random.Random(42)
    inf, nan = np.inf, np.nan
    rows = [
        [0],
        [0, -0.0],
        [-0.0, 0],
        [1, 1, 1],
        [0, -89.0],
        [0, -87.33654, -87.33655],
        [-inf, 2, -inf],
    ]
    rows += [
        [nan, 1],
        [inf, 1],
        [-inf, -inf],
        [3e38, -3e38],
        [-3e38],
        [1e-40, 0],
        [88, 0, -0.5],
        [0, -16.7],
    ]
    rows += [
        [rng.gauss(0, rng.choice([0.01, 1, 5, 40])) for _ in range(rng.choice([2, 3, 17, 40]))]
        for _ in range(60)
    ]
    for row in rows:
        row = [np.float32(x) for x in row]
        numbers = (" ".join(f"{bits(x):08x}" for x in r) for r in (row, logprobs(row)))
        yield " | ".join(numbers)
    for n, state in ((300, 1), (4096, 2), (4097, 3), (8200, 4)):
        found = logprobs(long_row(n, state))
        some = [0, 1, n // 2, n - 1]
        yield f"long {n} {state} | " + " ".join(f"{t}:{bits(found[t]):08x}" for t in some)


if __name__ == "__main__":
    for name, lines in (
        ("vectors", cases()),
        ("processor_vectors", processor_cases()),
        ("logprob_vectors", logprob_cases()),
    ):
        (HERE / f"{name}.txt").write_text("".join(line + "\n" for line in lines))
