"""Rules whose sizes are decided by values when a program runs (spec/onnx.md onnx.22): one plan,
many sizes, ONNX's results."""

import numpy as np
import onnx
import pytest
from conftest import execute, invar, refused
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

I64, I32, F32, F64, BOOL, U64, F16 = (
    getattr(TensorProto, n) for n in "INT64 INT32 FLOAT DOUBLE BOOL UINT64 FLOAT16".split()
)
NUMPY = {
    I64: np.int64,
    I32: np.int32,
    F32: np.float32,
    F64: np.float64,
    BOOL: np.bool_,
    U64: np.uint64,
    F16: np.float16,
}


class Bound:
    """A model of some nodes, compiled once."""

    def __init__(self, folder, nodes, inputs, outputs, constants=(), opset=20, compiles=True):
        self.folder, self.outputs = folder, outputs
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
            [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
            [numpy_helper.from_array(np.asarray(v), n) for n, v in constants],
        )
        self.types = {n: t for n, (t, _) in inputs.items()}
        self.bytes = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
        ).SerializeToString()
        (folder / "m.onnx").write_bytes(self.bytes)
        if compiles:
            invar("compile", folder / "m.onnx")
        self.plan, self.session = folder / "plan.invar", None

    def text(self):
        return self.plan.read_text()

    def arguments(self, feed):
        args = []
        for name, value in feed.items():
            path = self.folder / f"in.{name}.npy"
            np.save(path, np.asarray(value, NUMPY[self.types[name]]))
            args += ["--input", f"{name}={path}"]
        return args

    def run(self, **feed):
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        invar("infer", self.plan, *self.arguments(feed), "--tensors-output", out)
        return {name: np.load(out / f"{name}.npy") for name in self.outputs}

    def fails(self, *names, **feed):
        (self.folder / "none").mkdir(exist_ok=True)
        refused(
            "infer",
            self.plan,
            *self.arguments(feed),
            "--tensors-output",
            self.folder / "none",
            code=2,
            names=list(names),
        )
        assert not list(self.folder.glob("none/*"))

    def compare(self, **feed):
        """With ONNX's reference, byte for byte."""
        if not self.session:
            self.session = ReferenceEvaluator(onnx.load_from_string(self.bytes))
        want = self.session.run(
            list(self.outputs), {n: np.asarray(v, NUMPY[self.types[n]]) for n, v in feed.items()}
        )
        found = self.run(**feed)
        for (name, array), w in zip(found.items(), want):
            same(array, w, name)
        return found


def same(found, want, name=""):
    want = np.ascontiguousarray(want).reshape(np.shape(want))
    assert (
        found.dtype == want.dtype
        and found.shape == want.shape
        and found.tobytes() == want.tobytes()
    ), (name, found, want)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


SCALAR = (I64, [])


@pytest.mark.parametrize("kind", [I64, I32, F32, F64])
def test_range(tmp_path, kind):
    m = Bound(tmp_path, [node("Range", "a b c", "y")], {n: (kind, []) for n in "abc"}, {"y": kind})
    assert "bind range_0 = " in m.text()
    for a, b, c in (
        (0, 5, 1),
        (5, 0, 1),
        (5, 0, -2),
        (0, 5, -1),
        (-7, 8, 4),
        (-7, 9, 4),
        (3, 3, 1),
        (9, -9, -6),
    ):
        m.compare(a=a, b=b, c=c)
    m.fails("range_0", a=0, b=1, c=0)
    if kind == I64:
        (
            m.compare(a=-(2**62), b=2**62 - 1, c=2**62),
            m.compare(a=0, b=2**63 - 1, c=2**62),
            m.compare(a=2**62, b=-(2**62), c=-(2**61)),
        )
        m.fails("range_0", a=-(2**62), b=2**62, c=1), m.fails("range_0", a=0, b=2**62, c=1)
    if kind == F32:
        m.compare(a=0.5, b=2.25, c=0.25), m.compare(a=1, b=-1, c=-0.75)
        m.fails("range_0", a=0, b=np.inf, c=1), m.fails("range_0", a=np.nan, b=1, c=1)


