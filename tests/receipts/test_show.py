"""`invar show`, `invar digest`, what every verdict says of its receipt, and --last: what somebody
sees who gets a receipt and knows nothing else."""

import json
import os
import stat

import jsonschema
import numpy as np
import onnx
from conftest import MODEL, ROOT, SHARDS, execute, invar, refused
from receipt_oracle import put, reseal

RECEIPT = ROOT / "tests/golden/romeo.receipt.json"
CONTENT = json.loads(RECEIPT.read_text())
TEMPLATE = ROOT / "tests/chat/templates/chatml.jinja"
DEFS = json.loads((ROOT / "docs/reference/results.schema.json").read_text())["$defs"]


def check(name, one):
    jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DEFS}).validate(one)
    return one


def shown(*paths, code=0):
    lines = invar("show", *paths, "--json", code=code).out.decode().splitlines()
    return [check("show", json.loads(line)) for line in lines]


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def model_of(receipt):
    return {**receipt["model"], "tensors": len(receipt["model"]["tensors"])}


def test_an_answer():
    text = invar("show", RECEIPT).out.decode()
    for line in (
        "  model     shakespeare-4m\n",
        f"  weights   {CONTENT['model']['weights']} (47 tensors)\n",
        "  template  none\n",
        f"  program   llama-1, {CONTENT['program']['digest']}\n",
        "  prompt    3 tokens\n            ROMEO:\n",
        "  answer    64 tokens, cut at max_new_tokens\n             then, in Ireg him, thou\n",
        "  sampling  temperature 0.8, top-k 50, top-p 1, seed 0, at most 64 new tokens\n",
        "  signed    by nobody\n",
        f"  receipt   {CONTENT['receipt_hash']}\n",
    ):
        assert line in text, text
    (one,) = shown(RECEIPT)
    assert one["kind"] == "answer" and one["ok"] and one["receipt_hash"] == CONTENT["receipt_hash"]
    assert one["model"] == model_of(CONTENT) and one["program"] == CONTENT["program"]
    assert one["prompt"] == "ROMEO:" and one["answer"] == CONTENT["output"]["text"]
    assert (one["prompt_tokens"], one["answer_tokens"]) == (3, 64)
    asked = {k: v for k, v in CONTENT["input"].items() if k not in ("prompt", "tokens")}
    assert one["sampling"] == asked and one["execution"] == CONTENT["execution"]
    assert one["signed"] == one["withheld"] == [] and one["salted"] is False


def test_the_messages_of_a_chat(model, tasks, tmp_path):
    (model / "chat_template.jinja").write_bytes(TEMPLATE.read_bytes())
    path, other = tmp_path / "r.json", tmp_path / "s.json"
    run = ["run", "--model-name", model, "--tasks-root", tasks, "--max-new-tokens", 4]
    done = invar(*run, "--user", "Who art\nthou?", "--system", "Be brief.", "--receipt-path", path)
    assert "cut" in done.err.decode() and "--max-new-tokens" in done.err.decode()
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who art\nthou?"},
    ]
    invar(*run, "--messages", written(tmp_path / "m.json", messages), "--receipt-path", other)
    assert shown(path)[0]["receipt_hash"] == shown(other)[0]["receipt_hash"]
    assert shown(path)[0]["messages"] == messages
    text = invar("show", path).out.decode()
    assert "of 2 messages" in text
    assert "user:\n            Who art\n            thou?\n" in text
    verdict = invar("verify", path, "--model-name", model).out.decode()
    assert 'prompt    "Who art\\x0athou?" (user, the last of 2 messages; ' in verdict
    rendered = invar("render", "--model-name", model, "--user", "A", "--system", "S").out
    file = written(tmp_path / "m.json", [{"role": "user", "content": "A"}])
    assert (
        invar("render", "--model-name", model, "--messages", file, "--system", "S").out == rendered
    )
    for wrong, name in (
        ((*run, "--user", "a", "--prompt-text", "b"), "--user"),
        (("run", "--model-name", model), "--user"),
        (("run", "--model-name", model, "--prompt-text", "b", "--system", "s"), "--user"),
        (("run", "--model-name", MODEL, "--user", "a"), "no chat template"),
        (("render", "--model-name", model), "--user"),
        (("render", "--model-name", model, "--user", "a", "--messages", file), "--messages"),
    ):
        refused(*wrong, names=[name])


