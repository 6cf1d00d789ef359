"""spec/llama.md, one position at a time: from token ids to rows of logits."""

import math

from arithmetic.library import f32, floats, operation, row
from arithmetic.mutation import active
from pages.files.adapter import PREFIX
from pages.program import llama_parameters
from pages.rotary import inverse_frequencies


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
        root = math.sqrt(self.head)
        self.scale = f32(1 / (f32(root) if active("scale_rounds_twice") else root))
        # onnx.5: a table serves for the other if that is missing
        self.embedding, self.output = "model.embed_tokens", "lm_head"
        if f"{self.output}.weight" not in tensors:
            self.output = self.embedding
        elif f"{self.embedding}.weight" not in tensors:
            self.embedding = self.output


class Llama:
    recipe = "llama-1"

    def __init__(self, checkpoint, profile="fp32"):
        kind = "" if profile == "fp32" else "_exact16"  # exact16.7
        self.product, self.attention = f"linear{kind}", f"attention{kind}"
        self.config, self.shape = checkpoint.config, Shape(checkpoint.config, checkpoint.tensors)
        self.inv_freq, self.factor = inverse_frequencies(checkpoint.config, self.shape.head)
        self.weights = {name: t.values() for name, t in checkpoint.tensors.items()}
        self.scales = checkpoint.adapter.modules if checkpoint.adapter else {}

    def parameters(self):
        return llama_parameters(self.config, self.shape)

    def session(self):
        return Session(self)


def ignore(name, value):
    """Watches nothing."""


class Session:
    """llama.10: the memory of one sequence, and a step for each token."""

    def __init__(self, model):
        self.model, self.shape, self.position = model, model.shape, 0
        self.watch = ignore
        size = self.shape.positions * self.shape.kv_heads * self.shape.head
        self.keys = [floats(size) for _ in range(self.shape.layers)]
        self.values = [floats(size) for _ in range(self.shape.layers)]

    def watched(self, name, value):
        """`value`, of which `watch` is told by its name in llama.6 to llama.9."""
        self.watch(name, value)
        return value

    def rotation(self):
        """llama.6: cos and sin of the angles of this position."""
        n, factor = len(self.model.inv_freq), self.model.factor
        position = self.position + (1 if active("positions_from_one") else 0)
        t = row(*[position] * n)
        angles = self.watched("angles", operation("mul", t, self.model.inv_freq, n, n=n))
        turn = [operation(f, angles, n, n=n) for f in ("cosines", "sines")]
        if factor != 1:
            turn = [operation("mul", part, row(*[factor] * n), n, n=n) for part in turn]
        for name, part in zip(("cos", "sin"), turn):
            self.watch(name, part)
        return turn

    def norm(self, x, name):
        w = self.model.weights[f"{name}.weight"]
        return operation("rms_norm", x, w, len(x), self.shape.epsilon, n=len(x))

    def linear(self, x, name):
        w = self.model.weights[f"{name}.weight"]
        rows = len(w) // len(x)
        y = operation(self.model.product, x, w, rows, len(x), n=rows)
        bias = self.model.weights.get(f"{name}.bias")
        y = operation("add", y, bias, rows, n=rows) if bias else y
        # weights.23: the table of logits counts as a layer, also where it serves twice.
        module = "lm_head" if name == "model.embed_tokens" else name
        scale = self.model.scales.get(module)
        return y if scale is None else self.adapted(x, y, module, scale)

    def adapted(self, x, y, name, scale):
        """weights.23: add(y, mul(matmul(matmul(x, A), B), s))"""
        for part in "AB":
            w = self.model.weights[f"{PREFIX}{name}.lora_{part}.weight"]
            n = len(w) // len(x)
            if part == "B" and active("scale_before_the_second_product"):
                x = operation("mul", x, row(*[scale] * len(x)), len(x), n=len(x))
            x = operation(self.model.product, x, w, n, len(x), n=n)
        if scale != 1 and not active("scale_before_the_second_product"):
            x = operation("mul", x, row(*[scale] * n), n, n=n)
        return operation("add", y, x, n, n=n)

    def attention(self, x, layer, name):
        s = self.shape
        q, k, v = (self.watched(p, self.linear(x, f"{name}.{p}_proj")) for p in "qkv")
        q = self.watched("q′", operation("rope", q, *self.turn, s.heads, s.head, s.head, n=len(q)))
        k = self.watched(
            "k′", operation("rope", k, *self.turn, s.kv_heads, s.head, s.head, n=len(k))
        )
        here = self.position * len(k)
        self.keys[layer][here : here + len(k)] = k
        self.values[layer][here : here + len(v)] = v
        y = operation(
            self.model.attention, q, self.keys[layer], self.values[layer], self.position, s.heads,
            s.kv_heads, s.head, s.head, s.scale, n=len(q),
        )  # fmt: skip
        return self.watched("p", self.linear(self.watched("o", y), f"{name}.o_proj"))

    def feed_forward(self, x, name):
        g = self.watched("g", self.linear(x, f"{name}.gate_proj"))
        u = self.watched("u", self.linear(x, f"{name}.up_proj"))
        n = len(g)
        s = self.watched("s", operation("silu", g, n, n=n))
        h = self.watched("h", operation("mul", s, u, n, n=n))
        return self.watched("z", self.linear(h, f"{name}.down_proj"))

    def step(self, token, logits=True):
        """Takes one token; the logits of its position, if they are asked for."""
        s, n = self.shape, self.shape.hidden
        self.turn = self.rotation()
        table = self.model.weights[f"{s.embedding}.weight"]
        x = self.watched("x", row(*table[token * n : (token + 1) * n]))
        for layer in range(s.layers):
            name = f"model.layers.{layer}"
            y = self.watched("n", self.norm(x, f"{name}.input_layernorm"))
            x = operation("add", x, self.attention(y, layer, f"{name}.self_attn"), n, n=n)
            self.watch("y", x)
            y = self.watched("m", self.norm(x, f"{name}.post_attention_layernorm"))
            x = operation("add", x, self.feed_forward(y, f"{name}.mlp"), n, n=n)
            self.watch("x", x)
        self.position += 1
        if not logits:
            return None
        y = self.watched("n", self.norm(x, "model.norm"))
        return self.watched("logits", self.linear(y, s.output))
