"""The compiler's levels (--opt): each computes the same bytes, and each stage can be printed, read
back and kept."""

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import MODEL, invar, program_of, refused, same_without_rewrites
from node_models import BF16, BOOL, F16, F32, F64, I8, I32, cast, model, node, numbers, perm, words
from onnx import TensorProto
from test_compile import PASSES, opt, pipeline

# name -> nodes, inputs, outputs, weights, arrays, a text that level 3's plan lacks and level 0's
# has.
GRAPHS = {
    "layout": (
        [
            perm("x", "a", 0, 3, 1, 2),
            node("Add", ["a", "bias"], ["b"]),
            node("Relu", ["b"], ["c"]),
            perm("c", "y", 0, 2, 3, 1),
        ],
        [("x", F32, ["n", 5, 4, 3])],
        [("y", F32)],
        [("bias", numbers(3, 1, 1))],
        {"x": words(32, (2, 5, 4, 3))},
        "transpose.1(",
    ),
    "moves": (
        [
            perm("x", "a", 0, 2, 1),
            node("Slice", ["a", "one", "far", "two"], ["b"]),
            node("Pad", ["b", "pads"], ["c"]),
            node("Concat", ["c", "c"], ["d"], axis=1),
            perm("d", "y", 0, 2, 1),
            perm("d", "z", 2, 0, 1),
        ],
        [("x", F32, [2, 5, 4])],
        [("y", F32), ("z", F32)],
        [
            ("one", np.array([1])),
            ("far", np.array([2**31])),
            ("two", np.array([2])),
            ("pads", np.array([0, 0, 1, 0, 2, 0])),
        ],
        {"x": words(32, (2, 5, 4))},
        "",
    ),
    "products": (
        [
            perm("k", "t", 0, 2, 3, 1),
            perm("q", "p", 0, 2, 1, 3),
            node("MatMul", ["p", "t"], ["s"]),
            perm("p", "u", 0, 1, 3, 2),
            node("MatMul", ["u", "p"], ["y"]),
            node("Softmax", ["s"], ["z"]),
        ],
        [("q", F32, ["b", "n", 3, 8]), ("k", F32, ["b", "n", 3, 8])],
        [("y", F32), ("z", F32)],
        [],
        {"q": numbers(2, 5, 3, 8), "k": numbers(2, 5, 3, 8, seed=1)},
        "",
    ),
    "doubles": (
        [
            perm("x", "t", 1, 0),
            node("MatMul", ["x", "t"], ["y"]),
            node("MatMul", ["t", "x"], ["z"]),
        ],
        [("x", F64, ["n", 6])],
        [("y", F64), ("z", F64)],
        [],
        {"x": numbers(4, 6).astype(np.float64)},
        "transpose.1(",
    ),
    # A row for each expert that a token chose: stacked from parts, and one tensor.
    "experts": (
        [
            *[cast(f"w{i}", f"f{i}", TensorProto.FLOAT) for i in range(3)],
            *[node("Unsqueeze", [f"f{i}", "zero"], [f"u{i}"]) for i in range(3)],
            node("Concat", ["u0", "u1", "u2"], ["s"], axis=0),
            node("Gather", ["s", "index"], ["g"]),
            perm("g", "t", 0, 1, 3, 2),
            node("Unsqueeze", ["x", "middle"], ["a"]),
            node("MatMul", ["a", "t"], ["b"]),
            node("Gather", ["down", "index"], ["d"]),
            node("MatMul", ["b", "d"], ["y"]),
        ],
        [("x", F32, ["n", 300]), ("index", TensorProto.INT64, ["n", 2])],
        [("y", F32)],
        [
            *[(f"w{i}", numbers(7, 300, seed=i).astype(ml_dtypes.bfloat16)) for i in range(3)],
            ("zero", np.array([0])),
            ("middle", np.array([1, 2])),
            ("down", numbers(3, 7, 20)),
        ],
        {"x": words(32, (5, 300)), "index": np.arange(10).reshape(5, 2) % 5 - 2},
        " = gather.1(",
    ),
    "heads": (
        [
            node("Reshape", ["x", "split"], ["a"]),
            perm("a", "h", 0, 2, 1, 3),
            node("Attention", ["h", "h", "h"], ["o"], is_causal=1),
            perm("o", "p", 0, 2, 1, 3),
            node("Reshape", ["p", "whole"], ["y"]),
        ],
        [("x", F32, ["b", "n", 24])],
        [("y", F32)],
        [("split", np.array([0, 0, 3, 8])), ("whole", np.array([0, 0, 24]))],
        {"x": numbers(2, 150, 24)},
        "transpose.1(",
    ),
    "masked heads": (
        [
            perm("q", "a", 0, 2, 1, 3),
            perm("k", "b", 0, 2, 1, 3),
            perm("v", "c", 0, 2, 1, 3),
            node("Attention", ["a", "b", "c", "m"], ["y"], softcap=5.0),
        ],
        [
            ("q", F32, ["b", "n", 4, 8]),
            ("k", F32, ["b", "t", 2, 8]),
            ("v", F32, ["b", "t", 2, 3]),
            ("m", BOOL, ["n", "t"]),
        ],
        [("y", F32)],
        [],
        {
            "q": numbers(2, 7, 4, 8),
            "k": numbers(2, 140, 2, 8, seed=1),
            "v": numbers(2, 140, 2, 3, seed=2),
            "m": numbers(7, 140, seed=3) > 0,
        },
        "",
    ),
    "narrow": (
        [
            cast("x", "a", BF16),
            node("Reshape", ["a", "flat"], ["b"]),
            cast("b", "c", F32),
            cast("c", "d", BF16),
            cast("d", "y", F32),
            cast("d", "z", F16),
            cast("c", "w", F64),
        ],
        [("x", F32, ["n", 16])],
        [("y", F32), ("z", F16), ("w", F64)],
        [("flat", np.array([-1]))],
        {"x": words(32, (40, 16))},
        "cast.1(",
    ),
    "halves": (
        [
            cast("x", "a", F32),
            cast("a", "y", F16),
            cast("a", "z", F64),
            cast("z", "w", F16),
            cast("z", "v", I32),
        ],
        [("x", F16, ["n"])],
        [("y", F16), ("z", F64), ("w", F16), ("v", I32)],
        [],
        {"x": words(16, 600)},
        "",
    ),
    "brain floats": (
        [
            cast("x", "a", F64),
            cast("a", "y", F32),
            cast("x", "b", F32),
            cast("b", "z", BF16),
            cast("b", "w", F64),
            cast("b", "v", F16),
            node("Relu", ["b"], ["u"]),
        ],
        [("x", BF16, ["n"])],
        [("y", F32), ("z", BF16), ("w", F64), ("v", F16), ("u", F32)],
        [],
        {"x": words(32, 900).view(np.uint16)[1::2].copy().view(ml_dtypes.bfloat16)},
        "",
    ),
    "floats": (
        [
            cast("x", "a", F64),
            cast("a", "y", F32),
            cast("x", "b", BF16),
            cast("b", "c", F64),
            cast("c", "z", F32),
            cast("c", "w", BF16),
            cast("w", "v", F32),
        ],
        [("x", F32, ["n"])],
        [("y", F32), ("z", F32), ("v", F32)],
        [],
        {"x": words(32, 900)},
        "",
    ),
    "integers": (
        [
            cast("x", "a", F64),
            cast("a", "y", I8),
            cast("a", "z", I32),
            cast("x", "b", F32),
            cast("b", "w", I32),
            cast("x", "c", TensorProto.INT64),
            cast("c", "v", I8),
            cast("c", "u", F32),
            cast("x", "t", BOOL),
            cast("t", "s", I8),
            cast("s", "r", F32),
        ],
        [("x", I32, ["n"])],
        [("y", I8), ("z", I32), ("w", I32), ("v", I8), ("u", F32), ("r", F32)],
        [],
        {
            "x": np.random.default_rng(0).integers(-(2**31), 2**31, 500).astype(np.int32)
            >> np.arange(500, dtype=np.int32) % 32
        },
        "cast.1(",
    ),
    "repeats": (
        [
            node("Expand", ["x", "shape"], ["a"]),
            node("Add", ["a", "y0"], ["b"]),
            node("Mul", ["a", "x"], ["c"]),
            node("Add", ["x", "zero"], ["d"]),
            node("Mul", ["x", "one"], ["e"]),
            node("Add", ["a", "y0"], ["f"]),
            node("Where", ["m", "a", "y0"], ["y"]),
        ],
        [("x", F32, [1, 6]), ("y0", F32, [5, 6]), ("m", BOOL, [5, 1])],
        [(n, F32) for n in "bcdefy"],
        [("shape", np.array([5, 6])), ("zero", np.float32(0)), ("one", np.float32(1))],
        {"x": words(32, (1, 6)), "y0": words(32, (5, 6), 1), "m": numbers(5, 1) > 0},
        "",
    ),
    "nothing": (
        [
            node("Concat", ["none", "x"], ["a"], axis=0),
            node("Reshape", ["a", "flat"], ["b"]),
            node("Reshape", ["b", "two"], ["c"]),
            node("Identity", ["c"], ["y"]),
            perm("c", "d", 1, 0),
            perm("d", "z", 1, 0),
            node("Unsqueeze", ["x", "flat"], ["e"]),
            perm("e", "f", 2, 0, 1),
            node("Exp", ["x"], ["g"]),
            node("Exp", ["x"], ["h"]),
        ],
        [("x", F32, ["n", 4])],
        [(n, F32) for n in "yzfgh"],
        [
            ("none", np.zeros((0, 4), np.float32)),
            ("flat", np.array([-1])),
            ("two", np.array([-1, 2])),
        ],
        {"x": words(32, (3, 4))},
        "concat.1(",
    ),
}


