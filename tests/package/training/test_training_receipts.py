"""Receipts of trainings: what they say, what verify() and bisect() find."""

import copy
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from conftest import BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path[:0] = [str(BUILD / "python"), str(Path(__file__).parent)]
import invar  # noqa: E402
import tiny_training  # noqa: E402
import torch  # noqa: E402
from invar import nn, ops, optim  # noqa: E402
from invar import training as t  # noqa: E402
from invar.training.__main__ import main  # noqa: E402
from invar.training.receipt import chained, header_hash  # noqa: E402

SCRIPT = Path(tiny_training.__file__)
SCHEMA = ROOT / "docs/reference/training-receipt.schema.json"


def recorded(path, steps=12, every=5, settings=None, **how):
    settings = settings or {}
    trainer = tiny_training.training(**settings)
    stated = {name: v for name, v in settings.items() if name != "wrong_at"}  # a liar does not say
    recorder = t.Recorder(trainer, path, script=SCRIPT, settings=stated, every=every, **how)
    return recorder.run(steps)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "run.json"
    recorded(path)
    (path.parent / SCRIPT.name).write_bytes(SCRIPT.read_bytes())
    return path


def test_the_form(honest):
    data = json.loads(honest.read_text())
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    receipt = t.Receipt.read(honest)
    assert len(receipt) == 12 and receipt.losses[0] > receipt.losses[-1] > 0
    assert receipt.hash == data["steps"][-1]["chain"]
    assert data["states"] == [5, 10, 12]
    assert [e["name"] for e in data["initial"]["tensors"]] == [
        "model.bias", "model.calls", "model.weight"
    ]  # fmt: skip
    assert len(data["steps"][0]["tensors"]) == 7  # with the optimiser's buffers and numbers


def test_the_hash_does_not_depend_on_how_it_was_computed(honest, tmp_path):
    wanted = t.Receipt.read(honest).hash
    for size in (1, 4, None):
        trainer = tiny_training.training()
        trainer.micro_batch = size
        assert t.Recorder(trainer, script=SCRIPT, every=0).run(12).hash == wanted
    for threads in (1, 2):
        invar.set_threads(threads)
        assert recorded(None).hash == wanted
    # stopped after 7 steps, the states of steps 5 and 7 kept, and resumed
    recorded(tmp_path / "part.json", steps=7)
    assert recorded(tmp_path / "part.json", resume=True).hash == wanted
    # the last state is gone: it goes on from the one before
    recorded(tmp_path / "other.json", steps=7)
    data = json.loads((tmp_path / "other.json").read_text())
    data["states"] = [5]
    (tmp_path / "other.json").write_text(json.dumps(data))
    assert recorded(tmp_path / "other.json", resume=True).hash == wanted
    # ordinary gradients are another computation
    assert recorded(None, settings={"exact": False}).hash != wanted


def test_a_longer_training_continues_the_chain(honest):
    longer = recorded(None, steps=15)
    assert longer.chain(12) == t.Receipt.read(honest).hash
    assert t.first_difference(longer, honest) is None


@pytest.mark.parametrize("steps, executed", [
    (None, 12), ("10:12", 2), ("7:8", 3), (6, 2), (range(0, 2), 2), (":1", 1), ("11:", 2),
])  # fmt: skip
def test_steps_that_hold(honest, steps, executed):
    verdict = t.verify(honest, steps=steps)
    assert verdict.holds and verdict.executed == executed, verdict


def test_a_wrong_step_is_found(tmp_path):
    path = tmp_path / "run.json"
    receipt = recorded(path, settings={"wrong_at": 7})
    verdict = t.verify(path, tiny_training.training)
    assert (verdict.holds, verdict.step, verdict.difference, verdict.tensor) == (
        False, 7, "state", "model.bias"
    )  # fmt: skip
    assert verdict.text == "step 7: tensor model.bias of the state differs"
    # what follows from the wrong state holds by itself, from the state that is kept
    assert t.verify(path, tiny_training.training, "10:12").holds
    # without kept states the way to step 10 leads through the wrong one
    receipt.data["states"] = []
    alone = t.Receipt(receipt.data)
    assert t.verify(alone, tiny_training.training, "10:12").step == 7
    assert t.verify(alone, tiny_training.training, "3:7").holds
    assert t.first_difference(alone, recorded(None)) == 7


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_torchs_in_a_step_is_invars(exact):
    """The loss, the optimiser and, without exact gradients, the model."""

    def steps(space, functions, optimisers):
        of = nn if exact else space
        torch.manual_seed(0)
        model = of.Sequential(of.Linear(60, 64), of.GELU(), of.Linear(64, 30))
        x, y = torch.randn(32, 60), torch.arange(32) % 30
        loss = lambda m, x, y: functions.cross_entropy(m(x), y, reduction="none")
        optimizer = optimisers.AdamW(model.parameters(), lr=0.01)
        made = t.Trainer(model, optimizer, lambda step: (x, y), loss, exact=exact)
        return [made.step(i).loss for i in range(6)], t.state_digest(model)

    torchs = steps(torch.nn, torch.nn.functional, torch.optim)
    assert torchs == steps(nn, ops, optim)
    assert not invar.reproducible.is_active()


