"""The program of an ONNX model by a second reading of spec/program.md, clauses 8 to 16."""

import hashlib
import struct

import numpy as np
from onnx import AttributeProto, TensorProto, helper, inliner, numpy_helper

DTYPES = {
    TensorProto.FLOAT: "f32", TensorProto.BFLOAT16: "bf16", TensorProto.FLOAT16: "f16",
    TensorProto.DOUBLE: "f64", TensorProto.INT64: "i64", TensorProto.INT32: "i32",
    TensorProto.INT16: "i16", TensorProto.INT8: "i8", TensorProto.UINT64: "u64",
    TensorProto.UINT32: "u32", TensorProto.UINT16: "u16", TensorProto.UINT8: "u8",
    TensorProto.BOOL: "bool",
}  # fmt: skip


def string(text):  # plan.2
    data = text if isinstance(text, bytes) else text.encode()
    out = data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return (
        '"'
        + b"".join(b"\\x%02x" % c if c < 32 or c == 127 else bytes([c]) for c in out).decode()
        + '"'
    )


def listed(texts):
    return "[" + ", ".join(texts) + "]"


def binary32(x):
    return "0x%08x" % struct.unpack("<I", struct.pack("<f", x))


def dtype(code):
    return DTYPES.get(code, f"onnx{code}")


def constant_text(tensor):
    """DTYPE SHAPE sha256 HEX of a TensorProto."""
    if tensor.HasField("raw_data"):
        data = tensor.raw_data
    else:
        array = numpy_helper.to_array(tensor)
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    digest = hashlib.sha256(data).hexdigest()
    return f"{dtype(tensor.data_type)} {listed(map(str, tensor.dims))} sha256 {digest}"