def test_a_range_is_a_size(tmp_path):
    """arange(n) has the length n, so it fits whatever else does; and one behind a past has the
    length that is added."""
    m = Bound(
        tmp_path,
        [
            node("Range", "zero n one", "y"),
            node("Reshape", "n l1", "ns"),
            node("Expand", "one ns", "ones"),
            node("Add", "y ones", "z"),
            node("Range", "three n two", "from"),
            node("Shape", "x", "sx"),
            node("Gather", "sx zero", "len"),
            node("Add", "n len", "to"),
            node("Range", "n to one", "places"),
            node("Add", "places x", "sum"),
        ],
        {"n": SCALAR, "x": (I64, ["seq"])},
        {"y": I64, "z": I64, "from": I64, "sum": I64},
        [("zero", 0), ("one", 1), ("two", 2), ("three", 3), ("l1", [1])],
    )
    for n, seq in (0, 2), (1, 1), (2, 7), (3, 2), (4, 0), (5, 3), (40, 1):
        y = m.run(n=n, x=np.arange(seq) * 5)
        (
            same(y["y"], np.arange(n)),
            same(y["z"], np.arange(n) + 1),
            same(y["from"], np.arange(3, n, 2)),
            same(y["sum"], n + np.arange(seq) * 6),
        )
    m.fails("-1", n=-1, x=[1])


@pytest.mark.parametrize("kind", [F32, I64, I32])
def test_top(tmp_path, kind):
    m = Bound(
        tmp_path,
        [
            node("TopK", "x k", "v i", axis=1),
            node("TopK", "x k", "v0 i0", axis=1, largest=0),
            node("TopK", "x two", "v2 i2", axis=0),
        ],
        {"x": (kind, ["rows", 7]), "k": (I64, [1])},
        {"v": kind, "i": I64, "v0": kind, "i0": I64, "v2": kind, "i2": I64},
        [("two", [2])],
    )
    rng = np.random.default_rng(3)
    for k, rows in (0, 2), (1, 3), (4, 2), (7, 5):
        m.compare(
            x=rng.permuted(np.tile(np.arange(-3, 4) * 1000, (rows, 1)), axis=1)
            + 7 * np.arange(rows)[:, None],
            k=[k],
        )
    m.fails("topk_0", x=np.zeros((2, 7)), k=[-1])
    m.fails("slices inside", x=np.zeros((2, 7)), k=[8])


def test_one_hot(tmp_path):
    m = Bound(
        tmp_path,
        [node("OneHot", "x depth values", "y"), node("OneHot", "x real values", "z", axis=0)],
        {"x": (I64, ["n", 2]), "depth": (I64, [1]), "real": (F32, []), "values": (F32, [2])},
        {"y": F32, "z": F32},
    )
    for depth in 1, 3, 6:
        x = np.array([[0, 2], [-1, 5]])
        found = m.run(x=x, depth=[depth], real=depth + 1, values=[-1, 4])
        for name, n, axis in ("y", depth, -1), ("z", depth + 1, 0):
            ones = np.where(x[..., None] < 0, x[..., None] + n, x[..., None]) == np.arange(
                n
            )  # outside: nowhere
            same(found[name], np.moveaxis(np.where(ones, 4, -1).astype(np.float32), -1, axis), name)
    m.fails("onehot", x=[[0, 2]], depth=[-3], real=1, values=[0, 1])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads(tmp_path, mode):
    extra = " v" if mode == "constant" else ""
    m = Bound(
        tmp_path,
        [node("Pad", "x p" + extra, "y", mode=mode)],
        {"x": (F32, ["rows", 4]), "p": (I64, [4]), **({"v": (F32, [])} if extra else {})},
        {"y": F32},
    )
    given = {"v": 2.5} if extra else {}
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for a, b, c, d in (0, 0, 0, 0), (1, 2, 0, 1), (2, 0, 1, 3), (0, 3, 2, 0):
        kind = {"constant_values": 2.5} if extra else {}
        same(
            m.run(x=x, p=[a, b, c, d], **given)["y"], np.pad(x, [(a, c), (b, d)], mode=mode, **kind)
        )
    same(
        m.run(x=x, p=[-1, 1, 0, -2], **given)["y"],
        np.pad(x, [(0, 0), (1, 0)], mode=mode, **({"constant_values": 2.5} if extra else {}))[
            1:, :3
        ],
    )
    m.fails("pad_", x=x, p=[-4, 0, 4, 0], **given)


