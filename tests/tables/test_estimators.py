"""Estimators of scikit-learn, LightGBM, XGBoost and CatBoost by invar.sklearn: onnxruntime's
labels, its numbers within rounding, the same bytes on every instruction set and number of threads,
and a receipt. Tier 3, with tests/tables/requirements.txt."""

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
import onnxruntime  # noqa: E402

onnxruntime.set_default_logger_severity(3)


def of_onnxruntime(path, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # where classes tie, its labels depend on the number of threads
    session = onnxruntime.InferenceSession(path, options)
    inputs = session.get_inputs()
    if len(inputs) == 1:
        fed = {inputs[0].name: np.asarray(X, np.float32)}
    else:
        kind = lambda i: object if "string" in i.type else np.float32  # noqa: E731
        fed = {i.name: X[[i.name]].to_numpy().astype(kind(i)) for i in inputs}
    results = session.run(None, fed)
    for i, r in enumerate(results):  # ZipMap
        if isinstance(r, list):
            results[i] = np.array([list(row.values()) for row in r], np.float32)
    return dict(zip((o.name for o in session.get_outputs()), results))


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
