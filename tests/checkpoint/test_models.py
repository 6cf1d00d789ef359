"""Whole models beside Llama: an encoder, a vision transformer and a convolutional network compute
the same bytes on every instruction set, for any number of threads and in any company; what does not
fit a plan's inputs is refused in one line."""

import sys

import numpy as np
import pytest
from conftest import ROOT, cpu_isas, invar, refused

sys.path.insert(0, str(ROOT / "tools/models"))
import random_weight_models  # noqa: E402

MODELS = list(random_weight_models.SIZES)


def feeds(folder):
    return [x for path in sorted(folder.glob("*.npy")) for x in ("--input", f"{path.stem}={path}")]


def digests(model, batch, *options):
    """Output name -> (dtype, shape, SHA-256)."""
    done = invar("infer", model / "plan.invar", *feeds(model / str(batch)), *options).json()
    return {name: (o["dtype"], o["shape"], o["sha256"]) for name, o in done["outputs"].items()}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in MODELS:
        random_weight_models.make(folder / name, name, "small")
        invar("compile", folder / name / "model.onnx")
    return folder


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_one_digest(models, name, batch):
    want = digests(models / name, batch)
    assert all(o[1][0] == batch for o in want.values())
    for isa in cpu_isas():
        assert digests(models / name, batch, "--isa", isa, "--threads", 1) == want, isa
    for threads in (2, 5):
        assert digests(models / name, batch, "--threads", threads) == want, threads


@pytest.mark.parametrize("name", MODELS)
def test_company_changes_nothing(models, name, tmp_path):
    together, alone = tmp_path / "together", tmp_path / "alone"
    together.mkdir(), alone.mkdir()
    digests(models / name, 3, "--tensors-output", together)
    for path in (models / name / "3").glob("*.npy"):
        np.save(alone / path.name, np.load(path)[1:2])
    invar("infer", models / name / "plan.invar", *feeds(alone), "--tensors-output", tmp_path)
    assert list(together.iterdir())
    for path in together.iterdir():
        assert np.load(path)[1:2].tobytes() == np.load(tmp_path / path.name).tobytes(), path.stem


def test_an_output_is_what_its_digest_says(models, tmp_path):
    from hashlib import sha256

    want = digests(models / "bert", 3, "--tensors-output", tmp_path)
    assert set(want) == {"last_hidden_state", "pooler_output"}
    for name, (dtype, shape, digest) in want.items():
        array = np.load(tmp_path / f"{name}.npy")
        assert dtype == "f32" and array.dtype == np.dtype("<f4") and list(array.shape) == shape
        assert sha256(array.tobytes()).hexdigest() == digest


@pytest.fixture
def bert(models, tmp_path):
    """refuse(changes, names): inputs of batch 3 with some replaced by arrays or bytes, or left
    out."""

    def refuse(changes, names, *more):
        arrays = {path.stem: np.load(path) for path in (models / "bert/3").glob("*.npy")} | changes
        args = []
        for name, value in arrays.items():
            if value is None:
                continue
            path = tmp_path / f"{name}.npy"
            path.write_bytes(value) if isinstance(value, bytes) else np.save(path, value)
            args += ["--input", f"{name}={path}"]
        refused("infer", models / "bert/plan.invar", *args, *more, names=names)

    return refuse


def test_refused_inputs(bert):
    ids = np.zeros((3, 9), np.int64)
    bert(
        {"input_ids": ids.astype(np.int32)},
        ["input 'input_ids': it is i32 [3, 9], the plan takes i64 [batch, seq]"],
    )
    bert(
        {"token_type_ids": ids[:, :8]},
        ["input 'token_type_ids': it is i64 [3, 8], the plan takes i64 [batch, seq = 9]"],
    )
    bert({"position_ids": ids[0]}, ["it is i64 [9], the plan takes i64 [batch, seq]"])
    bert({"position_ids": None}, ["input 'position_ids' is missing"])
    bert({"pixels": ids}, ["input 'pixels': the plan has none of this name"])
    bert({"input_ids": ids + 50}, ["index 50", "is outside"])
    bert({}, ["--tokens"], "--tokens", "1,2")
    bert({}, ["not NAME=FILE.npy"], "--input", "input_ids")


def test_refused_files(bert):
    ids = np.zeros((3, 9), np.int64)
    bert({"input_ids": b"PK\3\4"}, ["not a .npy file"])
    bert({"input_ids": b"\x93NUMPY\1\0\xff\xff{'descr'"}, ["it ends within its header"])
    bert({"input_ids": np.asfortranarray(ids)}, ["column-major"])
    bert({"input_ids": ids.astype(">i8")}, ["elements '>i8'"])
    bert({"input_ids": ids.astype(np.complex64)}, ["elements '<c8'"])
    bert({"input_ids": npy_bytes(ids).replace(b"<i8", b"<\n8")}, [r"elements '<\x0a8': use"])
    bert({"input_ids": npy_bytes(ids)[:-8]}, ["it holds 208 bytes of data, its shape says 216"])
    bert(
        {"input_ids": npy_bytes(ids).replace(b"(3, 9)", b"(-3,9)")},
        ["its header is not understood"],
    )
    bert({"attention_mask": npy_bytes(ids > 5)[:-1] + b"\2"}, ["neither 0 nor 1"])


def npy_bytes(array):
    from io import BytesIO

    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_plan_with_memory_takes_tokens(models, answer, tasks, tmp_path):
    np.save(tmp_path / "input_ids.npy", np.zeros((1, 4), np.int64))
    plan = next(tasks.glob("*/plan.invar"))
    refused(
        "infer",
        plan,
        "--input",
        f"input_ids={tmp_path / 'input_ids.npy'}",
        code=3,
        names=["takes tokens, not tensors"],
    )
