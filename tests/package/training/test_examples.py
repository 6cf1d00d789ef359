"""The examples: short trainings whose hashes stand in examples/README.md, however they are
computed."""

import hashlib
import re
import sys

import numpy as np
import pytest
from conftest import BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "examples")]
import invar  # noqa: E402
from invar import training as t  # noqa: E402

LINES = ("initial weights", "trained weights", "logits", "loss curve", "receipt")


def table(page):
    """Script -> its hashes, of the rows `| script | line | hash |`."""
    found = {}
    for script, line, digest in re.findall(
        r"^\| `(\w+)` \| ([\w ]+) \| `([0-9a-f]{64})` \|$", page, re.M
    ):
        found.setdefault(script, {})[line] = digest
    return found


WANTED = table((ROOT / "examples/README.md").read_text())


@pytest.fixture(params=["train_cnn", "train_llama", "finetune_lora"])
def example(request):
    """Its main() with --short: the lines that are hashes."""
    module = __import__(request.param)

    def run(*arguments):
        lines = module.main(["--short", *map(str, arguments)])
        invar.set_isa()  # as before --isa
        return {name: lines[name] for name in LINES}

    yield run, WANTED[request.param], module
    invar.set_threads(0)


def test_the_hashes(example):
    run, wanted, _ = example
    assert set(wanted) == set(LINES)
    assert run() == wanted


def test_how_it_is_computed_reaches_no_bit(example):
    run, wanted, _ = example
    assert run("--micro-batch", 3, "--threads", 1) == wanted
    assert run("--isa", "scalar", "--micro-batch", 2) == wanted


def test_workers(example):
    run, wanted, module = example
    workers = {"train_cnn": 4, "train_llama": 2}.get(module.__name__)
    if workers is None:
        pytest.skip("the other two are enough")
    assert run("--workers", workers, "--threads", 1) == wanted


def test_stopped_resumed_and_verified(example, tmp_path):
    run, wanted, module = example
    path = tmp_path / "run.json"
    module.main(["--steps", "1", "--save", str(path)])
    assert run("--save", path, "--resume") == wanted
    verdict = t.verify(path, ROOT / f"examples/{module.__name__}.py", "1:2")
    assert verdict.holds and verdict.executed == 1


def test_what_the_demonstration_prints():
    """docs/concepts/why-bits-differ.md shows the digests that Invar has, however it is asked.
    PyTorch's depend on the machine."""
    import why_bits_differ

    page = (ROOT / "docs/concepts/why-bits-differ.md").read_text()
    shown = re.findall(
        r"^(\w.*)\n  PyTorch .*\n  Invar +(\d+) ways, 1 results: (\w{16})$", page, re.M
    )
    found = {}
    for title, ways in why_bits_differ.ROWS.items():
        digests = [why_bits_differ.digest(np.asarray(r)) for who, r in ways() if who == "Invar"]
        found[title] = (str(len(digests)), *set(digests))
    assert {title: (count, digest) for title, count, digest in shown} == found


def test_adapters_that_we_trained(generate, tmp_path):
    """finetune_lora.py, save_lora.py, invar run --adapter."""
    import finetune_lora
    import save_lora

    finetune_lora.main(["--steps", "1", "--save", str(tmp_path / "r.json")])
    save_lora.main([str(tmp_path / "r.json"), str(tmp_path / "a")])
    made = generate("--adapter", tmp_path / "a", tokens=2)["content"]
    stored = t.load_tensors(tmp_path / "a/adapter_model.safetensors")
    names = {tensor["name"]: tensor["sha256"] for tensor in made["model"]["tensors"]}
    assert len(stored) == 20
    for name, tensor in stored.items():
        assert names[name] == hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
    assert made["output"]["logits"] != generate(tokens=2)["content"]["output"]["logits"]
