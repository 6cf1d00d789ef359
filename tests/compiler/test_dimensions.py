"""Models with open dimensions: sizes computed from those of the inputs, for every size that fits,
and one line for those that do not."""

import numpy as np
import pytest
from conftest import invar, refused
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def compiled(folder, nodes, outputs, constants=(), inputs=(("x", ["batch", "seq", 4]),), opset=20):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, *(t or [F32]), s) for n, s, *t in inputs],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs],
        [
            numpy_helper.from_array(v if isinstance(v, np.ndarray) else np.array(v, np.int64), n)
            for n, v in constants
        ],
    )
    path = folder / "m.onnx"
    path.write_bytes(
        helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
            ir_version=9,
        ).SerializeToString()
    )
    invar("compile", path)
    return folder / "plan.invar"


def run(plan, folder, arrays, check=invar, **how):
    args = []
    for name, array in arrays.items():
        np.save(folder / f"in.{name}.npy", array)
        args += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
    done = check("infer", plan, *args, "--tensors-output", folder, **how)
    return (
        done
        if how
        else {p.stem: np.load(p) for p in folder.glob("*.npy") if not p.stem.startswith("in.")}
    )


def numbers(*shape):
    return (np.arange(np.prod(shape)) * 37 % 101 - 50).astype(np.float32).reshape(shape) / 8


def same(found, want):
    assert (
        found.dtype == want.dtype
        and found.shape == want.shape
        and found.tobytes() == np.ascontiguousarray(want).tobytes()
    )


SHAPE = [
    helper.make_node("Shape", ["x"], ["shape"]),
    helper.make_node("Gather", ["shape", "zero"], ["batch"]),
    helper.make_node("Gather", ["shape", "one"], ["seq"]),
]
CONSTANTS = [
    ("zero", 0),
    ("one", 1),
    ("m1", [-1]),
    ("l0", [0]),
    ("l1", [1]),
    ("l2", [2]),
    ("three", 3),
    ("four", [4]),
]