def test_pads_in_part(tmp_path):
    """A list put together: numbers stay numbers, and what follows from dimensions a dimension."""
    m = Bound(
        tmp_path,
        [
            node("Shape", "x", "sx"),
            node("Sub", "eight sx", "rest"),
            node("Concat", "l0 rest", "p", axis=0),
            node("Pad", "x p", "y"),
            node("Concat", "one e", "q", axis=0),
            node("Pad", "y q", "z"),
        ],
        {"x": (F32, ["n"]), "e": (I64, [1])},
        {"y": F32, "z": F32},
        [("l0", [0]), ("eight", [8]), ("one", [1])],
    )
    for n, e in (3, 0), (8, 2), (1, -5):
        x = np.arange(1, n + 1, dtype=np.float32)
        y = m.run(x=x, e=[e])
        whole = np.pad(x, (0, 8 - n))
        same(y["y"], whole), same(y["z"], np.pad(whole, (1, 2))[: 9 + e])


@pytest.mark.parametrize("kind", [F32, I64, BOOL])
def test_triangles(tmp_path, kind):
    m = Bound(
        tmp_path,
        [node("Trilu", "x k", "y"), node("Trilu", "x k", "z", upper=0)],
        {"x": (kind, [2, "r", "c"]), "k": SCALAR},
        {"y": kind, "z": kind},
    )
    for r, c, k in (3, 3, 0), (2, 5, 1), (4, 2, -2), (3, 3, 9), (3, 3, -9), (0, 3, 1):
        x = np.arange(1, 2 * r * c + 1).reshape(2, r, c).astype(NUMPY[kind])
        y = m.run(x=x, k=k)
        same(y["y"], np.triu(x, k)), same(y["z"], np.tril(x, k))


def test_centers(tmp_path):
    m = Bound(
        tmp_path,
        [node("CenterCropPad", "x s", "y")],
        {"x": (F32, ["n", 5]), "s": (I64, [2])},
        {"y": F32},
        opset=18,
    )
    from onnx import load_from_string
    from onnx.reference import ReferenceEvaluator

    reference = ReferenceEvaluator(load_from_string(m.bytes))
    for n, s in (4, [4, 5]), (4, [7, 2]), (3, [2, 8]), (6, [1, 1]), (2, [5, 0]):
        x = np.arange(n * 5, dtype=np.float32).reshape(n, 5)
        same(
            m.run(x=x, s=s)["y"],
            reference.run(None, {"x": x, "s": np.array(s)})[0].astype(np.float32),
        )


UNIQUE = {"y": 0, "first": 1, "inverse": 2, "counts": 3}


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", [F32, I64, I32, U64, BOOL, F16])
def test_unique(tmp_path, kind, order):
    m = Bound(
        tmp_path,
        [node("Unique", "x", "y first inverse counts", sorted=order)],
        {"x": (kind, ["n", 2])},
        {"y": kind, "first": I64, "inverse": I64, "counts": I64},
    )
    rng = np.random.default_rng(7)
    for n, most in (0, 2), (1, 2), (6, 4), (40, 9), (9, 1):
        x = (rng.integers(0, most, (n, 2)) * (2**61 if kind in (I64, U64) else 1)).astype(
            NUMPY[kind]
        )
        if kind in (I64, I32, F32):
            x -= x.max(initial=0) // 2
        y = m.run(x=x)
        want = np.unique(x.reshape(-1), True, True, True)
        if not order:
            by = np.argsort(want[1])
            place = np.argsort(by)
            want = want[0][by], want[1][by], place[want[2].reshape(-1)], want[3][by]
        for name, w in zip(UNIQUE, want):
            same(y[name], w.reshape(-1).astype(y[name].dtype), name)


