"""--json of every command: objects of docs/reference/results.schema.json, errors among them."""

import json
import subprocess

import jsonschema
import pytest
from conftest import BIN, MODEL, ROOT, execute, invar

DEFS = json.loads((ROOT / "docs/reference/results.schema.json").read_text())["$defs"]


def check(name, text):
    found = [json.loads(line) for line in text.splitlines()]
    for one in found:
        jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DEFS}).validate(one)
    assert found
    return found


def result(name, *args, code=0):
    return check(name, invar(*args, code=code).out)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A run, what is made of it, and the commands that made it."""
    folder = tmp_path_factory.mktemp("results")
    out = {"receipt": folder / "r.json", "task": folder / "task", "key": folder / "alice.key"}
    run = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 4]
    (out["run"],) = result("run", *run, "--receipt-path", out["receipt"], "--json", "--salt-prompt")
    (out["export"],) = result(
        "export", "export", "--model-name", MODEL, "-o", out["task"], "--json"
    )
    (out["compile"],) = result("compile", "compile", out["export"]["model"], "--json")
    (out["keygen"],) = result("keygen", "keygen", out["key"], "--json")
    return out


def test_receipts(files, tmp_path):
    receipt = files["receipt"]
    (signed,) = result("sign", "sign", receipt, "--key", files["key"], "--json")
    assert signed["public_key"] == files["keygen"]["public_key"]
    (redacted,) = result("redact", "redact", receipt, "-o", tmp_path / "p.json", "--json")
    assert redacted["receipt_hash"] == files["run"]["receipt_hash"]
    result("seal", "seal", receipt, "-o", receipt.parent / "batch.json", "--json")
    (verdict,) = result("verdict", "verify", receipt, "--model-name", MODEL, "--json")
    assert verdict["ok"] and verdict["verdict"] == "VERIFIED"
    changed = json.loads(receipt.read_text())
    changed["output"]["text"] += "!"
    (tmp_path / "bad.json").write_text(json.dumps(changed))
    (verdict,) = result("verdict", "validate", tmp_path / "bad.json", "--json", code=1)
    assert not verdict["ok"] and verdict["findings"]
    result("diff", "diff", receipt, receipt, "--json")
    done = execute(["validate", receipt, "none.json", "--json"])
    first, second = done.out.splitlines()
    check("verdict", first)
    check("refused", second)


def test_stages(files):
    assert files["compile"]["path"].endswith("plan.invar")
    (ids,) = result("encode", "encode", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--json")
    tokens = ",".join(map(str, ids["tokens"]))
    (text,) = result("decode", "decode", "--model-name", MODEL, "--tokens", tokens, "--json")
    assert text["text"] == "ROMEO:"
    plan = files["compile"]["path"]
    result("infer", "infer", plan, "--tokens", tokens, "--max-new-tokens", 2, "--json")
    (kept,) = result("cache list", "cache", "list", "--json")
    assert kept["tasks"]
    result("cache prune", "cache", "prune", "--older-than", 3000, "--json")


def test_chat():
    """The shipped model has no chat template, so the conversation is refused, as JSON."""
    done = subprocess.run(
        [BIN, "chat", "--model-name", MODEL, "--json"], input=b"", capture_output=True, check=False
    )
    assert done.returncode == 2
    check("error", done.stdout)


@pytest.mark.parametrize(
    "args,code",
    [
        (["run", "--model-name", "none", "--prompt-text", "a"], 2),
        (["compile", "none.onnx"], 2),
        (["export", "--model-name", "none", "-o", "x"], 2),
        (["download", "none"], 2),
        (["sign", "none.json", "--key", "none"], 2),
        (["diff", "none.json", "none.json"], 2),
        (["bench", "--op", "none"], 2),
        (["decode", "--model-name", MODEL, "--tokens", "99999999"], 2),
        (["cache", "prune"], 2),
        (["doctor", "--rooms", "none"], 2),
        (["nonsense"], 2),
    ],
)
def test_errors(args, code):
    done = invar(*args, "--json", code=code)
    (error,) = check("error", done.out)
    assert error["exit_code"] == code and error["error"] in done.text