@pytest.fixture(params=GRAPHS)
def made(request, tmp_path):
    nodes, inputs, outputs, weights, arrays, gone = GRAPHS[request.param]
    path = model(tmp_path / "m.onnx", nodes, inputs, outputs, weights)
    for name, array in arrays.items():
        np.save(tmp_path / f"in.{name}.npy", array)
    return path, arrays, gone


def test_levels_give_the_same_bytes(made, tmp_path):
    path, arrays, gone = made
    found, plans = [], []
    for level in range(4):
        out, plan = tmp_path / str(level), tmp_path / f"{level}.invar"
        out.mkdir()
        invar("compile", path, "--opt", level, "--output", plan)
        invar(
            "infer",
            plan,
            *[a for n in arrays for a in ("--input", f"{n}={tmp_path}/in.{n}.npy")],
            "--tensors-output",
            out,
        )
        found.append({p.name: p.read_bytes() for p in out.iterdir()})
        plans.append(program_of(plan))
    assert found[0] and all(f == found[0] for f in found)
    assert plans[0] != plans[3]
    if gone:
        assert plans[3].count(gone) < plans[0].count(gone)


def test_another_answer_is_seen(tmp_path):
    """What all journeys do (conftest.py) fails where the bytes differ."""
    path = model(
        tmp_path / "m.onnx",
        [perm("x", "a", 1, 0), perm("a", "b", 1, 0), node("Exp", ["b"], ["y"])],
        [("x", F32, [2, 3])],
        [("y", F32)],
    )
    np.save(tmp_path / "in.npy", numbers(2, 3))
    (tmp_path / "out").mkdir()
    args = [
        "infer",
        str(tmp_path / "plan.invar"),
        "--input",
        f"x={tmp_path}/in.npy",
        "--tensors-output",
        str(tmp_path / "out"),
    ]
    invar("compile", path)
    invar(*args)
    np.save(tmp_path / "out/y.npy", numbers(2, 3))
    with pytest.raises(AssertionError, match="--opt 0 gives another y.npy"):
        same_without_rewrites(args, {})


