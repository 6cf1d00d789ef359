"""Estimators of scikit-learn, LightGBM, XGBoost and CatBoost as programs whose predictions have
the same bits on every machine, each with a receipt.

    model = invar.sklearn.wrap(estimator, X[:1])
    model.predict(X); model.predict_proba(X); model.receipt(X, "receipt.json")

skl2onnx converts estimators and pipelines, onnxmltools those of LightGBM and XGBoost, and CatBoost
writes ONNX itself. They are loaded when first needed: `pip install skl2onnx onnxmltools`."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from invar import _native, arrays, compiler, requests

Rows: TypeAlias = Any  # an array [N, F], a DataFrame, or a dict of columns


def _needs(module: str, what: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise _native.NotCovered(f"{what} needs {package}: pip install {package}") from None


def _columns(X: Rows) -> dict[str, np.ndarray] | None:
    """Columns by name, all of a length; None for an array."""
    if isinstance(X, Mapping):
        found = [(str(name), np.asarray(column)) for name, column in X.items()]
    elif hasattr(X, "columns") and hasattr(X, "iloc"):
        found = [(str(name), X.iloc[:, i].to_numpy()) for i, name in enumerate(X.columns)]
    else:
        return None
    named: dict[str, np.ndarray] = {}
    for name, column in found:
        if name in named:
            raise _native.BadInput(f"X: two columns are called {name!r}")
        if len(column) != len(found[0][1]):
            raise _native.BadInput(
                f"X: column {name!r} has {len(column)} rows, {found[0][0]!r} has {len(found[0][1])}"
            )
        named[name] = column
    return named


def _matrix(X: Rows) -> np.ndarray:
    """An array of rows; sparse ones of SciPy become dense."""
    found = np.asarray(X.toarray() if hasattr(X, "toarray") else arrays.unmasked(X, "X"))
    if found.ndim != 2:
        raise _native.BadInput(
            f"X: expected rows of features, an array of 2 dimensions, got {found.ndim}"
        )
    return found


def _numbers(values: np.ndarray, dtype: Any, column: str | None = None) -> np.ndarray:
    """Rows as numbers of a type. Raises BadInput, which names row and column, where a cell is
    none."""
    where = "X" if column is None else f"X: column {column!r}"
    if values.dtype.kind in "mM":
        raise _native.BadInput(f"{where}: dates and times are no numbers: give a column of numbers")
    to = np.dtype(dtype)
    try:
        if to.kind == "f" or values.dtype.kind in "iub":
            return np.ascontiguousarray(values, to)
    except (TypeError, ValueError):
        pass
    for at, cell in np.ndenumerate(values):
        try:
            with np.errstate(invalid="ignore"):  # NaN is no integer
                if np.asarray(cell, to) != cell and to.kind != "f":
                    raise ValueError
        except (TypeError, ValueError, OverflowError):
            kind = "number" if to.kind == "f" else "integer, which the model reads"
            name = repr(column) if len(at) == 1 else at[1] + 1
            raise _native.BadInput(
                f"X: row {at[0] + 1}, column {name}: {cell!r} is no {kind}"
            ) from None
    return np.ascontiguousarray(values, to)


def _is_text(column: np.ndarray) -> bool:
    return column.dtype.kind in "OUST"


def _inputs(X: Rows) -> list[tuple[str, str, int | None]]:
    """What a model of such rows reads: name, kind and number of columns."""
    columns = _columns(X)
    if columns is None:
        return [("X", "float", _matrix(X).shape[1])]
    if not any(map(_is_text, columns.values())):
        return [("X", "float", len(columns))]
    return [(name, "text" if _is_text(c) else "float", 1) for name, c in columns.items()]


def to_onnx(estimator: Any, example: Rows, *, target_opset: int = 18) -> Any:
    """The ONNX model of a fitted estimator that predicts rows like those of `example`.

    An array, and a table without strings, is one input X: f32 [N, F]. A table with strings has an
    input [N, 1] for each column. Raises NotCovered where a converter is not installed, or has none
    of the estimator's kind, and what scikit-learn raises for one that is not fitted."""
    inputs, library = _inputs(example), type(estimator).__module__.split(".")[0]
    if library not in ("catboost", "lightgbm", "xgboost"):
        _needs("sklearn.utils.validation", "an estimator").check_is_fitted(estimator)
    try:
        return _converted(estimator, library, inputs, target_opset)
    except _native.Error:
        raise
    except Exception as e:  # of a converter, in as many lines as it likes
        raise _native.NotCovered(
            f"{type(estimator).__name__}: the converter to ONNX refuses it: {type(e).__name__}: "
            f"{str(e).strip().splitlines()[0] if str(e).strip() else ''}"
        ) from e


