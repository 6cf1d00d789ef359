"""spec/program.md and spec/llama.md llama.13: the text of a Llama's program; plan.8: the digest of
its weights."""

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


def boolean(x):
    return "true" if x else "false"


def quoted(text):
    """plan.2"""
    text = re.sub(r'(["\\\\])', r"\\\1", text)
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m.group(0)):02x}", text) + '"'


def parameters(config, shape):
    """llama.13"""
    rope = parameters_of(config)
    kind = rope["rope_type"]
    found = {
        "head_dim": shape.head,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": binary32(shape.epsilon),
        "rope_theta": binary64(rope["rope_theta"]),
        "rope_type": kind,
        "vocab_size": shape.vocabulary,
    }
    for name in ("attention_bias", "mlp_bias", "tie_word_embeddings"):
        found[name] = boolean(config.get(name))
    for name in ROTARY[kind]:
        found[name] = binary64(rope[name])
    if kind == "yarn":
        found["attention_factor"] = binary32(attention_factor(rope))
        found["beta_fast"] = binary64(rope.get("beta_fast", 32))
        found["beta_slow"] = binary64(rope.get("beta_slow", 1))
        found["truncate"] = boolean(rope.get("truncate", True))
    return found


def program_text(config, shape, profile):
    """program.2"""
    found = parameters(config, shape)
    lines = [
        "invar-program 1",
        'recipe "llama-1"',
        'numerics "invar-1"',
        f'profile "{profile}"',
        'operations "reproducible"',
        *(f"parameter {name} {found[name]}" for name in sorted(found)),
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