def test_sizes(tmp_path):
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            helper.make_node("Reshape", ["x", "rows"], ["flat"]),
            helper.make_node("Unsqueeze", ["batch", "l0"], ["b"]),
            helper.make_node("Unsqueeze", ["seq", "l0"], ["s"]),
            helper.make_node("Concat", ["s", "b", "m1"], ["order"], axis=0),
            helper.make_node("Reshape", ["flat", "order"], ["again"]),
            helper.make_node("Concat", ["x", "x", "x"], ["long"], axis=1),
            helper.make_node("Sub", ["s", "l1"], ["before"]),
            helper.make_node("Slice", ["long", "before", "s", "l1"], ["last"]),
            helper.make_node("Range", ["zero", "seq", "three"], ["places"]),
            helper.make_node("Mul", ["batch", "seq"], ["cells"]),
            helper.make_node("Div", ["cells", "three"], ["third"]),
            helper.make_node("Slice", ["x", "before", "s", "l1"], ["end"]),
            helper.make_node("Slice", ["x", "l0", "m1", "l1"], ["front"]),
            helper.make_node("Split", ["long"], ["left", "middle", "right"], axis=1),
        ],
        [
            ("flat", F32),
            ("again", F32),
            ("last", F32),
            ("places", I64),
            ("third", I64),
            ("end", F32),
            ("front", F32),
            ("middle", F32),
        ],
        [*CONSTANTS, ("rows", [-1, 4])],
    )
    text = plan.read_text()
    assert (
        "[batch*seq, 4]" in text
        and "[batch, 3*seq, 4]" in text
        and "[(seq+2)/3]" in text
        and "[batch, -min(seq,1)+seq, 4]" in text
    )
    for batch, seq in (1, 1), (2, 7), (5, 2), (3, 64), (0, 3):
        x = numbers(batch, seq, 4)
        y = run(plan, tmp_path, {"x": x})
        same(y["flat"], x.reshape(-1, 4))
        same(y["again"], x.reshape(seq, batch, 4))
        same(y["last"], np.concatenate([x, x, x], 1)[:, seq - 1 : seq])
        same(y["places"], np.arange(0, seq, 3))
        same(y["third"], np.array(batch * seq // 3))
        same(y["end"], x[:, -1:])
        same(y["front"], x[:, :-1])
        same(y["middle"], x)


def test_a_start_that_is_computed(tmp_path):
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            helper.make_node("Div", ["seq", "three"], ["third"]),
            helper.make_node("Unsqueeze", ["third", "l0"], ["from"]),
            helper.make_node("Add", ["from", "l2"], ["to"]),
            helper.make_node("Slice", ["x", "from", "to", "l1"], ["y"]),
        ],
        [("y", F32)],
        CONSTANTS,
    )
    for seq in 0, 1, 2, 3, 4, 100:
        x = numbers(2, seq, 4)
        same(run(plan, tmp_path, {"x": x})["y"], x[:, seq // 3 : seq // 3 + 2])


def test_the_smaller_of_two(tmp_path):
    """A table cut to twice the smaller of a dimension and a number, from a start that is computed,
    as DeBERTa cuts its positions."""
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            helper.make_node("Min", ["seq", "five"], ["least"]),
            helper.make_node("Max", ["five", "seq", "batch"], ["most"]),
            helper.make_node("Sub", ["five", "least"], ["low"]),
            helper.make_node("Add", ["five", "least"], ["high"]),
            *(helper.make_node("Unsqueeze", [n, "l0"], [f"{n}s"]) for n in ("low", "high", "most")),
            helper.make_node("Slice", ["table", "lows", "highs"], ["y"]),
            helper.make_node("Concat", ["y", "y"], ["z"], axis=0),
            helper.make_node("Expand", ["l1", "mosts"], ["ones"]),
            helper.make_node("Mul", ["least", "most"], ["both"]),
        ],
        [("y", F32), ("z", F32), ("ones", I64), ("both", I64)],
        [*CONSTANTS, ("five", 5), ("table", numbers(10, 3))],
    )
    text = plan.read_text()
    assert "[2*min(seq,5), 3]" in text and "[4*min(seq,5), 3]" in text
    table = numbers(10, 3)
    for batch, seq in (1, 1), (2, 4), (9, 5), (3, 6), (12, 64):
        y, n = run(plan, tmp_path, {"x": numbers(batch, seq, 4)}), min(seq, 5)
        same(y["y"], table[5 - n : 5 + n])
        same(y["z"], np.concatenate([table[5 - n : 5 + n]] * 2))
        same(y["ones"], np.ones(max(5, seq, batch), np.int64))
        same(y["both"], np.array(n * max(5, seq, batch)))


def test_a_table_by_length(tmp_path):
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            helper.make_node("Unsqueeze", ["seq", "l0"], ["s"]),
            helper.make_node("Slice", ["table", "l0", "s", "l1"], ["y"]),
        ],
        [("y", F32)],
        CONSTANTS,
        [("x", ["batch", "seq", 4]), ("table", [1, 8])],
    )
    table = numbers(1, 8)
    for seq in 1, 5, 8, 9:
        same(run(plan, tmp_path, {"x": numbers(1, seq, 4), "table": table})["y"], table[:, :seq])


def test_a_dimension_that_would_be_negative(tmp_path):
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            helper.make_node("Sub", ["seq", "three"], ["less"]),
            helper.make_node("Unsqueeze", ["less", "l0"], ["l"]),
            helper.make_node("ConstantOfShape", ["l"], ["y"]),
        ],
        [("y", F32)],
        CONSTANTS,
    )
    same(run(plan, tmp_path, {"x": numbers(1, 5, 4)})["y"], np.zeros(2, np.float32))
    run(plan, tmp_path, {"x": numbers(1, 2, 4)}, refused, code=2, names=["'seq-3'"])


