#!/usr/bin/env python3
"""Recomputes the hashes of receipts with the standard library alone: `receipt.py FILE...`.

It says what spec/receipt.md says in clauses 4 to 8, 13, 27 and 28, and no more: it shows that a
receipt or a batch is whole, not that its answer is right. `invar verify` shows that. Signatures are
named and not checked. Exit code 0: all hashes fit; 1: some does not; 2: a file is not a receipt.
"""

import hashlib
import json
import sys

FORMATS = ("invar-receipt 1", "invar-receipt 2", "invar-tensor-receipt 1")
BATCH = "invar-receipt-batch 1"
SECTIONS = ("model", "program", "input", "output")
SALTED = ("input.prompt", "input.tokens", "input.chat", "input.audio", "output.logits")
WITHHELD = ("input.salt", *SALTED)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def compact(value):  # receipt.4
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def leaf(path, value):  # receipt.5
    return sha256(path.encode(), b"=", compact(value))


def merkle_root(leaves):  # receipt.6
    level = [sha256(b"\0", d) for d in leaves]
    while len(level) > 1:
        pairs = [sha256(b"\1", a, b) for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else sha256()


def bound_leaves(receipt):  # receipt.5, in the order of receipt.2
    fields = {"schema": receipt["schema"]}
    for section in SECTIONS:
        for key, value in receipt[section].items():
            fields[f"{section}.{key}"] = value
    # Members may come in any order; the leaves come in that of receipt.2.
    order = [name for name in ORDER if name in fields]
    leaves = {name: leaf(name, fields[name]) for name in order + sorted(set(fields) - set(order))}
    if "salt" not in receipt["input"]:
        return leaves
    if receipt["input"]["salt"] is None:  # receipt.27: withheld; the digests are all there is
        withheld = {
            name: bytes.fromhex(receipt["digests"][name]) for name in WITHHELD if name in fields
        }
        return {name: withheld.get(name, leaves[name]) for name in leaves}
    salt = bytes.fromhex(receipt["input"]["salt"])
    for name in filter(fields.__contains__, SALTED):
        text = name.encode()
        leaves[name] = sha256(text, b"=", compact(fields[name]), sha256(salt, text))
    return leaves


ORDER = """schema model.name model.revision model.weights model.config model.tokenizer
    model.chat_template model.tensors model.text_of model.adapter_name model.adapter program.recipe
    program.digest program.numerics program.profile program.operation_set program.unicode
    input.prompt input.tokens input.max_new_tokens input.stop_tokens input.do_sample
    input.temperature input.top_k input.top_p input.seed input.min_p input.epsilon_cutoff
    input.stream input.repetition_penalty input.logit_bias input.frequency_penalty
    input.presence_penalty input.no_repeat_ngram_size input.bad_words_ids input.min_new_tokens
    input.forced_bos_token_id input.forced_eos_token_id input.remove_invalid_values
    input.suppress_tokens input.begin_suppress_tokens input.short_circuit_length
    input.short_circuit_token input.allowed_token_ids input.timestamp_begin
    input.max_initial_timestamp_index input.structured_outputs input.stop_token_ids input.ignore_eos
    input.stop_strings input.stop_in_answer input.chat input.decoder_tokens input.audio
    input.audio_start input.previous input.salt output.text output.finish_reason output.tokens
    output.logits""".split()


def execution_leaves(receipt):  # receipt.8
    entries = sorted(receipt["execution"].items(), key=lambda entry: entry[0].encode())
    return {key: leaf("execution." + key, value) for key, value in entries}


def weights_root(tensors):  # plan.8
    lines = []
    for t in tensors:
        name = t["name"].encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        name = b"".join(b"\\x%02x" % c if c < 32 or c == 127 else bytes([c]) for c in name)
        shape = ", ".join(map(str, t["shape"]))
        lines.append(
            b'"%s" %s [%s] sha256 %s\n'
            % (name, t["dtype"].encode(), shape.encode(), t["sha256"].encode())
        )
    return merkle_root([sha256(line) for line in lines])


def findings(receipt):
    """The places whose stated digest is not the one of their content."""
    bound, execution = bound_leaves(receipt), execution_leaves(receipt)
    stated = {
        "receipt_hash": (merkle_root(bound.values()), receipt["receipt_hash"]),
        "execution_hash": (merkle_root(execution.values()), receipt["execution_hash"]),
        "model.weights": (weights_root(receipt["model"]["tensors"]), receipt["model"]["weights"]),
    }
    for where, mine, theirs in (
        ("digests", bound, receipt["digests"]),
        ("execution_digests", execution, receipt["execution_digests"]),
    ):
        for key in sorted(set(mine) | set(theirs)):
            stated[f"{where}.{key}"] = (mine.get(key, b""), theirs.get(key, "nothing"))
    return [
        f"{place}: the receipt says {theirs}, this machine computes {mine.hex() or 'nothing'}"
        for place, (mine, theirs) in stated.items()
        if mine.hex() != theirs
    ]


def batch_findings(batch):  # receipt.28
    hashes = [bytes.fromhex(entry["receipt_hash"]) for entry in batch["receipts"]]
    root = merkle_root([leaf("schema", batch["schema"]), *hashes]).hex()
    stated = batch["batch_hash"]
    return (
        []
        if root == stated
        else [f"batch_hash: the receipt says {stated}, this machine computes {root}"]
    )


def read(path):
    with open(path, "rb") as file:
        receipt = json.loads(file.read())
    if receipt["schema"] not in (*FORMATS, BATCH):
        raise ValueError(f"format {receipt['schema']!r} is not known here")
    return receipt


def main(paths):
    code = 0 if paths else 2
    if not paths:
        print(__doc__, file=sys.stderr)
    for path in paths:
        try:
            receipt = read(path)
            is_batch = receipt["schema"] == BATCH
            found = batch_findings(receipt) if is_batch else findings(receipt)
            stated = receipt["batch_hash" if is_batch else "receipt_hash"]
            signers = [one["key"] for one in receipt.get("signatures", ())]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            print(f"{path}: not a receipt: {error!r}", file=sys.stderr)
            code = 2
            continue
        for line in found:
            print(f"{path}: {line}")
        if found:
            code = max(code, 1)
        else:
            print(f"{path}: {stated}, every hash fits")
        for key in signers:
            print(f"{path}: a signature by {key}, not checked here")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
