#!/usr/bin/env python3
"""Writes tests/families/vectors.jsonl: for each case of cases.py its config, the shapes of its
tensors, float64 logits and 64 greedy tokens of transformers. Needs transformers and torch.

make_vectors.py [NAME ...]: these, else those that are missing"""

import json
import logging
import re
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from cases import CASES
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/families"))
from random_checkpoint import write  # noqa: E402

VECTORS = ROOT / "tests/families/vectors.jsonl"
PROMPT, GREEDY, ROWS = 24, 64, (0, 7, 23)
# Of models with recurrent layers, whose chunks have 64 positions.
LONG_PROMPT, LONG_ROWS = 162, (4, 63, 64, 161)


class Float64(TorchFunctionMode):
    """float32 that a model asks for inside is float64: transformers computes norms, softmax and
    angles in float32 whatever the type of the model."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def wider(x):
            return torch.float64 if x is torch.float32 else x

        if func is torch.Tensor.float:
            return args[0].double()
        if func is torch.full:  # its default is float32, too
            kwargs = {"dtype": torch.float32, **(kwargs or {})}
        args = [wider(a) for a in args]
        return func(*args, **{k: wider(v) for k, v in (kwargs or {}).items()})


def auto_class(config):
    if "text_config" in config:
        return transformers.AutoModelForImageTextToText
    if config["model_type"] == "mistral4":  # transformers' table has it within Mistral 3 alone
        return transformers.Mistral4ForCausalLM
    return transformers.AutoModelForCausalLM


# Tables that follow from the config, which transformers stores beside the weights.
TABLES = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")


def shapes_of(config, folder, auto):
    """The tensors that transformers stores for this config -> {name: shape}. `auto`: its class."""
    (folder / "config.json").write_text(json.dumps(config))
    from_config = getattr(auto, "from_config", None) or auto._from_config
    model = from_config(transformers.AutoConfig.from_pretrained(folder))
    model.save_pretrained(folder / "saved")
    with safe_open(folder / "saved/model.safetensors", "pt") as f:
        names = [name for name in sorted(f.keys()) if not name.endswith(TABLES)]
        return {name: list(f.get_slice(name).get_shape()) for name in names}


def stacked(shapes):
    """The matrices of all experts of a layer in two tensors."""
    out, experts = {}, {}
    for name, shape in shapes.items():
        layer, one, end = name.partition(".experts.")
        if not one:
            out[name] = shape
        else:
            experts.setdefault(layer, {}).setdefault(end.split(".")[1], []).append(shape)
    for layer, matrices in experts.items():
        count, (inner, size) = len(matrices["up_proj"]), matrices["up_proj"][0]
        out[layer + ".experts.gate_up_proj"] = [count, 2 * inner, size]
        out[layer + ".experts.down_proj"] = [count, size, inner]
    return dict(sorted(out.items()))


def stored(name, config, shapes):
    """The names and shapes of the files of the field, where transformers saves others."""
    if name.endswith("-stacked"):
        return stacked(shapes)
    if config["model_type"] == "kimi_linear":  # transformers saves dense layers as if sparse ones
        dense = re.compile(r"block_sparse_moe(?=\.(gate|up|down)_proj)")
        return {dense.sub("mlp", n): shape for n, shape in shapes.items()}
    if config["model_type"] == "internlm2":
        return of_internlm2(shapes)
    if config["model_type"] != "olmo_hybrid":
        return shapes
    # It names a norm of attention as one of recurrent layers, and divides a convolution of unequal
    # parts equally.
    attends = {n.split(".")[2] for n in shapes if ".self_attn." in n}
    out = {}
    for name, shape in shapes.items():
        if name.split(".")[1] == "layers" and name.split(".")[2] in attends:
            name = name.replace("feedforward_layer_norm", "post_attention_layernorm")
        if "_conv1d" in name:
            shape = [shapes[name.replace("_conv1d", "_proj")][0], *shape[1:]]
        out[name] = shape
    return out


# What InternLM 2 calls tensors of Llama, and the matrix that has the rows of three.
INTERNLM2 = {
    "embed_tokens": "tok_embeddings",
    "lm_head": "output",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
}
JOINED, PARTS = "attention.wqkv", ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]


def of_internlm2(shapes):
    """Shapes of Llama -> those of InternLM 2."""
    out = {}
    for name, shape in shapes.items():
        if PARTS[0] in name:
            parts = [shapes[name.replace(PARTS[0], part)] for part in PARTS]
            out[name.replace(PARTS[0], JOINED)] = [sum(p[0] for p in parts), *shape[1:]]
        elif not any(part in name for part in PARTS):
            out[re.sub("|".join(INTERNLM2), lambda m: INTERNLM2[m[0]], name)] = shape
    return dict(sorted(out.items()))


def as_known(config):
    """Of families that transformers lacks the config of the same model in one that it has."""
    layers, width = config.get("num_hidden_layers"), config.get("hidden_size")
    if config["model_type"] == "internlm2":
        known = {"architectures": ["LlamaForCausalLM"], "attention_bias": config.get("bias", True)}
        return (
            {k: v for k, v in config.items() if k != "auto_map"} | {"model_type": "llama"} | known
        )
    if config["model_type"] == "minicpm":
        known = {
            "architectures": ["GraniteForCausalLM"],
            "embedding_multiplier": config.get("scale_emb", 1),
            "residual_multiplier": config.get("scale_depth", 1) / layers**0.5,
            "logits_scaling": width / config.get("dim_model_base", 1),
            "attention_multiplier": (width // config["num_attention_heads"]) ** -0.5,
            "tie_word_embeddings": config.get("tie_word_embeddings", True),
        }
        return {**config, "model_type": "granite", **known}
    return config


def respell(folder, config, known):
    """Gives a checkpoint of `config` the config and the tensors of `known`."""
    (folder / "config.json").write_text(json.dumps(known))
    if config["model_type"] != "internlm2":
        return
    tensors, out = load_file(folder / "model.safetensors"), {}
    names = {ours: theirs for theirs, ours in INTERNLM2.items()}
    groups = known["num_key_value_heads"]
    size = known["hidden_size"] // known["num_attention_heads"]
    for name, tensor in tensors.items():
        if JOINED in name:  # of each head of keys those of queries, it, and its values
            rows = tensor.unflatten(0, (groups, -1, size))
            for part, rows in zip(PARTS, (rows[:, :-2], rows[:, -2:-1], rows[:, -1:])):
                out[name.replace(JOINED, part)] = rows.flatten(0, 2).contiguous()
        else:
            out[re.sub("|".join(names), lambda m: names[m[0]], name)] = tensor
    save_file(out, folder / "model.safetensors", {"format": "pt"})


def use_factors_of_length(rotary):
    """transformers 5.24 changes the mscale of phimoe with the length, and leaves its short factors;
    the checkpoint's own code changes both."""
    factors, forward = rotary.rope_init_fn, rotary.forward

    def of_length(x, position_ids):
        length = int(position_ids.max()) + 1
        rotary.rope_init_fn = lambda config: factors(config, seq_len=length)
        return forward(x, position_ids)

    rotary.forward = of_length


