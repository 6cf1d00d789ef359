"""spec/llama.md, one position at a time: from token ids to rows of logits."""

import math

from library import LIBRARY, f32, floats, operation
from rotary import inverse_frequencies


class Shape:
    """llama.2: the sizes that config.json says."""

    def __init__(self, config, tensors):
        config = {key: value for key, value in config.items() if value is not None}
        self.hidden = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.head = config.get("head_dim", self.hidden // self.heads)
        self.inner = config["intermediate_size"]
        self.vocabulary = config["vocab_size"]
        self.layers = config["num_hidden_layers"]
        self.positions = config.get("max_position_embeddings", 2048)
        self.epsilon = f32(config.get("rms_norm_eps", 1e-6))
        self.scale = f32(1 / math.sqrt(self.head))
        # onnx.5: a table serves for the other if that is missing
        self.embedding, self.output = "model.embed_tokens", "lm_head"
        if f"{self.output}.weight" not in tensors:
            self.output = self.embedding
        elif f"{self.embedding}.weight" not in tensors:
            self.embedding = self.output


class Llama:
    def __init__(self, checkpoint):
        self.shape = Shape(checkpoint.config, checkpoint.tensors)
        self.inv_freq, self.factor = inverse_frequencies(checkpoint.config, self.shape.head)
        self.weights = {name: t.values() for name, t in checkpoint.tensors.items()}

    def session(self):
        return Session(self)

    def rotation(self, position):
        """llama.6: cos and sin of the angles of one position."""
        n = len(self.inv_freq)
        turn = floats(n), floats(n)
        LIBRARY.law_rotation(position, self.inv_freq, n, *turn)
        if self.factor == 1:
            return turn
        factors = floats(n)
        factors[:] = [self.factor] * n
        return tuple(operation("mul", part, factors, n, n=n) for part in turn)


class Session:
    """llama.10: the memory of one sequence, and a step for each token."""

    def __init__(self, model):
        self.model, self.shape, self.position = model, model.shape, 0
        row = self.shape.kv_heads * self.shape.head
        self.keys = [floats(self.shape.positions * row) for _ in range(self.shape.layers)]
        self.values = [floats(self.shape.positions * row) for _ in range(self.shape.layers)]

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
        s, n = self.shape, self.shape.hidden
        self.rotation = self.model.rotation(self.position)
        x = floats(n)
        x[:] = self.model.weights[f"{s.embedding}.weight"][token * n : (token + 1) * n]
        for layer in range(s.layers):
            name = f"model.layers.{layer}"
            y = self.attention(self.norm(x, f"{name}.input_layernorm"), layer, f"{name}.self_attn")
            x = operation("add", x, y, n, n=n)
            y = self.feed_forward(self.norm(x, f"{name}.post_attention_layernorm"), f"{name}.mlp")
            x = operation("add", x, y, n, n=n)
        self.position += 1
        if not logits:
            return None
        return self.linear(self.norm(x, "model.norm"), s.output)