def test_who_signed_and_what_is_withheld(generate, tmp_path):
    key, public = tmp_path / "me.key", tmp_path / "public.json"
    signer = invar("keygen", key).out.decode().strip()
    full = generate("--salt-prompt", "--sign", key, prompt="A quetzal:", tokens=4)["receipt"]
    invar("redact", full, "-o", public)
    whole, hidden = invar("show", full).out.decode(), invar("show", public).out.decode()
    assert f"  signed    by {signer}" in whole and f"  signed    by {signer}" in hidden
    assert "  salted " in whole and "A quetzal:" in whole
    assert "withheld (receipt.27)" in hidden and "quetzal" not in hidden
    one, other = shown(full)[0], shown(public)[0]
    assert one["salted"] and other["salted"] and one["receipt_hash"] == other["receipt_hash"]
    assert one["signed"] == other["signed"] == [signer]
    assert other["prompt"] is None and other["prompt_tokens"] is None
    assert {"input.prompt", "input.salt"} <= set(other["withheld"])
    batch = full.parent / "batch.json"
    invar("seal", full, "-o", batch)
    sealed = shown(batch)
    assert [one["kind"] for one in sealed] == ["batch", "answer"]
    text = invar("show", batch).out.decode()
    assert '"A quetzal:"' in text
    written(full.parent / "odd.json", put(json.loads(batch.read_text()), ("batch_hash",), "0" * 64))
    assert shown(full.parent / "odd.json", code=1)[0]["kind"] == "damaged"


def test_what_does_not_hold(tmp_path):
    damaged = written(tmp_path / "d.json", put(CONTENT, ("output", "text"), "forsooth"))
    done = invar("show", damaged, code=1)
    assert done.out.startswith(b"NOT VALID") and b"output.text" in done.out
    (one,) = shown(damaged, code=1)
    assert one["kind"] == "damaged" and one["findings"]
    refused("show", MODEL / "config.json", names=["not a receipt"])
    refused("show", tmp_path / "none.json", names=["none.json"])
    refused("show", names=["a receipt is required"])
    forged = reseal(put(CONTENT, ("model", "name"), "\x1b[2Jevil\u202e"))
    forged = reseal(put(forged, ("output", "text"), "\x1b[1;32mVERIFIED"))
    done = invar("show", written(tmp_path / "e.json", forged), damaged, code=1)
    assert b"\x1b" not in done.out and "\u202e" not in done.text
    assert b"\\x1b[1;32mVERIFIED" in done.out


def test_tensors(tmp_path):
    h = onnx.helper
    value = [h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in ("x", "y")]
    graph = h.make_graph([h.make_node("Neg", ["x"], ["y"])], "g", value[:1], value[1:])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)]), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    path, given = tmp_path / "r.json", f"x={tmp_path}/x.npy"
    invar("compile", tmp_path / "m.onnx", "-o", tmp_path / "p.invar")
    invar("infer", tmp_path / "p.invar", "--input", given, "--receipt-path", path)
    (one,) = shown(path)
    content = json.loads(path.read_text())
    assert one["kind"] == "tensors" and one["inputs"] == content["input"]["tensors"]
    assert one["outputs"] == content["output"]["tensors"]
    assert "  input     x: f32 [2, 3], sha256 " in invar("show", path).out.decode()
    verdict = invar("verify", path, "--model", tmp_path / "m.onnx", "--input", given).out.decode()
    assert "  output    y: f32 [2, 3]\n" in verdict


def test_a_training(tmp_path):
    """By its form alone (spec/training.md): the Python package checks it."""
    digest = "ab" * 32
    step = {"data": digest, "settings": {}, "state": digest, "chain": digest}
    losses = ("0x1.8000000000000p+1", "-0x1.8000000000000p-3")
    receipt = {
        "schema": "invar-training-receipt 1",
        "program": {"numerics": "invar-1", "script": "t.py", "sha256": digest,
                    "settings": {"lr": "0x1.0000000000000p-4", "steps": 2, "name": "a\x1bb"}},
        "model": {"constants": digest},
        "initial": {"state": digest, "tensors": [
            {"name": "model.w", "dtype": "f32", "shape": [1], "sha256": digest}]},
        "steps": [step | {"loss": loss} for loss in losses],
        "receipt_hash": digest,
    }  # fmt: skip
    path = written(tmp_path / "t.json", receipt)
    text = invar("show", path).out.decode()
    assert "1 tensor in 2 steps" in text and "3 in the first step, -0.1875 in the last" in text
    assert "lr 0.0625" in text and "steps 2" in text and "\x1b" not in text
    assert "nothing was checked" in text
    (one,) = shown(path)
    assert one["kind"] == "training" and (one["steps"], one["tensors"]) == (2, 1)
    for odd in ({"steps": 3}, {"initial": []}, {"program": "x"}):
        refused("show", written(path, receipt | odd), names=["spec/training.md"])


