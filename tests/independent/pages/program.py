"""spec/program.md and spec/llama.md llama.13: the text of a program; plan.8: the digest of its
weights."""

import re
import struct

from arithmetic.mutation import active
from pages.merkle import merkle_root, sha256
from pages.rotary import attention_factor, parameters_of

ROTARY = {
    "default": [],
    "linear": ["factor"],
    "llama3": [
        "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
    ],
    "yarn": ["factor", "original_max_position_embeddings"],
}  # fmt: skip


def binary32(x):
    """program.4"""
    return f"0x{struct.unpack('<I', struct.pack('<f', x))[0]:08x}"


def binary64(x):
    """program.4"""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def quoted(text):
    """plan.2"""
    text = re.sub(r'(["\\\\])', r"\\\1", text)
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m.group(0)):02x}", text) + '"'


def text_of(value):
    """program.4: a float is a binary32; a text is itself."""
    if isinstance(value, list):
        return " ".join(map(text_of, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return binary32(value) if isinstance(value, float) else str(value)


def rotary_parameters(config):
    """llama.13, from `rope_type` on"""
    rope = parameters_of(config)
    kind = rope["rope_type"]
    found = {"rope_theta": binary64(rope["rope_theta"]), "rope_type": kind}
    for name in ROTARY[kind]:
        found[name] = binary64(rope[name])
    if kind == "yarn":
        found["attention_factor"] = float(attention_factor(rope))
        found["beta_fast"] = binary64(rope.get("beta_fast", 32))
        found["beta_slow"] = binary64(rope.get("beta_slow", 1))
        found["truncate"] = bool(rope.get("truncate", True))
    return found


def llama_parameters(config, shape):
    """llama.13"""
    found = {
        "head_dim": shape.head,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": shape.epsilon,
        "vocab_size": shape.vocabulary,
    }
    for name in ("attention_bias", "mlp_bias", "tie_word_embeddings"):
        found[name] = bool(config.get(name))
    return found | rotary_parameters(config)


def program_text(recipe, found, profile):
    """program.2"""
    lines = [
        "invar-program 1",
        f'recipe "{recipe}"',
        'numerics "invar-1"',
        f'profile "{profile}"',
        'operations "reproducible"',
        *(f"parameter {name} {text_of(found[name])}" for name in sorted(found)),
    ]
    return "".join(line + "\n" for line in lines)


def weight_line(tensor):
    shape = ", ".join(map(str, tensor.shape))
    return f"{quoted(tensor.name)} {tensor.dtype} [{shape}] sha256 {tensor.sha256}"


def weights_digest(tensors):
    """plan.8"""
    end = "" if active("weight_leaf_without_line_feed") else "\n"
    names = sorted(tensors, key=str.encode)
    return merkle_root([sha256((weight_line(tensors[n]) + end).encode()) for n in names]).hex()