def _converted(
    estimator: Any, library: str, inputs: list[tuple[str, str, int | None]], target_opset: int
) -> Any:
    if library == "catboost":
        onnx = _needs("onnx", "a model of CatBoost")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model.onnx"))
            estimator.save_model(path, format="onnx")
            return onnx.load(path)
    if library in ("lightgbm", "xgboost"):
        tools = _needs("onnxmltools", f"a model of {library}")
        types = _needs("onnxmltools.convert.common.data_types", f"a model of {library}")
        convert = getattr(tools, f"convert_{library}")
        initial = [("X", types.FloatTensorType([None, inputs[0][2]]))]
        zipmap = {"zipmap": False} if library == "lightgbm" else {}
        return convert(estimator, initial_types=initial, target_opset=15, **zipmap)
    skl2onnx = _needs("skl2onnx", "an estimator")
    types = _needs("skl2onnx.common.data_types", "an estimator")
    kinds = {"float": types.FloatTensorType, "text": types.StringTensorType}
    initial = [(name, kinds[kind]([None, width])) for name, kind, width in inputs]
    options = {"zipmap": False} if hasattr(estimator, "predict_proba") else {}
    return skl2onnx.to_onnx(
        estimator,
        initial_types=initial,
        options={id(estimator): options} if options else None,
        target_opset={"": target_opset, "ai.onnx.ml": 3},
    )


class Model:
    """A fitted estimator as a program.

    `path`: its ONNX file, which `invar verify --model` and `invar infer --table` take. `program`:
    what computes it. `columns`: the names of X's columns in their order, where the example had
    some: tables may have them in another order, and others beside them."""

    def __init__(
        self,
        onnx_model: Any,
        folder: str | os.PathLike[str] | None,
        columns: tuple[str, ...] | None = None,
        **how: Any,
    ) -> None:
        self.columns, self._how = columns, how
        self._folder = None if folder else tempfile.TemporaryDirectory(prefix="invar-")
        place = Path(folder or self._folder.name)  # type: ignore[union-attr]
        place.mkdir(parents=True, exist_ok=True)
        self.path = place / "model.onnx"
        content = onnx_model if isinstance(onnx_model, bytes) else onnx_model.SerializeToString()
        self.path.write_bytes(content)
        self.program = compiler.compile(self.path, **how)
        self._table = _native.string_table(str(self.path))

    def __reduce__(self) -> Any:
        """What a copy, or another process, gets: the model in a temporary folder of its own."""
        return _restored, (self.path.read_bytes(), self.columns, self._how)

    def __repr__(self) -> str:
        return f"invar.sklearn.Model({self.program!r})"

    def outputs(self, X: Rows) -> dict[str, np.ndarray]:
        """Every output of the model by name. Strings are arrays of objects."""
        fed, strings = self._fed(X)
        found = self.program.run(fed)
        texts = np.array(strings, object)
        for name in self._table[2]:
            found[name] = texts[found[name]]
        return found

    def predict(self, X: Rows) -> np.ndarray:
        """Labels [N], or predictions [N] or [N, T] of a regressor."""
        first = self.outputs(X)[self.program.outputs[0].name]
        return first[:, 0] if first.ndim == 2 and first.shape[1] == 1 else first

    def predict_proba(self, X: Rows) -> np.ndarray | list[np.ndarray]:
        """Probabilities [N, C] in the order of the estimator's classes. A list of them where the
        model gives a list, one for each target."""
        names = [output.name for output in self.program.outputs[1:]]
        if not names:
            raise _native.BadInput("predict_proba: the model has one output, its predictions")
        found = self.outputs(X)
        return [found[n] for n in names] if names[0].endswith(".0") else found[names[0]]

    def receipt(self, X: Rows, receipt_path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
        """Computes the outputs of X and writes their receipt. Returns the outputs as tensors:
        strings are their numbers (spec/onnx.md onnx.53)."""
        fed, _ = self._fed(X)
        artifacts = self.program._artifacts.path
        wrap = arrays.like(fed.values(), self.program._types())
        return wrap(
            _native.record(
                str(artifacts / "plan.invar"),
                str(self.path),
                str(artifacts),
                list(fed.items()),
                os.fspath(receipt_path),
            )
        )

    def verify(self, receipt_path: Any, X: Rows) -> Any:
        """Recomputes a receipt, a path or a dict, for these rows: invar.verify()."""
        return requests.verify(receipt_path, str(self.path), inputs=self._fed(X)[0])

    def _fed(self, X: Rows) -> tuple[dict[str, np.ndarray], list[str]]:
        """The program's inputs, and all strings by number."""
        ports, columns = self.program.inputs, _columns(X)
        strings, of_text = list(self._table[0]), set(self._table[1])
        types = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32}
        if columns is None or (len(ports) == 1 and ports[0].name not in columns):
            if len(ports) != 1:
                raise _native.BadInput(
                    f"X: an array, and the model reads columns: {', '.join(p.name for p in ports)}"
                )
            dtype = types[ports[0].dtype]
            if columns is None:
                return {ports[0].name: _numbers(_matrix(X), dtype)}, strings
            names = self.columns or tuple(columns)
            _check_columns(columns, names)
            stacked = [_numbers(columns[name], dtype, name) for name in names]
            return {ports[0].name: np.stack(stacked, axis=1)}, strings
        numbers = {s: i for i, s in enumerate(strings)}
        fed = {}
        _check_columns(columns, [port.name for port in ports])
        for port in ports:
            column = columns[port.name]
            if port.name in of_text:
                for s in map(str, column):
                    if s not in numbers:
                        numbers[s] = len(strings)
                        strings.append(s)
                column = np.array([numbers[str(s)] for s in column], np.int64)
            column = _numbers(column, types[port.dtype], port.name)
            fed[port.name] = column.reshape(-1, 1) if len(port.shape) == 2 else column
        return fed, strings


