"""Element types: whatever operands an operator is given, computed or constants, its result has the
type that ONNX says, or the node is refused by name. The oracle is the onnx package: its schemas,
its inference and, for operands that fit, its own node tests."""

import os
import re
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx.defs
import pytest
from conftest import ROOT, execute
from onnx import TensorProto, helper, numpy_helper

import sample

sys.path.insert(0, str(ROOT / "tools"))
import onnx_nodes  # noqa: E402

NAMES = {
    getattr(TensorProto, name): short
    for name, short in {
        "FLOAT": "f32",
        "FLOAT16": "f16",
        "BFLOAT16": "bf16",
        "DOUBLE": "f64",
        "INT8": "i8",
        "INT16": "i16",
        "INT32": "i32",
        "INT64": "i64",
        "UINT8": "u8",
        "UINT16": "u16",
        "UINT32": "u32",
        "UINT64": "u64",
        "BOOL": "bool",
    }.items()
}
# Tier 2 walks these and a third of the others, by the commit.
ALWAYS = {"Gather", "Add", "MatMul", "LayerNormalization", "QLinearMatMul"}
FLOATS = [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE]
CODES = {f"tensor({TensorProto.DataType.Name(code).lower()})": code for code in NAMES}
# Which operands are constants of the model file; the others are inputs of the graph.
KINDS = {
    "none": lambda i: False,
    "first": lambda i: i == 0,
    "others": lambda i: i > 0,
    "all": lambda i: True,
}


