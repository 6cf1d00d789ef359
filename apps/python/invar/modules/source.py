"""A plan's description (_native.describe) -> the source of a torch module."""

import functools
import importlib
import keyword
import re
from dataclasses import dataclass, replace

import numpy as np

from invar import _native
from invar.modules import dims

TORCH = {
    "f32": "torch.float32",
    "bf16": "torch.bfloat16",
    "f16": "torch.float16",
    "f64": "torch.float64",
    "i64": "torch.int64",
    "i32": "torch.int32",
    "i16": "torch.int16",
    "i8": "torch.int8",
    "u64": "torch.uint64",
    "u32": "torch.uint32",
    "u16": "torch.uint16",
    "u8": "torch.uint8",
    "bool": "torch.bool",
}
NARROW = ("bf16", "f16")
SIGNED = {"u16": "i16", "u32": "i32", "u64": "i64"}
USED = {
    "Model",
    "Module",
    "float",
    "functional",
    "max",
    "min",
    "primitives",
    "rooms",
    "torch",
}  # names that emitted code reads


@dataclass
class Call:
    """A node as the rooms' spellings see it: c[0] is the text of an operand, c.axis an attribute
    (None where it is absent)."""

    op: str
    operands: list[str]
    attributes: dict
    operand_types: list[tuple[str, list]]
    type: tuple[str, list]

    def __getitem__(self, i):
        """Kernels widen narrow operands as they read them; torch is told to."""
        widened = self.type[0] == "f32" and self.operand_types[i][0] in NARROW and self.op != "cast"
        return self.operands[i] + ".float()" if widened else self.operands[i]

    def __len__(self):
        return len(self.operands)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.attributes.get(name)

    def text(self, name):
        return literal(self.attributes[name])

    def get(self, name, default):
        return self.attributes.get(name, default)

    def rank(self, i=0):
        return len(self.operand_types[i][1])

    @property
    def dtype(self):
        return TORCH[self.type[0]]

    @property
    def shape(self):
        return text_of(self.type[1])

    def as_signed(self, spelled):
        """The text for signed integers of the same bits: torch moves unsigned ones of 16 bits and
        more, and does little else."""
        if not any(t in SIGNED for t, _ in self.operand_types):
            return in_text(spelled, self)
        operands = [
            f"{x}.view({TORCH[SIGNED[t]]})" if t in SIGNED else x
            for x, (t, _) in zip(self.operands, self.operand_types)
        ]
        types = [(SIGNED.get(t, t), shape) for t, shape in self.operand_types]
        result = SIGNED.get(self.type[0], self.type[0]), self.type[1]
        text = in_text(spelled, replace(self, operands=operands, operand_types=types, type=result))
        return f"({text}).view({self.dtype})" if result[0] != self.type[0] else text

    def refused(self, why):
        return _native.NotCovered(
            f"{self.op}: torch has none {why}; requires_reproducibility=True does it"
        )

    def shape_of(self, i):
        return text_of(self.operand_types[i][1])

    def keywords(self, *names):
        """Attributes as keywords: all, or these."""
        chosen = names or sorted(self.attributes)
        return "".join(
            f", {keyword_of(n)}={literal(self.attributes[n])}"
            for n in chosen
            if n in self.attributes
        )


def keyword_of(name):
    if not name.isidentifier() or keyword.iskeyword(name):
        raise _native.BadInput(f"attribute {name!r}: no name of Python")
    return name


def literal(value):
    """An attribute in Python; a number of f32 in as few digits as name it."""
    if not isinstance(value, float):
        return repr(value)
    if not np.isfinite(value):
        return f'float("{value}")'
    return repr(float(str(np.float32(value))))


def text_of(shape):
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def identifier(name, taken):
    """A name of the model as Python's, like no other."""
    base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
    if base[0].isdigit() or keyword.iskeyword(base) or base in USED or base == "self":
        base = "_" + base
    found, n = base, 2
    while found in taken:
        found, n = f"{base}_{n}", n + 1
    taken.add(found)
    return found


@functools.cache
def spellings():
    """Operation -> how torch says it, of all rooms."""
    from invar import rooms

    return {
        op: spelled
        for name in rooms.NAMES
        for op, spelled in importlib.import_module(f"invar.rooms.{name}").SPELLED.items()
    }


def in_torch(call):
    spelled = spellings().get(call.op)
    if spelled is None:
        raise _native.NotCovered(
            f"{call.op}: torch has no spelling of it here; requires_reproducibility=True has it"
        )
    return in_text(spelled, call)


def in_text(spelled, call):
    if callable(spelled):
        return spelled(call)
    attributes = {name: literal(value) for name, value in call.attributes.items()}
    return spelled.format(
        *(call[i] for i in range(len(call))), shape=call.shape, dtype=call.dtype, **attributes
    )


@functools.lru_cache(4096)
def follows(op, attributes, operands):
    """The type of the result as the operation infers it; None: it does not."""
    try:
        return _native.infer(
            op,
            {k: list(v) if isinstance(v, tuple) else v for k, v in attributes},
            [(d, list(s)) for d, s in operands],
        )
    except _native.Error:
        return None