@pytest.mark.parametrize("name", ["past + seq", "Sequence-Length", "3d", None])
def test_names_of_dimensions(tmp_path, name):
    inputs = [("a", ["past", 2]), ("b", ["seq", 2]), ("c", [name, 2])]
    plan = compiled(
        tmp_path,
        [
            helper.make_node("Concat", ["a", "b"], ["ab"], axis=0),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("Add", ["ab", "c"], ["sum"])
            if name == "past + seq"
            else helper.make_node("Identity", ["ab"], ["sum"]),
        ],
        [("sum", F32), ("r", F32)],
        inputs=inputs,
    )
    a, b, c = numbers(3, 2), numbers(4, 2), numbers(7, 2)
    found = run(plan, tmp_path, {"a": a, "b": b, "c": c})
    both = np.concatenate([a, b])
    same(found["sum"], both + c if name == "past + seq" else both)
    same(found["r"], np.maximum(c, 0))
    if name == "past + seq":
        run(
            plan,
            tmp_path,
            {"a": a, "b": b, "c": numbers(6, 2)},
            refused,
            code=2,
            names=["'past+seq' = 7"],
        )


def test_fused_products(tmp_path):
    """A product of transposed operands, as ONNX Runtime's optimiser writes it, is the product of
    their transposes."""
    inputs = [("a", ["n", 5, "rows"]), ("b", ["n", 7, 5])]
    nodes = [
        helper.make_node(
            "FusedMatMul",
            ["a", "b"],
            ["fused"],
            domain="com.microsoft",
            transA=1,
            transB=1,
            alpha=0.125,
        ),
        helper.make_node("Transpose", ["a"], ["ta"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["b"], ["tb"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["ta", "tb"], ["product"]),
    ]
    plan = compiled(tmp_path, nodes, [("fused", F32), ("product", F32)], inputs=inputs)
    for rows in 1, 6:
        y = run(plan, tmp_path, {"a": numbers(3, 5, rows), "b": numbers(3, 7, 5)})
        same(y["fused"], y["product"] * np.float32(0.125))


def test_large_constants(tmp_path):
    """Constants that the compiler does not spell out: of an initialiser, of a node, in the other
    order, and read by two."""
    big, other = numbers(150, 200), numbers(200, 150) + 1
    nodes = [
        helper.make_node("Constant", [], ["other"], value=numpy_helper.from_array(other)),
        helper.make_node("Add", ["x", "big"], ["sum"]),
        helper.make_node("Transpose", ["other"], ["turned"]),
        helper.make_node("Mul", ["x", "turned"], ["product"]),
        helper.make_node("Sub", ["big", "turned"], ["gap"]),
    ]
    plan = compiled(
        tmp_path,
        nodes,
        [("sum", F32), ("product", F32), ("gap", F32)],
        [("big", big)],
        [("x", [150, 200])],
    )
    x = numbers(150, 200)
    y = run(plan, tmp_path, {"x": x})
    same(y["sum"], x + big), same(y["product"], x * other.T), same(y["gap"], big - other.T)
    assert (tmp_path / "plan.invar.constants").stat().st_size < 3 * big.nbytes


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows(tmp_path, stride):
    plan = compiled(
        tmp_path,
        [
            helper.make_node(
                "MaxPool",
                ["x"],
                ["y"],
                kernel_shape=[3, 3],
                strides=[stride, stride],
                pads=[1, 1, 0, 0],
            )
        ],
        [("y", F32)],
        inputs=[("x", ["n", 2, "height", "width"])],
    )
    for height, width in (9, 5), (2, 3), (8, 8):
        x = numbers(2, 2, height, width)
        wide = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=-np.inf)
        want = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))[
            :, :, ::stride, ::stride
        ].max((-1, -2))
        same(run(plan, tmp_path, {"x": x})["y"], want)


