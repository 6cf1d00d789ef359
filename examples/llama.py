"""What train_llama.py and finetune_lora.py share: a Llama in invar.nn, with the names of a Hugging
Face checkpoint, and the tokens of the text."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import invar
import torch
from invar import nn, ops

HERE = Path(__file__).resolve().parent
CHECKPOINT = Path(os.environ.get("INVAR_EXAMPLE_MODEL", HERE.parent / "models/shakespeare-4m"))


@dataclass(frozen=True)
class Config:
    vocab_size: int = 2048
    hidden_size: int = 64
    intermediate_size: int = 176
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @classmethod
    def of(cls, folder):
        stated = json.loads((folder / "config.json").read_text())
        names = cls.__dataclass_fields__.keys() & stated.keys()
        return cls(**{name: stated[name] for name in names})


class Attention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.size = config.hidden_size // self.heads
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.q_proj = linear(config.hidden_size, self.heads * self.size)
        self.k_proj = linear(config.hidden_size, self.kv_heads * self.size)
        self.v_proj = linear(config.hidden_size, self.kv_heads * self.size)
        self.o_proj = linear(self.heads * self.size, config.hidden_size)

    def forward(self, x, cos, sin):
        def heads(y, count):
            return y.reshape(*x.shape[:2], count, self.size).transpose(1, 2)

        q = ops.rope(heads(self.q_proj(x), self.heads), cos, sin)
        k = ops.rope(heads(self.k_proj(x), self.kv_heads), cos, sin)
        v = heads(self.v_proj(x), self.kv_heads)
        y = ops.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(*x.shape[:2], self.heads * self.size))


class FeedForward(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(ops.mul(ops.silu(self.gate_proj(x)), self.up_proj(x)))


class Layer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = FeedForward(config)

    def forward(self, x, cos, sin):
        x = ops.add(x, self.self_attn(self.input_layernorm(x), cos, sin))
        return ops.add(x, self.mlp(self.post_attention_layernorm(x)))


class Llama(torch.nn.Module):
    """Tokens [U, S] -> logits [U, S, vocabulary]; the embedding is the last matrix, too."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = torch.nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, tokens):
        cos, sin = rotations(self.config, tokens.shape[1], tokens.device)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return ops.linear(self.norm(x), self.embed_tokens.weight)


def rotations(config, length, device):
    """Cosines and sines of positions, [S, D / 2], of functions that are the same everywhere."""
    size = config.hidden_size // config.num_attention_heads
    powers = torch.arange(0, size, 2, dtype=torch.float32) * (-1 / size)  # exact: size is 2^n
    frequencies = ops.pow(torch.tensor(config.rope_theta), powers)
    angles = ops.mul(torch.arange(length, dtype=torch.float32).unsqueeze(1), frequencies)
    return ops.cos(angles).to(device), ops.sin(angles).to(device)


def loss(model, tokens):
    """[U, S + 1] -> [U]: the mean of the losses of a sequence's tokens."""
    logits = model(tokens[:, :-1])
    losses = ops.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1), reduction="none"
    )
    return ops.mean(losses.reshape(len(tokens), -1), dim=1)


def initialise(model, seed=0):
    """Every matrix uniform in ±sqrt(3 / columns), from numbers that are the same everywhere."""
    generator = invar.Generator(seed)
    for w in model.parameters():
        if w.requires_grad and w.ndim == 2:
            bound = torch.tensor((3 / w.shape[1]) ** 0.5, dtype=torch.float32)
            drawn = ops.rand(*w.shape, generator=generator)
            with torch.no_grad():
                w.copy_(ops.mul(ops.sub(ops.mul(drawn, 2.0), 1.0), bound))


def text_tokens():
    """The tokens of shakespeare.txt by the tokenizer that ships: passage after passage, each with
    what the tokenizer adds at its beginning."""
    found = []
    for passage in (HERE / "shakespeare.txt").read_text().split("\n\n"):
        made = invar.generate(str(CHECKPOINT), passage.strip() + "\n", max_new_tokens=1)
        found += made.receipt["input"]["tokens"]
    return torch.tensor(found)


def sequences(tokens, length, units, device):
    """step -> the batch of that step: `units` sequences of `length` + 1 tokens of the text."""
    last = len(tokens) - length - 1

    def batch(step):
        begins = [(step * units + i) * 7919 % last for i in range(units)]
        return (torch.stack([tokens[b : b + length + 1] for b in begins]).to(device),)

    return batch
