"""receipt.6: Merkle roots."""

import hashlib

from arithmetic.mutation import active


def sha256(data):
    return hashlib.sha256(data).digest()


def merkle_root(leaves):
    leaf = b"" if active("merkle_leaves_unmarked") else b"\x00"
    inner = b"\x00" if active("merkle_nodes_marked_as_leaves") else b"\x01"
    if not leaves:
        return sha256(b"")
    level = [sha256(leaf + d) for d in leaves]
    while len(level) > 1:
        above = [sha256(inner + a + b) for a, b in zip(level[::2], level[1::2])]
        if len(level) % 2:
            last = level[-1]
            above.append(sha256(inner + last + last) if active("merkle_repeats_odd_node") else last)
        level = above
    return level[0]
