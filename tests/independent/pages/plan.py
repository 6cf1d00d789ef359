"""spec/plan.md: the text of a Llama's program, its digest and that of its weights."""

import hashlib
import re
import struct

from arithmetic.mutation import active
from pages.merkle import merkle_root, sha256


def float_text(x):
    """plan.2"""
    return f"0x{struct.unpack('<I', struct.pack('<f', x))[0]:08x}"


def quoted(text):
    """plan.2"""
    text = re.sub(r'(["\\\\])', r"\\\1", text)
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m.group(0)):02x}", text) + '"'


NUMERICS = {
    "add": "ieee", "attention": "attention-1", "cast": "convert-1", "cos": "correctly-rounded",
    "gather": "convert-1", "matmul": "fp32-1", "mul": "ieee", "reshape": "none",
    "rmsnorm": "row-1", "rope": "ieee", "silu": "graph-1", "sin": "correctly-rounded",
}  # fmt: skip


class Plan:
    """llama.11: nodes in the order of llama.6 to llama.9, weights as they are asked for."""

    def __init__(self, shape, tensors):
        self.shape, self.tensors = shape, tensors
        self.weights, self.nodes, self.values = {}, [], 0
        self.ids, self.positions = self.value(), self.value()
        self.turn = self.rotation()
        x = self.node("gather", [shape.hidden], self.weight(f"{shape.embedding}.weight"), self.ids)
        for layer in range(shape.layers):
            x = self.layer(x, layer, f"model.layers.{layer}")
        self.logits = self.linear(self.norm(x, "model.norm"), shape.output, shape.vocabulary)

    def value(self):
        self.values += 1
        return f"v{self.values - 1}"

    def weight(self, name):
        number = f"w{len(self.weights)}"
        return self.weights.setdefault(name, (number, self.tensors[name]))[0]

    def node(self, operation, shape, *operands, state="", **attributes):
        result = self.value()
        attributes["numerics"] = f'"{NUMERICS[operation]}"'
        inside = ", ".join(f"{k}={v}" for k, v in sorted(attributes.items()))
        sizes = ", ".join(["batch", "seq", *map(str, shape)])
        head = f"node {result}: f32 [{sizes}] = {operation}.1({', '.join(operands)})"
        self.nodes.append(f"{head}{state} {{{inside}}}")
        return result

    def rotation(self):
        half = [self.shape.head // 2]
        x = self.node("reshape", [1], self.node("cast", [], self.positions))
        angles = self.node("mul", half, x, self.weight("inv_freq"))
        turn = [self.node(f, half, angles) for f in ("cos", "sin")]
        if "attention_factor" in self.tensors:
            a = self.weight("attention_factor")
            turn = [self.node("mul", half, part, a) for part in turn]
        return turn

    def linear(self, x, name, rows):
        y = self.node("matmul", [rows], x, self.weight(f"{name}.weight"), trans_b=1)
        if f"{name}.bias" in self.tensors:
            y = self.node("add", [rows], y, self.weight(f"{name}.bias"))
        return y

    def norm(self, x, name):
        epsilon = float_text(self.shape.epsilon)
        w = self.weight(f"{name}.weight")
        return self.node("rmsnorm", [self.shape.hidden], x, w, epsilon=epsilon)

    def rope(self, x, heads):
        rotary = {"interleaved": 0, "num_heads": heads, "rotary_dim": 0}
        return self.node("rope", [heads * self.shape.head], x, *self.turn, **rotary)

    def layer(self, x, layer, name):
        s, attention = self.shape, f"{name}.self_attn"
        q_width, kv_width = s.heads * s.head, s.kv_heads * s.head
        y = self.norm(x, f"{name}.input_layernorm")
        q = self.linear(y, f"{attention}.q_proj", q_width)
        k = self.linear(y, f"{attention}.k_proj", kv_width)
        v = self.linear(y, f"{attention}.v_proj", kv_width)
        y = self.node(
            "attention", [q_width], self.rope(q, s.heads), self.rope(k, s.kv_heads), v,
            state=f" state s{layer}", causal=1, kv_heads=s.kv_heads, q_heads=s.heads,
            scale=float_text(s.scale),
        )  # fmt: skip
        y = self.linear(y, f"{attention}.o_proj", s.hidden)
        x = self.node("add", [s.hidden], x, y)
        y = self.norm(x, f"{name}.post_attention_layernorm")
        gate = self.linear(y, f"{name}.mlp.gate_proj", s.inner)
        up = self.linear(y, f"{name}.mlp.up_proj", s.inner)
        y = self.node("mul", [s.inner], self.node("silu", [s.inner], gate), up)
        return self.node("add", [s.hidden], x, self.linear(y, f"{name}.mlp.down_proj", s.hidden))

    def text(self):
        """plan.3, up to and without `places`."""
        lines = [
            "invar-plan 1",
            'numerics "invar-1"',
            'operations "reproducible"',
            "symbol batch",
            "symbol seq",
            *(f"weight {number} {weight_line(t)}" for number, t in self.weights.values()),
            *(f'state s{i} "past_key_values.{i}"' for i in range(self.shape.layers)),
            f'input {self.ids}: i64 [batch, seq] "input_ids"',
            f'input {self.positions}: i64 [batch, seq] "position_ids"',
            *self.nodes,
            f'output {self.logits} "logits"',
        ]
        return "".join(line + "\n" for line in lines)


def weight_line(tensor):
    shape = ", ".join(map(str, tensor.shape))
    return f"{quoted(tensor.name)} {tensor.dtype} [{shape}] sha256 {tensor.sha256}"


def program_digest(text):
    """plan.7"""
    return hashlib.sha256(text.encode()).hexdigest()


def weights_digest(tensors):
    """plan.8"""
    end = "" if active("weight_leaf_without_line_feed") else "\n"
    names = sorted(tensors, key=str.encode)
    return merkle_root([sha256((weight_line(tensors[n]) + end).encode()) for n in names]).hex()