def test_every_stage_is_read_back(made, tmp_path):
    path, _, _ = made
    before = invar("compile", path, "--emit", "onnx").out
    assert opt(before, tmp_path=tmp_path) == before
    for name in PASSES:
        text = invar("compile", path, "--emit", name).out
        assert opt(text, tmp_path=tmp_path) == text, name
        if name != PASSES[-1]:
            assert opt(before, pipeline(name), tmp_path=tmp_path) == text, name
        before = text
    invar("compile", path, "--output", tmp_path / "plan.invar")
    assert invar("compile", path, "--emit", "plan").out == (tmp_path / "plan.invar").read_bytes()
    assert (
        invar("compile", path, "--emit", "repro", "--opt", 0).out
        == invar("compile", path, "--emit", "repro-prepare-plan", "--opt", 0).out
    )


def test_stages_and_levels_that_are_not_there(tmp_path):
    path = model(tmp_path / "m.onnx", [node("Exp", ["x"], ["y"])], [("x", F32, [3])], [("y", F32)])
    refused(
        "compile",
        path,
        "--emit",
        "fold",
        names=[
            "stage fold",
            "there are onnx, repro, plan, torch, onnx-to-repro, repro-recognize-idioms, repro-fuse",
        ],
    )
    refused(
        "compile",
        path,
        "--emit",
        "repro-sink-transposes",
        "--opt",
        2,
        names=["repro-sink-transposes", "level 3", "level 2"],
    )
    refused("compile", path, "--opt", 4, names=["--opt"])
    refused("compile", path, "--size", "seq", names=["--size seq", "NAME=N"])
    refused("compile", path, "--size", "seq=4", names=["'seq'", "no such dimension"])


