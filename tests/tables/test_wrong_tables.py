"""Tables that a model cannot read: the error names the row, the column, and what to do."""

import pytest
from conftest import refused
from onnx import TensorProto, helper

F32, F16, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def save(path, inputs):
    """A model of these inputs, each on its own."""
    values = [helper.make_tensor_value_info(*i) for i in inputs]
    outputs = [helper.make_tensor_value_info(f"{n}.same", t, None) for n, t, _ in inputs]
    nodes = [helper.make_node("Neg", [n], [f"{n}.same"]) for n, _, _ in inputs]
    graph = helper.make_graph(nodes, "g", values, outputs)
    sets = [helper.make_opsetid("", 18)]
    path.write_bytes(helper.make_model(graph, opset_imports=sets, ir_version=9).SerializeToString())
    return path


COLUMNS = [("age", F32, ["n", 1]), ("income", F32, ["n"]), ("count", I64, ["n", 1])]
HEADER = b"age,income,count\n"


@pytest.mark.parametrize(
    "text, names",
    [
        (b"age,job\n1,2\n", ['no columns "income", "count"', 'the table has "age", "job"']),
        (b"age;income;count\n1;2;3\n", ["separate columns by commas"]),
        (b"age\tincome\tcount\n1\t2\t3\n", ["separate columns by commas"]),
        (HEADER + b"1,NA,3\n", ["row 1 (line 2)", '"income"', '"NA"', "an empty cell or NaN"]),
        (HEADER + b"1,2,3\n1,2,3.0\n", ["row 2 (line 3)", '"count"', '"3.0" is no int64']),
        (HEADER + b"1,2,\n", ["row 1 (line 2)", '"count"', "no int64"]),
        (HEADER + b'1,"2,000",3\n', ["row 1 (line 2)", '"income"', '"2,000" is no number']),
        (HEADER + b"1,2,3\n1,2,3,4\n", ["row 2 (line 3)", "4 fields for 3 columns"]),
        (HEADER + b"1,\xe9,3\n", ["row 1 (line 2)", '"income"', "not UTF-8"]),
        (HEADER.decode().encode("utf-16"), ["UTF-16", "write it as CSV"]),
        (b"PK\x03\x04", ["Excel", "write it as CSV"]),
        (b"\x1f\x8b\x08", ["gzip", "write it as CSV"]),
    ],
)
def test_columns_by_name(tmp_path, text, names):
    path = save(tmp_path / "m.onnx", COLUMNS)
    (tmp_path / "t.csv").write_bytes(text)
    refused("infer", path, "--table", tmp_path / "t.csv", names=[str(tmp_path / "t.csv"), *names])


@pytest.mark.parametrize(
    "text, names",
    [
        ("a,b\n1,2\n", ["has 3 columns", "the table has 2", '"a", "b"']),
        ("id,a,b,c\n1,2,3,4\n", ["has 3 columns", "the table has 4", '"id", "a", "b", "c"']),
        ("1.5,2,3\n4,5,6\n", ["line 1", "put a line of names in front of it"]),
        ("a,b,c\n", ["no rows"]),
    ],
)
def test_a_matrix(tmp_path, text, names):
    path = save(tmp_path / "m.onnx", [("x", F32, ["n", 3])])
    (tmp_path / "t.csv").write_text(text)
    refused("infer", path, "--table", tmp_path / "t.csv", names=names)


def test_two_matrices_and_other_types(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    path = save(tmp_path / "m.onnx", [("a", F32, ["n", 2]), ("b", F32, ["n", 2])])
    refused("infer", path, "--table", tmp_path / "t.csv", names=['"a.0" ... "a.1"'])
    path = save(tmp_path / "h.onnx", [("x", F16, ["n", 2])])
    names = ['column "a"', "f16", "--input"]
    refused("infer", path, "--table", tmp_path / "t.csv", code=3, names=names)