def test_unique_numbers(tmp_path):
    """All NaNs are one, behind all numbers, and both zeros; an axis beside which there is
    nothing."""
    m = Bound(
        tmp_path,
        [node("Unique", "x", "y first inverse counts", axis=1)],
        {"x": (F32, [1, "n", 1])},
        {"y": F32, "first": I64, "inverse": I64, "counts": I64},
    )
    y = m.run(x=np.array([np.nan, 0, -0.0, np.inf, np.nan, -1, 0], "f").reshape(1, 7, 1))
    assert y["y"].shape == (1, 4, 1)
    (
        same(y["y"].reshape(-1)[:3], np.array([-1, 0, np.inf], "f")),
        same(y["first"], np.array([5, 1, 3, 0])),
        same(y["counts"], np.array([1, 3, 1, 2])),
    )
    same(y["inverse"], np.array([3, 1, 1, 2, 3, 0, 1]))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(tmp_path, mode):
    """To sizes that are computed or dimensions: the bits of the same sizes as constants."""
    like = [
        node("Shape", "x", "sx"),
        node("Slice", "sx l0 l2", "nc"),
        node("Concat", "nc hw", "to", axis=0),
        node("Resize", "x e e to", "y", mode=mode),
        node("Shape", "z", "sz"),
        node("Slice", "sz l2 l4", "hz"),
        node("Concat", "nc hz", "toz", axis=0),
        node("Resize", "x e e toz", "w", mode=mode),
        node("Resize", "x e scales", "twice", mode=mode),
    ]
    for n in like:
        n.input[:] = ["" if i == "e" else i for i in n.input]
    m = Bound(
        tmp_path,
        like,
        {"x": (F32, [1, 2, "h", "w"]), "z": (F32, [1, 2, "a", "b"]), "hw": (I64, [2])},
        {"y": F32, "w": F32, "twice": F32},
        [("l0", [0]), ("l2", [2]), ("l4", [4]), ("scales", np.array([1, 1, 2, 0.5], "f"))],
    )
    (tmp_path / "known").mkdir()
    for k, (h, w, size) in enumerate([(3, 4, (6, 8)), (5, 3, (2, 7)), (4, 4, (4, 4))]):
        x = np.random.default_rng(k).standard_normal((1, 2, h, w)).astype(np.float32)
        y = m.run(x=x, z=np.zeros((1, 2, *size)), hw=size)
        fixed = known_resize(tmp_path / "known", x.shape, size, mode)
        want = fixed.run(x=x)
        same(y["y"], want["y"]), same(y["w"], want["y"]), same(y["twice"], want["twice"])


def known_resize(folder, shape, size, mode):
    nodes = [node("Resize", "x to", "y", mode=mode), node("Resize", "x scales", "twice", mode=mode)]
    nodes[0].input[:], nodes[1].input[:] = ["x", "", "", "to"], ["x", "", "scales"]
    return Bound(
        folder,
        nodes,
        {"x": (F32, list(shape))},
        {"y": F32, "twice": F32},
        [("to", [1, 2, *size]), ("scales", np.array([1, 1, 2, 0.5], "f"))],
    )


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows(tmp_path, op):
    """The bits of the same size as a constant."""
    m = Bound(
        tmp_path,
        [node(op, "n", "y"), node(op, "n", "z", periodic=0)],
        {"n": SCALAR},
        {"y": F32, "z": F32},
    )
    (tmp_path / "known").mkdir()
    fixed = Bound(
        tmp_path / "known",
        [node(op, "n", "y"), node(op, "n", "z", periodic=0)],
        {},
        {"y": F32, "z": F32},
        [("n", 12)],
    ).run()
    y = m.run(n=12)
    same(y["y"], fixed["y"]), same(y["z"], fixed["z"])
    assert m.run(n=3)["y"].shape == (3,)