def test_eight_of_them(tmp_path):
    """As many dimensions as there may be, one of them open, through operators that walk axes: whole
    numbers, so equal to NumPy."""
    perm, shape = [7, 0, 6, 2, 4, 5, 1, 3], [2, 3, 2, 2, 3, 2, 4, 3]
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=perm),
        helper.make_node("Add", ["x", "table"], ["sum"]),
        helper.make_node("Concat", ["x", "x"], ["c"], axis=6),
        helper.make_node("Slice", ["x", "m1", "m9", "l4", "m1"], ["s"]),
        helper.make_node("ReduceSum", ["x", "odd"], ["r"], keepdims=0),
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Gather", ["x", "places"], ["g"], axis=5),
        helper.make_node("GatherElements", ["b", "index"], ["e"], axis=7),
        helper.make_node("Expand", ["table", "wide"], ["b"]),
        helper.make_node("Pad", ["x", "pads"], ["p"], mode="reflect"),
        helper.make_node("ArgMax", ["x"], ["a"], axis=4, keepdims=1),
        helper.make_node("CumSum", ["x", "three"], ["u"]),
        helper.make_node("Where", ["less", "x", "table"], ["v"]),
        helper.make_node("Less", ["x", "table"], ["less"]),
        helper.make_node("Reshape", ["x", "flat"], ["f"]),
        helper.make_node("Unsqueeze", ["r", "l1"], ["q"]),
    ]
    rng = np.random.default_rng(5)
    table, w = (
        rng.integers(-9, 9, size).astype(np.float32)
        for size in ([3, 1, 2, 1, 2, 1, 3], [1, 2, 1, 3, 1, 3, 5])
    )
    places, index = np.array([1, 0, -1]), rng.integers(-3, 3, shape)
    constants = [
        *CONSTANTS,
        ("table", table),
        ("w", w),
        ("places", places),
        ("index", index),
        ("odd", [1, 3, 5, 7]),
        ("m9", [-9]),
        ("l4", [4]),
        ("flat", [0, 6, -1, 3]),
        ("wide", [2, 3, 2, 2, 3, 2, 4, 3]),
        ("pads", [0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 2, 1]),
    ]
    names = ["t", "sum", "c", "s", "r", "m", "g", "e", "b", "p", "u", "v", "f", "q"]
    plan = compiled(
        tmp_path,
        nodes,
        [*((n, F32) for n in names), ("a", I64)],
        constants,
        [("x", ["batch", *shape[1:]])],
    )
    x = rng.integers(-9, 9, shape).astype(np.float32)
    y = run(plan, tmp_path, {"x": x})
    r = x.sum((1, 3, 5, 7), dtype=np.float32)
    want = {
        "t": x.transpose(perm),
        "sum": x + table,
        "c": np.concatenate([x, x], 6),
        "s": x[:, :, :, :, ::-1],
        "r": r,
        "m": np.matmul(x, w),
        "g": x.take(places, 5),
        "e": np.take_along_axis(np.broadcast_to(table, shape), index % 3, 7),
        "b": np.broadcast_to(table, shape),
        "p": np.pad(
            x, [(0, 0), (1, 1), (0, 0), (0, 0), (1, 0), (0, 0), (1, 2), (0, 1)], mode="reflect"
        ),
        "u": x.cumsum(3, dtype=np.float32),
        "v": np.where(x < table, x, table),
        "f": x.reshape(2, 6, -1, 3),
        "q": r[:, None],
        "a": x.argmax(4, keepdims=True),
    }
    for name, array in want.items():
        same(y[name], np.ascontiguousarray(array))


