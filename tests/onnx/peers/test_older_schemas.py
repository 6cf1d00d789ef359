"""Every operator of ONNX at the first opset of each of its schemas: Invar computes what ONNX
Runtime does with that very file, or where it has no such kernel, what the newest schema says of the
same operands; or the operator is on a list here with what is missing."""

import functools
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import invar, refused
from onnx import helper, numpy_helper
from onnx.defs import get_all_schemas_with_history
from onnx.reference import ReferenceEvaluator

# Operators that no rule lowers, by what they are.
NOT_COVERED = {
    "random numbers without a seed": "Bernoulli Multinomial",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit",
    "pictures": "ImageDecoder",
    "pooling of regions": "MaxRoiPool",
    "sequences that are results": "Optional SequenceMap",
}
# Lowered before the rules, in one meaning for all opsets (test_sequences_of_tensors.py); random
# numbers are Invar's own (test_exporters.py); control flow has graphs (tests/compiler).
ELSEWHERE = """ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
SequenceLength SplitToSequence OptionalGetElement OptionalHasElement RandomNormal RandomNormalLike
RandomUniform RandomUniformLike If Loop Scan Constant""".split()
# From which opset on the node tests of the newest schema mean the same: before it, nodes without
# is_test train, operands broadcast otherwise, and scales are those of groups. FORMS has these.
CHANGED = {"GroupNormalization": 21} | dict.fromkeys(
    "Dropout BatchNormalization PRelu Gemm Pow Add Sub Mul Div And Or Xor Equal Less Greater".split(),
    7,
)
BOUND = ("Unique", "MelWeightMatrix")  # operand 0 decides shapes, and is given when compiling


def numbers(*shape, least=-2.0):
    return np.random.default_rng(7).uniform(least, 2, shape).astype(np.float32)


x4, x3, x2 = numbers(2, 3, 4, 5), numbers(2, 3, 4), numbers(3, 4)
channel, statistics = numbers(3), numbers(3, least=0.5)
gate, state = numbers(1, 12, 4), numbers(1, 12, 3)
flags, whole = x4 > 0, np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5) % 7
HINT = {"consumed_inputs": [0]}
SAME = {"auto_pad": "SAME_UPPER", "kernel_shape": [2, 3]}


def axis_form(a, b):
    """A binary operator whose second operand has the dimensions 1 and 2 of the first."""
    return [(1, {"broadcast": 1, "axis": 1}, [a, b]), (7, {}, [a, b[..., None]])]