def load(config, folder):
    # The eager attention of Falcon adds linear biases twice. The other implementation of experts
    # does not take float64.
    attention = "sdpa" if config.get("alibi") else "eager"
    model, about = auto_class(config).from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation=attention,
        experts_implementation="eager",
        output_loading_info=True,
    )
    missing = [n for n in about.pop("missing_keys", []) if not n.endswith(TABLES)]
    problems = {k: v for k, v in {**about, "missing_keys": missing}.items() if v}
    assert not problems, problems
    if config["model_type"] == "phimoe" and "rope_scaling" in config:
        use_factors_of_length(model.model.rotary_emb)
    # The whole Llama 4 of transformers 5.24 asks its text model for pictures.
    return (model.language_model if config["model_type"] == "llama4" else model).eval()


@torch.no_grad()
def vector(name, config, seed):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        known = as_known(config)
        shapes = stored(name, config, shapes_of(known, folder, auto_class(known)))
        write(folder / "model", config, shapes, seed)
        if known is not config:
            respell(folder / "model", config, known)
        model = load(known, folder / "model")
        text = config.get("text_config", config)
        types = text.get("layer_types") or []
        recurrent = any("conv" in n for n in shapes) or "linear_attention" in types
        prompt, rows = (LONG_PROMPT, LONG_ROWS) if recurrent else (PROMPT, ROWS)
        ids = [1] + [(7 * i * i + 3 * i + seed) % text["vocab_size"] for i in range(prompt - 1)]
        tokens, greedy = list(ids), []
        for _ in range(GREEDY):
            row = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
            greedy.append(int(row.argmax()))
            tokens.append(greedy[-1])
        single = model(torch.tensor([ids]), use_cache=False).logits[0]
        model.double()
        with Float64():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0]
        assert logits.dtype == torch.float64
    return {
        "config": config,
        "seed": seed,
        "shapes": shapes,
        "tokens": ids,
        "greedy": greedy,
        "float32_error": float(((single - logits).abs().max() / logits.abs().max())),
        "largest": float(logits.abs().max()),
        "rows": {str(r): [float(f"{x:.10g}") for x in logits[r].tolist()] for r in rows},
    }


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    lines = VECTORS.read_text().splitlines() if VECTORS.exists() else []
    known = {json.loads(line)["name"]: line for line in lines}
    wanted = sys.argv[1:] or [name for name in CASES if name not in known]
    for name in wanted:
        out = {"name": name, **vector(name, CASES[name], 100 + list(CASES).index(name))}
        known[name] = json.dumps(out, separators=(",", ":"))
        print(
            f"{name}: {len(out['shapes'])} tensors, logits up to {out['largest']:.3g}, "
            f"{len(set(out['greedy']))} different greedy tokens"
        )
        VECTORS.write_text("".join(known[name] + "\n" for name in CASES if name in known))


if __name__ == "__main__":
    main()