def test_unpooling(tmp_path):
    m = Bound(
        tmp_path,
        [node("MaxUnpool", "x i s", "y", kernel_shape=[2, 2], strides=[2, 2])],
        {"x": (F32, [1, 1, 2, 2]), "i": (I64, [1, 1, 2, 2]), "s": (I64, [4])},
        {"y": F32},
    )
    x, i = (
        np.array([1, 2, 3, 4], "f").reshape(1, 1, 2, 2),
        np.array([0, 3, 8, 15]).reshape(1, 1, 2, 2),
    )
    for h, w in (4, 4), (5, 7):
        want = np.zeros((1, 1, h, w), "f")
        want.reshape(-1)[i.reshape(-1)] = x.reshape(-1)
        same(m.run(x=x, i=i, s=[1, 1, h, w])["y"], want)
    m.fails("maxunpool_", x=x, i=i, s=[1, 1, 3, 4])


def test_affine_grids(tmp_path):
    """The bits of the same size as a constant."""
    nodes = [node("AffineGrid", "t s", "y"), node("AffineGrid", "t s", "z", align_corners=1)]
    m = Bound(tmp_path, nodes, {"t": (F32, ["n", 2, 3]), "s": (I64, [4])}, {"y": F32, "z": F32})
    t = np.random.default_rng(2).standard_normal((2, 2, 3)).astype(np.float32)
    (tmp_path / "known").mkdir()
    for h, w in (3, 4), (6, 5):
        want = Bound(
            tmp_path / "known",
            nodes,
            {"t": (F32, [2, 2, 3])},
            {"y": F32, "z": F32},
            [("s", [2, 3, h, w])],
        ).run(t=t)
        found = m.run(t=t, s=[2, 3, h, w])
        same(found["y"], want["y"]), same(found["z"], want["z"])


def test_a_chain(tmp_path):
    """Sizes that follow from sizes: what is not zero, its different values, and as many of them as
    are asked for, padded."""
    m = Bound(
        tmp_path,
        [
            node("NonZero", "x", "at"),
            node("GatherND", "x turned", "v"),
            node("Transpose", "at", "turned"),
            node("Unique", "v", "u"),
            node("TopK", "u k", "top"),
            node("Shape", "u", "su"),
            node("Concat", "l0 su", "p", axis=0),
            node("Pad", "top p", "y"),
            node("Range", "zero most one", "range"),
            node("ReduceMax", "v", "most", keepdims=0),
        ],
        {"x": (I64, ["n"]), "k": (I64, [1])},
        {"at": I64, "y": I64, "range": I64},
        [("l0", [0]), ("zero", 0), ("one", 1)],
    )
    for n, k in (9, 2), (30, 5), (9, 1):
        x = np.arange(n) % 7
        y, u = m.run(x=x, k=[k]), np.unique(x[x != 0])
        (
            same(y["at"], np.flatnonzero(x)[None]),
            same(y["y"], np.pad(u[::-1][:k], (0, len(u)))),
            same(y["range"], np.arange(max(x))),
        )


def test_what_stays_refused(tmp_path):
    cases = [
        (
            [node("Unique", "x", "y", axis=0)],
            {"x": (F32, ["n", 2])},
            "slices of more than one element",
        ),
        ([node("CumSum", "x a", "y")], {"x": (F32, ["n", 2]), "a": SCALAR}, "--bind a=FILE.npy"),
        (
            [node("ReduceSum", "x a", "y")],
            {"x": (F32, ["n", 2]), "a": (I64, [1])},
            "--bind a=FILE.npy",
        ),
        (
            [node("Unsqueeze", "x a", "y")],
            {"x": (F32, ["n", 2]), "a": (I64, [1])},
            "--bind a=FILE.npy",
        ),
    ]
    for nodes, inputs, said in cases:
        m = Bound(tmp_path, nodes, inputs, {"y": F32}, compiles=False)
        done = execute(["compile", tmp_path / "m.onnx"])
        assert (
            done.code == 3 and said in done.text and len(done.errors) == 1 and not m.plan.exists()
        ), done.text
    # Each Reshape has two symbols. reshape_10 of s5 is not reshape_1 of s0.
    nodes = [node("Reshape", f"x s{i}", f"r{i}") for i in range(6)] + [node("Squeeze", "r5", "y")]
    inputs = {"x": (F32, ["n"])} | {f"s{i}": (I64, [2]) for i in range(6)}
    outputs = {"y": F32} | {f"r{i}": F32 for i in range(5)}
    Bound(tmp_path, nodes, inputs, outputs, compiles=False)
    done = execute(["compile", tmp_path / "m.onnx"])
    assert done.code == 3 and "reshape_10" in done.text and "--bind s5=FILE.npy" in done.text, (
        done.text
    )


