"""spec/receipt.md: the members of a receipt, their hashes, and verification."""

import hashlib
import json
import struct

from arithmetic.mutation import active
from pages.merkle import merkle_root, sha256

FIELDS = [
    "model.name", "model.revision", "model.weights", "model.config", "model.tokenizer",
    "model.chat_template", "model.tensors", "model.text_of", "model.adapter_name",
    "model.adapter", "program.recipe", "program.digest", "program.numerics",
    "program.profile", "program.operation_set", "program.unicode", "input.prompt", "input.tokens",
    "input.max_new_tokens", "input.stop_tokens", "input.do_sample", "input.temperature",
    "input.top_k", "input.top_p", "input.seed", "input.min_p", "input.epsilon_cutoff",
    "input.stream", "input.repetition_penalty", "input.logit_bias",
    "input.frequency_penalty", "input.presence_penalty", "input.no_repeat_ngram_size", "input.bad_words_ids",
    "input.min_new_tokens", "input.forced_bos_token_id", "input.forced_eos_token_id",
    "input.remove_invalid_values", "input.suppress_tokens", "input.begin_suppress_tokens",
    "input.short_circuit_length", "input.short_circuit_token",
    "input.allowed_token_ids", "input.timestamp_begin", "input.max_initial_timestamp_index",
    "input.structured_outputs", "input.stop_token_ids", "input.ignore_eos",
    "input.stop_strings", "input.stop_in_answer", "input.chat", "input.decoder_tokens", "input.audio",
    "input.audio_start", "input.previous", "input.salt", "output.text",
    "output.finish_reason", "output.tokens", "output.logits",
]  # fmt: skip
OPTIONAL = FIELDS[FIELDS.index("model.text_of") : FIELDS.index("program.recipe")]  # receipt.24
OPTIONAL += FIELDS[FIELDS.index("input.min_p") : FIELDS.index("output.text")]
SALTED = {  # receipt.27
    "input.prompt", "input.tokens", "input.chat", "input.audio", "output.logits",
}  # fmt: skip
ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip


def compact(value):
    """receipt.4"""
    if isinstance(value, str):
        escaped = (ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value)
        return '"' + ("".join(escaped) if not active("escapes_nothing") else value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact(k)}:{compact(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def float_text(x):
    """receipt.3: the shortest text of a binary32, fixed where both notations are as long."""
    if active("floats_of_nine_digits"):
        return f"{x:.9g}"
    if x < 0:
        return "-" + float_text(-x)
    (bits,) = struct.unpack("<f", struct.pack("<f", x))
    for digits in range(9):
        text = f"{x:.{digits}e}"
        if struct.unpack("<f", struct.pack("<f", float(text)))[0] == bits:
            break
    mantissa, exponent = text.split("e")
    digits, exponent = mantissa.replace(".", ""), int(exponent)
    point = exponent + 1
    if point <= 0:
        fixed = "0." + "0" * -point + digits
    elif point >= len(digits):
        fixed = str(int(x))
    else:
        fixed = digits[:point] + "." + digits[point:]
    scientific = f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return fixed if len(fixed) <= len(scientific) else scientific


def leaf(path, value, salt=b""):
    """receipt.5, and receipt.27 with the salt of a field"""
    text = f"{path}{':' if active('leaf_with_colon') else '='}{compact(value)}"
    return sha256(text.encode() + salt)


def salt_of(receipt, path):
    """receipt.27"""
    if path not in SALTED or "salt" not in receipt["input"]:
        return b""
    return sha256(bytes.fromhex(receipt["input"]["salt"]) + path.encode())


def commitment(logits):
    """receipt.7; ctypes stores in the order of this machine's bytes, which is little-endian."""
    order = ">" if active("commitment_big_endian") else "<"
    return hashlib.sha256(struct.pack(f"{order}{len(logits)}f", *logits)).hexdigest()


def field(receipt, path):
    section, name = path.split(".")
    return receipt[section][name]


def stands(receipt, path):
    """receipt.24"""
    section, name = path.split(".")
    return path not in OPTIONAL or name in receipt[section]


def sealed(receipt, execution):
    """The receipt with its hashes: receipt.5, receipt.6 and receipt.8."""
    leaves = {} if active("hash_without_schema") else {"schema": leaf("schema", receipt["schema"])}
    order = sorted(FIELDS) if active("leaves_by_name") else FIELDS
    order = [path for path in order if stands(receipt, path)]
    leaves |= {path: leaf(path, field(receipt, path), salt_of(receipt, path)) for path in order}
    prefix = "" if active("execution_leaf_without_prefix") else "execution."
    others = {key: leaf(prefix + key, execution[key]) for key in sorted(execution)}
    return receipt | {
        "digests": {path: d.hex() for path, d in leaves.items()},
        "receipt_hash": merkle_root(list(leaves.values())).hex(),
        "execution": execution,
        "execution_digests": {key: d.hex() for key, d in others.items()},
        "execution_hash": merkle_root(list(others.values())).hex(),
    }


def template_text(checkpoint):
    """receipt.19"""
    named = {}
    if checkpoint.has("chat_template.jinja"):
        named["default"] = checkpoint.bytes_of("chat_template.jinja").decode()
    named |= checkpoint.further_templates()
    if not named and checkpoint.has("tokenizer_config.json"):
        value = json.loads(checkpoint.bytes_of("tokenizer_config.json")).get("chat_template")
        if isinstance(value, str):
            named = {"default": value}
        elif isinstance(value, list):
            named = {t["name"]: t["template"] for t in value}
        else:
            named = value or {}
    if list(named) == ["default"]:
        return named["default"]
    return compact({k: named[k] for k in sorted(named, key=str.encode)}) if named else ""