def _check_columns(columns: dict[str, np.ndarray], names: Iterable[str]) -> None:
    if missing := [name for name in names if name not in columns]:
        raise _native.BadInput(
            f"X: no column {', '.join(map(repr, missing))}, which the model reads; there are "
            + ", ".join(map(repr, columns))
        )


def _restored(content: bytes, columns: tuple[str, ...] | None, how: dict[str, Any]) -> Model:
    return Model(content, None, columns, **how)


def wrap(
    estimator: Any,
    example: Rows,
    *,
    folder: str | os.PathLike[str] | None = None,
    **how: Any,
) -> Model:
    """Converts a fitted estimator or pipeline, or takes an onnx.ModelProto, and compiles it.

    example: a row or more, as predict() will be given. folder: where model.onnx is written (None: a
    temporary folder). Other arguments are those of invar.compile(): threads, isa, device."""
    model = estimator if hasattr(estimator, "SerializeToString") else to_onnx(estimator, example)
    names = getattr(estimator, "feature_names_in_", None)  # in the order that it was fitted with
    if names is None:
        names = _columns(example)
    return Model(model, folder, None if names is None else tuple(map(str, names)), **how)


def read_table(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The columns of a Parquet or CSV file by name, read by pyarrow. Raises BadInput where the file
    is no table or has no rows."""
    error = _needs("pyarrow", "a table").ArrowException
    try:
        if str(path).endswith((".parquet", ".pq")):
            table = _needs("pyarrow.parquet", "a Parquet file").read_table(path)
        else:
            csv = _needs("pyarrow.csv", "a table")
            # With threads its errors have no rows.
            table = csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False))
    except (error, OSError) as wrong:
        raise _native.BadInput(f"{path}: {wrong}") from None
    if not table.num_rows:
        raise _native.BadInput(f"{path}: has no rows")
    if len(set(table.column_names)) < table.num_columns:
        twice = next(n for n in table.column_names if table.column_names.count(n) > 1)
        raise _native.BadInput(f"{path}: {twice!r} names two columns")
    return {name: table.column(name).to_numpy() for name in table.column_names}