def test_errors(tmp_path):
    m = Bound(
        tmp_path,
        [node("Reshape", "x s", "y"), node("Gather", "x i", "g"), node("Squeeze", "y l0", "q")],
        {"x": (F32, ["n"]), "s": (I64, [2]), "i": (I64, [1])},
        {"y": F32, "g": F32, "q": F32},
        [("l0", [0])],
    )
    x = np.arange(6, dtype=np.float32)
    y = m.run(x=x, s=[1, -1], i=[5])
    same(y["y"], x[None]), same(y["q"], x), same(y["g"], x[5:])
    m.fails("reshape_", x=x, s=[1, -2], i=[0])
    m.fails(x=x, s=[1, 4], i=[0])
    m.fails(x=x, s=[2, 3], i=[0])
    m.fails("index", x=x, s=[1, 6], i=[6])


def test_steps_along_open_dimensions(tmp_path):
    m = Bound(
        tmp_path,
        [
            node("Slice", "x from to axis two", "y"),
            node("NonZero", "x", "places"),
            node("Slice", "places from to axis three", "z"),
        ],
        {"x": (F32, ["n"])},
        {"y": F32, "z": I64},
        [("from", [1]), ("to", [2**31 - 1]), ("axis", [-1]), ("two", [2]), ("three", [3])],
    )
    for n in 0, 1, 2, 7, 10:
        m.compare(x=np.arange(n) % 3)


def test_what_is_left_of_a_shape(tmp_path):
    m = Bound(
        tmp_path,
        [
            node("Range", "zero n one", "r"),
            node("Reshape", "x two", "p"),
            node("Add", "r zero", "s"),
            node("Concat", "to m1", "shape", axis=0),
            node("Reshape", "x shape", "y"),
        ],
        {"x": (F32, ["all"]), "n": SCALAR, "to": (I64, [1])},
        {"y": F32, "p": F32},
        [("zero", 0), ("one", 1), ("two", [2, -1]), ("m1", [-1])],
    )
    for rows in 1, 2, 3, 6:
        m.compare(x=np.arange(12), n=3, to=[rows])
    m.fails("as many elements", x=np.arange(9), n=3, to=[3])
    m.fails("as many elements", x=np.arange(12), n=3, to=[5])


def test_dimensions_are_compared_when_it_runs(tmp_path):
    m = Bound(
        tmp_path,
        [
            node("Compress", "x c", "p", axis=0),
            node("Compress", "x d", "q", axis=0),
            node("Add", "p q", "sum"),
            node("Concat", "p q", "beside", axis=1),
        ],
        {"x": (F32, ["n", 2]), "c": (BOOL, ["n"]), "d": (BOOL, ["n"])},
        {"sum": F32, "beside": F32},
    )
    x = np.arange(10).reshape(5, 2)
    m.compare(x=x, c=[1, 0, 1, 0, 0], d=[0, 0, 0, 1, 1])
    m.compare(x=x, c=[0] * 5, d=[0] * 5)
    m.fails("broadcasts", x=x, c=[1, 1, 1, 0, 0], d=[0, 0, 0, 1, 1])