# Operator -> forms (from which opset on, attributes, operands) that node tests of onnx do not have,
# each of one meaning. The first operand is an input, others are constants.
FORMS = {
    **{
        name: [(1, HINT, [numbers(2, 3, least=0.1)]), (6, {}, [numbers(2, 3, least=0.1)])]
        for name in "Abs Ceil Elu Exp Floor HardSigmoid LeakyRelu Log Neg Reciprocal Relu Sigmoid "
        "Sqrt Tanh".split()
    },
    **{name: axis_form(x4, numbers(3, 4, least=1)) for name in "Add Sub Mul Div".split()},
    **{name: axis_form(x4, x2) for name in "Less Greater".split()},
    **{name: axis_form(flags, x2 > 0) for name in "And Or Xor".split()},
    "Equal": axis_form(whole, whole[0, :, :, 0]),
    "Pow": axis_form(numbers(2, 3, 4, 5, least=0.1), x2),
    "Selu": [
        (1, HINT | {"alpha": 1.5, "gamma": 1.25}, [x3]),
        (6, {"alpha": 1.5, "gamma": 1.25}, [x3]),
    ],
    "Clip": [
        (1, HINT | {"min": -1.0, "max": 1.0}, [x3]),
        (6, {"min": -1.0, "max": 1.0}, [x3]),
        (11, {}, [x3, np.float32(-1), np.float32(1)]),
    ],
    "PRelu": [
        (1, HINT, [x4, channel]),
        (6, {}, [x4, channel]),
        (7, {}, [x4, channel[:, None, None]]),
    ],
    **{
        name: [(1, HINT, [x3, x3[::-1].copy(), x3 * 2]), (6, {}, [x3, x3[::-1].copy(), x3 * 2])]
        for name in "Max Min Sum Mean".split()
    },
    "BatchNormalization": [
        (1, HINT | {"is_test": 1}, [x4, channel, channel, channel, statistics]),
        (6, {"is_test": 1}, [x4, channel, channel, channel, statistics]),
        (7, {}, [x4, channel, channel, channel, statistics]),
    ],
    "Cast": [(1, {"to": "INT32"}, [x3]), (6, {"to": onnx.TensorProto.INT32}, [x3])],
    "Concat": [(1, {}, [x3, x3]), (4, {"axis": 1}, [x3, x3])],
    "Dropout": [(1, HINT | {"is_test": 1}, [x3]), (6, {"is_test": 1}, [x3]), (7, {}, [x3])],
    "GRU": [(1, {"hidden_size": 3}, [x3, numbers(1, 9, 4), numbers(1, 9, 3)])],
    "LSTM": [
        (1, {"hidden_size": 3, "clip": 0.7, "output_sequence": 1}, [x3, gate, state]),
        (7, {"hidden_size": 3, "clip": 0.7}, [x3, gate, state]),
    ],
    "RNN": [(1, {"hidden_size": 3}, [x3, numbers(1, 3, 4), numbers(1, 3, 3)])],
    "Gemm": [
        (1, {"broadcast": 1, "transB": 1, "alpha": 0.5}, [x2, numbers(5, 4), numbers(5)]),
        (7, {"transB": 1, "alpha": 0.5}, [x2, numbers(5, 4), numbers(5)]),
    ],
    "GlobalLpPool": [(1, {"p": 3.0}, [x4]), (2, {"p": 3}, [x4])],
    "LpPool": [
        (1, {"kernel_shape": [2, 2], "p": 3.0}, [x4]),
        (2, {"kernel_shape": [2, 2], "p": 3}, [x4]),
    ],
    "InstanceNormalization": [
        (1, HINT, [x4, channel, channel]),
        (6, {}, [x4, channel, channel]),
    ],
    "Pad": [
        (1, {"paddings": [0, 1, 2, 0], "value": 3.0}, [x2]),
        (2, {"pads": [0, 1, 2, 0], "value": 3.0}, [x2]),
        (11, {}, [x2, np.array([0, 1, 2, 0]), np.float32(3)]),
    ],
    "Reshape": [
        (1, HINT | {"shape": [0, -1]}, [x3]),
        (5, {}, [x3, np.array([0, -1])]),
    ],
    "Split": [(1, {"axis": 1, "split": [1, 3]}, [x2]), (13, {"axis": 1}, [x2, np.array([1, 3])])],
    "Tile": [
        (1, {}, [x2, np.float32(3), np.float32(1)]),
        (6, {}, [x2, np.array([1, 3])]),
    ],
    "TopK": [(1, {"k": 2}, [x2]), (10, {}, [x2, np.array([2])])],
    "Upsample": [
        (1, {"height_scale": 2.0, "width_scale": 3.0}, [x4]),
        (7, {"scales": [1.0, 1.0, 2.0, 3.0]}, [x4]),
        (9, {}, [x4, np.array([1, 1, 2, 3], np.float32)]),
    ],
    "Resize": [
        (10, {}, [x4, np.array([1, 1, 0.6, 2.2], np.float32)]),
        (11, {}, [x4, None, np.array([1, 1, 0.6, 2.2], np.float32)]),
    ],
    "RoiAlign": [
        (
            10,
            {"output_height": 2, "output_width": 2, "sampling_ratio": 2},
            [x4, np.array([[0, 0, 3, 2]], np.float32), np.array([1])],
        ),
        (
            16,
            {
                "output_height": 2,
                "output_width": 2,
                "sampling_ratio": 2,
                "coordinate_transformation_mode": "output_half_pixel",
            },
            [x4, np.array([[0, 0, 3, 2]], np.float32), np.array([1])],
        ),
    ],
    "GroupNormalization": [
        (18, {"num_groups": 3}, [numbers(2, 6, 4), channel, channel]),
        (21, {"num_groups": 3}, [numbers(2, 6, 4), np.repeat(channel, 2), np.repeat(channel, 2)]),
    ],
    "DepthToSpace": [(1, {"blocksize": 2}, [numbers(1, 8, 2, 3)])],
    "CastLike": [(15, {}, [x3, np.zeros(1, np.int32)])],
    "Slice": [
        (1, {"starts": [1], "ends": [-1], "axes": [1]}, [x2]),
        (10, {}, [x2, np.array([1]), np.array([-1]), np.array([1])]),
    ],
    **{
        name: [(1, {"axes": [1]}, [x3]), (18, {}, [x3, np.array([1])])]
        for name in "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare".split()
    },
    **{
        name: [(1, {"axes": [1]}, [abs(x3)]), (18, {}, [abs(x3), np.array([1])])]
        for name in "ReduceLogSum ReduceLogSumExp".split()
    },
    "ReduceSum": [(1, {"axes": [1]}, [x3]), (13, {}, [x3, np.array([1])])],
    "Squeeze": [(1, {"axes": [1]}, [x3[:, :1]]), (13, {}, [x3[:, :1], np.array([1])])],
    "Unsqueeze": [(1, {"axes": [1]}, [x3]), (13, {}, [x3, np.array([1])])],
    **{name: [(1, SAME, [x4])] for name in ("AveragePool", "MaxPool")},
    **{name: [(1, {}, [x4])] for name in "Softmax LogSoftmax Hardmax".split()},
    **{
        name: [(1, {}, [x4])] for name in "Flatten GlobalAveragePool GlobalMaxPool Identity".split()
    },
    "DFT": [(17, {"axis": 1}, [numbers(1, 8, 1)]), (20, {}, [numbers(1, 8, 1), None, np.array(1)])],
}


