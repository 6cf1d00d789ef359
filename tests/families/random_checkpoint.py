"""A small checkpoint of any family with seeded weights: the same bytes wherever it is made."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checkpoints import header_bytes, stored  # noqa: E402

WIDTH = {"F32": 4, "BF16": 2, "F16": 2}


def values(name, shape, seed, number, centre=1):
    """`centre`: of the weights of norms. Exact multiples of 2^-15, so that no library's rounding
    decides a bit."""
    count = int(np.prod(shape))
    raw = np.random.PCG64(np.random.SeedSequence([seed, number])).random_raw(count)
    units = ((raw >> np.uint64(48)).astype(np.int64) - 32768).astype(np.float64) / 32768
    if name.endswith("A_log"):  # decays that remember some positions and many
        return (2 * units - 2).reshape(shape)
    if name.endswith("recurrent_param"):
        return (2 * units - 4).reshape(shape)
    if len(shape) == 0:
        return units.reshape(()) / 4
    if len(shape) == 1:
        around = name.endswith(("weight", "scalar", "scale"))
        return centre + units / 4 if around else units / 4
    # Small embeddings, so that the layers decide what comes next.
    embedding = any(part in name for part in ("embed", "wte", "wpe"))
    return units * 2.0 ** (-4 if embedding else np.ceil(0.5 - np.log2(shape[-1]) / 2))


def write(folder, config, shapes, seed, dtype="F32", like=None):
    """A checkpoint in `folder`: config.json and model.safetensors. `like`: the config whose
    model_type decides about weights, else `config`."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    # The norms of Gemma before 3n add 1.
    kind = (like or config)["model_type"]
    centre = 0 if "gemma" in kind and not kind.startswith(("gemma3n", "gemma4")) else 1
    if kind.startswith(("qwen3_next", "qwen3_5")):  # theirs, too, but those of recurrent layers
        centre = 0
    header, _ = header_bytes(shapes, dtype, WIDTH[dtype])
    with open(folder / "model.safetensors", "wb") as f:
        f.write(header)
        for number, (name, shape) in enumerate(shapes.items()):
            # Gemma 4 has no scale of scores but these weights.
            small = kind.startswith("gemma4") and name.endswith(("q_norm.weight", "k_norm.weight"))
            # Nothing is added to what attention of Zamba2 gives, so its errors reach the end.
            small = small or ".shared_transformer.input" in name
            one = name.endswith("linear_attn.norm.weight")
            weights = values(name, shape, seed, number, 0.5 if small else 1 if one else centre)
            f.write(stored(weights.astype(np.float32), dtype)[0])
