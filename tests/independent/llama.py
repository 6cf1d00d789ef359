"""A Llama, one position at a time: from token ids to rows of logits."""

from library import LIBRARY, at, f32, floats, operation
from rotary import inverse_frequencies


class Shape:
    """The sizes that config.json says."""

    def __init__(self, config):
        self.hidden = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.head = config.get("head_dim") or self.hidden // self.heads
        self.inner = config["intermediate_size"]
        self.vocabulary = config["vocab_size"]
        self.layers = config["num_hidden_layers"]
        self.epsilon = f32(config["rms_norm_eps"])
        self.tied = config.get("tie_word_embeddings", False)
        self.scale = f32(self.head**-0.5)


class Llama:
    def __init__(self, checkpoint):
        self.shape = Shape(checkpoint.config)
        self.inv_freq, self.rope_factor = inverse_frequencies(checkpoint.config, self.shape.head)
        self.weights = {name: t.values() for name, t in checkpoint.tensors.items()}
        self.keys = [[] for _ in range(self.shape.layers)]

    def session(self, positions):
        return Session(self, positions)


class Session:
    """The memory of one sequence of at most `positions` tokens."""

    def __init__(self, model, positions):
        self.model, self.shape, self.position = model, model.shape, 0
        row = self.shape.kv_heads * self.shape.head
        self.keys = [floats(positions * row) for _ in range(self.shape.layers)]
        self.values = [floats(positions * row) for _ in range(self.shape.layers)]

    def norm(self, x, name):
        w = self.model.weights[f"{name}.weight"]
        return operation("rms_norm", x, w, len(x), self.shape.epsilon, n=len(x))

    def linear(self, x, name):
        w = self.model.weights[f"{name}.weight"]
        rows = len(w) // len(x)
        y = operation("linear", x, w, rows, len(x), n=rows)
        bias = self.model.weights.get(f"{name}.bias")
        return operation("add", y, bias, rows, n=rows) if bias else y

    def attention(self, x, layer, name):
        s = self.shape
        q, k, v = (self.linear(x, f"{name}.{part}_proj") for part in "qkv")
        q = operation("rope", q, *self.rotation, s.heads, s.head, n=len(q))
        k = operation("rope", k, *self.rotation, s.kv_heads, s.head, n=len(k))
        here = self.position * len(k)
        self.keys[layer][here : here + len(k)] = k
        self.values[layer][here : here + len(v)] = v
        y = operation(
            "attention", q, self.keys[layer], self.values[layer], self.position, s.heads,
            s.kv_heads, s.head, s.head, s.scale, n=len(q),
        )  # fmt: skip
        return self.linear(y, f"{name}.o_proj")

    def feed_forward(self, x, name):
        gate, up = (self.linear(x, f"{name}.{part}_proj") for part in ("gate", "up"))
        n = len(gate)
        return self.linear(
            operation("mul", operation("silu", gate, n, n=n), up, n, n=n), f"{name}.down_proj"
        )

    def step(self, token, logits=True):
        """Takes one token; the logits of its position, if they are asked for."""
        s, weights = self.shape, self.model.weights
        self.rotation = floats(s.head // 2), floats(s.head // 2)
        LIBRARY.law_rotation(self.position, self.model.inv_freq, s.head // 2, *self.rotation)
        n = s.hidden
        x = floats(n)
        x[:] = weights["model.embed_tokens.weight"][token * n : (token + 1) * n]
        for layer in range(s.layers):
            name = f"model.layers.{layer}"
            y = self.attention(self.norm(x, f"{name}.input_layernorm"), layer, f"{name}.self_attn")
            x = operation("add", x, y, n, n=n)
            y = self.feed_forward(self.norm(x, f"{name}.post_attention_layernorm"), f"{name}.mlp")
            x = operation("add", x, y, n, n=n)
        self.position += 1
        if not logits:
            return None
        return self.linear(
            self.norm(x, "model.norm"), "model.embed_tokens" if s.tied else "lm_head"
        )