@functools.cache
def node_tests():
    """Operator -> (attributes, operands, results) of node tests of one node, the newest
    schema's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    found = {}
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or graph.node[0].domain:
            continue
        (node,), ((inputs, results),) = graph.node, case.data_sets
        if not all(isinstance(a, (np.ndarray, np.generic)) for a in (*inputs, *results)):
            continue
        inputs, results = [np.asarray(a) for a in inputs], [np.asarray(a) for a in results]
        given = dict(zip([i.name for i in graph.input], inputs))
        if any(a.dtype.kind in "OUSV" or a.dtype.hasobject for a in (*inputs, *results)):
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        operands = [given.get(name) for name in node.input]
        outputs = [bool(name) for name in node.output]
        found.setdefault(node.op_type, []).append((attributes, operands, results, outputs))
    return found


def accepts(schema, attributes, operands, outputs):
    """Whether the operands, their types, and the attributes are of this schema."""
    if set(attributes) - set(schema.attributes) or len(outputs) > schema.max_output:
        return False
    if any(
        helper.make_attribute(n, v).type != schema.attributes[n].type.value
        for n, v in attributes.items()
    ):
        return False
    if any(a.required and name not in attributes for name, a in schema.attributes.items()):
        return False
    if not schema.min_input <= len(operands) <= schema.max_input:
        return False
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for i, array in enumerate(operands):
        port = schema.inputs[min(i, len(schema.inputs) - 1)]
        if array is None:
            continue
        code = helper.np_dtype_to_tensor_dtype(array.dtype)
        name = f"tensor({helper.tensor_dtype_to_string(code).split('.')[1].lower()})"
        if name not in allowed.get(port.type_str, [port.type_str]):
            return False
    return True


def model_of(op, opset, attributes, operands, outputs, tag=""):
    names = [f"{tag}{i}" if a is not None else "" for i, a in enumerate(operands)]
    results = [f"{tag}y{i}" if used else "" for i, used in enumerate(outputs)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names[:1], operands)
        if n
    ]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, name=tag, **attributes)],
        "g",
        infos,
        [onnx.ValueInfoProto(name=n) for n in results if n],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in zip(names[1:], operands[1:]) if n],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def typed(outputs, arrays):
    """Outputs with the element types of arrays, which ONNX Runtime does without."""
    return [
        helper.make_tensor_value_info(o.name, helper.np_dtype_to_tensor_dtype(a.dtype), None)
        for o, a in zip(outputs, arrays)
    ]


def save(model, path, *arrays):
    outputs = typed(model.graph.output, arrays or [x3] * len(model.graph.output))
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    onnx.save(model, path)


def of_runtime(model, operands):
    """What ONNX Runtime computes; None: it has no such kernel."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, {i.name: operands[0] for i in session.get_inputs()})
    except Exception:  # of its own types, which have no common one
        return None


