#!/usr/bin/env python3
"""The same computation, asked in different ways: PyTorch's bits and Invar's.

python examples/why_bits_differ.py [--json]

Each row computes one result in several ways that mathematics calls equal: with 1, 2 and more
threads, alone and in a batch, whole and in pieces. It prints how many different results came out,
as SHA-256 of the bytes. PyTorch's count depends on this machine and may be 1 on another; Invar's is
1 everywhere, and so is its digest. docs/concepts/why-bits-differ.md explains each row."""

import argparse
import hashlib
import json

import invar
import invar.ops as ops
import numpy as np
import torch

THREADS = (1, 2, 3, 4)


def made(*shape, seed=0):
    """Floats of [-1, 1), the same on every machine."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32) * 2 - 1


def digest(result):
    return hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:16]


def by_threads(compute):
    """The result with each number of PyTorch's threads."""
    before = torch.get_num_threads()
    for threads in THREADS:
        torch.set_num_threads(threads)
        yield compute()
    torch.set_num_threads(before)


def sum_by_threads():
    x = made(1_000_003)
    theirs = by_threads(lambda: torch.from_numpy(x).sum())
    yield from (("PyTorch", one) for one in theirs)
    for threads in THREADS:
        invar.set_threads(threads)
        yield "Invar", ops.sum(x)
    invar.set_threads(0)


def row_in_a_batch():
    x, w = made(64, 1000), made(1000, 500, seed=1)
    for rows in (1, 2, 7, 8, 64):
        yield "PyTorch", (torch.from_numpy(x[:rows]) @ torch.from_numpy(w))[0]
        yield "Invar", ops.matmul(x[:rows], w)[0]


def softmax_in_a_batch():
    x = made(16, 4099) * 10
    for rows in (1, 3, 16):
        yield "PyTorch", torch.softmax(torch.from_numpy(x[:rows]), -1)[0]
        yield "Invar", ops.softmax(x[:rows], dim=-1)[0]


def last_query_of_attention():
    """A prompt at once, or token by token with a cache: the last token's row."""
    q, k, v = (made(1, 4, 96, 64, seed=s) for s in range(3))
    for first in (0, 60, 95):
        part = q[:, :, first:]
        mask = np.tril(np.ones((96, 96), dtype=bool))[first:]
        theirs = torch.nn.functional.scaled_dot_product_attention(
            *map(torch.from_numpy, (part, k, v)), attn_mask=torch.from_numpy(mask)
        )
        yield "PyTorch", theirs[0, :, -1]
        ours = ops.scaled_dot_product_attention(part, k, v, attn_mask=mask)
        yield "Invar", np.asarray(ours)[0, :, -1]


ROWS = {
    "a sum of 1,000,003 numbers, by threads": sum_by_threads,
    "a row of a matrix product, alone and in batches": row_in_a_batch,
    "a row of softmax, alone and in batches": softmax_in_a_batch,
    "the last token of attention, prompts in pieces": last_query_of_attention,
}


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    ask.add_argument("--json", action="store_true", help="the digests as JSON")
    given = ask.parse_args()
    found = {}
    for title, ways in ROWS.items():
        digests = {"PyTorch": [], "Invar": []}
        for who, result in ways():
            digests[who].append(digest(np.asarray(result)))
        found[title] = digests
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for title, digests in found.items():
        print(title)
        for who, all_ in digests.items():
            different = list(dict.fromkeys(all_))
            print(f"  {who:8} {len(all_)} ways, {len(different)} results: {' '.join(different)}")


if __name__ == "__main__":
    main()
