"""A GPU changes no bit: the same receipt, verified across. Where there is none, that is said in one
line, and the CPU works."""

import json
import sys

import pytest
from conftest import MODEL, ROOT, few_rooms, invar, refused

sys.path.insert(0, str(ROOT / "tools/models"))
import random_weight_models  # noqa: E402

GPU = invar("doctor", "--json", "--rooms", few_rooms()).json()["gpu"]


@pytest.fixture
def on_gpu(generate):
    if not GPU:
        pytest.skip("no GPU with CUDA kernels in this build")
    return lambda *options, **how: generate("--device", "cuda", *options, **how)


def test_the_same_receipt(on_gpu, generate):
    host, device = generate(), on_gpu()
    assert device["receipt_hash"] == host["receipt_hash"]
    assert device["isa"] == "cuda" and all(k.endswith(" cuda") for k in device["kernels"])
    assert device["content"]["execution"]["device"].startswith("cuda:0 ")


@pytest.mark.parametrize(
    "options", [["--prefill-chunk", 7], ["--no-kv-cache"], ["--temperature", 1.3, "--seed", 5]]
)
def test_the_same_receipt_in_every_manner(on_gpu, generate, options):
    assert (
        on_gpu(*options, tokens=32)["receipt_hash"] == generate(*options, tokens=32)["receipt_hash"]
    )


def test_each_verifies_the_other(on_gpu, generate, tasks):
    for receipt, device in ((on_gpu()["receipt"], "cpu"), (generate()["receipt"], "cuda")):
        done = invar("verify", receipt, "--model-name", MODEL, "--device", device)
        assert "VERIFIED" in done.text


def test_a_changed_receipt_is_found_on_a_gpu(on_gpu, tasks, tmp_path):
    content = json.loads(on_gpu()["receipt"].read_text())
    content["output"]["logits"][3] = content["output"]["logits"][2]
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(content))
    invar("verify", path, "--model-name", MODEL, "--device", "cuda", code=1)


@pytest.mark.parametrize("name", random_weight_models.SIZES)
def test_whole_models(name, tmp_path):
    if not GPU:
        pytest.skip("no GPU with CUDA kernels in this build")
    random_weight_models.make(tmp_path, name, "small")
    invar("compile", tmp_path / "model.onnx")
    for batch in (1, 3, 64):
        feeds = [
            x
            for path in (tmp_path / str(batch)).glob("*.npy")
            for x in ("--input", f"{path.stem}={path}")
        ]
        host, device = (
            invar("infer", tmp_path / "plan.invar", *feeds, "--device", d).json()
            for d in ("cpu", "cuda")
        )
        assert device["isa"] == "cuda" and device["outputs"] == host["outputs"], batch


def test_no_gpu_is_said_in_one_line(tasks, tmp_path):
    if GPU:
        pytest.skip("there is a GPU here")
    run = [
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        4,
        "--tasks-root",
        tasks,
        "--receipt-path",
        tmp_path / "receipt.json",
    ]
    done = refused(*run, "--device", "cuda", names=["CUDA"])
    assert "use the device cpu" in done.text or "nvcc" in done.text, done.text
    assert not (tmp_path / "receipt.json").exists()
    invar(*run, "--device", "cuda", "--cpu-only")
