"""`invar export --with-transformers`: what the Python side makes is compared with torch's logits
and with itself in several calls, whoever made it. Where torch and transformers are, one model goes
the whole way; a program that stands for Python does elsewhere."""

import importlib.util
import json
import os
import shutil
import sys

import numpy as np
import onnx
import pytest
from conftest import BUILD, MODEL, ROOT, invar, refused

NEEDED = ("torch", "transformers", "onnx", "onnxscript")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
TOKENS = [5, 300, 17, 1999, 42, 7, 7, 1024, 3, 64, 900, 12]
SETTINGS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
# Stands for `python -m invar.exporter`: gives what lies in the folder beside it.
FAKE = """#!{python}
import json, shutil, sys
from pathlib import Path
out, here = Path(sys.argv[sys.argv.index("--output") + 1]), Path(__file__).parent / "made"
if "--versions" in sys.argv:
    (out / "export.json").write_text(json.dumps({{"exporter": "fake 1"}}))
else:
    shutil.copytree(here, out, dirs_exist_ok=True)
sys.exit(json.loads((out / "export.json").read_text()).get("code", 0))
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """-> (the graph of the shipped model, which has states, with its weights; its logits)."""
    folder = tmp_path_factory.mktemp("native")
    invar("export", "--model-name", MODEL, "-o", folder, "--colocate-tensors")
    invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
    ids = ",".join(map(str, TOKENS))
    invar("infer", folder / "plan.invar", "--tokens", ids, "--logits-output", folder / "logits")
    return onnx.load(folder / "model.onnx"), (folder / "logits").read_bytes()


@pytest.fixture
def fake(native, tmp_path):
    """-> make(graph, logits, **report): the interpreter that gives them."""
    (tmp_path / "python").write_text(FAKE.format(python=sys.executable))
    (tmp_path / "python").chmod(0o755)
    made = tmp_path / "made"
    made.mkdir()
    for name in SETTINGS:
        shutil.copy(MODEL / name, made)

    def make(change=lambda graph: None, logits=native[1], **report):
        model = onnx.ModelProto()
        model.CopyFrom(native[0])
        del model.metadata_props[:]
        for key, value in (("invar.exporter", "fake 1, torch 0"), ("invar.states", "5")):
            model.metadata_props.add(key=key, value=value)
        change(model)
        onnx.save(
            model, made / "model.onnx", save_as_external_data=True, location="model.onnx.data"
        )
        (made / "check.f32").write_bytes(logits)
        report = {"exporter": "fake 1", "model": "Fake", "states": True, "tokens": TOKENS} | report
        (made / "export.json").write_text(json.dumps(report))
        return tmp_path / "python"

    return make


def export(python, out, **kwargs):
    where = ("--model-name", MODEL, "--output", out, "--python", python)
    return invar("export", "--with-transformers", *where, **kwargs)


def answer(model, receipt):
    asked = ("--prompt-text", "ROMEO:", "--no-do-sample", "--max-new-tokens", 12)
    return invar("run", "--model-name", model, *asked, "--receipt-path", receipt).out


def test_an_export_runs_as_its_model_and_binds_its_exporter(fake, tmp_path):
    out = tmp_path / "out"
    done = export(fake(), out)
    assert done.out.decode().strip() == str(out / "model.onnx")
    assert b"the same bits in one call and in several" in done.err
    assert {p.name for p in out.iterdir()} == {
        "export.json",
        "model.onnx",
        "model.onnx.data",
        *SETTINGS,
    }
    receipt = tmp_path / "r.json"
    assert answer(out, receipt) == answer(MODEL, tmp_path / "native.json")
    invar("verify", receipt, "--model-name", out)
    text = invar("compile", out / "model.onnx", "--emit", "program").out.decode()
    assert '\nexporter "fake 1, torch 0"\n' in text
    digest = json.loads(receipt.read_text())["program"]["digest"]

    def other_version(model):
        model.metadata_props[0].value = "fake 2, torch 0"

    export(fake(other_version), out)
    assert "program" in invar("verify", receipt, "--model-name", out, code=1).text
    answer(out, tmp_path / "other.json")
    assert json.loads((tmp_path / "other.json").read_text())["program"]["digest"] != digest


def wrong(logits):
    values = np.frombuffer(logits, "<f4").copy()
    values[-1] += 0.01 * np.abs(values).max()
    return values.tobytes()


def dropped(model, name):
    """The model without an output, which some node still makes."""
    kept = [o for o in model.graph.output if o.name != name]
    del model.graph.output[:]
    model.graph.output.extend(kept)


def states(model, text):
    model.metadata_props[1].value = text


def counted_anew(model):
    """Positions that are counted from 0 in each call: what lies before is no state."""
    for node in model.graph.node:
        node.input[:] = ["row" if x == "position_ids" else x for x in node.input]
    constants = {
        "axis_1": np.array(1),
        "begin": np.array(0),
        "step": np.array(1),
        "axes": np.array([0]),
    }
    for name, value in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    made = [
        onnx.helper.make_node("Shape", ["input_ids"], ["sizes"]),
        onnx.helper.make_node("Gather", ["sizes", "axis_1"], ["seq"]),
        onnx.helper.make_node("Range", ["begin", "seq", "step"], ["rows"]),
        onnx.helper.make_node("Unsqueeze", ["rows", "axes"], ["row"]),
    ]
    for node in reversed(made):
        model.graph.node.insert(0, node)


@pytest.mark.parametrize(
    ("code", "change", "says"),
    [
        (2, lambda m: dropped(m, "present.1.key"), "past_key_values.1.key is no state"),
        (2, lambda m: states(m, "6"), "5 of 6 states"),
        (2, lambda m: states(m, "many"), "is no number"),
        (3, counted_anew, "something of the past is no state"),
    ],
)
def test_truncated_states_are_refused(fake, tmp_path, code, change, says):
    refused(*arguments(fake(change), tmp_path / "out"), code=code, names=[says])
    assert not (tmp_path / "out/model.onnx").exists()


def arguments(python, out):
    return (
        "export",
        "--with-transformers",
        "--model-name",
        MODEL,
        "--output",
        out,
        "--python",
        python,
    )


def test_other_logits_and_what_cannot_be_traced_are_refused(fake, native, tmp_path):
    out = tmp_path / "out"
    refused(
        *arguments(fake(logits=wrong(native[1])), out), code=3, names=["differ from the model's by"]
    )
    refused(*arguments(fake(logits=native[1][: 4 * 2048]), out), code=3, names=["the model 2048"])
    python = fake(error="FakeForCausalLM at modeling_fake.py:7: a loop", code=3)
    refused(*arguments(python, out), code=3, names=["modeling_fake.py:7"])
    assert list(out.iterdir()) == []


def test_what_is_missing_is_named(tmp_path):
    out = tmp_path / "out"
    refused(*arguments(tmp_path / "nothing", out), names=["pip install invar torch"])
    empty = tmp_path / "python"
    empty.write_text("#!/bin/sh\necho No module named invar\nexit 1\n")
    empty.chmod(0o755)
    refused(*arguments(empty, out), names=["pip install invar torch"])
    asked = ("export", "--model-name", MODEL, "--output", out, "--python", empty)
    refused(*asked, names=["--with-transformers"])
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    config = json.loads((model / "config.json").read_text())
    config |= {"model_type": "unheard", "architectures": ["UnheardForCausalLM"]}
    (model / "config.json").write_text(json.dumps(config))
    asked = ("run", "--model-name", model, "--prompt-text", "x")
    names = ["UnheardForCausalLM", "pip install invar torch"]
    refused(*asked, code=3, names=names, env=os.environ | {"INVAR_PYTHON": str(empty)})


def needs_packages():
    if MISSING:
        pytest.skip(
            f"this Python lacks {', '.join(MISSING)}, which tests/requirements.txt leaves out"
        )


# None has a recipe. Attention is that of transformers' interface, or written out by the model; the
# last one, an encoder's type with a decoder's config, counts its positions.
@pytest.mark.parametrize("kind", ["persimmon", "gpt_neox_japanese", "roberta"])
def test_a_model_of_transformers(tmp_path, kind):
    """Keys and values are states, and the receipt is verified."""
    needs_packages()
    sys.path.insert(0, str(ROOT / "tools/families"))
    from tiny_models import config_of, model_of

    model_of(config_of(kind)).save_pretrained(tmp_path / "model")
    for name in SETTINGS[2:]:
        shutil.copy(MODEL / name, tmp_path / "model")
    env = os.environ | {"INVAR_PYTHON": sys.executable, "PYTHONPATH": str(BUILD / "python")}
    asked = ("--prompt-text", "ROMEO:", "--no-do-sample", "--max-new-tokens", 8)
    receipt = tmp_path / "r.json"
    done = invar(
        "run", "--model-name", tmp_path / "model", *asked, "--receipt-path", receipt, env=env
    )
    assert b"minutes for a large one" in done.err and b"in several" in done.err
    invar("verify", receipt)


def test_an_encoder_is_not_left_out(tmp_path):
    needs_packages()
    model = tmp_path / "model"
    model.mkdir()
    config = {"model_type": "bigbird_pegasus", "is_encoder_decoder": True}
    (model / "config.json").write_text(json.dumps(config))
    asked = ("export", "--with-transformers", "--model-name", model, "--output", tmp_path / "out")
    refused(*asked, "--python", sys.executable, code=3, names=["it has an encoder"])
