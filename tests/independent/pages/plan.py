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


class Plan:
    """plan.3: lines in the order in which they are asked for."""

    def __init__(self):
        self.weights, self.lines, self.values = {}, [], 0

    def value(self):
        self.values += 1
        return f"v{self.values - 1}"

    def weight(self, tensor):
        self.weights.setdefault(tensor.name, (f"w{len(self.weights)}", tensor))
        return self.weights[tensor.name][0]

    def node(self, operation, shape, operands, state="", **attributes):
        result = self.value()
        inside = ", ".join(f"{k}={v}" for k, v in sorted(attributes.items()))
        sizes = ", ".join(["batch", "seq", *map(str, shape)])
        head = f"node {result}: f32 [{sizes}] = {operation}.1({', '.join(operands)})"
        self.lines.append(f"{head}{state} {{{inside}}}")
        return result


def plan_text(shape, tensors):
    """The program up to and without `places`; tensors by name, with inv_freq."""
    plan = Plan()
    ids, positions = plan.value(), plan.value()

    def w(name):
        return plan.weight(tensors[name])

    def linear(x, name, rows):
        operands = [x, w(f"{name}.weight")]
        y = plan.node("matmul", [rows], operands, numerics='"fp32-1"', trans_b=1)
        if f"{name}.bias" in tensors:
            y = plan.node("add", [rows], [y, w(f"{name}.bias")], numerics='"ieee"')
        return y

    def norm(x, name):
        epsilon = float_text(shape.epsilon)
        operands = [x, w(f"{name}.weight")]
        return plan.node("rmsnorm", [shape.hidden], operands, epsilon=epsilon, numerics='"row-1"')

    half = shape.head // 2
    x = plan.node("cast", [], [positions], numerics='"convert-1"')
    x = plan.node("reshape", [1], [x], numerics='"none"')
    angles = plan.node("mul", [half], [x, w("inv_freq")], numerics='"ieee"')
    turn = [plan.node(f, [half], [angles], numerics='"correctly-rounded"') for f in ("cos", "sin")]
    if "attention_factor" in tensors:
        a = w("attention_factor")
        turn = [plan.node("mul", [half], [part, a], numerics='"ieee"') for part in turn]
    x = plan.node(
        "gather", [shape.hidden], [w(f"{shape.embedding}.weight"), ids], numerics='"convert-1"'
    )
    for layer in range(shape.layers):
        name = f"model.layers.{layer}"
        y = norm(x, f"{name}.input_layernorm")
        q_width, kv_width = shape.heads * shape.head, shape.kv_heads * shape.head
        q = linear(y, f"{name}.self_attn.q_proj", q_width)
        k = linear(y, f"{name}.self_attn.k_proj", kv_width)
        v = linear(y, f"{name}.self_attn.v_proj", kv_width)
        rotary = {"interleaved": 0, "numerics": '"ieee"', "rotary_dim": 0}
        q = plan.node("rope", [q_width], [q, *turn], num_heads=shape.heads, **rotary)
        k = plan.node("rope", [kv_width], [k, *turn], num_heads=shape.kv_heads, **rotary)
        y = plan.node(
            "attention", [q_width], [q, k, v], f" state s{layer}", causal=1,
            kv_heads=shape.kv_heads, numerics='"attention-1"', q_heads=shape.heads,
            scale=float_text(shape.scale),
        )  # fmt: skip
        y = linear(y, f"{name}.self_attn.o_proj", shape.hidden)
        x = plan.node("add", [shape.hidden], [x, y], numerics='"ieee"')
        y = norm(x, f"{name}.post_attention_layernorm")
        gate = linear(y, f"{name}.mlp.gate_proj", shape.inner)
        up = linear(y, f"{name}.mlp.up_proj", shape.inner)
        gate = plan.node("silu", [shape.inner], [gate], numerics='"graph-1"')
        y = plan.node("mul", [shape.inner], [gate, up], numerics='"ieee"')
        y = linear(y, f"{name}.mlp.down_proj", shape.hidden)
        x = plan.node("add", [shape.hidden], [x, y], numerics='"ieee"')
    x = norm(x, "model.norm")
    logits = linear(x, shape.output, shape.vocabulary)
    return "\n".join(
        [
            "invar-plan 1",
            'numerics "invar-1"',
            'operations "reproducible"',
            "symbol batch",
            "symbol seq",
            *(f"weight {number} {weight_line(t)}" for number, t in plan.weights.values()),
            *(f'state s{i} "past_key_values.{i}"' for i in range(shape.layers)),
            f'input {ids}: i64 [batch, seq] "input_ids"',
            f'input {positions}: i64 [batch, seq] "position_ids"',
            *plan.lines,
            f'output {logits} "logits"',
            "",
        ]
    )


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