def cases_at(schema):
    """(attributes, operands, outputs, what is expected) at the first opset of a schema."""
    name, opset = schema.name, schema.since_version
    found = []
    forms = FORMS.get(name, [])
    here = [form for form in forms if form[0] <= opset][-1:]
    for _, attributes, operands in here:
        operands = [None if a is None else np.asarray(a) for a in operands]
        outputs = [True] * max(schema.min_output, 2 if name in ("Split", "TopK") else 1)
        wanted = of_runtime(model_of(name, opset, attributes, operands, outputs), operands)
        if wanted is None:
            since, newest, same = forms[-1]
            same = [None if a is None else np.asarray(a) for a in same]
            model = model_of(name, max(since, 7), newest, same, outputs)
            wanted = of_runtime(model, same)
            if wanted is None:
                wanted = ReferenceEvaluator(model).run(None, {"0": same[0]})
        found.append((attributes, operands, outputs, wanted))
    for attributes, operands, results, outputs in node_tests().get(name, []):
        if len(found) >= 3 or not operands or operands[0] is None:
            break
        if not accepts(schema, attributes, operands, outputs):
            continue
        if opset < CHANGED.get(name, 0):
            continue
        wanted = of_runtime(model_of(name, opset, attributes, operands, outputs), operands)
        found.append((attributes, operands, outputs, wanted or results))
    return found


def schemas():
    all = [s for s in get_all_schemas_with_history() if s.domain == ""]
    unknown = {name for names in NOT_COVERED.values() for name in names.split()} | {*ELSEWHERE}
    return [s for s in all if s.name not in unknown]


OPSETS = sorted({s.since_version for s in schemas()})


@pytest.mark.parametrize("opset", OPSETS)
def test_each_schema_from_its_first_opset_on(tmp_path, opset):
    """All operators whose schema begins there, in one model."""
    nodes, inputs, outputs, weights, wanted, given, bound, missing = [], [], [], [], {}, [], [], []
    for schema in schemas():
        if schema.since_version != opset:
            continue
        cases = cases_at(schema)
        if not cases and not schema.deprecated:
            missing.append(schema.name)
        for i, (attributes, operands, used, results) in enumerate(cases):
            tag = f"{schema.name}{i}_"
            graph = model_of(schema.name, opset, attributes, operands, used, tag).graph
            nodes += graph.node
            inputs += graph.input
            outputs += typed(graph.output, map(np.asarray, results))
            weights += graph.initializer
            wanted |= dict(zip([o.name for o in graph.output], results))
            for port in graph.input:
                np.save(tmp_path / f"{port.name}.in.npy", operands[0])
                to = bound if schema.name in BOUND else given
                to.append(f"{port.name}={tmp_path / port.name}.in.npy")
    assert not missing, "no case of these schemas"
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    flags = lambda name, values: [a for value in values for a in (name, value)]  # noqa: E731
    plan = tmp_path / "plan.invar"
    invar("compile", tmp_path / "m.onnx", "--output", plan, *flags("--bind", bound))
    invar("infer", plan, "--tensors-output", tmp_path, *flags("--input", given))
    for name, array in wanted.items():
        found = np.load(tmp_path / f"{name}.npy")
        assert found.dtype == array.dtype and found.shape == array.shape, name
        np.testing.assert_allclose(found, array, 1e-3, 3e-4, err_msg=name)


def test_operators_without_a_rule_are_refused(tmp_path):
    """So that one which gets a rule leaves the list."""
    for names in NOT_COVERED.values():
        for name in names.split():
            model = model_of(name, 27, {}, [x2], [True])
            save(model, tmp_path / "m.onnx")
            refused("compile", tmp_path / "m.onnx", code=3, names=[name])


