"""Keys and values of latent heads in GGUF files: one matrix or two, of every type (spec/weights.md
weights.12, weights.13)."""

import math

import gguf_files as gguf
import numpy as np
import pytest
from conftest import invar, refused
from test_gguf_architectures import (
    TOKENIZER,
    VECTORS,
    compiled,
    logits,
    made,
    metadata,
    tensors_of,
)


def test_keys_and_values_of_latent_heads_in_one_matrix(tmp_path):
    """Files of before April 2025 have kv_b_proj whole, and the sizes of heads under other keys."""
    vector, keys, tensors = made("deepseek_v2-lite", tmp_path)
    config = vector["config"]
    a = "deepseek2.attention."
    whole = {a + "key_length": keys[a + "key_length_mla"]}
    whole |= {a + "value_length": keys[a + "value_length_mla"], a + "head_count_kv": 4}
    keys = {k: v for k, v in keys.items() if not k.endswith("_mla")} | whole
    tensors = tensors_of(tmp_path / "model", config, "deepseek2", whole=True)
    assert "blk.0.attn_kv_b.weight" in tensors
    (tmp_path / "old.gguf").write_bytes(gguf.file_bytes(keys, tensors))
    theirs, their_program = compiled(tmp_path / "m.gguf", tmp_path / "a")
    ours, program = compiled(tmp_path / "old.gguf", tmp_path / "b")
    assert program == their_program
    assert logits(ours, vector["tokens"]) == logits(theirs, vector["tokens"])


@pytest.mark.parametrize("kinds", [("Q8_0", "Q4_K"), ("F16", "BF16"), ("BF16", "BF16")])
def test_latent_heads_of_every_type(kinds, tmp_path):
    """Keys and values in two formats are one matrix in the type that holds both."""
    heads, rank, size, wide = 2, 256, 32, 64
    config = {**VECTORS["youtu"]["config"], "num_hidden_layers": 1, "num_attention_heads": heads}
    config |= {"kv_lora_rank": rank, "qk_nope_head_dim": size, "v_head_dim": wide}
    rng = np.random.default_rng(5)
    keys = gguf.random_bytes(kinds[0], heads * rank * size, rng)
    values = gguf.random_bytes(kinds[1], heads * wide * rank, rng)
    tensors = {
        "blk.0.attn_k_b.weight": (kinds[0], [heads, rank, size], keys),
        "blk.0.attn_v_b.weight": (kinds[1], [heads, wide, rank], values),
    }
    for name, shape in [
        ("token_embd", [61, 32]),
        ("output_norm", [32]),
        ("blk.0.attn_norm", [32]),
        ("blk.0.ffn_norm", [32]),
        ("blk.0.attn_q", [heads * (size + 4), 32]),
        ("blk.0.attn_kv_a_mqa", [rank + 4, 32]),
        ("blk.0.attn_kv_a_norm", [rank]),
        ("blk.0.attn_output", [32, heads * wide]),
        ("blk.0.ffn_gate", [44, 32]),
        ("blk.0.ffn_up", [44, 32]),
        ("blk.0.ffn_down", [32, 44]),
    ]:
        tensors[name + ".weight"] = ("F32", shape, bytes(4 * math.prod(shape)))
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf.file_bytes({**metadata(config, "deepseek2"), **TOKENIZER}, tensors))
    invar("export", "--model-name", file, "-o", tmp_path / "out")
    made = (tmp_path / "out/unpacked-weights.bin").read_bytes()
    k = gguf.unpack(kinds[0], keys).reshape(heads, rank, size).swapaxes(1, 2)
    v = gguf.unpack(kinds[1], values).reshape(heads, wide, rank)
    expected = np.concatenate([k, v], axis=1).astype("<f4")
    if kinds == ("BF16", "BF16"):
        expected = (expected.view("<u4") >> 16).astype("<u2")
    assert made == expected.tobytes()

    tensors["blk.0.attn_v_b.weight"] = (kinds[1], [1, heads * wide, rank], values)
    file.write_bytes(gguf.file_bytes({**metadata(config, "deepseek2"), **TOKENIZER}, tensors))
    refused("export", "--model-name", file, "-o", tmp_path / "c", names=["attn_k_b", "attn_v_b"])
