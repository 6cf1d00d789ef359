"""Estimators of scikit-learn, LightGBM, XGBoost and CatBoost by invar.sklearn: onnxruntime's
labels, its numbers within rounding, the same bytes on every instruction set and number of threads,
and a receipt. Tier 3, with tests/tables/requirements.txt."""

import pickle
import sys

import numpy as np
import pytest
from conftest import cpu_isas

try:
    import skl2onnx  # noqa: F401
except ImportError:
    pytest.skip("tests/tables/requirements.txt is not installed", allow_module_level=True)
sys.path.insert(0, __file__.rsplit("/", 1)[0])

import estimators  # noqa: E402
import invar  # noqa: E402
import invar.sklearn  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow.parquet  # noqa: E402
import test_wrong_tables  # noqa: E402

onnxruntime.set_default_logger_severity(3)


def of_onnxruntime(path, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = (
        1  # where classes tie, its labels depend on the number of threads
    )
    session = onnxruntime.InferenceSession(path, options)
    inputs = session.get_inputs()
    if len(inputs) == 1:
        fed = {inputs[0].name: np.asarray(X, np.float32)}
    else:
        kind = lambda i: object if "string" in i.type else np.float32  # noqa: E731
        fed = {i.name: X[[i.name]].to_numpy().astype(kind(i)) for i in inputs}
    results = session.run(None, fed)
    named = {}
    for output, r in zip((o.name for o in session.get_outputs()), results):
        if isinstance(r, list) and isinstance(r[0], dict):  # ZipMap
            named[output] = np.array([list(row.values()) for row in r], np.float32)
        elif isinstance(r, list):
            named |= {f"{output}.{i}": element for i, element in enumerate(r)}
        else:
            named[output] = r
    return named


@pytest.mark.parametrize("name", estimators.names())
def test_estimator(tmp_path, name):
    estimator, X = estimators.fitted(name)
    model = invar.sklearn.wrap(estimator, X[:1], folder=tmp_path)
    found = model.outputs(X)
    for output, wanted in of_onnxruntime(model.path, X).items():
        got = found[output]
        assert got.shape == wanted.shape, output
        if wanted.dtype.kind in "iuOU":
            assert (got == wanted).all(), f"{output}: {(got != wanted).sum()} labels differ"
        else:
            scale = np.abs(wanted).max() or 1
            assert np.abs(got - wanted).max() <= 2e-5 * scale, output
    for isa in cpu_isas():
        other = invar.sklearn.wrap(estimator, X[:1], isa=isa, threads=1).outputs(X)
        for output, value in found.items():
            assert np.array_equal(other[output], value, equal_nan=value.dtype.kind == "f"), isa
    model.receipt(X, tmp_path / "r.json")
    assert model.verify(tmp_path / "r.json", X)


@pytest.fixture(scope="module")
def fitted():
    """A forest of a table of numbers, and the table."""
    from sklearn.ensemble import RandomForestClassifier

    rows = np.random.default_rng(0).random((60, 2)) * [50, 1]
    table = pd.DataFrame(rows, columns=["age", "share"])
    target = (table.age > 20) ^ (table.share > 0.4)
    return RandomForestClassifier(5, random_state=0).fit(table, target.astype(int)), table


@pytest.mark.parametrize("example", ["table", "reordered", "array"])
def test_columns_are_found_by_name(fitted, example):
    estimator, table = fitted
    reordered = table[["share", "age"]]
    examples = {"table": table, "reordered": reordered, "array": table.to_numpy()}
    model = invar.sklearn.wrap(estimator, examples[example])
    want = estimator.predict(table)
    for X in (table, reordered, table.assign(other="x"), dict(reordered), table.to_numpy()):
        assert (model.predict(X) == want).all()


def test_a_model_for_another_process(fitted, tmp_path):
    estimator, table = fitted
    model = invar.sklearn.wrap(estimator, table, folder=tmp_path, threads=1)
    again = pickle.loads(pickle.dumps(model))
    assert again.path != model.path and again.program.digest == model.program.digest
    assert (again.predict(table[["share", "age"]]) == model.predict(table)).all()
    again.receipt(table, tmp_path / "r.json")
    assert model.verify(tmp_path / "r.json", table) and "invar.sklearn.Model(" in repr(again)


@pytest.mark.parametrize(
    "X, line",
    [
        (np.ones(2), "an array of 2 dimensions, got 1"),
        (None, "an array of 2 dimensions, got 0"),
        (np.ma.masked_array(np.ones((2, 2))), "a masked array"),
        (np.array([["a", "b"]]), "row 1, column 1: .*'a'.* is no number"),
        ({"age": [1.0]}, "no column 'share'"),
        ({"age": [1.0], "share": [1.0, 2.0]}, "'share' has 2 rows, 'age' has 1"),
        (pd.DataFrame(np.ones((2, 2)), columns=["age", "age"]), "two columns are called 'age'"),
        ({"age": pd.date_range("2020", periods=1), "share": [1.0]}, "'age': dates and times"),
    ],
)
def test_rows_that_are_none(fitted, X, line):
    estimator, table = fitted
    with pytest.raises(invar.Error, match=line):
        invar.sklearn.wrap(estimator, table).predict(X)


def test_sparse_rows_are_made_dense(fitted):
    import scipy.sparse

    estimator, table = fitted
    model, X = invar.sklearn.wrap(estimator, table), table.to_numpy()
    assert (model.predict(scipy.sparse.csr_matrix(X)) == model.predict(X)).all()


def test_estimators_that_are_none(fitted):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.exceptions import NotFittedError
    from sklearn.neighbors import KernelDensity

    _, table = fitted
    with pytest.raises(NotFittedError, match="not fitted yet"):
        invar.sklearn.wrap(RandomForestClassifier(), table)
    with pytest.raises(TypeError, match="not an estimator"):
        invar.sklearn.wrap("model.onnx", table)
    with pytest.raises(invar.NotCovered, match="KernelDensity: the converter to ONNX refuses it"):
        invar.sklearn.wrap(KernelDensity().fit(table), table)


def test_tables_that_are_wrong(tmp_path):
    """Frames and files of pyarrow."""
    path = test_wrong_tables.save(tmp_path / "m.onnx", test_wrong_tables.COLUMNS)
    model = invar.sklearn.Model(onnx.load(path), tmp_path / "made")
    good = {"age": [1.0, 2.0], "income": [3.0, 4.0], "count": [5, 6]}

    def refuses(*names, **columns):
        rows = {n: np.asarray(c) for n, c in {**good, **columns}.items() if c is not None}
        with pytest.raises(invar.BadInput) as error:
            model.outputs(rows)
        for name in names:
            assert name in str(error.value), error.value

    refuses("'income', 'count'", "there are 'age'", income=None, count=None)
    refuses("row 2", "'income'", "'NA'", "no number", income=np.array([1.0, "NA"], object))
    refuses("row 1", "'count'", "nan", "no integer", count=[np.nan, 1.0])
    refuses("row 2", "'count'", "1.5", "no integer", count=[2.0, 1.5])
    assert model.outputs({**good, "count": [2.0, 3.0]})["count.same"].ravel().tolist() == [-2, -3]

    def refuses_file(name, *names):
        with pytest.raises(invar.BadInput) as error:
            invar.sklearn.read_table(tmp_path / name)
        assert "\n" not in str(error.value)
        for part in (name, *names):
            assert part in str(error.value), error.value

    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    refuses_file("ragged.csv", "Row #3", "Expected 2 columns, got 3")
    (tmp_path / "no.parquet").write_bytes(b"PAR1PAR1")
    refuses_file("no.parquet")
    refuses_file("gone.csv", "No such file")
    empty = pyarrow.table({"a": pyarrow.array([], pyarrow.float32())})
    pyarrow.parquet.write_table(empty, tmp_path / "empty.parquet")
    refuses_file("empty.parquet", "no rows")
