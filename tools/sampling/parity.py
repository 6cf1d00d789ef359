#!/usr/bin/env python3
"""Compares the settings of a generation with transformers, on random logits and tokens.

    python3 tools/sampling/parity.py [CASES]

Needs transformers and torch. The left side is tools/sampling/vectors.py, which the C++ equals byte
for byte on src/sample/processor_vectors.txt; the right side is the list that transformers'
generate() makes of the same generation_config. Processed logits and greedy tokens must be equal.
For draws the tokens that remain must be equal, but for those that lie within 2^-16 of a
threshold: transformers sums probabilities in binary32. Exit 1 where a case differs.
"""

import random
import sys
import warnings

import numpy as np
import torch
from transformers import GenerationConfig, GenerationMixin
from vectors import choices, greedy, processed, random_generation, random_settings

WARPERS = ("temperature", "top_k", "top_p", "min_p", "epsilon_cutoff")
NEAR = 2**-16


class Asked(GenerationMixin):
    """What _get_logits_processor reads of a model."""

    class config:
        is_encoder_decoder = False


def processors(settings, prompt, stop, limit, do_sample):
    """transformers' list for a decoder."""
    given = {k: v for k, v in settings.items() if k not in ("seed", "do_sample")}
    if "repetition_penalty" in given:
        given["repetition_penalty"] = float(given["repetition_penalty"])
    given |= {"do_sample": do_sample, "max_length": len(prompt) + limit}
    config = GenerationConfig()
    for name, value in ({"top_k": 0} | given).items():
        setattr(config, name, value)  # its constructor refuses to force what is suppressed
    config._eos_token_tensor = torch.tensor(stop) if stop else None
    return GenerationMixin._get_logits_processor(
        Asked(), config, input_ids_seq_length=len(prompt), device="cpu"
    )


def near_threshold(row, settings, only_here, only_there):
    """Whether every token that one side alone keeps has a probability at the edge of a
    threshold."""
    t = settings.get("temperature", 1)
    p = np.float64(row) / t
    p = np.exp(p - np.nanmax(p))
    top_k = settings.get("top_k", 0)
    least = np.sort(row)[-top_k] if 0 < top_k < len(row) else -np.inf
    for i in only_here ^ only_there:
        if top_k and row[i] == least:
            continue  # transformers keeps every token that equals the last of top_k
        kept = p[row >= least]
        whole, above = kept.sum(), kept[kept > p[i]].sum()
        edges = [
            abs(p[i] - settings.get("min_p", 0)),
            abs(p[i] / whole - settings.get("epsilon_cutoff", 0)),
            abs(above / whole - settings.get("top_p", 2)),
            abs((above + p[i]) / whole - settings.get("top_p", 2)),
        ]
        if p[i] < 2**-30 or min(edges) < NEAR:
            continue
        return False
    return True


def differs(settings, prompt, answer, stop, limit, logits):
    """What is other, or None."""
    words = [w for w in settings.pop("bad_words_ids", []) if w not in [[s] for s in stop]]
    if words:  # transformers leaves stop tokens out, and fails where no word is left
        settings["bad_words_ids"] = words
    row = processed(logits, settings, prompt, answer, stop, limit)
    ids, scores = torch.tensor([prompt + answer]), torch.tensor(np.array([logits]))
    theirs = processors(settings, prompt, stop, limit, False)(ids, scores.clone())[0].numpy()
    row = np.array(row, dtype=np.float32)
    if not np.array_equal(row.view(np.uint32), theirs.view(np.uint32)):
        return f"logits {row} are {theirs} there"
    if not (row > -np.inf).any():
        return None  # an error here
    if greedy(row) != int(np.argmax(theirs)):
        return f"greedy token {greedy(row)} is {int(np.argmax(theirs))} there"
    here, there = kept_tokens(settings, row, ids, scores, prompt, stop, limit)
    # Of equal logits the lowest token comes first here, any there.
    equal = sorted(row[list(here)]) == sorted(row[list(there)])
    if not equal and not near_threshold(row, settings, here - there, there - here):
        return f"remaining {sorted(here)} are {sorted(there)} there"
    return None


def kept_tokens(settings, row, ids, scores, prompt, stop, limit):
    """Of both sides, those that may be drawn."""
    t, p, m, e = (
        np.float32(settings.get(n, d))
        for n, d in (("temperature", 1), ("top_p", 1), ("min_p", 0), ("epsilon_cutoff", 0))
    )
    here = {i for i, _ in choices(list(row), t, settings.get("top_k", 0), p, m, e)}
    warped = processors(settings, prompt, stop, limit, True)(ids, scores.clone())[0]
    probabilities = torch.softmax(warped.double(), -1).numpy()
    if np.isnan(probabilities).any():  # the temperature made every logit -Inf: no answer there
        return here, here
    there = {i for i in range(len(row)) if probabilities[i] > 2**-41}
    return here, there


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    warnings.simplefilter("ignore")
    rng, found, sampled = random.Random(5), 0, 0
    for n in range(count):
        vocab = rng.choice([9, 30, 200])
        settings, prompt, answer, stop, limit = random_generation(rng, vocab, random_settings)
        logits = [np.float32(rng.gauss(0, rng.choice([1, 3, 8]))) for _ in range(vocab)]
        for special in (-np.inf, 0.0):
            if rng.random() < 0.1:
                logits[rng.randrange(vocab)] = np.float32(special)
        sampled += any(w in settings for w in WARPERS)
        if what := differs(settings, prompt, answer, stop, limit, logits):
            found += 1
            print(f"case {n}: {settings} {prompt} {answer} {stop} {limit}: {what}")
    print(f"{count} cases, {sampled} with settings of draws: {found} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
