"""Numerics choices (spec/choices.md): what exporters write as compositions is computed by one
operation, the plan says so, it is as accurate, and what is equal anyway needs no choice."""

import numpy as np
import onnx
import pytest
from conftest import cpu_isas, invar, refused
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

CHOICES = ["gelu-erf-1", "gelu-tanh-1", "layernorm-1", "rmsnorm-1", "rope-1", "sdpa-1"]
OPERATIONS = {
    "gelu-erf-1": "gelu",
    "gelu-tanh-1": "gelu_tanh",
    "layernorm-1": "layernorm",
    "rmsnorm-1": "rmsnorm",
    "rope-1": "rope",
    "sdpa-1": "attention",
}
# One layer as an exporter writes it: RMSNorm, rotary embedding, attention of 2 heads for keys and 4
# for queries, LayerNorm, both gelus.
TEXT = """<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, seq, 32] x, float[batch, seq, 1] places, float[batch, 1, seq, seq] mask) => (float[batch, seq, 32] y) {
  last = Constant<value_ints: ints = [-1]>()   two = Constant<value_float: float = 2.0>()   three = Constant<value_float: float = 3.0>()
  one = Constant<value_float: float = 1.0>()   half = Constant<value_float: float = 0.5>()   eps = Constant<value_float: float = 0.000001>()
  ax1 = Constant<value_ints: ints = [1]>()   ax2 = Constant<value_ints: ints = [2]>()   ax3 = Constant<value_ints: ints = [3]>()
  zero = Constant<value_ints: ints = [0]>()   four = Constant<value_ints: ints = [4]>()   far = Constant<value_ints: ints = [9999]>()
  square = Pow(x, two)   mean = ReduceMean<keepdims=1>(square, last)   shifted = Add(mean, eps)   root = Sqrt(shifted)
  factor = Reciprocal(root)   scaled = Mul(x, factor)   normed = Mul(scaled, gain)
  q0 = MatMul(normed, wq)   k0 = MatMul(normed, wk)   v0 = MatMul(normed, wv)
  by4 = Constant<value_ints: ints = [0, 0, 4, 8]>()   by2 = Constant<value_ints: ints = [0, 0, 2, 8]>()
  q1 = Reshape(q0, by4)   k1 = Reshape(k0, by2)   v1 = Reshape(v0, by2)
  q2 = Transpose<perm=[0, 2, 1, 3]>(q1)   k2 = Transpose<perm=[0, 2, 1, 3]>(k1)   v2 = Transpose<perm=[0, 2, 1, 3]>(v1)
  angle = Mul(places, frequencies)   angles = Concat<axis=-1>(angle, angle)   cos0 = Cos(angles)   sin0 = Sin(angles)
  cos = Unsqueeze(cos0, ax1)   sin = Unsqueeze(sin0, ax1)
  qlo = Slice(q2, zero, four, ax3)   qhi = Slice(q2, four, far, ax3)   qneg = Neg(qhi)   qrot = Concat<axis=-1>(qneg, qlo)
  qcos = Mul(q2, cos)   qsin = Mul(qrot, sin)   q3 = Add(qcos, qsin)
  klo = Slice(k2, zero, four, ax3)   khi = Slice(k2, four, far, ax3)   kneg = Neg(khi)   krot = Concat<axis=-1>(kneg, klo)
  kcos = Mul(k2, cos)   ksin = Mul(krot, sin)   k3 = Add(kcos, ksin)
  all = Shape(q2)   shape = Shape(k2)   b = Slice(shape, zero, ax1)   s = Slice(shape, ax2, far)   wide = Concat<axis=0>(b, ax2, ax2, s)
  k4 = Unsqueeze(k3, ax2)   k5 = Expand(k4, wide)   k6 = Reshape(k5, all)   v4 = Unsqueeze(v2, ax2)   v5 = Expand(v4, wide)   v6 = Reshape(v5, all)
  kt = Transpose<perm=[0, 1, 3, 2]>(k6)   qs = Mul(q3, quarter)   ks = Mul(kt, quarter)   product = MatMul(qs, ks)   scores = Add(product, mask)
  weights = Softmax<axis=-1>(scores)   nan = IsNaN(weights)   nought = Constant<value_float: float = 0.0>()   safe = Where(nan, nought, weights)
  heads = MatMul(safe, v6)   turned = Transpose<perm=[0, 2, 1, 3]>(heads)   flat = Constant<value_ints: ints = [0, 0, 32]>()
  joined = Reshape(turned, flat)   attended = MatMul(joined, wo)   added = Add(x, attended)
  centre = ReduceMean<keepdims=1>(added, last)   d = Sub(added, centre)   d2 = Pow(d, two)   variance = ReduceMean<keepdims=1>(d2, last)
  v_eps = Add(variance, eps)   deviation = Sqrt(v_eps)   unit = Div(d, deviation)   unit_gain = Mul(unit, gain)   h = Add(unit_gain, shift)
  h_root = Div(h, root2)   erf = Erf(h_root)   erf1 = Add(erf, one)   hx = Mul(h, erf1)   e = Mul(hx, half)
  cube = Pow(e, three)   cubes = Mul(cube, k44)   inner = Add(e, cubes)   u = Mul(inner, k79)   t = Tanh(u)   t1 = Add(t, one)   eh = Mul(e, half)
  y = Mul(eh, t1)
}"""
WEIGHTS = {
    "gain": (32,),
    "shift": (32,),
    "wq": (32, 32),
    "wk": (32, 16),
    "wv": (32, 16),
    "wo": (32, 32),
}
NUMBERS = {
    "frequencies": [1, 0.1, 0.01, 0.001],
    "quarter": 8**-0.25,
    "root2": 2**0.5,
    "k44": 0.044715,
    "k79": (2 / np.pi) ** 0.5,
}


