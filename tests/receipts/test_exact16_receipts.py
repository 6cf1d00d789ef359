"""Receipts of the profile exact16 (spec/exact16.md): one hash for all ways to compute, verified,
and never taken for one of fp32."""

import copy
import json
import sys

import numpy as np
import pytest
from conftest import MODEL, ROOT, cpu_isas, execute, invar, refused
from node_models import F32, model, node, numbers
from receipt_oracle import put, reseal

sys.path.insert(0, str(ROOT / "tools/models"))
import random_weight_models  # noqa: E402

EXACT16 = ("--numerics", "exact16")
TOKENS = 24


@pytest.fixture(scope="module")
def sealed(generate):
    return generate(*EXACT16, tokens=TOKENS)


def test_the_profile_is_in_the_receipt(sealed, generate):
    program = sealed["content"]["program"]
    fp32 = generate(tokens=TOKENS)["content"]["program"]
    assert (program["profile"], fp32["profile"]) == ("exact16", "fp32")
    assert program == fp32 | {"profile": "exact16", "digest": program["digest"]}
    assert program["digest"] != fp32["digest"]
    assert (sealed["profile"], generate(tokens=TOKENS)["profile"]) == ("exact16", "fp32")
    assert "matmul_exact16" in " ".join(sealed["kernels"])
    assert not any(k.startswith("matmul ") for k in sealed["kernels"])


def test_diff_names_the_profile(sealed, generate):
    sides = (generate(tokens=TOKENS)["receipt"], sealed["receipt"])
    for a, b, names in ((0, 1, ("fp32", "exact16")), (1, 0, ("exact16", "fp32"))):
        text = invar("diff", sides[a], sides[b], code=1).text
        first, second = (text.index(f"--numerics {name}") for name in names)
        assert first < second and "another profile" in text and "another program" not in text


@pytest.mark.parametrize("isa", ["reference", *cpu_isas()])
def test_instruction_sets(generate, sealed, isa):
    for threads in (1, 3):
        options = ("--isa", isa, "--threads", threads)
        assert same(generate(*EXACT16, *options, tokens=TOKENS), sealed)


@pytest.mark.parametrize(
    "options",
    [
        ("--prefill-chunk", 2),
        ("--no-kv-cache",),
        ("--n-partitions", 1),
        ("--n-partitions", 2),
        ("--n-partitions", 3),
        ("--weights-memory", "4MB"),
    ],
)
def test_ways_to_compute(generate, sealed, options):
    assert same(generate(*EXACT16, *options, tokens=TOKENS), sealed)


def same(a, b):
    return a["receipt_hash"] == b["receipt_hash"]


def test_batches(tasks, tmp_path):
    texts = ["ROMEO:", "JULIET:\nO Romeo, Romeo, wherefore", "A", "The king " * 40]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(text) + "\n" for text in texts))
    found = []
    for batch in (1, 3):
        folder = tmp_path / str(batch)
        folder.mkdir()
        invar("run", "--model-name", MODEL, "--tasks-root", tasks, "--prompt-file", path,
              "--max-new-tokens", 12, "--batch-size", batch, *EXACT16,
              "--receipt-path", folder / "r.json")  # fmt: skip
        found.append({p.name: p.read_bytes() for p in folder.iterdir()})
    assert len(found[0]) == len(texts) and found[0] == found[1]
    receipts = sorted((tmp_path / "3").iterdir())
    assert "4 of 4 hold" in invar("verify", *receipts, "--model-name", MODEL).text


def test_verification(sealed, generate):
    done = invar("verify", sealed["receipt"], "--model-name", MODEL)
    assert "VERIFIED" in done.text and "(numerics invar-1, exact16)" in done.text
    spot = invar("verify", sealed["receipt"], "--model-name", MODEL, "--spot", 3, "--isa", "scalar")
    assert "SPOT CHECKED" in spot.text
    # One profile after the other of one model.
    both = [generate(tokens=TOKENS)["receipt"], sealed["receipt"]]
    assert "2 of 2 hold" in invar("verify", *both, "--model-name", MODEL).text


def test_no_profile_is_taken_for_the_other(sealed, generate, tmp_path):
    fp32 = generate(tokens=TOKENS)
    plans = {}
    invar("export", "--model-name", MODEL, "--output", tmp_path)
    for name in ("fp32", "exact16"):
        plans[name] = tmp_path / f"{name}.invar"
        invar("compile", tmp_path / "model.onnx", "--numerics", name, "--output", plans[name])
    for receipt, plan, expected, found in (
        (sealed, "fp32", "fp32", "exact16"),
        (fp32, "exact16", "exact16", "fp32"),
    ):
        how = ("--model-name", MODEL, "--plan", plans[plan])
        done = invar("verify", receipt["receipt"], *how, code=1)
        assert (
            f"program.profile: the receipt says {found}, this machine computes {expected}"
            in done.text
        )
    # A claim of the other profile, whose hashes fit, is another program.
    forged = tmp_path / "forged.json"
    for receipt, other in ((sealed, "fp32"), (fp32, "exact16")):
        forged.write_text(
            json.dumps(reseal(put(receipt["content"], ("program", "profile"), other)))
        )
        invar("validate", forged)
        assert "program.digest" in invar("verify", forged, "--model-name", MODEL, code=1).text
    for path, value in (
        (("program", "profile"), "bf16"),
        (("program", "operation_set"), "default"),
    ):
        forged.write_text(json.dumps(reseal(put(sealed["content"], path, value))))
        assert "program.profile" in invar("validate", forged, code=1).text
    content = copy.deepcopy(sealed["content"])
    content["output"]["logits"][5] = "0" * 64
    forged.write_text(json.dumps(reseal(content)))
    done = invar("verify", forged, "--model-name", MODEL, code=1)
    assert "output.logits[5]" in done.text


