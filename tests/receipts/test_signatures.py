"""Signatures, withheld prompts, batches and conversations, as a user makes and checks them."""

import json
import os
import shutil
import subprocess
import sys

import jsonschema
import pytest
from conftest import ROOT, invar, refused, verdict_rows
from receipt_oracle import put, reseal

SCRIPT = ROOT / "docs/reference/receipt.py"
TEMPLATE = ROOT / "tests/chat/templates/chatml.jinja"
SCHEMA = json.loads((ROOT / "docs/reference/receipt.schema.json").read_text())


def second_reading(*paths):
    """docs/reference/receipt.py and the schema accept them."""
    for path in paths:
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(path.read_text()))
    done = subprocess.run([sys.executable, "-B", SCRIPT, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two pairs: (private file, public file, id)."""
    folder = tmp_path_factory.mktemp("keys")
    made = []
    for name in ("me", "you"):
        key_id = invar("keygen", folder / name).out.decode().strip()
        made.append((folder / name, folder / f"{name}.pub", key_id))
    return made


def test_the_corpus():
    """A file of each kind, as builds before this one wrote it."""
    folder = ROOT / "tests/golden/receipts"
    receipts = sorted(folder.glob("*.json"))
    assert {"batch.json", "redacted.json"} <= {path.name for path in receipts}
    invar("validate", *receipts)
    rfc8032 = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    invar("validate", folder / "romeo.signed.json", "--require-key", rfc8032)
    model = ("--model-name", ROOT / "models/shakespeare-4m")
    done = invar("verify", folder / "batch.json", "--require-key", rfc8032, *model, code=3)
    lines = verdict_rows(done)
    assert [line.split()[0] for line in lines[:4]] == ["VALID", "VERIFIED", "VERIFIED", "REFUSED"]


def test_keys_are_those_of_openssl(keys, tmp_path):
    private, public, key_id = keys[0]
    assert private.stat().st_mode & 0o777 == 0o600 and len(key_id) == 64
    refused("keygen", private, names=["exists", "never overwritten"])
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("no openssl program here")

    def run(*args):
        return subprocess.run([openssl, *args], capture_output=True, check=True).stdout

    assert run("pkey", "-in", private, "-pubout") == public.read_bytes()
    assert run("pkey", "-in", private) == private.read_bytes()
    theirs = tmp_path / "theirs"
    theirs.touch(0o600)
    run("genpkey", "-algorithm", "ed25519", "-out", theirs)
    der = run("pkey", "-in", theirs, "-pubout", "-outform", "DER")
    receipt = tmp_path / "r.json"
    shutil.copy(ROOT / "src/receipt/example.json", receipt)
    assert der[-32:].hex() in invar("sign", receipt, "--key", theirs).text
    # And OpenSSL takes the signature, by the words of receipt.26.
    content = json.loads(receipt.read_text())
    (tmp_path / "message").write_text("invar-receipt-signature 1\n" + content["receipt_hash"])
    (tmp_path / "signature").write_bytes(bytes.fromhex(content["signatures"][0]["signature"]))
    run("pkey", "-in", theirs, "-pubout", "-out", tmp_path / "theirs.pub")
    said = run(
        *("pkeyutl", "-verify", "-pubin", "-inkey", tmp_path / "theirs.pub", "-rawin"),
        *("-in", tmp_path / "message", "-sigfile", tmp_path / "signature"),
    )
    assert b"Verified Successfully" in said
    for kind in (["-algorithm", "rsa"], ["-algorithm", "x25519"]):
        run("genpkey", *kind, "-out", theirs)
        refused("sign", receipt, "--key", theirs, names=["not an Ed25519 key"])
    run("pkey", "-in", private, "-aes256", "-passout", "pass:x", "-out", theirs)
    refused("sign", receipt, "--key", theirs, names=["encrypted"])


def test_a_signed_run(generate, answer, keys, tmp_path):
    (mine, public, key_id), (yours, your_public, your_id) = keys
    signed = generate("--sign", mine)
    assert signed["receipt_hash"] == answer["receipt_hash"]
    path = tmp_path / "r.json"
    shutil.copy(signed["receipt"], path)
    assert f"signed    by {key_id}" in invar("validate", path, "--require-key", public).text
    report = invar("verify", path, "--require-key", key_id).text
    assert "VERIFIED" in report and key_id in report
    for command in ("validate", "verify"):
        done = invar(command, path, "--require-key", public, "--require-key", your_public, code=1)
        assert your_id in done.text and "signatures: the receipt says " in done.text
        invar(command, answer["receipt"], "--require-key", public, code=1)
    invar("sign", path, "--key", yours, "--key", mine)
    content = json.loads(path.read_text())
    assert [s["key"] for s in content["signatures"]] == [key_id, your_id]
    invar("validate", path, "--require-key", public, "--require-key", your_public)
    assert second_reading(path).count("not checked here") == 2
    # A signature stays with its receipt.
    other = put(content, ("output", "text"), "something else")
    for forged in (other, reseal(other)):
        path.write_text(json.dumps(forged))
        invar("verify", path, code=1)
    path.write_text(json.dumps(put(content, ("signatures", 0, "signature"), "0" * 128)))
    assert "signatures[0].signature" in invar("validate", path, code=1).text
    refused("sign", path, "--key", mine, names=["not a valid receipt", "signatures[0]"])


def test_keys_that_are_none(keys, answer, tmp_path):
    private, public, _ = keys[0]
    receipt = tmp_path / "r.json"
    shutil.copy(answer["receipt"], receipt)
    before = receipt.read_bytes()
    loose = tmp_path / "loose"
    shutil.copy(private, loose)
    os.chmod(loose, 0o644)
    refused("sign", receipt, "--key", loose, names=["others may read", "0644", "chmod 600"])
    os.chmod(loose, 0o600)
    loose.write_text("no key")
    refused("sign", receipt, "--key", loose, names=["not a key"])
    public_copy = tmp_path / "copy.pub"
    public_copy.touch(0o600)
    public_copy.write_bytes(public.read_bytes())
    refused("sign", receipt, "--key", public_copy, names=["a public key, where a private one"])
    refused("sign", receipt, "--key", public, names=["a public key, where a private one"])  # 0644
    refused("sign", "/dev/stdin", "--key", private, names=["/dev/stdin: not a file"])
    refused("sign", receipt, "--key", tmp_path / "absent", names=["absent"])
    refused("validate", receipt, "--require-key", private, names=["a private key, where a public"])
    refused("validate", receipt, "--require-key", "f" * 63)
    assert receipt.read_bytes() == before
    refused(
        *("run", "--model-name", ROOT / "models/shakespeare-4m", "--prompt-text", "x"),
        *("--sign", loose, "--receipt-path", tmp_path / "never.json"),
        names=["not a key"],
    )
    assert not (tmp_path / "never.json").exists()


def test_a_withheld_prompt(generate, answer, keys, tmp_path):
    ask = {"prompt": "A quetzal:", "tokens": 16}
    plain = generate(**ask)
    full = generate("--salt-prompt", "--sign", keys[0][0], **ask)
    again = generate("--salt-prompt", **ask)
    assert len({full["receipt_hash"], again["receipt_hash"], plain["receipt_hash"]}) == 3
    assert full["tokens"] == plain["tokens"] and full["content"]["input"]["salt"]
    public = tmp_path / "public.json"
    assert (
        invar("redact", full["receipt"], "-o", public).out.decode().strip() == full["receipt_hash"]
    )
    text = public.read_text()
    assert "quetzal" not in text and full["content"]["input"]["salt"] not in text
    assert full["content"]["output"]["logits"][0] not in text
    said = invar("validate", public, "--require-key", keys[0][1]).text
    assert said.startswith("VALID") and full["receipt_hash"] in said
    for field in ("input.prompt", "input.tokens", "input.salt", "output.logits"):
        assert field in said.split("\n  withheld")[1].split("\n")[0]
    refused("verify", public, code=3, names=["its prompt is withheld", "the same hash"])
    assert full["receipt_hash"] in invar("verify", full["receipt"]).text
    assert full["receipt_hash"] in second_reading(full["receipt"], public)
    content = json.loads(text)
    for path, value in [
        (("input", "prompt"), "A quetzal:"),
        (("input", "tokens"), [0]),
        (("digests", "input.prompt"), "0" * 64),
        (("output", "text"), "other"),
        (("output", "logits"), []),
    ]:
        public.write_text(json.dumps(put(content, path, value)))
        invar("validate", public, code=1)
    refused("redact", answer["receipt"], "-o", public, names=["no salt"])
    public.write_text(text)
    refused("redact", public, "-o", tmp_path / "twice.json", names=["redacted already"])


def test_a_redacted_receipt_does_not_count_the_prompt(model, tasks, tmp_path):
    """max_length is that of prompt and answer: what is left of it counts the prompt's tokens."""
    settings = model / "generation_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"max_length": 60}))
    run = ("run", "--model-name", model, "--tasks-root", tasks, "--prompt-text", "A quetzal:")
    made = {}
    for name, *options in (
        ("plain", "--stop", "e"),
        ("full", "--stop", "e", "--salt-prompt"),
        ("long", "--salt-prompt"),
        ("asked", "--salt-prompt", "--max-new-tokens", 3),
    ):
        path = tmp_path / f"{name}.json"
        said = invar(*run, *options, "--receipt-path", path)
        made[name] = json.loads(path.read_text()), said.err.decode()
    limit = {name: receipt["input"]["max_new_tokens"] for name, (receipt, _) in made.items()}
    left = 60 - len(made["plain"][0]["input"]["tokens"])
    assert limit == {"plain": left, "full": 60, "long": left, "asked": 3}
    for name in made:
        remark = "how many tokens this prompt has" in made[name][1]
        assert remark == (name == "long"), made[name][1]
    assert made["full"][0]["output"] | {"logits": []} == made["plain"][0]["output"] | {"logits": []}
    assert "VERIFIED" in invar("verify", tmp_path / "full.json", "--model-name", model).text
    said = {
        name: invar("redact", tmp_path / f"{name}.json", "-o", tmp_path / "public.json")
        for name in ("long", "full")
    }
    assert f"its limit of {left} tokens" in said["long"].err.decode() and not said["full"].err
    hashes = said["full"].out.decode()
    assert hashes.strip() in second_reading(tmp_path / "full.json", tmp_path / "public.json")


def test_the_messages_of_a_chat_are_withheld(model, tasks, tmp_path):
    (model / "chat_template.jinja").write_bytes(TEMPLATE.read_bytes())
    messages, full, public = (tmp_path / name for name in ("m.json", "full.json", "public.json"))
    messages.write_text(json.dumps([{"role": "user", "content": "A quetzal:"}]))
    run = ["run", "--model-name", model, "--tasks-root", tasks, "--max-new-tokens", 8]
    invar(*run, "--messages", messages, "--salt-prompt", "--receipt-path", full)
    assert "quetzal" in json.loads(full.read_text())["input"]["chat"]
    receipt_hash = invar("redact", full, "-o", public).out.decode().strip()
    text = public.read_text()
    assert "quetzal" not in text and json.loads(text)["input"]["chat"] is None
    said = invar("validate", public).text
    assert said.startswith("VALID") and receipt_hash in said and "input.chat" in said
    assert second_reading(full, public).count(receipt_hash) == 2
    assert "VERIFIED" in invar("verify", full, "--model-name", model).text
    refused("verify", public, "--model-name", model, code=3, names=["its prompt is withheld"])
    content = json.loads(full.read_text())
    full.write_text(json.dumps(put(content, ("input", "chat"), "{}")))
    assert "input.chat" in invar("validate", full, code=1).text
    # A forger who knows the salt makes fitting digests; the template tells.
    other = content["input"]["chat"].replace("quetzal", "condor")
    full.write_text(json.dumps(reseal(put(content, ("input", "chat"), other))))
    assert "input.prompt" in invar("verify", full, "--model-name", model, code=1).text


def test_a_batch(generate, answer, keys, tmp_path):
    (mine, public, key_id), (yours, your_public, _) = keys
    (tmp_path / "sub").mkdir()
    paths = [tmp_path / "a.json", tmp_path / "sub/b.json"]
    shutil.copy(answer["receipt"], paths[0])
    shutil.copy(generate("--seed", 5, tokens=8)["receipt"], paths[1])
    batch = tmp_path / "batch.json"
    root = invar("seal", *paths, "-o", batch, "--sign", mine).out.decode().strip()
    content = json.loads(batch.read_text())
    assert content["batch_hash"] == root
    assert [r["name"] for r in content["receipts"]] == ["a.json", "sub/b.json"]
    assert root in second_reading(batch)
    for command in (["redact", batch], ["seal", paths[0], batch]):
        refused(*command, "-o", tmp_path / "no.json", names=[f"{batch}: a batch of receipts"])
    lines = verdict_rows(invar("verify", batch, "--require-key", public))
    assert [line.split()[0] for line in lines] == ["VALID", "VERIFIED", "VERIFIED", "3"]
    assert root in lines[0] and lines[3] == "3 of 3 hold"
    objects = invar("validate", batch, "--json").out.decode().splitlines()
    assert all(key_id in json.loads(line)["compared"]["signed"] for line in objects)
    assert "sig" in invar("validate", batch, "--require-key", your_public, code=1).text
    invar("sign", batch, "--key", yours)
    invar("validate", batch, "--require-key", your_public, "--require-key", public)
    # Another receipt under a name of the batch, one that is gone, and a changed batch.
    shutil.copy(paths[0], paths[1])
    lines = verdict_rows(invar("validate", batch, code=1))
    assert lines[2].startswith("NOT VALID") and "receipt_hash" in lines[2]
    paths[1].unlink()
    assert "sub/b.json" in refused("validate", batch).errors[0]
    changed = put(content, ("receipts", 0, "receipt_hash"), "0" * 64)
    batch.write_text(json.dumps(changed))
    assert "batch_hash" in invar("validate", batch, code=1).text
    batch.write_text(json.dumps(put(content, ("receipts", 0, "name"), "../a.json")))
    assert "receipts[0].name" in invar("verify", batch, code=1).text
    refused("sign", batch, "--key", mine, names=["not a valid batch", "receipts[0].name"])
    refused("seal", answer["receipt"], "-o", batch, names=["lies outside"])
    refused("seal", paths[0], paths[0], "-o", batch, names=["given twice"])


def test_a_conversation(generate, answer, tmp_path):
    first = answer["content"]
    prompt = first["input"]["prompt"] + first["output"]["text"] + "\nJULIET:"
    second = generate("--previous", answer["receipt"], prompt=prompt, tokens=8)
    assert second["content"]["input"]["previous"] == answer["receipt_hash"]
    second_reading(second["receipt"])

    def said(*paths):
        lines = invar("verify", *paths, "--json").out.decode().splitlines()
        return json.loads(lines[-1])["compared"]["previous"]

    begins = first["input"]["tokens"] + first["output"]["tokens"]
    tokens = second["content"]["input"]["tokens"]
    expected = "begin this prompt" if tokens[: len(begins)] == begins else "do not begin"
    assert expected in said(answer["receipt"], second["receipt"])
    assert f"{answer['receipt_hash']}: not among" in said(second["receipt"])
    other = generate("--previous", answer["receipt"], prompt="JULIET:", tokens=8)
    assert "do not begin this prompt" in said(answer["receipt"], other["receipt"])
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(put(first, ("output", "text"), "x")))
    refused(
        *("run", "--model-name", ROOT / "models/shakespeare-4m", "--prompt-text", "x"),
        *("--previous", broken, "--receipt-path", tmp_path / "never.json"),
        names=["not a valid receipt", "output.text"],
    )
