"""Models of ai.onnx.ml: onnxruntime's labels, its numbers within rounding, the same bytes on every
instruction set; tables, strings at the edges, receipts of them, and input that is wrong."""

import csv
import hashlib
import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from conftest import cpu_isas, invar, refused
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F32, F64, I64, STR = (getattr(TensorProto, n) for n in "FLOAT DOUBLE INT64 STRING".split())
ROWS, FEATURES = 67, 5
ort.set_default_logger_severity(3)


def rows(dtype=np.float32, seed=0, width=FEATURES):
    """Few values, so that thresholds are met; NaN and infinities."""
    x = np.random.default_rng(seed).integers(-8, 9, (ROWS, width)).astype(dtype) / 4
    x[1, :], x[2, 0], x[3, 1] = np.nan, np.inf, -0.0
    return x


def ml(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def save(path, nodes, inputs, outputs, weights=(), version=3):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        outputs=[
            o if not isinstance(o, tuple) else helper.make_tensor_value_info(o[0], o[1], None)
            for o in outputs
        ],
        initializer=list(weights),
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def forest(kind, trees, seed, modes=("BRANCH_LEQ",), classes=1, missing=False, one_entry=True):
    """The attributes of random trees of depth 3 whose thresholds are among the values of rows()."""
    rng = np.random.default_rng(seed)
    a = {f"nodes_{k}": [] for k in "treeids nodeids featureids values modes".split()}
    a |= {f"nodes_{k}": [] for k in "truenodeids falsenodeids missing_value_tracks_true".split()}
    a |= {f"{kind}_{k}": [] for k in "treeids nodeids ids weights".split()}
    for tree in range(trees):
        for i in range(15):
            leaf = i >= 7 or (i > 2 and i == tree % 7)
            a["nodes_treeids"].append(tree)
            a["nodes_nodeids"].append(i)
            a["nodes_featureids"].append(int(rng.integers(FEATURES)))
            a["nodes_values"].append(float(rng.integers(-8, 9)) / 4)
            a["nodes_modes"].append("LEAF" if leaf else str(rng.choice(modes)))
            a["nodes_truenodeids"].append(0 if leaf else 2 * i + 1)
            a["nodes_falsenodeids"].append(0 if leaf else 2 * i + 2)
            a["nodes_missing_value_tracks_true"].append(int(missing and rng.integers(2)))
            if not leaf:
                continue
            for c in [tree % classes] if one_entry else range(classes):
                a[f"{kind}_treeids"].append(tree)
                a[f"{kind}_nodeids"].append(i)
                a[f"{kind}_ids"].append(c)
                a[f"{kind}_weights"].append(float(rng.standard_normal()))
    return a


ALL_MODES = tuple(f"BRANCH_{m}" for m in "LEQ LT GTE GT EQ NEQ".split())


def regressor(**how):
    own = {k: how.pop(k) for k in ("base_values", "aggregate_function") if k in how}
    targets = how.get("classes", 1)
    return ml(
        "TreeEnsembleRegressor", ["x"], ["y"], n_targets=targets, **own, **forest("target", **how)
    )


def classifier(labels, link="NONE", positive=False, only=None, base=(), **how):
    a = forest("class", **how)
    if positive:
        a["class_weights"] = [abs(w) / 8 for w in a["class_weights"]]
    if only is not None:
        a["class_ids"] = [only] * len(a["class_ids"])
    a |= {"base_values": list(base)} if base else {}
    a["classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"] = labels
    return ml("TreeEnsembleClassifier", ["x"], ["label", "p"], post_transform=link, **a)


REGRESSORS = {
    "leq": dict(trees=9, seed=1),
    "lt with missing values": dict(trees=9, seed=2, modes=("BRANCH_LT",), missing=True),
    "every mode": dict(trees=20, seed=3, modes=ALL_MODES, missing=True),
    "targets": dict(trees=12, seed=4, classes=3, base_values=[0.5, -1.0, 2.0]),
    "average": dict(trees=7, seed=5, aggregate_function="AVERAGE", base_values=[0.25]),
    "min": dict(trees=7, seed=6, aggregate_function="MIN"),
    "max": dict(trees=8, seed=7, classes=2, one_entry=False, aggregate_function="MAX"),
}
CLASSIFIERS = {
    "three": dict(labels=[3, 1, 7], link="SOFTMAX", trees=9, seed=1, classes=3),
    "four with base values": dict(
        labels=[0, 1, 2, 3], trees=8, seed=2, classes=4, base=[0.1, 0.2, 0.3, 0.4], one_entry=False
    ),
    "softmax without zeros": dict(
        labels=[0, 1, 2], link="SOFTMAX_ZERO", trees=9, seed=3, classes=3, modes=ALL_MODES
    ),
    "two, first alone": dict(labels=[4, 5], link="LOGISTIC", trees=9, seed=4, only=0, base=[0.3]),
    "two, no weight negative": dict(labels=[4, 5], trees=9, seed=5, only=0, positive=True),
    "two, no weight negative, linked": dict(
        labels=[4, 5], link="LOGISTIC", trees=9, seed=5, only=0, positive=True
    ),
    "two, second alone": dict(labels=[0, 1], trees=9, seed=6, only=1, positive=True),
    "two, both": dict(labels=[0, 1], trees=9, seed=7, classes=2, one_entry=False),
}


def ran(path, folder, *args, isa=None):
    """The outputs of `infer` by name, and its record."""
    folder.mkdir(exist_ok=True)
    done = invar(
        "infer", path, *args, "--tensors-output", folder, "--output", folder / "o.json",
        *(["--isa", isa] if isa else []),
    )  # fmt: skip
    record = json.loads((folder / "o.json").read_text())
    return {n: np.load(folder / f"{n}.npy") for n in record["outputs"]}, record, done


def close(found, wanted, name):
    """Equal labels; numbers within a few roundings of the largest, and NaN where there is NaN."""
    assert found.shape == wanted.shape, name
    if found.dtype.kind in "iu":
        assert (found == wanted).all(), name
        return
    assert (np.isnan(found) == np.isnan(wanted)).all(), name
    finite = np.nan_to_num(wanted, nan=0, posinf=0, neginf=0).astype(np.float64)
    error = np.abs(np.nan_to_num(found, nan=0, posinf=0, neginf=0) - finite)
    assert error.max() <= 2e-6 * max(1, np.abs(finite).max()), name


def compare(tmp_path, path, standard=False, **inputs):
    """Invar's outputs, compared with onnxruntime's, or ONNX's reference, and among instruction sets."""
    args = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        args += ["--input", f"{name}={tmp_path}/{name}.npy"]
    outputs, record, _ = ran(path, tmp_path / "out", *args)
    session = ReferenceEvaluator(str(path)) if standard else ort.InferenceSession(path)
    names = session.output_names if standard else [o.name for o in session.get_outputs()]
    for name, wanted in zip(names, session.run(None, inputs)):
        close(outputs[name], np.asarray(wanted), name)
    for isa in cpu_isas():
        assert ran(path, tmp_path / isa, *args, isa=isa)[1]["outputs"] == record["outputs"], isa
    return outputs


@pytest.mark.parametrize("name", REGRESSORS)
def test_tree_regressors(tmp_path, name):
    node = regressor(**REGRESSORS[name])
    path = save(tmp_path / "m.onnx", [node], [("x", F32, ["n", FEATURES])], [("y", F32)])
    compare(tmp_path, path, x=rows())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_tree_classifiers(tmp_path, name):
    node = classifier(**CLASSIFIERS[name])
    outputs = [("label", I64), ("p", F32)]
    path = save(tmp_path / "m.onnx", [node], [("x", F32, ["n", FEATURES])], outputs)
    compare(tmp_path, path, x=rows())


def test_trees_of_integers_and_binary64(tmp_path):
    node = classifier(labels=[7, 8, 9], trees=9, seed=8, classes=3)
    outputs = [("label", I64), ("p", F32)]
    path = save(tmp_path / "i.onnx", [node], [("x", I64, ["n", FEATURES])], outputs)
    x = np.random.default_rng(1).integers(-3, 3, (40, FEATURES))
    compare(tmp_path, path, x=x)
    a = forest("target", trees=9, seed=9)
    for key in ("nodes_values", "target_weights"):
        wide = np.array(a.pop(key)) + 2.0**-40
        a[key + "_as_tensor"] = numpy_helper.from_array(wide, key)
    path = save(
        tmp_path / "d.onnx",
        [ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, **a)],
        [("x", F64, ["n", FEATURES])],
        [("y", F32)],
    )
    compare(tmp_path, path, x=rows(np.float64))