def test_a_step_without_a_reproducible_kernel_is_refused():
    model = nn.Linear(4, 4)
    loss = lambda m, x: torch.lgamma(m(x)).sum(-1)
    sgd, x = optim.SGD(model.parameters(), lr=0.1), torch.ones(2, 4)
    with pytest.raises(invar.NotCovered, match=r"torch\.lgamma"):
        t.Trainer(model, sgd, lambda step: (x,), loss).step(0)
    with pytest.raises(invar.BadInput, match="step 0: the batch is one tensor"):
        t.Trainer(model, sgd, lambda step: x, loss).step(0)
    with pytest.raises(TypeError, match="not int"):
        t.Receipt.read(5)


def test_bisection_among_a_thousand_steps(tmp_path):
    receipt = recorded(None, steps=1000, every=0, settings={"wrong_at": 617}, tensors=False)
    found = t.bisect(receipt, tiny_training.training)
    assert (found.step, found.verdict.difference) == (617, "state")
    assert len(found.ranges) <= 11 and found.executed < 2 * 1000 + 1
    assert t.bisect(recorded(None), tiny_training.training).step is None


def altered(receipt, change, chain=True):
    """The receipt after change(data); chain: the hashes made to fit again."""
    data = copy.deepcopy(t.Receipt.read(receipt).data)
    change(data)
    if chain:
        before = header_hash(data)
        for step in data["steps"]:
            before = step["chain"] = chained(before, step)
        data["receipt_hash"] = before
    return data


def lie(path, value):
    def change(data):
        *parents, last = path
        for key in parents:
            data = data[key]
        data[last] = value

    return change


@pytest.mark.parametrize("path, value, text", [
    (("steps", 3, "data"), "0" * 64, "step 3: data differ: receipt 0000000000000000, computed"),
    (("steps", 3, "settings", "0.lr"), (0.02).hex(), "step 3: setting 0.lr differs: receipt 0x1.47ae"),
    (("steps", 3, "loss"), (0.5).hex(), "step 3: the loss differs: receipt 0.5, computed"),
    (("model", "constants"), "0" * 64, "before step 0: the tensors that are not trained are others"),
])  # fmt: skip
def test_lies_whose_hashes_fit(honest, path, value, text):
    receipt = t.Receipt(altered(honest, lie(path, value)))
    verdict = t.verify(receipt, tiny_training.training)
    assert not verdict.holds and verdict.text.startswith(text), verdict.text


@pytest.mark.parametrize("change, text", [
    (lie(("steps", 3, "loss"), (0.5).hex()), r"steps\[3\].chain does not fit"),
    (lie(("program", "settings"), {"lr": 1}), r"steps\[0\].chain does not fit: the head or step 0"),
    (lie(("receipt_hash",), "0" * 64), "receipt_hash is not the chain of the last step"),
    (lie(("steps", 2, "state"), "0" * 64), r"steps\[2\].state is not the root over its tensors"),
    (lie(("initial", "state"), "0" * 64), "initial.state is not the root over initial.tensors"),
    (lie(("schema",), "invar-receipt 2"), "no receipt of a training"),
    (lie(("schema",), "invar-training-receipt 9"), "schema 'invar-training-receipt 9'; this version"),
    (lie(("other",), 1), "unknown member other"),
    (lie(("steps", 1, "loss"), 0.5), r"steps\[1\].loss is ill-formed"),
    (lie(("steps", 1, "loss"), "0x1p+0"), r"steps\[1\].loss is ill-formed"),
    (lie(("steps", 1, "loss"), "0x1.0000000000000p+99999"), r"steps\[1\].loss is ill-formed"),
    (lie(("steps",), {}), "steps is ill-formed"),
    (lie(("\x1b[2J\u202e",), 1), r"unknown member \\x1b\[2J\\u202e$"),
    (lie(("program", "script"), "\ud800"), "a text that is no Unicode"),
    (lie(("initial", "tensors", 0, "\udc80"), 1), "a text that is no Unicode"),
    (lie(("model",), []), "model is no object"),
    (lambda data: data.pop("initial"), "no member initial"),
    (lambda data: data["steps"][0].pop("data"), r"no member steps\[0\].data"),
    (lie(("states",), [99]), "states: more steps than the receipt has"),
])  # fmt: skip
def test_bad_receipts(honest, tmp_path, change, text):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(altered(honest, change, chain=False)))
    with pytest.raises(invar.BadInput, match=f"^{path}: {text}") as raised:
        t.Receipt.read(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text, why", [
    ("{", "no JSON: line 1, column 2"), ("[]", "no receipt of a training"),
    ('{"a": 1, "a": 2}', "member 'a' twice"), ("9" * 5000, "an integer of too many digits"),
    ('{"\\ud800": 1}', "a text that is no Unicode"), ("[" * 100000, "JSON that is nested too deeply"),
])  # fmt: skip
def test_files_that_are_no_receipts(tmp_path, text, why):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(invar.BadInput, match=f"^{path}: {why}"):
        t.Receipt.read(path)
    with pytest.raises(invar.BadInput, match="No such file"):
        t.Receipt.read(tmp_path / "none.json")
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(invar.BadInput, match="not a regular file"):
            t.Receipt.read(other)