@pytest.mark.parametrize(
    "op,opset,attributes,operands,code,names",
    [
        (
            "BatchNormalization",
            6,
            {},
            [x4, channel, channel, channel, statistics],
            3,
            "training is_test",
        ),
        ("Dropout", 6, {}, [x3], 3, "training is_test"),
        ("Add", 6, {}, [x4, channel[:, None, None]], 2, "broadcast"),
        ("Add", 6, {"broadcast": 1, "axis": 2}, [x4, x2], 2, "[3, 4] broadcast"),
        ("Add", 6, {"broadcast": 1, "axis": 3}, [x4, x2], 2, "axis 3"),
        ("Gemm", 6, {}, [x2, x2.T.copy(), channel], 2, "broadcast"),
        ("Sum", 7, {}, [x4, x3], 2, "opset 8"),
        ("Cast", 1, {"to": "COMPLEX64"}, [x3], 3, "COMPLEX64"),
        ("Upsample", 7, {}, [x4], 2, "scales"),
        ("TopK", 1, {}, [x2], 2, '"k"'),
    ],
)
def test_what_differs_is_named(tmp_path, op, opset, attributes, operands, code, names):
    save(model_of(op, opset, attributes, operands, [True], "n"), tmp_path / "m.onnx")
    refused("compile", tmp_path / "m.onnx", code=code, names=[op, *names.split()])


def test_defaults_that_changed(tmp_path):
    """Clip of opsets 6 to 10 goes to the largest number, SELU before 6 has four digits, and spatial
    = 0 is a channel for each element of a row."""
    wide = np.array([-np.inf, -3e38, 0, 3e38, np.inf], np.float32)
    model = model_of("Clip", 6, {}, [wide], [True])
    most = np.finfo(np.float32).max
    assert run(tmp_path, model, wide).tobytes() == np.clip(wide, -most, most).tobytes()
    old = run(tmp_path, model_of("Selu", 1, {}, [x3], [True]), x3)
    given = run(tmp_path, model_of("Selu", 6, {"alpha": 1.6732, "gamma": 1.0507}, [x3], [True]), x3)
    assert old.tobytes() == given.tobytes()
    rows = [np.abs(x3[0]) + 0.5] * 4
    found = run(
        tmp_path, model_of("BatchNormalization", 7, {"spatial": 0}, [x3, *rows], [True]), x3
    )
    flat = [r.reshape(-1) for r in rows]
    model = model_of("BatchNormalization", 9, {}, [x3.reshape(2, -1), *flat], [True])
    assert found.tobytes() == run(tmp_path, model, x3.reshape(2, -1)).tobytes()


def run(folder, model, x):
    save(model, folder / "m.onnx")
    np.save(folder / "in.npy", x)
    name = model.graph.input[0].name
    invar("compile", folder / "m.onnx", "--output", folder / "plan.invar")
    invar(
        "infer",
        folder / "plan.invar",
        "--tensors-output",
        folder,
        "--input",
        f"{name}={folder}/in.npy",
    )
    return np.load(folder / f"{model.graph.output[0].name}.npy")


@pytest.mark.parametrize("opset", [7, 8, 9, 10])
def test_convolutional_networks_of_pytorch_at_old_opsets(tmp_path, opset):
    """As PyTorch 1.8 and earlier wrote them by default."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    scaled = [nn.Upsample(scale_factor=2, mode="nearest")] if opset > 8 else []
    features = nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2), nn.PReLU(8), nn.LeakyReLU(), *scaled, nn.ConvTranspose2d(8, 4, 2, 2),
        nn.ELU(), nn.InstanceNorm2d(4, affine=True), nn.AvgPool2d(3, 1, 1), nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    head = nn.Sequential(nn.Linear(4, 8), nn.SELU(), nn.Linear(8, 5))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.head = features, head

        def forward(self, x):
            z = self.features(x)
            y = self.head(torch.cat([z, z * 2], 1)[:, 2:6])
            best, at = torch.topk(y, 2)
            padded = torch.nn.functional.pad(x, (1, 2, 0, 1))
            return torch.log_softmax(y + z.sum(1, keepdim=True), 1), best, at, padded

    net, x = Net().eval(), torch.randn(2, 3, 12, 12)
    names = ["p", "best", "at", "padded"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (x,), tmp_path / "m.onnx", dynamo=False, opset_version=opset,
            input_names=["x"], output_names=names,
        )  # fmt: skip
    np.save(tmp_path / "x.npy", x.numpy())
    invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
    out = ["--tensors-output", tmp_path, "--input", f"x={tmp_path}/x.npy"]
    invar("infer", tmp_path / "plan.invar", *out)
    with torch.no_grad():
        for name, wanted in zip(names, net(x)):
            found = np.load(tmp_path / f"{name}.npy")
            np.testing.assert_allclose(found, wanted.numpy(), 1e-4, 1e-5, err_msg=name)