def test_plans_and_task_folders(sealed, tasks, tmp_path):
    """A plan of one profile is not run as the other; a task folder keeps both apart."""
    where = ("run", "--model-name", MODEL, "--prompt-text", "A", "--max-new-tokens", 1)
    task = tmp_path / "task"
    for name in ("exact16", "fp32", "exact16"):
        receipt = tmp_path / "r.json"
        invar(*where, "--task-dir", task, "--numerics", name, "--receipt-path", receipt)
        assert json.loads(receipt.read_text())["program"]["profile"] == name
    plan = task / "plan.invar"
    refused(*where, "--plan", plan, "--numerics", "fp32", names=["exact16", "fp32", "--numerics"])
    invar(*where, "--plan", plan, "--receipt-path", receipt)
    assert json.loads(receipt.read_text())["program"]["profile"] == "exact16"
    done = execute([*where, *EXACT16, "--operation-set", "default"])
    assert done.code == 3 and "exact16" in done.errors[0] and "default" in done.errors[0]


def test_traces_and_disputes(sealed, tmp_path):
    for name, options in (("a", ()), ("b", ("--isa", "scalar", "--threads", "1"))):
        invar(
            "trace", sealed["receipt"], "--model-name", MODEL, "--output", tmp_path / name, *options
        )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert "EQUAL" in invar("diff", tmp_path / "a", tmp_path / "b").text


def test_tensors(tmp_path):
    weights = [("w", numbers(300, 8))]
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Softmax", ["a"], ["y"])]
    path = model(tmp_path / "model.onnx", nodes, [("x", F32, ["n", 300])], [("y", F32)], weights)
    np.save(tmp_path / "x.npy", numbers(3, 300, seed=1))
    given = ("--input", f"x={tmp_path}/x.npy")
    plan, receipt = tmp_path / "plan.invar", tmp_path / "r.json"
    invar("compile", path, *EXACT16, "--output", plan)
    invar("infer", plan, *given, "--receipt-path", receipt, *EXACT16)
    assert json.loads(receipt.read_text())["program"]["profile"] == "exact16"
    done = invar("verify", receipt, "--model", path, *given)
    assert "VERIFIED" in done.text and "exact16" in done.text
    invar("compile", path, "--output", plan)
    done = invar("verify", receipt, "--plan", plan, *given, code=1)
    assert "program.profile: the receipt says exact16, this machine computes fp32" in done.text


@pytest.mark.parametrize("batch", [1, 3])
def test_pictures(tmp_path, batch):
    """A small residual network: one receipt on every instruction set, and with any threads."""
    path = random_weight_models.make(tmp_path, "resnet", "small", batches=(batch,))
    given = ("--input", f"pixel_values={tmp_path}/{batch}/pixel_values.npy")
    plan, receipt = tmp_path / "plan.invar", tmp_path / "r.json"
    invar("compile", path, *EXACT16, "--output", plan)
    hashes = set()
    for isa in ["reference", *cpu_isas()]:
        for threads in (1, 3):
            options = ("--isa", isa, "--threads", threads, "--receipt-path", receipt)
            invar("infer", plan, *given, *EXACT16, *options)
            hashes.add(json.loads(receipt.read_text())["receipt_hash"])
    assert len(hashes) == 1
    assert "conv_exact16" in invar("compile", path, *EXACT16, "--emit", "repro").out.decode()
    assert "VERIFIED" in invar("verify", receipt, "--model", path, *given).text


def test_python(sealed, tmp_path):
    import invar as package

    answer = package.generate(
        MODEL, "ROMEO:", max_new_tokens=TOKENS, numerics="exact16", tasks_root=tmp_path
    )
    answer.text  # noqa: B018  until its end
    receipt = answer.receipt if isinstance(answer.receipt, dict) else json.loads(answer.receipt)
    assert receipt["receipt_hash"] == sealed["receipt_hash"]
    with pytest.raises(package.BadInput, match="fp8.*fp32, exact16"):
        package.generate(MODEL, "ROMEO:", numerics="fp8")
    path = model(
        tmp_path / "m.onnx",
        [node("MatMul", ["x", "w"], ["y"])],
        [("x", F32, ["n", 40])],
        [("y", F32)],
        [("w", numbers(40, 8))],
    )
    program = package.compile(path, numerics="exact16")
    assert program.numerics == "exact16" and package.compile(path).numerics == "fp32"
    assert program.choices == ("exact16-1",) and program.digest != package.compile(path).digest
    with pytest.raises(package.NotCovered, match="exact16"):
        package.compile(path, numerics="exact16", operation_set="default")