def in_invar(call, operands, result):
    """With shape= and dtype= where they do not follow from the operands. `operands`, `result`:
    types of numbers alone."""
    frozen = tuple(
        (k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(call.attributes.items())
    )
    kept = follows(call.op, frozen, operands)
    text = f"primitives.{call.op}({', '.join(call.operands)}{call.keywords()}"
    if kept is None or (kept[0], tuple(kept[1])) != result:
        text += (
            f"{', ' if call.operands or call.attributes else ''}shape={call.shape}, "
            f"dtype={call.type[0]!r}"
        )
    return (text + ")").replace("(, ", "(")


class Source:
    def __init__(self, plan, reproducible):
        self.plan, self.reproducible = plan, reproducible
        taken = set(dir_of_module())
        self.weights = [identifier(w["name"], taken) for w in plan["weights"]]
        self.symbols = {
            s: identifier(s, taken) for s in plan["symbols"] if s.isidentifier()
        }  # others are computed (plan.12)
        self.names = {v: identifier(name, taken) for name, v in plan["inputs"]}
        # Distinct numbers for the dimensions that a call decides: what does not follow for them
        # does not follow.
        self.sizes = {s: 101 + 2 * i for i, s in enumerate(self.symbols)}
        self.taken = taken
        self.last, self.kept = {}, {v for _, v in plan["outputs"]} | {v for _, v in plan["inputs"]}
        for block in (plan, *plan["bodies"]):
            for i, node in enumerate(block["nodes"]):
                self.last.update((v, i) for kind, v in node["in"] if kind == "value")
        for body in plan["bodies"]:
            self.kept.update(body["inputs"], body["outputs"])
        self.bound = {name for name, _, _ in plan["bindings"]}
        given = {d for _, v in plan["inputs"] for d in plan["values"][v][1]}
        flows = [
            node for block in (plan, *plan["bodies"]) for node in block["nodes"] if node["bodies"]
        ]
        shaped = [v for node in flows for v in node["out"]] + [
            v for body in plan["bodies"] for v in body["inputs"]
        ]
        # Symbols that the shapes of such values decide, where they are met first.
        self.met = (
            {d for v in shaped for d in plan["values"][v][1] if d in self.symbols}
            - given
            - self.bound
        )
        self.bound |= self.met
        self.waiting = {
            s: set(dims.NAME.findall(s)) & self.bound
            for s in plan["symbols"]
            if s not in self.symbols and "-" in s
        }

    def shape(self, shape):
        return [self.in_python(d) if isinstance(d, str) else d for d in shape]

    def in_python(self, dim):
        return dims.in_python(dims.NAME.sub(lambda name: self.symbols[name[0]], dim))

    def type_of(self, v):
        dtype, shape = self.plan["values"][v]
        return dtype, self.shape(shape)

    def known(self, kind, i):
        dtype, shape = (
            self.plan["values"][i]
            if kind == "value"
            else (self.plan["weights"][i]["dtype"], self.plan["weights"][i]["shape"])
        )
        return dtype, tuple(dims.value(d, self.sizes) for d in shape)

    def operand(self, kind, i):
        if kind == "value":
            return self.names[i], self.type_of(i)
        w = self.plan["weights"][i]
        return f"self.{self.weights[i]}", (w["dtype"], w["shape"])

    def name(self, v, like):
        self.names[v] = identifier(like, self.taken)
        return self.names[v]

    def line(self, i, node):
        (out,) = node["out"]
        type = self.type_of(out)
        operands = [self.operand(kind, v) for kind, v in node["in"]]
        call = Call(
            node["op"],
            [name for name, _ in operands],
            node["attributes"],
            [t for _, t in operands],
            type,
        )
        known = lambda: (
            tuple(self.known(*operand) for operand in node["in"]),
            self.known("value", out),
        )
        text = in_invar(call, *known()) if self.reproducible else in_torch(call)
        return self.name(out, f"{node['op']}_{i}") + f" = {text}"

    def gone(self, i, node):
        gone = sorted(
            {
                self.names[v]
                for kind, v in node["in"]
                if kind == "value" and self.last[v] == i and v not in self.kept
            }
        )
        return f"; del {', '.join(gone)}" if gone else ""

    def flow(self, i, node):
        """A loop or an if: its bodies as functions, and what runs them."""
        bodies = [identifier(f"body_{b}", self.taken) for b in node["bodies"]]
        lines = [
            line
            for b, name in zip(node["bodies"], bodies)
            for line in self.body(name, self.plan["bodies"][b])
        ]
        operands = [self.names[v] for _, v in node["in"]]
        if node["op"] == "if":
            text = f"({bodies[0]} if self.holds({operands[0]}) else {bodies[1]})({', '.join(operands[1:])})"
        else:
            carried = node["attributes"]["carried"]
            known = lambda d: (
                0 if dims.NAME.search(str(d)) and set(dims.NAME.findall(str(d))) & self.met else d
            )
            rows = [
                (dtype, self.shape(map(known, shape[1:])))
                for dtype, shape in (self.plan["values"][v] for v in node["out"][carried:])
            ]
            rows = ", ".join(f"({TORCH[dtype]}, {text_of(shape)})" for dtype, shape in rows)
            tuple_of = lambda names: f"({', '.join(names)}{',' if len(names) == 1 else ''})"
            text = (
                f"self.loop({bodies[0]}, {operands[0]}, {operands[1]}, "
                f"{tuple_of(operands[2 : 2 + carried])}, {tuple_of(operands[2 + carried :])}, [{rows}])"
            )
        results = [self.name(v, f"{node['op']}_{i}") for v in node["out"]]
        return [*lines, f"{', '.join(results)}{',' if len(results) == 1 else ''} = {text}"]

    def body(self, name, body):
        takes = [self.name(v, f"{name}_{i}") for i, v in enumerate(body["inputs"])]
        lines = [*self.sizes_of(body["inputs"]), *self.block(body["nodes"])]
        gives = ", ".join(self.names[v] for v in body["outputs"])
        return [
            "",
            f"def {name}({', '.join(takes)}):",
            *(f"    {line}" if line else "" for line in lines),
            f"    return {gives},",
            "",
        ]

    def block(self, nodes):
        lines = []
        for i, node in enumerate(nodes):
            lines += self.flow(i, node) if node["bodies"] else [self.line(i, node)]
            lines[-1] += self.gone(i, node)
            lines += self.sizes_of(node["out"])
        return lines

    def sizes_of(self, values):
        """Lines for the sizes that these values decide."""
        lines = []

        def add(name, text):
            lines.append(f"{self.symbols[name]} = {text}")
            for computed, names in self.waiting.items():
                if name in names and not names.discard(name) and not names:
                    lines.append(f"self.computed({self.in_python(computed)}, {computed!r})")

        for v in values:
            for axis, d in enumerate(self.plan["values"][v][1]):
                if d in self.met:
                    self.met.discard(d)
                    add(d, f"{self.names[v]}.shape[{axis}]")
        for name, v, element in self.plan["bindings"]:
            if v in values:
                add(name, f"self.size({self.names[v]}, {element}, {name!r})")
        return lines

    def text(self):
        plan = self.plan
        lines = self.sizes_of([v for _, v in plan["inputs"]]) + self.block(plan["nodes"])
        inputs = [self.names[v] for _, v in plan["inputs"]]
        outputs = [self.names[v] for _, v in plan["outputs"]]
        body = "\n".join(f"        {line}" if line else "" for line in lines)
        imports = "import torch\n" if "torch." in body.replace("self.", "") else ""
        imports += "import torch.nn.functional as functional\n" if "functional." in body else ""
        from_invar = [n for n in ("primitives", "rooms") if f"{n}." in body]
        imports += "\n" if imports else ""
        imports += f"from invar import {', '.join(from_invar)}\n" if from_invar else ""
        used = [self.symbols[s] for s in self.symbols if s not in self.bound]
        table = lambda rows: (
            "{\n" + "".join(f"        {key!r}: {value!r},\n" for key, value in rows) + "    }"
        )
        ports = [
            (name, (dtype, tuple(shape)))
            for name, v in plan["inputs"]
            for dtype, shape in [plan["values"][v]]
        ]
        weights = [
            (n, (w["dtype"], tuple(w["shape"]), w["file"], w["offset"]))
            for n, w in zip(self.weights, plan["weights"])
        ]
        order = self.order(ports)
        sizes = f"{', '.join(order)}{',' if len(order) == 1 else ''} = " if order else ""
        assert sorted(order) == sorted(used), "a dimension that no input has"
        kind = (
            "Invar's reproducible operations" if self.reproducible else "plain operations of torch"
        )
        return (
            f'"""Made by invar {_native.__version__} of program {plan["digest"]}: {kind}."""\n\n'
            f"{imports}from invar.modules.emitted import Module\n\n\n"
            f"class Model(Module):\n    INPUTS = {table(ports)}\n    WEIGHTS = {table(weights)}\n\n"
            f"    def forward(self{''.join(', ' + i for i in inputs)}):\n"
            f"        {sizes}self.sizes({', '.join(inputs)})\n{body}\n"
            f"        return {', '.join(outputs)}\n"
        )

    def order(self, ports):
        return list(
            dict.fromkeys(
                self.symbols[d] for _, (_, shape) in ports for d in shape if d in self.symbols
            )
        )


def dir_of_module():
    """Names that an emitted class has already."""
    import torch

    return {
        *dir(torch.nn.Module()),
        "INPUTS",
        "WEIGHTS",
        "computed",
        "holds",
        "load",
        "loop",
        "size",
        "sizes",
    }


def source(plan, reproducible):
    return Source(plan, reproducible).text()
