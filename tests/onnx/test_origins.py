"""Errors of a run name the ONNX node (plan.17), on the command line and in Python; names reach
neither the program nor its digest."""

import re
import sys

import numpy as np
import pytest
from conftest import BUILD, invar, program_of, refused
from onnx import TensorProto, helper, numpy_helper

X, FAR = np.arange(12, dtype="f").reshape(3, 4), np.array([0, 3])
HOSTILE = [
    "a\nb",
    '"',
    '"\nend\n',
    "\\",
    "\\x0a",
    "\x1b[2J",
    "\nplaces\nslots 0\nend\n",
    "é",
    "'{0}%s",
    "n" * 5000,
]


def model(name, op="Gather"):
    """Takes rows of x by number, or gives x another shape that its values say."""
    node = {
        "Gather": helper.make_node("Gather", ["x", "at"], ["y"], name=name),
        "Reshape": helper.make_node("Reshape", ["x", "at"], ["y"], name=name),
    }[op]
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("at", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def in_loop(name):
    """Takes a row in each step; the last step asks for one that is not there."""
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "step"], ["row"], name=name),
            helper.make_node("Identity", ["go"], ["again"]),
        ],
        "b",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, None),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["at", "yes"], ["y"], name="steps", body=body)],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("at", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(True), "yes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def compiled(folder, made):
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    invar("compile", folder / "m.onnx")
    return folder / "plan.invar"


def feed(folder, at, x=X):
    np.save(folder / "x.npy", x), np.save(folder / "at.npy", at)
    return ["--input", f"x={folder / 'x.npy'}", "--input", f"at={folder / 'at.npy'}"]


def native():
    if not (BUILD / "python/invar").is_dir():
        pytest.skip("this build has no Python package (INVAR_PACKAGE)")
    sys.path.insert(0, str(BUILD / "python"))
    import invar as package

    return package


CASES = [
    (
        "Gather",
        FAR,
        'Gather (node "pick"), operation 0 of the plan, gather: index 3 at [1] of operand 1 is '
        "outside -3 ... 2",
    ),
    (
        "Reshape",
        np.array([5, 2]),
        r'Reshape \(node "pick"\), operation \d+ of the plan, reshape, requires as many elements',
    ),
]


@pytest.mark.parametrize("op, at, said", CASES)
def test_the_command_line_names_the_node(tmp_path, op, at, said):
    plan = compiled(tmp_path, model("pick", op))
    (line,) = refused("infer", plan, *feed(tmp_path, at)).errors
    assert re.search(said if "\\" in said else re.escape(said), line)


@pytest.mark.parametrize("op, at, said", CASES)
def test_python_names_the_node(op, at, said):
    package = native()
    with pytest.raises(package.BadInput, match=said if "\\" in said else re.escape(said)):
        package.compile(model("pick", op)).run(x=X, at=at)


def test_a_node_without_name_is_named_by_its_output(tmp_path):
    refused(
        "infer",
        compiled(tmp_path, model("")),
        *feed(tmp_path, FAR),
        names=['Gather (node "y"), operation 0'],
    )


def test_a_node_of_a_body_is_named(tmp_path):
    plan = compiled(tmp_path, in_loop("row of the step"))
    assert (
        'origin 1 "Gather" "row of the step"\n' in plan.read_text()
        and '"Loop" "steps"\n' in plan.read_text()
    )
    invar("infer", plan, *feed(tmp_path, np.array(3)))
    refused(
        "infer",
        plan,
        *feed(tmp_path, np.array(4)),
        names=['Gather (node "row of the step"), operation 1 of the plan, gather: index 3'],
    )


def test_names_are_no_part_of_the_program(tmp_path):
    plan = compiled(tmp_path, model("pick"))
    named = plan.read_text()
    assert 'origin 0 "Gather" "pick"\nprogram "onnx-1" ' in named
    program, bytes_of = (
        program_of(plan),
        lambda: invar("infer", plan, *feed(tmp_path, np.array([2, 0]))).out,
    )
    want = bytes_of()
    plan.write_text(named.replace('origin 0 "Gather" "pick"\n', ""))  # as plans were before plan.17
    assert program_of(plan) == program and bytes_of() == want
    (line,) = refused("infer", plan, *feed(tmp_path, FAR)).errors
    assert ": operation 0 of the plan, gather: index 3" in line and "node" not in line
    plan.write_text(named.replace("origin 0", "origin 1"))
    refused("infer", plan, *feed(tmp_path, FAR), names=["there is no node 1"])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(tmp_path, name):
    plan = compiled(tmp_path, model(name))
    program, lines = program_of(plan), plan.read_bytes().split(b"\n")
    assert [line[:7] for line in lines[lines.index(b"places") :]] == [
        b"places",
        b"slots 1",
        b"slot v2",
        b"origin ",
        b"program",
        b"end",
        b"",
    ]
    assert not any(c < 0x20 or c == 0x7F for line in lines for c in line)
    done = refused("infer", plan, *feed(tmp_path, FAR), names=['Gather (node "', "index 3"])
    assert len(done.errors[0]) < 500 and "\x1b" not in done.text
    assert program == program_of(compiled(tmp_path, model("pick")))
    package = native()
    with pytest.raises(package.BadInput) as said:
        package.compile(model(name)).run(x=X, at=FAR)
    assert "index 3" in str(said.value) and not any(
        ord(c) < 0x20 or ord(c) == 0x7F for c in str(said.value)
    )


def test_a_name_that_is_no_utf8(tmp_path):
    data = model("pick").SerializeToString().replace(b"pick", b"p\xff\xc3k")
    (tmp_path / "m.onnx").write_bytes(data)
    invar("compile", tmp_path / "m.onnx")
    refused("infer", tmp_path / "plan.invar", *feed(tmp_path, FAR), names=["index 3"])
    package = native()
    with pytest.raises(package.BadInput, match=r'Gather .node "p\\xff\\xc3k".*index 3'):
        (made := package.compile(str(tmp_path / "m.onnx"))).run(x=X, at=FAR)
    assert made.plan.encode("utf-8", "surrogateescape") == (tmp_path / "plan.invar").read_bytes()