def test_former_pass_names(tmp_path):
    """The names that passes had in earlier versions still select them."""
    path = model(tmp_path / "m.onnx", [node("Exp", ["x"], ["y"])], [("x", F32, [3])], [("y", F32)])
    for old, new in [
        ("repro-recover", "repro-recognize-idioms"),
        ("repro-fold", "repro-fuse"),
        ("repro-simplify", "repro-canonicalize"),
        ("repro-turn", "repro-sink-transposes"),
        ("repro-settle", "repro-prepare-plan"),
    ]:
        assert (
            invar("compile", path, "--emit", old).out == invar("compile", path, "--emit", new).out
        ), old


def test_artifacts_are_kept(tmp_path):
    path = model(
        tmp_path / "m.onnx",
        [node("Add", ["x", "w"], ["y"])],
        [("x", F32, ["n", 3])],
        [("y", F32)],
        [("w", numbers(3))],
    )
    quiet = invar("compile", path)
    assert b"artifacts" not in quiet.err
    done = invar(
        "compile", path, "--opt", 1, env={**os.environ, "INVAR_DEBUG": "1", "TMPDIR": str(tmp_path)}
    )
    folder = Path(done.err.decode().split("artifacts in ")[1].splitlines()[0])
    assert folder.parent == tmp_path
    kept = {p.name: p for p in folder.iterdir()}
    assert set(kept) == {
        "0-onnx.mlir",
        "1-onnx-to-repro.mlir",
        "2-repro-recognize-idioms.mlir",
        "3-repro-fuse.mlir",
        "7-repro-prepare-plan.mlir",
        "8-repro-store-weights.mlir",
        "plan.invar",
        "plan.invar.constants",
    }
    assert kept["plan.invar"].read_bytes() == (tmp_path / "plan.invar").read_bytes()
    assert (
        kept["plan.invar.constants"].read_bytes()
        == (tmp_path / "plan.invar.constants").read_bytes()
    )
    for name, stage in [("0-onnx", "onnx"), ("7-repro-prepare-plan", "repro")]:
        assert (
            kept[name + ".mlir"].read_bytes()
            == invar("compile", path, "--opt", 1, "--emit", stage).out
        )
    refused(
        "compile",
        path,
        env={**os.environ, "INVAR_DEBUG": "1", "TMPDIR": str(tmp_path / "none")},
        names=["INVAR_DEBUG", "TMPDIR"],
    )


def memory(*args):
    line = invar("compile", *args).text.split("\nmemory ")[1].splitlines()[0]
    return line, [
        int(w)
        for w in line.replace(")", " ").replace(",", " ").replace(":", " ").split()
        if w.isdigit()
    ]


def test_memory_is_reported(tmp_path):
    """x -> a, b of x; c = a + b, y = c + x: x, a, b and then c at once; inputs stay."""
    path = model(
        tmp_path / "m.onnx",
        [
            node("Exp", ["x"], ["a"]),
            node("Sin", ["x"], ["b"]),
            node("Add", ["a", "b"], ["c"]),
            node("Mul", ["c", "w"], ["y"]),
        ],
        [("x", F32, ["n", 4])],
        [("y", F32)],
        [("w", numbers(4))],
    )
    line, found = memory(path, "--size", "n=10")
    tensor = 4 * 4 * 10
    assert found == [16 + 4 * tensor, 16, 4 * tensor, 4 * tensor], line
    assert line.endswith("at n=10; alive there 64*n")
    assert memory(path)[1][2] == 4 * 4 * 4 * 64


def test_a_receipt_knows_no_level(generate, tmp_path):
    """A receipt binds what is computed: the plans of two levels give one receipt."""
    answer = generate(tokens=8)
    invar("export", "--model-name", MODEL, "--output", tmp_path)
    programs, plans = [], []
    for level in (0, 3):
        plan = tmp_path / f"{level}.invar"
        made = invar("compile", tmp_path / "model.onnx", "--opt", level, "--output", plan).text
        programs.append(made.split("program ")[1].split()[0])
        plans.append(made.split("\nplan ")[1].split()[0])
        other = generate("--plan", plan, tokens=8)
        assert other["receipt_hash"] == answer["receipt_hash"]
        assert other["content"]["execution"]["plan"] == plans[-1]
    assert set(programs) == {answer["content"]["program"]["digest"]} and plans[0] != plans[1]
    assert plans[1] == answer["content"]["execution"]["plan"]
    assert invar("verify", other["receipt"], "--model-name", MODEL)
