"""A Llama in invar.nn, with the names of a Hugging Face checkpoint. It is beside the script and not
shared with ../llama.py, since the receipt of the training binds its bytes."""

import invar
import torch
from invar import nn, ops

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": 2560,
    "hidden_size": 256,
    "intermediate_size": 896,
    "num_hidden_layers": 7,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": [2, 0],
    "pad_token_id": 0,
    "dtype": "bfloat16",
}
WIDTH, INNER, LAYERS = (
    CONFIG["hidden_size"],
    CONFIG["intermediate_size"],
    CONFIG["num_hidden_layers"],
)
HEADS, KV_HEADS, SIZE = (
    CONFIG["num_attention_heads"],
    CONFIG["num_key_value_heads"],
    CONFIG["head_dim"],
)
LENGTH = CONFIG["max_position_embeddings"]


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.k_proj = nn.Linear(WIDTH, KV_HEADS * SIZE, bias=False)
        self.v_proj = nn.Linear(WIDTH, KV_HEADS * SIZE, bias=False)
        self.o_proj = nn.Linear(HEADS * SIZE, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        def heads(y, count):
            return y.reshape(*x.shape[:2], count, SIZE).transpose(1, 2)

        q = ops.rope(heads(self.q_proj(x), HEADS), cos, sin)
        k = ops.rope(heads(self.k_proj(x), KV_HEADS), cos, sin)
        v = heads(self.v_proj(x), KV_HEADS)
        y = ops.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(*x.shape[:2], HEADS * SIZE))


class FeedForward(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.up_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(ops.mul(ops.silu(self.gate_proj(x)), self.up_proj(x)))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        norm = lambda: nn.RMSNorm(WIDTH, eps=CONFIG["rms_norm_eps"])
        self.input_layernorm, self.self_attn = norm(), Attention()
        self.post_attention_layernorm, self.mlp = norm(), FeedForward()

    def forward(self, x, cos, sin):
        x = ops.add(x, self.self_attn(self.input_layernorm(x), cos, sin))
        return ops.add(x, self.mlp(self.post_attention_layernorm(x)))


class Llama(torch.nn.Module):
    """Tokens [U, S] -> logits [U, S, vocabulary]; the embedding is the last matrix, too."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(CONFIG["vocab_size"], WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=CONFIG["rms_norm_eps"])
        self._rotations = {}

    def forward(self, tokens):
        length, device = tokens.shape[1], tokens.device
        if (length, device) not in self._rotations:
            self._rotations[length, device] = rotations(length, device)
        cos, sin = self._rotations[length, device]
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return ops.linear(self.norm(x), self.embed_tokens.weight)


def rotations(length, device):
    """Cosines and sines of positions, [S, D / 2], of functions that are the same everywhere."""
    powers = torch.arange(0, SIZE, 2, dtype=torch.float32) * (-1 / SIZE)  # exact: SIZE is 2^n
    frequencies = ops.pow(torch.tensor(CONFIG["rope_parameters"]["rope_theta"]), powers)
    angles = ops.mul(torch.arange(length, dtype=torch.float32).unsqueeze(1), frequencies)
    return ops.cos(angles).to(device), ops.sin(angles).to(device)


def loss(model, tokens):
    """[U, S + 1] -> [U]: the mean of the losses of a sequence's tokens."""
    logits = model(tokens[:, :-1])
    losses = ops.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1), reduction="none"
    )
    return ops.mean(losses.reshape(len(tokens), -1), dim=1)


def initialise(model, seed):
    """Every matrix uniform in ±sqrt(3 / columns), those that add to the residual stream in a
    quarter of that, from numbers that are the same everywhere."""
    generator = invar.Generator(seed)
    for name, w in model.named_parameters():
        if w.ndim == 2:
            scale = 0.25 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
            bound = torch.tensor(scale * (3 / w.shape[1]) ** 0.5, dtype=torch.float32)
            drawn = ops.rand(*w.shape, generator=generator)
            with torch.no_grad():
                w.copy_(ops.mul(ops.sub(ops.mul(drawn, 2.0), 1.0), bound))