class Example:
    """A node of ONNX's tests, its operands, and the element types that its schema lets them
    have."""

    def __init__(self, case):
        graph = case.model.graph
        (self.node,) = graph.node
        self.opset = max(o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx"))
        self.schema = onnx.defs.get_schema(self.node.op_type, self.opset, "")
        given = {
            port.name: np.asarray(onnx_nodes.array_of(item))
            for port, item in zip(graph.input, case.data_sets[0][0])
        }
        self.arrays = [given.get(name) for name in self.node.input]  # None: absent
        allowed = {
            c.type_param_str: [CODES[t] for t in c.allowed_type_strs if t in CODES]
            for c in self.schema.type_constraints
        }
        last = len(self.schema.inputs) - 1
        variables = [self.schema.inputs[min(i, last)] for i in range(len(self.arrays))]
        self.variables = [v.type_str for v in variables]
        # Operands of a variadic input that may differ are of no variable.
        self.mixed = {v.type_str for v in variables if not v.is_homogeneous}
        self.allowed = {v: allowed[v] for v in self.variables if v in allowed}
        self.types = [
            a is not None and helper.np_dtype_to_tensor_dtype(a.dtype) for a in self.arrays
        ]

    def assignments(self):
        """One element type for each operand: each variable with each of its types, and all
        variables of floats together."""
        seen = [self.types]
        for chosen in [{v} for v in self.allowed] + [set(self.allowed)]:
            for code in sorted({c for v in chosen for c in self.allowed[v]}):
                if len(chosen) > 1 and code not in FLOATS:
                    continue
                types = [
                    code
                    if v in chosen and code in self.allowed[v] and (len(chosen) == 1 or t in FLOATS)
                    else t
                    for v, t in zip(self.variables, self.types)
                ]
                if types not in seen:
                    seen.append(types)
        return seen

    def forbidden(self, types):
        """The same with one operand of another type than those of its variable."""
        for v in set(self.allowed) - self.mixed:
            places = [
                i
                for i, name in enumerate(self.variables)
                if name == v and self.arrays[i] is not None
            ]
            others = [c for c in self.allowed[v] if places and c != types[places[0]]]
            for i in places[1:] and others and (places[0], places[-1]):
                # Of the same kind where there is one: that is what could be mistaken for a type
                # that fits.
                others.sort(key=lambda c: (c in FLOATS) != (types[i] in FLOATS))
                yield [others[0] if at == i else t for at, t in enumerate(types)]

    def model(self, types, kinds, declared):
        nodes, inputs, weights = [], {}, {}
        for kind in kinds:
            node = onnx.NodeProto()
            node.CopyFrom(self.node)
            node.name = kind
            for i, array in enumerate(self.arrays):
                if array is None:
                    continue
                constant = KINDS[kind](i)
                node.input[i] = f"{'w' if constant else 'x'}{i}"
                if constant:
                    weights[node.input[i]] = numpy_helper.from_array(
                        self.cast(array, types[i]), node.input[i]
                    )
                else:
                    inputs[node.input[i]] = helper.make_tensor_value_info(
                        node.input[i], types[i], array.shape
                    )
            for i, name in enumerate(node.output):
                node.output[i] = name and f"{kind}{i}"
            nodes.append(node)
        outputs = [
            helper.make_tensor_value_info(f"{kind}{i}", declared[i], None)
            for kind in kinds
            for i in declared
        ]
        graph = helper.make_graph(
            nodes, "types", list(inputs.values()), outputs, list(weights.values())
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10
        )

    @staticmethod
    def cast(array, code):
        with np.errstate(all="ignore"):
            return array.astype(helper.tensor_dtype_to_np_dtype(code))

    def results(self, types):
        """Number of a result -> its element type by ONNX."""
        variables = {v: t for v, t in zip(self.variables, types) if t}
        last = len(self.schema.outputs) - 1
        of_schema = {}
        for i, name in enumerate(self.node.output):
            said = self.schema.outputs[min(i, last)].type_str
            if name and (variables.get(said) or CODES.get(said)):
                of_schema[i] = variables.get(said) or CODES[said]
        model = self.model(types, ["none"], {})
        for i, name in enumerate(self.node.output):
            if name:
                model.graph.output.add().name = f"none{i}"
        inferred = onnx.shape_inference.infer_shapes(model).graph
        found = {
            v.name: v.type.tensor_type.elem_type for v in [*inferred.output, *inferred.value_info]
        }
        # The schema is the law: of RMSNormalization the inference says another type than it does.
        return {
            i: of_schema.get(i) or found.get(f"none{i}")
            for i, name in enumerate(self.node.output)
            if name
        }


def examples():
    """Of each operator of ONNX the node test that gives it the most operands."""
    best = {}
    for case in onnx_nodes.load().values():
        nodes = case.model.graph.node
        if (
            len(nodes) != 1
            or onnx_nodes.outside(case)
            or nodes[0].op_type in onnx_nodes.RANDOM
            or not nodes[0].input
        ):
            continue
        size = len([name for name in nodes[0].input if name])
        if nodes[0].op_type not in best or size > best[nodes[0].op_type][0]:
            best[nodes[0].op_type] = size, case
    return {
        op: Example(case)
        for op, (_, case) in sorted(best.items())
        if not any(
            a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
            for a in case.model.graph.node[0].attribute
        )
    }


def compiled(folder, model):
    """-> (exit code, what it says, output -> element type in the plan)."""
    onnx.save(model, folder / "m.onnx")
    done = execute(["compile", folder / "m.onnx", "--output", folder / "plan.invar"])
    if done.code:
        return done.code, done.text, {}
    plan = (folder / "plan.invar").read_text()
    types = dict(re.findall(r"\b([vw]\d+): (\w+) \[", plan))
    return (
        0,
        "",
        {
            name: types[v]
            for v, name in re.findall(r"^output (\w+) \"([^\"]*)\"", plan, re.MULTILINE)
        },
    )


def walk(example, folder):
    """What is not as ONNX has it, how many nodes were compiled, and how many wrong ones refused."""
    folder.mkdir()
    wrong, passed, refusals = [], defaultdict(list), 0
    for types in example.assignments():
        results = example.results(types)
        if not all(results.values()):  # no result fits, as of a BitCast to another width
            continue
        kinds = list(KINDS)
        code, said, found = compiled(folder, example.model(types, kinds, results))
        for kind in kinds if code else []:
            code, said, one = compiled(folder, example.model(types, [kind], results))
            found |= one
            if code not in (0, 3) or (code == 3 and example.node.op_type not in said):
                wrong.append(([NAMES.get(t, "") for t in types], kind, code, said))
        for name, dtype in found.items():
            kind, i = re.fullmatch(r"([a-z]+)(\d+)", name).groups()
            passed[kind].append(types)
            if dtype != NAMES[results[int(i)]]:
                wrong.append(
                    ([NAMES.get(t, "") for t in types], name, dtype, NAMES[results[int(i)]])
                )
    for kind, all_types in passed.items():
        for types in all_types[:1] + [t for t in all_types if t[0] == TensorProto.FLOAT16][:1]:
            for mixed in example.forbidden(types):
                code, said, _ = compiled(
                    folder, example.model(mixed, [kind], example.results(types))
                )
                if code != 2 or example.node.op_type not in said:
                    wrong.append((["mixed", *(NAMES.get(t, "") for t in mixed)], kind, code, said))
                refusals += 1
    return wrong, sum(map(len, passed.values())), refusals


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    all_of_them = {
        op: example
        for op, example in examples().items()
        if sample.TIER != 2 or op in ALWAYS or sample.turn(op, 3) == 0
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(
            zip(all_of_them, pool.map(lambda op: walk(all_of_them[op], folder / op), all_of_them))
        )


def test_results_have_the_types_of_onnx(walked):
    assert not {op: wrong for op, (wrong, _, _) in walked.items() if wrong}


def test_the_walk_reaches_the_operators(walked):
    reached = [op for op, (_, passed, _) in walked.items() if passed]
    assert ALWAYS <= set(reached)
    if sample.TIER != 2:
        assert len(reached) > 140
        assert sum(passed for _, passed, _ in walked.values()) > 2000
        assert sum(refusals for _, _, refusals in walked.values()) > 150
