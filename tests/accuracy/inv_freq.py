"""Compares the inverse frequencies of spec/checkpoint.md onnx.6 (rope_oracle.py, to which
src/checkpoint/recipes/rope_frequencies_test.cc holds Invar) with those that transformers computes
on this machine, bit for bit, and prints every difference. Needs torch and transformers; run by
hand: python tests/accuracy/inv_freq.py"""

import sys
from pathlib import Path

import numpy as np
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rope_oracle import attention_factor, inverse_frequencies

LLAMA3 = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
KINDS = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "linear", "factor": 2.5},
    {**LLAMA3, "factor": 8.0},
    {**LLAMA3, "factor": 32.0},
]
YARN = {"rope_type": "yarn", "original_max_position_embeddings": 4096}
KINDS += [
    {**YARN, "factor": 4.0},
    {**YARN, "factor": 40.0, "mscale": 0.707, "mscale_all_dim": 0.5},
    {**YARN, "factor": 32.0, "truncate": False, "beta_fast": 24.0, "attention_factor": 1.2},
]

values = 0
for dim in (32, 64, 80, 96, 128, 256):
    for theta in (10000.0, 10000.1, 100000.0, 500000.0, 1e6, 5e6):
        for kind in KINDS:
            config = LlamaConfig(
                hidden_size=2 * dim,
                num_attention_heads=2,
                num_hidden_layers=1,
                max_position_embeddings=131072,
                rope_parameters={"rope_theta": theta, **kind},
            )
            rotary = LlamaRotaryEmbedding(config)
            theirs = rotary.inv_freq.numpy().view(np.int32)
            ours = inverse_frequencies(dim, theta, **kind).view(np.int32)
            values += len(ours)
            factor = np.float32(rotary.attention_scaling)
            if factor != attention_factor(**kind):
                print(f"{kind}: attention factor {attention_factor(**kind)}, transformers {factor}")
            for i in np.nonzero(ours != theirs)[0]:
                print(
                    f"head_dim {dim} theta {theta} {kind['rope_type']} {kind.get('factor', '')}: "
                    f"entry {i} is {ours[i]:08x}, "
                    f"transformers {theirs[i]:08x} ({int(theirs[i]) - int(ours[i]):+d} ulp)"
                )
print(f"{values} values compared")