def constant_of(node):
    """The TensorProto of a node Constant of numbers."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    (a,) = node.attribute
    kinds = {"value_int": (np.int64, a.i), "value_ints": (np.int64, list(a.ints)),
             "value_float": (np.float32, a.f), "value_floats": (np.float32, list(a.floats))}  # fmt: skip
    if a.name == "value":
        return a.t
    return numpy_helper.from_array(np.array(kinds[a.name][1], kinds[a.name][0]))


class Scope:
    def __init__(self, graph, outer):
        self.graph, self.outer = graph, outer
        self.primes = outer.primes + "'" if outer else ""
        self.made, self.constants = {}, {t.name: t for t in graph.initializer}
        for node in graph.node:
            constant = constant_of(node)
            for out in node.output:
                if constant is not None:
                    self.constants[out] = constant
                elif out:
                    self.made[out] = node
        self.values, self.entries, self.lines, self.count = {}, {}, [], 0

    def number(self):
        self.count += 1
        return f"v{self.count - 1}{self.primes}"


class Program:
    def __init__(self, model, choices, marks):
        self.opsets = {
            "" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import
        }
        self.marks = marks
        top = self.top = Scope(model.graph, None)
        dims = {}
        head = ["invar-program 1", 'recipe "onnx-1"', 'numerics "invar-1"', 'profile "fp32"',
                'operations "reproducible"', *(f"choice {c}" for c in sorted(choices))]  # fmt: skip
        for value in model.graph.input:
            if value.name in top.constants:
                continue
            kind, shape = value.type.tensor_type, "?"
            if kind.HasField("shape"):
                texts = []
                for d in kind.shape.dim:
                    if d.HasField("dim_value"):
                        texts.append(str(d.dim_value))
                    elif d.dim_param:
                        texts.append(dims.setdefault(d.dim_param, f"d{len(dims)}"))
                    else:
                        texts.append("?")
                shape = listed(texts)
            top.values[value.name] = name = top.number()
            top.lines.append(f"input {name} {dtype(kind.elem_type)} {shape} {string(value.name)}")
        outputs = [f"output {self.visit(top, o.name)} {string(o.name)}" for o in model.graph.output]
        self.text = "\n".join(head + top.lines + outputs) + "\n"

    def constant(self, tensor):
        text, top = constant_text(tensor), self.top
        if text not in top.entries:
            top.entries[text] = name = top.number()
            top.lines.append(f"constant {name} {text}")
        return top.entries[text]

    def visit(self, scope, name):
        """The text of a value, after the lines that it needs."""
        if isinstance(name, TensorProto):
            return self.constant(name)
        if not name:
            return "-"
        while scope:
            if name in scope.values:
                return scope.values[name]
            if name in scope.constants:
                return self.constant(scope.constants[name])
            if name in scope.made:
                self.node(scope, scope.made[name])
                return scope.values[name]
            scope = scope.outer
        raise KeyError(name)

    def node(self, scope, node):
        operands = [self.visit(scope, i) for i in node.input]
        if node.op_type == "Identity" and node.domain in ("", "ai.onnx"):
            scope.values[node.output[0]] = operands[0]
            return
        for read in reads_of_node(node)[len(operands) :]:
            self.visit(scope, read)
        while operands and operands[-1] == "-":
            operands.pop()
        domain = "" if node.domain == "ai.onnx" else node.domain
        attributes = sorted(
            (a for a in node.attribute if a.type != AttributeProto.GRAPH),
            key=lambda a: a.name.encode(),
        )
        shown = ", ".join(f"{string(a.name)}={attribute(a)}" for a in attributes)
        text = (
            f"{string(node.op_type)} {string(domain)} {self.opsets.get(domain, 0)} "
            f"{len(node.output)} ({', '.join(operands)}) {{{shown}}}"
        )
        for mark in sorted(self.marks.get(node.output[0], ())):
            text += f" choice {mark}"
        for body in bodies(node):
            inner = Scope(body.g, scope)
            for value in body.g.input:
                inner.values[value.name] = inner.number()
            given = ", ".join([self.visit(inner, o.name) for o in body.g.output])
            text += "\n" + "\n".join(
                [f"graph {string(body.name)} {len(body.g.input)}", *inner.lines, f"give ({given})"]
            )
        if text not in scope.entries:
            scope.entries[text] = name = scope.number()
            scope.lines.append(f"node {name} {text}")
        for i, out in enumerate(node.output):
            if out:
                scope.values[out] = scope.entries[text] + (f".{i}" if i else "")


def reads(graph):
    """What a body reads from around it, names or constants, in the order of a walk through it."""
    inner, seen, found = Scope(graph, None), {i.name for i in graph.input} | {""}, []

    def see(read):
        if isinstance(read, TensorProto):
            found.append(read)
        elif read not in seen:
            seen.add(read)
            if read in inner.made:
                for one in reads_of_node(inner.made[read]):
                    see(one)
            else:
                found.append(inner.constants.get(read, read))

    for out in graph.output:
        see(out.name)
    return found


def reads_of_node(node):
    return [*node.input, *(read for body in bodies(node) for read in reads(body.g))]


def bodies(node):
    return sorted(
        (a for a in node.attribute if a.type == AttributeProto.GRAPH),
        key=lambda a: a.name.encode(),
    )


def attribute(a):
    value = helper.get_attribute_value(a)
    if a.type == AttributeProto.TENSOR:
        return constant_text(value)
    if a.type == AttributeProto.FLOAT:
        return binary32(value)
    if a.type == AttributeProto.STRING:
        return string(value)
    if a.type == AttributeProto.FLOATS:
        return listed(map(binary32, value))
    if a.type == AttributeProto.STRINGS:
        return listed(map(string, value))
    return listed(map(str, value)) if a.type == AttributeProto.INTS else str(value)


def program_text(model, choices=(), marks=None):
    """The text. choices: those that were applied; marks: {first output of a node: [choice ...]}."""
    return Program(inliner.inline_local_functions(model), choices, marks or {}).text