def test_nothing_of_a_receipt_steers_the_terminal(tmp_path, command):
    """Names that a stranger chose reach a terminal escaped, in files and in verdicts."""
    path = tmp_path / "\x1b]0;t\x07.json"
    path.write_text("[]")
    assert "\x1b" not in command("validate", path, code=2)
    run = tmp_path / "run.json"
    recorded(run, settings={"wrong_at": 7})
    data = json.loads(run.read_text())
    data["program"]["settings"] = {"\x1b[2J": 1}
    before = header_hash(data)
    for step in data["steps"]:
        step["settings"] = {"\x1b[2J": "\u009b1m"}
        step["chain"] = before = chained(before, step)
    data["receipt_hash"] = before
    verdict = t.verify(t.Receipt(data), tiny_training.training)
    assert verdict.difference == "settings"
    assert verdict.text.isprintable() and "\\x1b[2J" in verdict.text


def test_states_that_are_not_the_receipts(tmp_path):
    path = tmp_path / "run.json"
    recorded(path)
    file = tmp_path / "run.json.states/00000005.safetensors"
    kept = file.read_bytes()
    file.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    with pytest.raises(invar.BadInput, match="not the receipt's state before step 5"):
        t.verify(path, tiny_training.training, "5:6")
    file.write_bytes(kept[:-1])
    with pytest.raises(invar.BadInput, match="no file of a state"):
        t.verify(path, tiny_training.training, "5:6")
    file.unlink()
    with pytest.raises(invar.BadInput, match="00000005.safetensors: No such file"):
        t.verify(path, tiny_training.training, "5:6")


@pytest.mark.parametrize("steps", ["a", "3:1", "0:13", "", "1:2:3", True, 2.5, range(0, 4, 2)])
def test_steps_that_are_none(honest, steps):
    with pytest.raises(invar.BadInput, match="^steps: "):
        t.verify(honest, steps=steps)


@pytest.fixture
def command(capsys):
    def run(*arguments, code=0):
        found = main([str(a) for a in arguments])
        output = capsys.readouterr()
        assert found == code, output
        return (output.err if code == 2 else output.out).strip()

    return run