def ensemble_5(dtype):
    """Two trees of TreeEnsemble: a set of numbers, and leaves of two targets."""
    tensor = lambda v: numpy_helper.from_array(np.array(v, dtype))  # noqa: E731
    return ml(
        "TreeEnsemble",
        ["x"],
        ["y"],
        n_targets=2,
        aggregate_function=1,
        post_transform=0,
        tree_roots=[0, 2],
        nodes_featureids=[0, 1, 2],
        nodes_splits=tensor([0.5, 0.0, -0.25]),
        nodes_modes=numpy_helper.from_array(np.array([0, 6, 3], np.uint8)),
        nodes_truenodeids=[1, 0, 2],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[1, 3, 3],
        nodes_falseleafs=[1, 1, 1],
        leaf_targetids=[0, 1, 0, 1],
        leaf_weights=tensor([1.5, 2.25, -3.0, 0.125]),
        membership_values=tensor([1.0, -1.0, 2.0, np.nan]),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tree_ensemble_5(tmp_path, dtype):
    code = {np.float32: F32, np.float64: F64}[dtype]
    path = save(
        tmp_path / "m.onnx",
        [ensemble_5(dtype)],
        [("x", code, ["n", 3])],
        [("y", code)],
        version=5,
    )
    # onnxruntime asks for sets of integers, and rounds a number before it looks there.
    compare(tmp_path, path, standard=True, x=rows(dtype, width=3))


def svm(kernel, classes, probabilities):
    rng = np.random.default_rng(3)
    pairs, per_class = classes * (classes - 1) // 2, [2 + c for c in range(classes)]
    numbers = lambda n: rng.standard_normal(n).astype(np.float32).tolist()  # noqa: E731
    probs = {"prob_a": [-abs(v) for v in numbers(pairs)], "prob_b": numbers(pairs)}
    return ml(
        "SVMClassifier",
        ["x"],
        ["label", "p"],
        kernel_type=kernel,
        kernel_params=[0.125, 0.5, 3.0],
        classlabels_ints=list(range(classes)),
        vectors_per_class=per_class,
        support_vectors=numbers(sum(per_class) * FEATURES),
        coefficients=numbers(sum(per_class) * (classes - 1)),
        rho=numbers(pairs),
        **(probs if probabilities else {}),
    )


LINEAR = np.random.default_rng(5).standard_normal(3 * FEATURES).astype(np.float32).tolist()
# name -> nodes from x to label and p, or to y
PIPELINES = {
    "scaler and linear": [
        ml("Scaler", ["x"], ["s"], offset=[0.5] * FEATURES, scale=[2.0] * FEATURES),
        ml("Normalizer", ["s"], ["t"], norm="L2"),
        ml("LinearClassifier", ["t"], ["label", "p"], coefficients=LINEAR, intercepts=[0.1, 0.2, 0.3],
           classlabels_ints=[5, 6, 7], post_transform="SOFTMAX"),
    ],
    "one row of coefficients": [
        ml("LinearClassifier", ["x"], ["label", "p"], coefficients=LINEAR[:FEATURES], intercepts=[0.1],
           classlabels_ints=[2, 3], post_transform="LOGISTIC"),
    ],
    "linear regression": [
        ml("Binarizer", ["x"], ["b"], threshold=0.25),
        ml("Normalizer", ["b"], ["t"], norm="L1"),
        ml("LinearRegressor", ["t"], ["y"], coefficients=LINEAR, intercepts=[0.1, 0.2, 0.3], targets=3),
    ],
    "largest": [ml("Normalizer", ["x"], ["y"], norm="MAX")],
    "imputer": [
        ml("Imputer", ["x"], ["y"], imputed_value_floats=[0.5, 1, 2, 3, 4], replaced_value_float=0.25)
    ],
    "features": [
        ml("ArrayFeatureExtractor", ["x", "columns"], ["a"]),
        ml("FeatureVectorizer", ["a", "x"], ["y"], inputdimensions=[2, FEATURES]),
    ],
    "encoders": [
        ml("LabelEncoder", ["x"], ["k"], keys_floats=[0.25, 1.0, 1.0, 2.0], values_int64s=[3, 1, 9, 2],
           default_int64=-7),
        ml("LabelEncoder", ["k"], ["l"], keys_int64s=[3, 2, 1], values_floats=[0.5, 1.5, 2.5]),
        ml("OneHotEncoder", ["k"], ["h"], cats_int64s=[1, 2, -7]),
        helper.make_node("ReduceSum", ["h"], ["g"], keepdims=0, noop_with_empty_axes=0),
        helper.make_node("Add", ["l", "g"], ["y"]),
    ],
    "one class": [
        ml("SVMRegressor", ["x"], ["y"], kernel_type="POLY", kernel_params=[0.25, 1.0, 2.0], n_supports=2,
           support_vectors=LINEAR[: 2 * FEATURES], coefficients=[0.5, -0.25], rho=[0.125], one_class=1),
    ],
    "svm of 2": [svm("RBF", 2, False)],
    "svm of 4": [svm("SIGMOID", 4, False)],
    "svm with probabilities": [svm("RBF", 3, True)],
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(tmp_path, name):
    nodes = PIPELINES[name]
    labels = nodes[-1].output[0] == "label"
    columns = numpy_helper.from_array(np.array([3, 1]), "columns")
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [("x", F32, ["n", FEATURES])],
        [("label", I64), ("p", F32)] if labels else [("y", F32)],
        [columns] if name == "features" else [],
    )
    x = rows()
    if name not in ("encoders", "features"):
        x[np.isnan(x) | np.isinf(x)] = 0.75
    compare(tmp_path, path, x=x)


def zipped(path):
    """Columns age (f32), city and job (strings) -> a label that is a string, and columns of
    scores."""
    a = forest("class", trees=9, seed=4, classes=3)
    a["nodes_featureids"] = [i % 4 for i in range(len(a["nodes_featureids"]))]
    nodes = [
        ml("OneHotEncoder", ["city"], ["c3"], cats_strings=["Bern", "Rome", 'O"slo, N']),
        helper.make_node("Reshape", ["c3", "shape"], ["c"]),
        ml("LabelEncoder", ["job"], ["j"], keys_strings=["smith", "baker"], values_floats=[0.25, -1.0],
           default_float=9.0),
        helper.make_node("Concat", ["age", "c", "j"], ["x"], axis=1),
        classifier(labels=["no", "yes", "Ärger"], link="SOFTMAX", trees=9, seed=4, classes=3),
        ml("ZipMap", ["p"], ["scores"], classlabels_strings=["no", "yes", "Ärger"]),
    ]  # fmt: skip
    floats = helper.make_tensor_type_proto(F32, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(STR, floats))
    return save(
        path,
        nodes,
        [("age", F32, ["n", 1]), ("city", STR, ["n", 1]), ("job", STR, ["n", 1])],
        [("label", STR), helper.make_value_info("scores", maps)],
        [numpy_helper.from_array(np.array([-1, 3]), "shape")],
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A model with strings, a table for it, and the columns."""
    folder = tmp_path_factory.mktemp("table")
    path = zipped(folder / "m.onnx")
    rng = np.random.default_rng(2)
    columns = {
        "job": rng.choice(["smith", "baker", "mayor"], ROWS).tolist(),
        "unused": ["line\nbreak"] * ROWS,
        "age": (rng.integers(-8, 9, ROWS) / 4).tolist(),
        "city": rng.choice(["Bern", "Rome", 'O"slo, N', "Paris", ""], ROWS).tolist(),
    }
    columns["age"][5] = ""
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow(columns)
        out.writerows(zip(*columns.values()))
    return folder, path, columns


def test_a_table_with_strings(table, tmp_path):
    folder, path, columns = table
    receipt, predictions = tmp_path / "r.json", tmp_path / "p.csv"
    invar("infer", path, "--table", folder / "rows.csv", "--output-path", predictions,
          "--receipt-path", receipt)  # fmt: skip
    with open(predictions, newline="", encoding="utf-8") as f:
        names, *found = csv.reader(f)
    assert names == ["label", "scores.no", "scores.yes", "scores.Ärger"]
    feeds = {n: np.array(columns[n], object)[:, None] for n in ("city", "job")}
    age = [np.nan if v == "" else v for v in columns["age"]]
    feeds["age"] = np.array(age, np.float32)[:, None]
    label, scores = ort.InferenceSession(path).run(None, feeds)
    assert [row[0] for row in found] == label.tolist()
    numbers = np.array([row[1:] for row in found], np.float32)
    close(numbers, np.array([[s[k] for k in ("no", "yes", "Ärger")] for s in scores]), "scores")
    assert (
        "VERIFIED" in invar("verify", receipt, "--model", path, "--table", folder / "rows.csv").text
    )
    # the same numbers in other spellings, quoted, with other line ends and columns
    other = tmp_path / "other.csv"
    with open(other, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, quoting=csv.QUOTE_ALL, lineterminator="\n")
        out.writerow(["city", "age", "job"])
        for city, a, job in zip(columns["city"], columns["age"], columns["job"]):
            out.writerow([city, "" if a == "" else f"{a:.4e}", job])
    assert "VERIFIED" in invar("verify", receipt, "--model", path, "--table", other).text
    text = other.read_text(encoding="utf-8").replace('"Rome"', '"Bern"', 1)
    other.write_text(text, encoding="utf-8")
    done = invar("verify", receipt, "--model", path, "--table", other, code=1)
    assert "city" in done.text


def test_the_digest_of_strings_is_that_of_their_numbers(table, tmp_path):
    folder, path, columns = table
    receipt = tmp_path / "r.json"
    invar("infer", path, "--table", folder / "rows.csv", "--receipt-path", receipt)
    known = sorted(
        {"Bern", "Rome", 'O"slo, N', "smith", "baker", "no", "yes", "Ärger"}, key=str.encode
    )
    numbers = {}
    for name in ("city", "job"):
        for s in columns[name]:
            if s not in known:
                known.append(s)
        numbers[name] = np.array([known.index(s) for s in columns[name]], "<i8")
    bound = {t["name"]: t for t in json.loads(receipt.read_text())["input"]["tensors"]}
    for name, ids in numbers.items():
        assert bound[name]["sha256"] == hashlib.sha256(ids.tobytes()).hexdigest(), name
        assert bound[name]["dtype"] == "i64" and bound[name]["shape"] == [ROWS, 1]


def test_a_matrix_of_all_columns(tmp_path):
    node = classifier(labels=["a", "b"], trees=9, seed=7, classes=2, one_entry=False)
    outputs = [("label", STR), ("p", F32)]
    path = save(tmp_path / "m.onnx", [node], [("x", F32, ["n", FEATURES])], outputs)
    x = rows()
    np.savetxt(tmp_path / "t.csv", x, delimiter=",", header=",".join("pqrst"), comments="")
    done = invar("infer", path, "--table", tmp_path / "t.csv")
    names, *found = csv.reader(done.out.decode().splitlines())
    label, p = ort.InferenceSession(path).run(None, {"x": x})
    assert names == ["label", "p.0", "p.1"] and [r[0] for r in found] == label.tolist()
    close(np.array([r[1:] for r in found], np.float32), p, "p")


BAD_TABLES = {
    "": ["empty"],
    "age,city,job\n": ["no rows"],
    "age,city\n1,Bern\n": ["job"],
    "age,city,job\n1,Bern,smith\n1,Bern\n": ["row 2", "line 3", "2 fields for 3"],
    "age,city,job\n1,Bern,smith\nold,Bern,smith\n": ["row 2", "line 3", "age", "old", "no number"],
    'age,city,job\n1,"a\nb",smith\n1e99,Bern,smith\n': ["row 2", "line 4", "age", "out of range"],
    'age,city,job\n1,"Bern,smith\n': ["line 2", "column 2", "does not end"],
    'age,city,job\n1,"Bern"x,smith\n': ["line 2", "column 2", "behind the quote"],
    'age,city,job\n1,Be"rn,smith\n': ["line 2", "column 2", "quote"],
    "age,city,age\n1,Bern,smith\n": ["age", "two columns"],
}


@pytest.mark.parametrize("text", BAD_TABLES)
def test_tables_that_are_wrong(table, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    names = [str(tmp_path / "t.csv"), *BAD_TABLES[text]]
    refused("infer", table[1], "--table", tmp_path / "t.csv", names=names)


def test_what_is_not_covered(table, tmp_path):
    folder, path, _ = table
    (tmp_path / "t.parquet").write_bytes(b"PAR1\x00\x00")
    refused("infer", path, "--table", tmp_path / "t.parquet", code=3, names=["Parquet", "Python"])
    invar("compile", path, "--output", tmp_path / "plan.invar")
    refused(
        "infer", tmp_path / "plan.invar", "--table", folder / "rows.csv", names=["--table", ".onnx"]
    )
    nodes = [helper.make_node("StringNormalizer", ["s"], ["t"]), ml("LabelEncoder", ["t"], ["y"],
             keys_strings=["a"], values_int64s=[1])]  # fmt: skip
    strings = save(tmp_path / "s.onnx", nodes, [("s", STR, ["n"])], [("y", I64)])
    refused(
        "compile", strings, "--output", tmp_path / "p.invar", code=3, names=["StringNormalizer"]
    )


BAD_TREES = {
    "a loop": dict(nodes_truenodeids=lambda v: [0 if i == 3 else n for i, n in enumerate(v)]),
    "no such node": dict(nodes_falsenodeids=lambda v: [99 if n == 2 else n for n in v]),
    "no such target": dict(target_ids=lambda v: [7] * len(v)),
    "no such feature": dict(nodes_featureids=lambda v: [FEATURES] * len(v)),
    "lists that differ": dict(nodes_values=lambda v: v[1:]),
    "a mode": dict(nodes_modes=lambda v: ["BRANCH_ABOVE" if m != "LEAF" else m for m in v]),
}


@pytest.mark.parametrize("name", BAD_TREES)
def test_trees_that_are_wrong(tmp_path, name):
    a = forest("target", trees=2, seed=1)
    for key, change in BAD_TREES[name].items():
        a[key] = change(a[key])
    node = ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, name="trees", **a)
    path = save(tmp_path / "m.onnx", [node], [("x", F32, ["n", FEATURES])], [("y", F32)])
    code = 3 if name == "a mode" else 2
    refused(
        "compile",
        path,
        "--output",
        tmp_path / "p.invar",
        code=code,
        names=["TreeEnsembleRegressor"],
    )
