"""A model whose greedy answers are known: a GPT-2 whose table of positions says which token comes
next. Tokens are bytes. Script k is the answer to any prompt of `place(k)` bytes."""

import json

import numpy as np
from checkpoints import header_bytes

ROOM = 240  # positions of a script and its prompt
END = 256
VOCABULARY = 257
HIDDEN = 264


def place(k):
    """Bytes of a prompt whose answer is script k."""
    return ROOM * k + 24


def byte_names():
    """The characters that stand for bytes in vocabularies of byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    names = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [names[b] for b in range(256)]


def tokenizer():
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    end = {"id": END, "content": "<|end|>", "special": True, "normalized": False}
    return {
        "version": "1.0",
        "added_tokens": [end | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)],
        "pre_tokenizer": level | {"use_regex": False},
        "decoder": level | {"use_regex": False},
        "model": {"type": "BPE", "vocab": {n: i for i, n in enumerate(byte_names())}, "merges": []},
    }


def write_scripted(
    folder, scripts, template="{% for m in messages %}{{ m['content'] }}{% endfor %}"
):
    """`scripts`: texts, or bytes; a script ends with the token that ends an answer."""
    positions = ROOM * len(scripts) + ROOM
    wte = np.zeros((VOCABULARY, HIDDEN), np.float32)
    wpe = np.zeros((positions, HIDDEN), np.float32)
    np.fill_diagonal(wte, 1)
    for k, script in enumerate(scripts):
        script = script.encode() if isinstance(script, str) else script
        assert len(script) < ROOM - 24
        for i, token in enumerate([*script, END]):
            wpe[place(k) - 1 + i, token] = 4
    layer, inner = "transformer.h.0.", 8
    zeros, ones = np.zeros, np.ones
    tensors = {"transformer.wte.weight": wte, "transformer.wpe.weight": wpe}
    for norm in (layer + "ln_1", layer + "ln_2", "transformer.ln_f"):
        tensors[norm + ".weight"], tensors[norm + ".bias"] = ones(HIDDEN), zeros(HIDDEN)
    for name, rows, columns in (
        ("attn.c_attn", HIDDEN, 3 * HIDDEN),
        ("attn.c_proj", HIDDEN, HIDDEN),
        ("mlp.c_fc", HIDDEN, inner),
        ("mlp.c_proj", inner, HIDDEN),
    ):
        tensors[f"{layer}{name}.weight"] = zeros((rows, columns))
        tensors[f"{layer}{name}.bias"] = zeros(columns)
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "bos_token_id": END,
        "eos_token_id": END,
        "layer_norm_epsilon": 1e-05,
        "n_embd": HIDDEN,
        "n_head": 4,
        "n_inner": inner,
        "n_layer": 1,
        "n_positions": positions,
        "tie_word_embeddings": True,
        "vocab_size": VOCABULARY,
    }
    folder.mkdir(parents=True)
    header, _ = header_bytes({name: list(t.shape) for name, t in tensors.items()}, "F32", 4)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(header)
        for tensor in tensors.values():
            f.write(tensor.astype("<f4").tobytes())
    files = {"config": config, "tokenizer": tokenizer()}
    files["tokenizer_config"] = {"eos_token": "<|end|>", "tokenizer_class": "GPT2TokenizerFast"}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "chat_template.jinja").write_text(template)
    return folder