def test_branches_of_other_lengths(tmp_path):
    body = lambda name, source: helper.make_graph(
        [node("Identity", source, name)], name, [], [helper.make_tensor_value_info(name, F32, None)]
    )
    m = Bound(
        tmp_path,
        [
            helper.make_node(
                "If", ["which"], ["y"], then_branch=body("a", "x"), else_branch=body("b", "z")
            )
        ],
        {"which": (BOOL, []), "x": (F32, ["n", "k"]), "z": (F32, ["m", "k"])},
        {"y": F32},
    )
    for which in True, False:
        m.compare(which=which, x=np.arange(6).reshape(2, 3), z=-np.arange(9).reshape(3, 3))
        m.compare(which=which, x=np.zeros((0, 3)), z=-np.arange(9).reshape(3, 3))


def test_regions_of_open_pictures(tmp_path):
    """With the numbers of the program that has the picture's size as constants."""
    rng = np.random.default_rng(3)
    x, rois = rng.standard_normal((1, 2, 9, 7)), [[0.5, 1, 5, 6], [-3, 0, 20, 4], [2, 2, 2, 2]]
    nodes = [
        node(
            "RoiAlign",
            "x r b",
            "y",
            output_height=2,
            output_width=3,
            sampling_ratio=2,
            spatial_scale=0.5,
        )
    ]
    found = []
    for n, sizes in enumerate((["h", "w"], [9, 7])):
        folder = tmp_path / str(n)
        folder.mkdir()
        m = Bound(
            folder,
            nodes,
            {"x": (F32, [1, 2, *sizes]), "r": (F32, ["k", 4]), "b": (I64, ["k"])},
            {"y": F32},
        )
        found.append(m.run(x=x, r=rois, b=[0, 0, 0])["y"])
    same(*found)


def test_a_long_way_to_a_size(tmp_path):
    """Operations that only carry a number, more than a stack holds; its size is bound all the
    same."""
    nodes = [
        node("Squeeze" if i % 2 else "Unsqueeze", f"v{i} axis", f"v{i + 1}") for i in range(20001)
    ]
    nodes[0].input[0] = "k"
    m = Bound(
        tmp_path,
        [*nodes, node("Expand", "x v20001", "y")],
        {"k": SCALAR, "x": (F32, [1])},
        {"y": F32},
        [("axis", [0])],
    )
    assert "\nbind expand_0 = " in m.text()
    same(m.run(k=3, x=[2.0])["y"], np.full(3, 2, np.float32))


def test_masked_assignment(tmp_path):
    """x[mask] = f(x[mask]), as exporters write it: the mask is looked through twice, and updates
    are cut to its length."""
    b = Bound(
        tmp_path,
        [
            helper.make_node("Greater", ["x", "half"], ["m"]),
            helper.make_node("NonZero", ["m"], ["nz"]),
            helper.make_node("Transpose", ["nz"], ["at"], perm=[1, 0]),
            helper.make_node("GatherND", ["x", "at"], ["some"]),
            helper.make_node("Neg", ["some"], ["new"]),
            helper.make_node("Greater", ["x", "half"], ["m2"]),
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Expand", ["m2", "shape"], ["e"]),
            helper.make_node("NonZero", ["e"], ["nz2"]),
            helper.make_node("Transpose", ["nz2"], ["at2"], perm=[1, 0]),
            helper.make_node("Shape", ["at2"], ["s2"]),
            helper.make_node("Gather", ["s2", "zero"], ["n"], axis=0),
            helper.make_node("Unsqueeze", ["n", "l0"], ["end"]),
            helper.make_node("Slice", ["new", "l0", "end", "l0"], ["cut"]),
            helper.make_node("ScatterND", ["x", "at2", "cut"], ["y"]),
        ],
        {"x": (F32, ["a", "b"])},
        {"y": F32},
        [("half", np.float32(0.5)), ("zero", np.int64(0)), ("l0", np.array([0]))],
    )
    for shape in (3, 4), (1, 1), (0, 3), (5, 2):
        x = np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        assert b.run(x=x)["y"].tobytes() == np.where(x > 0.5, -x, x).tobytes()
