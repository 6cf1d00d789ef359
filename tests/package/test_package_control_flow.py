"""The Python package: loops and branches that values decide when a program runs."""

import copy
import io

import numpy as np
import onnx
import pytest
from conftest import BUILD, cpu_isas
from onnx import TensorProto, helper, numpy_helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import CompileOptions  # noqa: E402

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, info = helper.make_node, helper.make_tensor_value_info


def graph(nodes, inputs, outputs, weights=()):
    return helper.make_graph(
        nodes, "g", inputs, outputs, [numpy_helper.from_array(np.asarray(v), n) for n, v in weights]
    )


def model(top):
    return helper.make_model(top, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def growing():
    """x is added while the largest sum is below a limit; each step appends half of the list so far,
    and gives the sum, of odd steps its negation."""
    odd = {
        f"{b}_branch": graph([node(op, ["sum"], [f"r{b}"])], [], [info(f"r{b}", F32, None)])
        for b, op in (("then", "Neg"), ("else", "Abs"))
    }
    body = graph(
        [
            node("Add", ["total", "x"], ["sum"]),
            node("Size", ["list"], ["size"]),
            node("Div", ["size", "two"], ["half"]),
            node("Unsqueeze", ["half", "zero"], ["to"]),
            node("Slice", ["list", "zero", "to"], ["head"]),
            node("Concat", ["list", "head"], ["longer"], axis=0),
            node("ReduceMax", ["sum"], ["most"], keepdims=0),
            node("Less", ["most", "limit"], ["again"]),
            node("Mod", ["i", "two"], ["bit"]),
            node("Cast", ["bit"], ["odd"], to=BOOL),
            node("If", ["odd"], ["row"], **odd),
        ],
        [
            info("i", I64, []),
            info("c", BOOL, []),
            info("total", F32, None),
            info("list", F32, None),
        ],
        [info("again", BOOL, []), *(info(n, F32, None) for n in ("sum", "longer", "row"))],
    )
    return graph(
        [
            node("Loop", ["trips", "yes", "x", "given"], ["last", "list_out", "rows"], body=body),
            node("Neg", ["list_out"], ["negated"]),
        ],
        [
            info("x", F32, ["n"]),
            info("given", F32, ["k"]),
            info("trips", I64, []),
            info("limit", F32, []),
        ],
        [info(n, F32, None) for n in ("last", "negated", "rows")],
        [("two", np.int64(2)), ("zero", np.array([0])), ("yes", np.bool_(True))],
    )


def chosen():
    """Of two lists of different length the one that a flag names; the other could not be
    computed."""
    first = graph([node("Gather", ["x", "far"], ["a"])], [], [info("a", F32, None)])
    second = graph([node("Concat", ["x", "x"], ["b"], axis=0)], [], [info("b", F32, None)])
    return graph(
        [
            node("If", ["flag"], ["y"], then_branch=first, else_branch=second),
            node("Neg", ["y"], ["z"]),
        ],
        [info("x", F32, ["n"]), info("flag", BOOL, [])],
        [info("z", F32, None)],
        [("far", np.array([6, 0, 6]))],
    )


def scanned():
    body = graph(
        [node("Add", ["s", "e"], ["t"]), node("MatMul", ["t", "w"], ["u"])],
        [info("s", F32, [2]), info("e", F32, [2])],
        [info("t", F32, [2]), info("u", F32, [2])],
    )
    return graph(
        [
            node(
                "Scan",
                ["s0", "x"],
                ["last", "rows"],
                body=body,
                num_scan_inputs=1,
                scan_input_directions=[1],
                scan_output_axes=[1],
            )
        ],
        [info("s0", F32, [2]), info("x", F32, ["n", 2])],
        [info("last", F32, [2]), info("rows", F32, None)],
        [("w", np.array([[1, 2], [3, 4]], "f"))],
    )


def calls():
    x, row = np.linspace(-1, 1, 5, dtype="f"), np.arange(3, dtype="f")
    number = lambda v, t: np.array(v, t)
    yield (
        growing(),
        [
            dict(x=x, given=row, trips=number(t, "q"), limit=number(l, "f"))
            for t, l in ((4, 100), (9, 2.5), (0, 100), (1, 0), (4, 100))
        ],
    )
    yield (
        chosen(),
        [
            dict(x=np.arange(n, dtype="f"), flag=number(f, "?"))
            for n, f in ((7, True), (3, False), (0, False), (9, True))
        ],
    )
    yield (
        scanned(),
        [dict(s0=row[:2], x=np.arange(2 * n, dtype="f").reshape(n, 2)) for n in (4, 0, 1, 33)],
    )


@pytest.mark.parametrize("which", range(3))
def test_modules_have_the_bytes_of_programs(which):
    top, given = list(calls())[which]
    programs = [invar.compile(model(top), isa=isa) for isa in cpu_isas()]
    same, plain = (
        invar.convert(model(top), CompileOptions(requires_reproducibility=r)) for r in (True, False)
    )
    kept = io.BytesIO()
    torch.save(same, kept), kept.seek(0)
    again = [
        same,
        copy.deepcopy(same),
        torch.load(kept, weights_only=False),
        plain,
    ]  # of such numbers torch's bytes are these, too
    for inputs in given:
        found = [[v.tobytes() for v in p.run(inputs).values()] for p in programs]
        assert all(f == found[0] for f in found)
        wanted = list(programs[0].run(inputs).values())
        for module in again:
            results = module(*map(torch.from_numpy, inputs.values()))
            results = results if isinstance(results, tuple) else (results,)
            assert [(tuple(r.shape), r.numpy().tobytes()) for r in results] == [
                (w.shape, w.tobytes()) for w in wanted
            ]


def test_what_cannot_be_is_an_error_of_the_call():
    module, program = invar.convert(model(chosen())), invar.compile(model(chosen()))
    x, flag = np.zeros(3, "f"), np.array(True)
    with pytest.raises(invar.BadInput):
        program.run({"x": x, "flag": flag})
    with pytest.raises(invar.BadInput):
        module(torch.from_numpy(x), torch.from_numpy(flag))


def test_the_source_reads_as_python(tmp_path):
    """A loop is a function and a call; so are branches, but for those of which elements are
    selected."""
    for top, texts in (
        (growing(), ("def loop_1_body(", "self.loop(loop_1_body, ", "primitives.where(")),
        (chosen(), ("(if_0_then if self.holds(", "if_0 = if_0")),
    ):
        onnx.save(model(top), tmp_path / f"{top.output[0].name}.onnx")
        invar.convert(
            tmp_path / f"{top.output[0].name}.onnx",
            CompileOptions(artifacts_dir=tmp_path / top.output[0].name),
        )
        source = next((tmp_path / top.output[0].name).rglob("*.py")).read_text()
        for text in texts:
            assert text in source, source