def constants(dtype=np.float32):
    rng = np.random.default_rng(0)
    arrays = {
        n: rng.standard_normal(s).astype(np.float32) / 4 + (n == "gain") for n, s in WEIGHTS.items()
    }
    return {n: np.asarray(a, np.float32).astype(dtype) for n, a in {**arrays, **NUMBERS}.items()}


def layer(wide=False, text=TEXT):
    model = parser.parse_model(text)
    for name, array in constants(np.float64 if wide else np.float32).items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    if wide:
        for port in [*model.graph.input, *model.graph.output]:
            port.type.tensor_type.elem_type = TensorProto.DOUBLE
        for node in [
            n
            for n in model.graph.node
            if n.op_type == "Constant" and n.attribute[0].name == "value_float"
        ]:
            number = numpy_helper.from_array(np.float64(np.float32(node.attribute[0].f)))
            node.attribute[0].CopyFrom(helper.make_attribute("value", number))
    return model


def inputs(seq=150):
    rng = np.random.default_rng(1)
    mask = np.where(np.tri(seq) > 0, 0, -np.inf).astype(np.float32)[None, None].repeat(3, 0)
    mask[2, 0, 4] = -np.inf  # a query that sees nothing
    return {
        "x": rng.standard_normal((3, seq, 32)).astype(np.float32),
        "places": np.arange(seq, dtype=np.float32)[None, :, None].repeat(3, 0),
        "mask": mask,
    }


def infer(folder, given, *options):
    args = []
    for name, array in given.items():
        np.save(folder / f"in.{name}.npy", array)
        args += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
    invar("infer", folder / "plan.invar", *args, "--tensors-output", folder, *options)
    return np.load(folder / "y.npy")