@pytest.mark.parametrize(
    "kernel, stride, pads, dilation",
    [
        (3, 2, (0, 0), 1),
        (3, 2, (1, 1), 1),
        (2, 3, (0, 0), 1),
        (3, 2, (1, 1), 2),
        (2, 5, (1, 0), 1),
        (5, 3, (2, 0), 1),
    ],
)
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_rounded_up(tmp_path, pool, kernel, stride, pads, dilation):
    """As many as for sizes that are constants."""

    def pooled(x, y):
        return helper.make_node(
            pool,
            [x],
            [y],
            kernel_shape=[kernel],
            strides=[stride],
            pads=pads,
            dilations=[dilation],
            ceil_mode=1,
        )

    plan = compiled(tmp_path, [pooled("x", "y")], [("y", F32)], inputs=[("x", ["batch", 2, "n"])])
    sizes = range(dilation * (kernel - 1) + 1, 17)
    (tmp_path / "constant").mkdir()
    constant = compiled(
        tmp_path / "constant",
        [pooled(f"x{n}", f"y{n}") for n in sizes],
        [(f"y{n}", F32) for n in sizes],
        inputs=[(f"x{n}", [2, 2, n]) for n in sizes],
    )
    x = {n: numbers(2, 2, n) for n in sizes}
    want = run(constant, tmp_path / "constant", {f"x{n}": x[n] for n in sizes})
    for n in sizes:
        same(run(plan, tmp_path, {"x": x[n]})["y"], want[f"y{n}"])


def test_blocks_of_open_pictures(tmp_path):
    nodes = [
        helper.make_node("DepthToSpace", ["x"], ["large"], blocksize=2),
        helper.make_node("DepthToSpace", ["x"], ["crd"], blocksize=2, mode="CRD"),
        helper.make_node("SpaceToDepth", ["large"], ["again"], blocksize=2),
    ]
    plan = compiled(
        tmp_path,
        nodes,
        [("large", F32), ("crd", F32), ("again", F32)],
        inputs=[("x", ["batch", 8, "height", "width"])],
    )
    assert "[batch, 2, 2*height, 2*width]" in plan.read_text()
    for b, h, w in (1, 3, 5), (2, 4, 1), (2, 0, 3):
        x = numbers(b, 8, h, w)
        y = run(plan, tmp_path, {"x": x})
        same(
            y["large"],
            x.reshape(b, 2, 2, 2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(b, 2, 2 * h, 2 * w),
        )
        same(
            y["crd"],
            x.reshape(b, 2, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(b, 2, 2 * h, 2 * w),
        )
        same(y["again"], x)


def test_frames_of_an_open_signal(tmp_path):
    """The frames equal those of a signal whose length is a constant."""
    node = [
        helper.make_node("STFT", ["x", "step", "window"], ["y"]),
        helper.make_node("STFT", ["x", "step", "", "length"], ["z"], onesided=0),
    ]
    constants = [("step", 3), ("length", 8), ("window", numbers(8))]
    plan = compiled(tmp_path, node, [("y", F32), ("z", F32)], constants, [("x", ["batch", "n", 1])])
    assert "[batch, (n+1)/3-2, 5, 2]" in plan.read_text()
    for n in 8, 10, 11, 40:
        x = numbers(2, n, 1)
        (tmp_path / str(n)).mkdir()
        want = run(
            compiled(
                tmp_path / str(n), node, [("y", F32), ("z", F32)], constants, [("x", [2, n, 1])]
            ),
            tmp_path / str(n),
            {"x": x},
        )
        found = run(plan, tmp_path, {"x": x})
        same(found["y"], want["y"])
        same(found["z"], want["z"])
    run(plan, tmp_path, {"x": numbers(1, 3, 1)}, refused, code=2, names=["n"])


def test_open_grids(tmp_path):
    node = [helper.make_node("GridSample", ["x", "g"], ["y"], mode="linear", padding_mode="border")]
    plan = compiled(
        tmp_path,
        node,
        [("y", F32)],
        inputs=[("x", ["batch", 2, 4, 5]), ("g", ["batch", "rows", "columns", 2])],
    )
    for rows, columns in (1, 1), (3, 2), (7, 9):
        feed = {"x": numbers(2, 2, 4, 5), "g": numbers(2, rows, columns, 2) / 6}
        (tmp_path / str(rows)).mkdir()
        want = compiled(
            tmp_path / str(rows),
            node,
            [("y", F32)],
            inputs=[("x", [2, 2, 4, 5]), ("g", [2, rows, columns, 2])],
        )
        same(run(plan, tmp_path, feed)["y"], run(want, tmp_path / str(rows), feed)["y"])
