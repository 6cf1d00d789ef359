#!/usr/bin/env python3
"""Makes the reference data of tests/checkpoint/test_accuracy.py: the shipped model's logits in
float64.

    python3 tools/accuracy.py        # needs numpy, torch, transformers, tokenizers; about a minute

Writes tests/accuracy/shakespeare-4m.json (prompts, positions, greedy answer, what float32 in
transformers achieves) and shakespeare-4m.bin (little-endian float64 logits, one row of the
vocabulary per position, in the order of the json).

The float64 model is written out here, because transformers computes norms, rotary angles and
softmax in float32 even after model.double(). It reads bf16 weights exactly and uses float64 for
everything else, rotary frequencies included.
"""

import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/shakespeare-4m"
OUT = ROOT / "tests/accuracy/shakespeare-4m"

HAMLET = """HAMLET:
To be, or not to be, that is the question:
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune,
Or to take arms against a sea of troubles
And by opposing end them. To die: to sleep;
No more; and by a sleep to say we end
The heart-ache and the thousand natural shocks
That flesh is heir to, 'tis a consummation
Devoutly to be wish'd. To die, to sleep;
To sleep: perchance to dream: ay, there's the rub;
For in that sleep of death what dreams may come
When we have shuffled off this mortal coil,
Must give us pause: there's the respect
That makes calamity of so long life;
For who would bear the whips and scorns of time,
The oppressor's wrong, the proud man's contumely,
The pangs of despised love, the law's delay,
The insolence of office and the spurns
That patient merit of the unworthy takes,
When he himself might his quietus make
With a bare bodkin? who would fardels bear,
To grunt and sweat under a weary life,
But that the dread of something after death,
The undiscover'd country from whose bourn
No traveller returns, puzzles the will
And makes us rather bear those ills we have
Than fly to others that we know not of?
Thus conscience does make cowards of us all;
And thus the native hue of resolution
Is sicklied o'er with the pale cast of thought,
And enterprises of great pith and moment
With this regard their currents turn awry,
And lose the name of action. Soft you now!
The fair Ophelia! Nymph, in thy orisons
Be all my sins remember'd.
"""
# (text, positions whose logits are kept); -1 is the last
PROMPTS = [
    ("ROMEO:\n", [0, -1]),
    ("Shall I compare thee to a summer's day?\n", [-1]),
    ("\u00e9\u20ac \U0001f3ad 0123456789 <|end_of_text|>", [-1]),
    (HAMLET, [1, 63, 127, 128, 129, 200, 255, 256, 383, 384, 493, -1]),
]
GREEDY = "ROMEO:\n"
GREEDY_TOKENS = 60


def load_weights():
    """Every tensor of the safetensors shards, bf16 widened exactly."""
    weights = {}
    for shard in sorted(MODEL.glob("*.safetensors")):
        data = shard.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        body = 8 + int.from_bytes(data[:8], "little")
        for name, t in header.items():
            if name == "__metadata__":
                continue
            assert t["dtype"] == "BF16", t["dtype"]
            begin, end = t["data_offsets"]
            raw = np.frombuffer(data[body + begin : body + end], "<u2").astype(np.uint32) << 16
            weights[name] = raw.view(np.float32).astype(np.float64).reshape(t["shape"])
    return weights


def float64_logits(config, w, tokens):
    """Llama, plainly. -> [tokens, vocabulary]"""
    n, heads, kv = len(tokens), config["num_attention_heads"], config["num_key_value_heads"]
    d, eps = config["head_dim"], config["rms_norm_eps"]
    angle = np.arange(n)[:, None] * config["rope_parameters"]["rope_theta"] ** -(
        np.arange(0, d, 2) / d
    )
    cos, sin = (np.concatenate([f(angle)] * 2, axis=1)[:, None] for f in (np.cos, np.sin))

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight

    def rotate(x):
        return x * cos + np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1) * sin

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        at = lambda name: w[f"model.layers.{i}.{name}.weight"]
        h = norm(x, at("input_layernorm"))
        q, k, v = ((h @ at(f"self_attn.{p}_proj").T).reshape(n, -1, d) for p in "qkv")
        q, k, v = rotate(q), np.repeat(rotate(k), heads // kv, 1), np.repeat(v, heads // kv, 1)
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d)
        s = np.where(np.tri(n, dtype=bool), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(n, -1) @ at("self_attn.o_proj").T
        h = norm(x, at("post_attention_layernorm"))
        g = h @ at("mlp.gate_proj").T
        x = x + (g / (1 + np.exp(-g)) * (h @ at("mlp.up_proj").T)) @ at("mlp.down_proj").T
    return norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T


def main():
    import torch
    import transformers
    from tokenizers import Tokenizer

    torch.set_num_threads(1)
    config, w = json.loads((MODEL / "config.json").read_text()), load_weights()
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    load = lambda: transformers.AutoModelForCausalLM.from_pretrained(
        MODEL, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    single, double = load(), load().double()

    prompts, rows, worst, squares, check = [], [], 0.0, [], 0.0
    for text, positions in PROMPTS:
        tokens = tokenizer.encode(text).ids
        assert len(tokens) <= config["max_position_embeddings"]
        positions = [p % len(tokens) for p in positions]
        exact = float64_logits(config, w, tokens)
        with torch.no_grad():
            check = max(
                check, np.abs(double(torch.tensor([tokens])).logits[0].numpy() - exact).max()
            )
            error = np.abs(single(torch.tensor([tokens])).logits[0].numpy() - exact)[positions]
        prompts.append(
            {
                "text": text,
                "tokens": tokens,
                "positions": positions,
                "transformers_fp32_max_error": float(error.max()),
            }
        )
        rows.append(exact[positions])
        worst, squares = max(worst, error.max()), squares + [(error**2).mean()]
    # The same network, up to what transformers keeps in float32.
    assert check < 1e-4, check

    tokens = tokenizer.encode(GREEDY).ids
    start, margin = len(tokens), np.inf
    for _ in range(GREEDY_TOKENS):
        with torch.no_grad():
            row = single(torch.tensor([tokens])).logits[0, -1].numpy()
        second, first = np.sort(float64_logits(config, w, tokens)[-1])[-2:]
        margin = min(margin, first - second)
        tokens.append(int(row.argmax()))

    OUT.with_suffix(".bin").write_bytes(np.concatenate(rows).astype("<f8").tobytes())
    OUT.with_suffix(".json").write_text(
        json.dumps(
            {
                "made_by": "tools/accuracy.py",
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "vocab_size": config["vocab_size"],
                "prompts": prompts,
                "transformers_fp32": {
                    "max_error": float(worst),
                    "rms_error": float(np.sqrt(np.mean(squares))),
                },
                "transformers_double_max_difference": float(check),
                "greedy": {
                    "prompt": GREEDY,
                    "tokens": tokens[start:],
                    "text": tokenizer.decode(tokens[start:]),
                    "smallest_margin": float(margin),
                },
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )
    print(
        f"transformers fp32: max error {worst:.3g}, rms {np.sqrt(np.mean(squares)):.3g}; after "
        f"double() {check:.3g}; "
        f"smallest greedy margin {margin:.3g}; {OUT.with_suffix('.bin').stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
