"""A second reading of spec/receipt.md, with nothing but json and hashlib: digests, root and seal of
a receipt."""

import copy
import hashlib
import json

SECTIONS = ("model", "program", "input", "output")
# receipt.24: absent where they have no effect.
SETTINGS = """min_p epsilon_cutoff stream repetition_penalty
    logit_bias frequency_penalty presence_penalty no_repeat_ngram_size bad_words_ids min_new_tokens
    forced_bos_token_id forced_eos_token_id remove_invalid_values suppress_tokens
    begin_suppress_tokens short_circuit_length short_circuit_token allowed_token_ids
    timestamp_begin max_initial_timestamp_index structured_outputs stop_token_ids ignore_eos stop_strings stop_in_answer chat""".split()
OPTIONAL = (
    *(f"input.{name}" for name in SETTINGS),
    "input.decoder_tokens",
    "input.audio",
    "input.audio_start",
    "model.text_of",
    "model.adapter_name",
    "model.adapter",
    "input.previous",
    "input.salt",
)
SALTED = (  # receipt.27
    "input.prompt", "input.tokens", "input.chat", "input.audio", "output.logits",
)  # fmt: skip


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf(path, value):
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return sha256(path.encode(), b"=", compact.encode())


def merkle_root(leaves):
    level = [sha256(b"\0", d) for d in leaves]
    while len(level) > 1:
        pairs = [sha256(b"\1", a, b) for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else sha256()


def leaves(receipt):
    paths = {"schema": receipt["schema"]}
    paths |= {f"{s}.{key}": value for s in SECTIONS for key, value in receipt[s].items()}
    digests = {path: leaf(path, value) for path, value in paths.items()}
    if "salt" in receipt["input"]:  # receipt.27
        salt = bytes.fromhex(receipt["input"]["salt"])
        for path in filter(paths.__contains__, SALTED):
            text = json.dumps(paths[path], ensure_ascii=False, separators=(",", ":"))
            key = sha256(salt, path.encode())
            digests[path] = sha256(path.encode(), b"=", text.encode(), key)
    return digests


def execution_leaves(receipt):
    return {
        key: leaf("execution." + key, value) for key, value in sorted(receipt["execution"].items())
    }


def seal(receipt):
    """Sets digests and hashes to those of the content: what a sender can do who changes a claim."""
    bound, informational = leaves(receipt), execution_leaves(receipt)
    receipt["digests"] = {path: d.hex() for path, d in bound.items()}
    receipt["receipt_hash"] = merkle_root(bound.values()).hex()
    receipt["execution_digests"] = {key: d.hex() for key, d in informational.items()}
    receipt["execution_hash"] = merkle_root(informational.values()).hex()
    return receipt


def reseal(receipt):
    """What a forger can do: a changed receipt whose own digests and hashes all fit."""
    return seal(copy.deepcopy(receipt))


def put(tree, path, value):
    """The tree with another value at a path."""
    tree = copy.deepcopy(tree)
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return tree