def test_the_command_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "invar.training", "verify", "none.json"],
        env={"PYTHONPATH": str(BUILD / "python")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (2, "invar: none.json: No such file or directory\n")


def test_the_command(honest, tmp_path, command):
    assert command("verify", honest) == "VERIFIED: steps 0 to 11 hold"
    assert command("verify", honest, "--steps", "10:12", "--micro-batch", 2, "--threads", 1) == (
        "holds: steps 10 to 11 hold"
    )
    path = tmp_path / "run.json"
    recorded(path, settings={"wrong_at": 7})
    assert command("bisect", path, "--script", SCRIPT, code=1).splitlines() == [
        "state 0 to 12: another state", "state 0 to 6: the same state",
        "state 6 to 9: another state", "state 6 to 7: the same state",
        "state 7 to 8: another state", "DIFFERS: step 7: tensor model.bias of the state differs",
    ]  # fmt: skip
    assert command("compare", path, honest, code=1) == "step 7 differs first"
    (tmp_path / SCRIPT.name).write_text("def training(): pass")
    assert command("verify", path, code=2) == (
        f"invar: {tmp_path / SCRIPT.name}: not the script of the receipt (its SHA-256 is another)"
    )
    assert command("validate", honest).startswith("valid: 12 steps, ")


def test_the_digest_of_a_state():
    state = {"b": torch.tensor([1.0, -0.0]), "a": 3}
    # by hand, from spec/training.md training.8
    import hashlib

    leaves = []
    for name, dtype, shape, data in (
        ("a", "i64", [], b"\3" + b"\0" * 7), ("b", "f32", [2], b"\0\0\x80\x3f\0\0\0\x80")
    ):  # fmt: skip
        entry = {
            "dtype": dtype,
            "name": name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "shape": shape,
        }
        text = json.dumps(entry, separators=(",", ":")).encode()
        leaves.append(hashlib.sha256(b"\0" + hashlib.sha256(text).digest()).digest())
    assert t.state_digest(state) == hashlib.sha256(b"\1" + leaves[0] + leaves[1]).hexdigest()
    assert t.state_digest(state) != t.state_digest({**state, "a": 4})
    assert t.state_digest(state) != t.state_digest({"b": torch.tensor([1.0, 0.0]), "a": 3})


PARTS = {
    "main.py": "from part import training\nimport json, package.inner\n",
    "part.py": "import tiny_training\ndef training(**how):\n    import late\n    return late.make(**how)\n",
    "late.py": "from package import inner\nfrom tiny_training import training as make\n",
    "package/__init__.py": "",
    "package/inner.py": "from . import other\n",
    "package/other.py": "X = 1\n",
    "unused.py": "raise SystemExit\n",
}


def test_modules_beside_a_script_are_bound(tmp_path):
    for name, text in (PARTS | {"tiny_training.py": SCRIPT.read_text()}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    main_py, path = tmp_path / "main.py", tmp_path / "run.json"
    receipt = t.Recorder(tiny_training.training(), path, script=main_py).run(3)
    modules = receipt.data["program"]["modules"]
    assert sorted(modules) == sorted({*PARTS, "tiny_training.py"} - {"main.py", "unused.py"})
    jsonschema.validate(receipt.data, json.loads(SCHEMA.read_text()))
    assert t.verify(path).holds
    for name in ("late.py", "package/other.py"):
        (tmp_path / name).write_text(PARTS[name] + "# more\n")
        with pytest.raises(invar.BadInput, match=f"{name}: not the module of the receipt"):
            t.verify(path)
        (tmp_path / name).write_text(PARTS[name])
    (tmp_path / "package/other.py").unlink()
    with pytest.raises(invar.BadInput, match="other.py: a module of the receipt that is not there"):
        t.verify(path)
    (tmp_path / "package/other.py").write_text(PARTS["package/other.py"])
    (tmp_path / "json.py").write_text("")  # hides the library's
    with pytest.raises(invar.BadInput, match="json.py: the script imports it, and the receipt has"):
        t.verify(path)
    (tmp_path / "json.py").unlink()
    data = copy.deepcopy(receipt.data)
    data["program"]["modules"]["late.py"] = "0" * 64
    with pytest.raises(invar.BadInput, match=r"steps\[0\].chain does not fit: the head"):
        t.Receipt(data)
    data["program"]["modules"] = {"../late.py": "0" * 64}
    with pytest.raises(invar.BadInput, match="program.modules is ill-formed"):
        t.Receipt(data)


def test_a_module_of_the_same_name_elsewhere_is_not_taken(tmp_path):
    """The script's own module is executed, although this process knows another of its name."""
    text = SCRIPT.read_text()
    (tmp_path / "tiny_training.py").write_text(text.replace("drawn(1, (4, 3))", "drawn(9, (4, 3))"))
    (tmp_path / "script.py").write_text("from tiny_training import training\n")
    path = tmp_path / "run.json"
    t.Recorder(tiny_training.training(), path, script=tmp_path / "script.py").run(2)
    verdict = t.verify(path)
    assert (verdict.holds, verdict.tensor) == (False, "model.weight")
    assert sys.modules["tiny_training"] is tiny_training


def test_an_error_of_a_script_judges_nothing(honest, tmp_path, capsys):
    """Python's own code for an exception, 1, would say that the receipt does not hold."""
    data, script = json.loads(honest.read_text()), tmp_path / "broken.py"
    script.write_text("def training(**settings):\n    raise KeyError('lost')\n")
    data["program"]["sha256"] = hashlib.sha256(script.read_bytes()).hexdigest()
    data["program"].pop("modules", None)
    head = previous = header_hash(data)
    for step in data["steps"]:
        previous = step["chain"] = chained(previous, step)
    data["receipt_hash"] = previous
    assert head != data["receipt_hash"]
    (path := tmp_path / "run.json").write_text(json.dumps(data))
    assert main(["verify", str(path), "--script", str(script)]) == 70
    assert capsys.readouterr().err.endswith("invar: nothing is judged: KeyError\n")


def test_a_device_that_is_not_there(honest, capsys):
    assert main(["verify", str(honest), "--device", "gpu"]) == 2
    assert capsys.readouterr().err == "invar: --device: 'gpu', expected cpu or cuda\n"
    if not torch.cuda.is_available():
        assert main(["verify", str(honest), "--device", "cuda"]) == 2
        assert "there is no CUDA device here" in capsys.readouterr().err