def plan_of(folder, *options):
    invar("compile", folder / "m.onnx", *options)
    lines = (folder / "plan.invar").read_text().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith("choice ")], [
        line.split(" = ")[1].split(".")[0] for line in lines if line.startswith("node ")
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices")
    onnx.save(layer(), folder / "m.onnx")
    return folder


def error(found, true):
    return np.abs(found - true).max() / np.abs(true).max()


def test_what_is_found_is_named_and_as_accurate(folder):
    given = inputs()
    with np.errstate(invalid="ignore"):
        true = ReferenceEvaluator(layer(wide=True)).run(
            None, {n: a.astype(np.float64) for n, a in given.items()}
        )[0]
    choices, operations = plan_of(folder)
    assert choices == CHOICES
    assert set(OPERATIONS.values()) <= set(operations) and not {
        "softmax",
        "erf",
        "tanh",
        "reduce_mean",
        "neg",
    } & set(operations)
    chosen = infer(folder, given)
    for isa in cpu_isas():
        assert infer(folder, given, "--isa", isa, "--threads", 1).tobytes() == chosen.tobytes(), isa
    for threads in (2, 5):
        assert infer(folder, given, "--threads", threads).tobytes() == chosen.tobytes(), threads
    assert plan_of(folder, "--choices", "none")[0] == []
    written = infer(folder, given)
    assert written.tobytes() != chosen.tobytes()
    assert error(chosen, true) < 8e-7 and error(written, true) < 8e-7  # seen: 4.0e-7 and 3.6e-7


@pytest.mark.parametrize("rows", [3, 1])
def test_sizes_and_angles_that_are_constant(folder, tmp_path, rows):
    """As exporters write them: cosines and sines are tables, repeated keys become matrices in one
    reshape. The same operations, so the same bytes."""
    given = inputs()
    text = TEXT.replace("batch", "3").replace("seq", "150").replace("float[3, 150, 1] places, ", "")
    text = text.replace(
        "kt = Transpose<perm=[0, 1, 3, 2]>(k6)",
        """
        rows = Constant<value_ints: ints = [12, 150, 8]>()   columns = Constant<value_ints: ints = [3, 4, 8, 150]>()
        km = Reshape(k5, rows)   kmt = Transpose<perm=[0, 2, 1]>(km)   kt = Reshape(kmt, columns)""",
    )
    model = layer(text=text)
    model.graph.initializer.append(numpy_helper.from_array(given["places"][:rows], "places"))
    onnx.save(model, tmp_path / "m.onnx")
    choices, operations = plan_of(tmp_path)
    assert (
        choices == CHOICES
        and operations.count("rope") == 2
        and operations.count("attention") == 1
        and not {"neg", "softmax"} & set(operations)
    )
    plan_of(folder)
    assert (
        infer(tmp_path, {n: a for n, a in given.items() if n != "places"}).tobytes()
        == infer(folder, given).tobytes()
    )


def test_a_chosen_row_depends_on_what_it_sees_alone(folder):
    """attention.12, of a causal mask: what comes later is as if it were not there."""
    plan_of(folder)
    given = inputs()
    whole, part = (
        infer(folder, given),
        infer(
            folder, {n: a[..., :33, :33] if n == "mask" else a[:, :33] for n, a in given.items()}
        ),
    )
    assert whole[:, :33].tobytes() == part.tobytes()


@pytest.mark.parametrize("name", CHOICES)
def test_one_by_one(folder, name):
    choices, operations = plan_of(folder, "--choices", name)
    assert choices == [name]
    # Without layernorm-1 there is a second root for rmsnorm-1 to find.
    assert operations.count(OPERATIONS[name]) == (2 if name in ("rope-1", "rmsnorm-1") else 1)
    assert not {o for n, o in OPERATIONS.items() if n != name} & set(operations)


def test_refused(folder):
    refused(
        "compile", folder / "m.onnx", "--choices", "sdpa-1,flash-1", names=["'flash-1'", *CHOICES]
    )
    refused("compile", folder / "m.onnx", "--choices", "", names=["--choices", "empty"])
    assert plan_of(folder, "--choices", "sdpa-1")[0] == ["sdpa-1"]
    path = folder / "plan.invar"
    path.write_text(path.read_text().replace('choice "sdpa-1"', 'choice "sdpa-99"'))
    np.save(folder / "x.npy", np.zeros(1, np.float32))
    given = ("--input", f"x={folder / 'x.npy'}")
    refused("infer", path, *given, code=3, names=["numerics choice 'sdpa-99'"])


@pytest.mark.parametrize("alpha", [1.0, 1.702, -3e38, 1e-38])
def test_what_is_equal_needs_no_choice(tmp_path, alpha):
    """x * sigmoid(alpha * x), alone and as it is where something else reads the sigmoid."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.standard_normal(5000) * 10.0 ** rng.integers(-45, 38, 5000),
            [np.nan, 0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3e-39, -3e-39],
        ]
    )
    x = x.astype(np.float32)
    bytes_of = {}
    for kept in (False, True):
        nodes = [helper.make_node("Mul", ["x", "alpha"], ["m"])] if alpha != 1 else []
        nodes += [
            helper.make_node("Sigmoid", ["m" if nodes else "x"], ["s"]),
            helper.make_node("Mul", ["x", "s"], ["y"]),
        ]
        ports = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape)
            for n in (["y", "s"] if kept else ["y"])
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            ports,
            [numpy_helper.from_array(np.float32(alpha), "alpha")],
        )
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
            tmp_path / "m.onnx",
        )
        choices, operations = plan_of(tmp_path)
        assert choices == [] and (len(operations) == 1) != kept, operations
        bytes_of[kept] = infer(tmp_path, {"x": x}).tobytes()
    assert bytes_of[False] == bytes_of[True]