def test_every_verdict_says_what_it_is_about(tmp_path):
    lines = invar("verify", RECEIPT, "--model-name", MODEL).out.decode().splitlines()
    assert lines[0].startswith("VERIFIED") and lines[1] == "  of        shakespeare-4m, fp32"
    assert lines[2] == '  prompt    "ROMEO:" (3 tokens)'
    assert lines[3].startswith('  answer    " then, in Ireg') and "64 tokens" in lines[3]
    assert lines[4].startswith("  sampling  temperature 0.8") and len(lines[3]) < 160
    one = invar("verify", RECEIPT, "--model-name", MODEL, "--json").json()
    assert check("verdict", one)["about"]["prompt"] == '"ROMEO:" (3 tokens)'
    forged = written(tmp_path / "f.json", reseal(put(CONTENT, ("input", "seed"), "1")))
    text = invar("verify", forged, "--model-name", MODEL, code=1).out.decode()
    assert text.startswith("NOT VERIFIED") and '"ROMEO:"' in text and "seed 1" in text
    table = invar("validate", RECEIPT, forged).out.decode()
    assert table.count('  "ROMEO:" -> " then, in Ireg him') == 2 and "2 of 2 hold" in table


# --- digests that a publisher posts ---------------------------------------------------------------


def test_digest_has_the_receipts_names(model, generate):
    bound = check("bound", invar("digest", MODEL, "--json").json())
    assert bound == {"model": model_of(CONTENT), "program": CONTENT["program"]}
    lines = dict(line.split(None, 1) for line in invar("digest", MODEL).out.decode().splitlines()
                 if " " in line.strip())  # fmt: skip
    assert lines["model.weights"] == CONTENT["model"]["weights"]
    assert lines["program.digest"] == CONTENT["program"]["digest"]
    exact = invar("digest", MODEL, "--json", "--numerics", "exact16").json()
    assert exact["model"] == bound["model"] and exact["program"] != bound["program"]
    data = bytearray((model / SHARDS[1]).read_bytes())
    data[-2] ^= 1
    (model / SHARDS[1]).write_bytes(data)
    changed = invar("digest", model, "--json").json()
    content = generate(model=model, tokens=1)["content"]
    assert changed == {"model": model_of(content), "program": content["program"]}
    assert changed["model"]["weights"] != bound["model"]["weights"]
    refused("digest", model / "none", names=["none"])
    (model / "config.json").write_text("{}")
    assert execute(["digest", model]).code in (2, 3)


# --- the last receipt -----------------------------------------------------------------------------


def test_the_last_receipt_is_known(tasks, tmp_path):
    state = tmp_path / "state"
    env = {**os.environ, "XDG_STATE_HOME": str(state)}
    for command in ("verify", "validate", "show"):
        refused(command, "--last", env=env, names=["--last", str(state / "invar/last-receipt")])
    run = ["run", "--model-name", MODEL, "--tasks-root", tasks, "--prompt-text", "A"]
    invar(*run, "--max-new-tokens", 2, "--receipt-path", "r.json", cwd=tmp_path, env=env)
    kept = json.loads((tmp_path / "r.json").read_text())["receipt_hash"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = invar("verify", "--last", "--model-name", MODEL, cwd=elsewhere, env=env)
    assert done.out.startswith(b"VERIFIED") and kept in done.text
    assert str(tmp_path / "r.json") in done.text
    assert kept in invar("show", "--last", env=env).text
    note = state / "invar/last-receipt"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(note.parent.stat().st_mode) == 0o700
    (tmp_path / "r.json").unlink()
    refused("verify", "--last", env=env, names=["r.json", "not there any more"])
    note.chmod(0o666)  # others could have written it
    refused("verify", "--last", env=env, names=["no receipt of a run is known"])


def test_a_model_of_the_hub_is_proposed(tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    forged = put(put(CONTENT, ("model", "name"), "acme/tiny"), ("model", "revision"), commit)
    path = written(tmp_path / "hub.json", reseal(forged))
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    env = {k: v for k, v in env.items() if k not in ("HF_HOME", "HF_HUB_CACHE")}
    refused("verify", path, env=env, names=[f"--model-name acme/tiny@{commit} downloads it"])
