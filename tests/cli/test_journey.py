"""The main job through the command line: the same bits however it is run, and a receipt that cannot
be changed unseen."""

import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import MODEL, ROOT, SHARDS, cpu_isas, invar, refused, safetensors_header
from receipt_oracle import put, reseal

ALL_ISAS = ["reference", "scalar", "avx2", "avx512", "neon"]


def test_run_then_verify(answer):
    assert answer["text"].strip() and len(answer["tokens"]) <= 64
    done = invar("verify", answer["receipt"], "--json")
    assert done.json()["ok"] and done.json()["receipt_hash"] == answer["receipt_hash"]
    assert f"{len(answer['tokens'])} of {len(answer['tokens'])}" in done.json()["compared"]["steps"]
    assert invar("validate", answer["receipt"], "--json").json()["ok"]


def test_the_committed_receipt_of_the_demo(answer):
    """The answer on this machine is the one that stands in the repository, made on another day."""
    committed = json.loads((ROOT / "tests/golden/romeo.receipt.json").read_text())
    assert answer["receipt_hash"] == committed["receipt_hash"]
    assert (
        invar("verify", ROOT / "tests/golden/romeo.receipt.json", "--model-name", MODEL).code == 0
    )


@pytest.mark.parametrize(
    "receipt", sorted((ROOT / "tests/golden/receipts").glob("romeo.*")), ids=str
)
def test_receipts_of_every_format_are_verified(receipt):
    """Receipts that earlier builds wrote. None is ever removed or made anew."""
    assert invar("validate", receipt, "--json").json()["ok"]
    assert "VERIFIED" in invar("verify", receipt, "--model-name", MODEL).text


def test_an_unknown_format_is_refused_by_name(answer, tmp_path):
    path = tmp_path / "later.json"
    path.write_text(json.dumps(reseal(put(answer["content"], ("schema",), "invar-receipt 3"))))
    for command in ("validate", "verify"):
        assert "invar-receipt 3" in invar(command, path, code=3).errors[0]


def test_the_specification_shows_the_program(answer):
    """The text in spec/program.md is that of the shipped model."""
    page = (ROOT / "spec/program.md").read_text()
    text = page.split("```\n")[1]
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == answer["content"]["program"]["digest"] and digest in page


def test_the_readme_shows_what_happens(answer):
    readme = (ROOT / "README.md").read_text()
    assert readme.count(answer["receipt_hash"]) >= 2 and "ROMEO:" + answer["text"] in readme
    assert (
        answer["content"]["program"]["digest"][:16] in readme
        and answer["content"]["model"]["weights"][:16] in readme
    )


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads(generate, answer, threads):
    other = generate("--threads", threads)
    assert other["threads"] == threads
    assert other["receipt_hash"] == answer["receipt_hash"]


@pytest.mark.parametrize("isa", ALL_ISAS)
def test_instruction_sets(generate, answer, isa):
    if isa in cpu_isas():
        other = generate("--isa", isa)
        assert other["isa"] == isa and other["content"]["execution"]["isa"] == isa
        assert {k.split()[-1] for k in other["kernels"]} <= {isa, "reference"} and any(
            isa in k for k in other["kernels"]
        )
        assert other["receipt_hash"] == answer["receipt_hash"]
    else:
        refused("run", "--model-name", MODEL, "--prompt-text", "A", "--isa", isa, names=[isa])


def test_the_default_is_the_best_instruction_set(answer):
    assert answer["isa"] == cpu_isas()[-1] if "neon" not in cpu_isas() else answer["isa"] == "neon"


@pytest.mark.parametrize(
    "options",
    [
        ["--prefill-chunk", 1],
        ["--prefill-chunk", 7],
        ["--prefill-chunk", 100000],
        ["--no-kv-cache"],
    ],
    ids=["token by token", "chunks of 7", "at once", "no cache"],
)
def test_ways_through_the_prompt(generate, answer, options):
    long = (
        "ROMEO:\nBut, soft! what light through yonder window breaks?\n"
        "It is the east, and Juliet is the sun.\n\nJULIET:\n"
    )
    assert generate(*options)["receipt_hash"] == answer["receipt_hash"]
    one = generate(prompt=long, tokens=16)
    assert len(one["prompt_tokens"]) > 14
    assert generate(*options, prompt=long, tokens=16)["receipt_hash"] == one["receipt_hash"]


def test_under_load(generate, answer):
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        assert generate()["receipt_hash"] == answer["receipt_hash"]
    finally:
        for p in busy:
            p.kill()
            p.wait()


def test_greedy_and_sampled_differ_and_repeat(generate, answer):
    greedy = generate("--no-do-sample")
    assert greedy["receipt_hash"] == generate("--no-do-sample", "--threads", 1)["receipt_hash"]
    hot = generate("--temperature", "1.5", "--top-k", 0, "--top-p", "0.95", "--seed", 7)
    assert hot["tokens"] != greedy["tokens"]
    assert (
        hot["receipt_hash"]
        == generate(
            "--temperature", "1.5", "--top-k", 0, "--top-p", "0.95", "--seed", 7, "--no-kv-cache"
        )["receipt_hash"]
    )
    assert (
        hot["tokens"]
        != generate("--temperature", "1.5", "--top-k", 0, "--top-p", "0.95", "--seed", 8)["tokens"]
    )
    for a in (greedy, hot):
        invar("verify", a["receipt"])


def test_an_answer_is_a_prefix_of_a_longer_one(generate):
    short, long = generate(tokens=10), generate(tokens=40)
    assert long["tokens"][:10] == short["tokens"]
    assert long["content"]["output"]["logits"][:10] == short["content"]["output"]["logits"]


def test_a_folder_with_a_space_and_a_relative_path(generate, answer, tmp_path):
    place = tmp_path / "a b" / "c d"
    shutil.copytree(MODEL, place / MODEL.name)
    done = invar(
        "run",
        "--model-name",
        MODEL.name,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        64,
        "--json",
        "--receipt-path",
        "my receipt.json",
        "--task-dir",
        "my task",
        cwd=place,
    )
    assert done.json()["receipt_hash"] == answer["receipt_hash"]
    invar("verify", "my receipt.json", cwd=place)
    copied = invar(
        "run",
        "--model-name",
        MODEL.name,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        64,
        "--json",
        "--colocate-tensors",
        "--receipt-path",
        "copied.json",
        "--task-dir",
        "copies",
        cwd=place,
    )
    assert copied.json()["receipt_hash"] == answer["receipt_hash"]
    assert all(
        (place / "copies" / s).is_file() and not (place / "copies" / s).is_symlink() for s in SHARDS
    )


def test_each_stage_alone_gives_the_same_answer(answer, tmp_path):
    work = tmp_path / "stages"
    invar("export", "--model-name", MODEL, "-o", work)
    program = invar("compile", work / "model.onnx", "-o", work / "p.invar").out.decode()
    assert answer["content"]["program"]["digest"] in program
    ids = json.loads(invar("encode", "--model-name", MODEL, "--prompt-text", "ROMEO:").out)
    assert ids == answer["prompt_tokens"]
    inferred = json.loads(
        invar(
            "infer",
            work / "p.invar",
            "--tokens",
            ",".join(map(str, ids)),
            "--max-new-tokens",
            64,
            "--stop-tokens",
            1,
            "--temperature",
            "0.8",
            "--top-k",
            50,
            "--seed",
            0,
        ).out
    )
    assert inferred["tokens"] == answer["tokens"]
    assert inferred["logits"] == answer["content"]["output"]["logits"]
    (work / "ids.json").write_text(json.dumps(inferred["tokens"]))
    text = invar("decode", "--model-name", MODEL, work / "ids.json").out.decode()
    assert text.rstrip("\n") == answer["text"].rstrip("\n")


def test_the_plan_is_the_same_wherever_it_is_made(tmp_path):
    plans = []
    for name in ("one", "another place"):
        shutil.copytree(MODEL, tmp_path / name / "m")
        invar("export", "--model-name", tmp_path / name / "m", "-o", tmp_path / name / "out")
        plans.append(
            invar("compile", tmp_path / name / "out/model.onnx").out.decode().split("\nprogram ")[1]
        )
        plans.append((tmp_path / name / "out/plan.invar").read_bytes())
    assert plans[0] == plans[2] and plans[1] == plans[3]


# --- a receipt cannot be changed unseen -----------------------------------------------------------

BOUND = ("model", "program", "input", "output")


def leaves(node, path=()):
    if isinstance(node, dict):
        for k, v in node.items():
            yield from leaves(v, path + (k,))
    elif isinstance(node, list) and node:
        for i, v in enumerate(node):
            yield from leaves(v, path + (i,))
    else:
        yield path, node


def other_value(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return [1]  # an empty list


def field(path):
    """The name under which validate must report a change at `path` (receipt.12)."""
    names = [k for k in path if isinstance(k, str)]
    return ".".join(names[:2]) if names[0] in BOUND + ("digests", "execution") else names[0]


def test_every_field_is_named_when_it_changes(generate, tmp_path):
    content = generate(tokens=6)["content"]
    assert set(BOUND) <= set(content) and reseal(content) == content
    path = tmp_path / "changed.json"
    missed = []
    tried = 0
    for where, value in leaves(content):
        tried += 1
        path.write_text(json.dumps(put(content, where, other_value(value))))
        done = invar("validate", path, code=1)
        if field(where) not in done.text:
            missed.append((where, done.text))
        if tried % 10 == 0:
            invar("verify", path, code=1)
    assert not missed, missed[:3]
    assert tried > 200


def test_execution_is_outside_the_hash(generate, tmp_path):
    content = generate(tokens=6)["content"]
    path = tmp_path / "r.json"
    changed = reseal(put(content, ("execution", "threads"), "99"))
    assert (
        changed["receipt_hash"] == content["receipt_hash"]
        and changed["execution_hash"] != content["execution_hash"]
    )
    path.write_text(json.dumps(changed))
    invar("validate", path)
    invar("verify", path)


def test_missing_and_unknown_fields(generate, tmp_path):
    content = generate(tokens=2)["content"]
    path = tmp_path / "r.json"
    for section in content:
        path.write_text(json.dumps({k: v for k, v in content.items() if k != section}))
        assert section in invar("validate", path, code=1).text
    for section in BOUND:
        for key in content[section]:
            smaller = copy.deepcopy(content)
            del smaller[section][key]
            path.write_text(json.dumps(smaller))
            assert key in invar("validate", path, code=1).text
        path.write_text(json.dumps(put(content, (section, "surprise"), 1)))
        assert "surprise" in invar("validate", path, code=1).text


def test_one_character_of_the_file(answer, tmp_path):
    """Byte edits in the text of the receipt, as a person with an editor would make them."""
    text = answer["receipt"].read_text()
    path = tmp_path / "r.json"
    digest = answer["content"]["receipt_hash"]
    for old, new, names in [
        (digest[:8], digest[:7] + ("0" if digest[7] != "0" else "1"), ["receipt_hash"]),
        ('"ROMEO:', '"ROMEA:', ["input.prompt"]),
    ]:
        assert text.count(old) >= 1
        path.write_text(text.replace(old, new, 1))
        done = invar("validate", path, code=1)
        assert all(n in done.text for n in names), done.text
    for junk in [
        "",
        "{",
        "[]",
        "null",
        text[: len(text) // 2],
        text + "x",
        '"' * 1000,
        "[" * 100000,
    ]:
        path.write_text(junk)
        assert invar("validate", path, code=2).errors[0].count(str(path)) == 1
    path.write_bytes(b"\xff\xfe" + text.encode())
    invar("validate", path, code=2)


@pytest.mark.parametrize(
    "where,value,name",
    [
        (("output", "logits", 3), "0" * 64, "output.logits[3]"),
        (("output", "logits", 5), "f" * 64, "output.logits[5]"),
        (("input", "seed"), "1234", "output.tokens["),
        (("input", "temperature"), "0.7", "output.tokens["),
        (("input", "prompt"), "ROMEA:", "input"),
        (("input", "tokens", 1), 7, "input"),
        (("output", "text"), "To be.", "output.text"),
        (("program", "digest"), "0" * 64, "program.digest"),
        (("program", "recipe"), "llama-2", "program.recipe"),
        (("program", "profile"), "exact16", "program.digest"),
        (("program", "numerics"), "invar-0", "program.numerics"),
        (("program", "unicode"), "1.0", "program.unicode"),
        (("model", "config"), "0" * 64, "model.config"),
        (("model", "tokenizer"), "0" * 64, "model.tokenizer"),
        (("model", "chat_template"), "0" * 64, "model.chat_template"),
    ],
)
def test_a_forgery_whose_hashes_fit_fails_when_recomputed(answer, tmp_path, where, value, name):
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(reseal(put(answer["content"], where, value))))
    invar("validate", path)
    done = invar("verify", path, code=1)
    assert name in done.text, done.text


def test_a_forged_token_is_found_at_its_step(generate, tmp_path):
    content = copy.deepcopy(generate("--no-do-sample")["content"])
    content["output"]["tokens"][20] ^= 1
    ids = ",".join(map(str, content["output"]["tokens"]))
    content["output"]["text"] = (
        invar("decode", "--model-name", MODEL, "--tokens", ids).out.decode().rstrip("\n")
    )
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(reseal(content)))
    invar("validate", path)
    assert "output.tokens[20]" in invar("verify", path, code=1).text


# --- the model cannot be changed unseen -----------------------------------------------------------


def flip(path, offset, bit=0):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("shard", range(3))
def test_one_bit_of_a_weight(answer, model, tasks, shard):
    file = model / SHARDS[shard]
    header, begin = safetensors_header(file)
    name, entry = sorted((k, v) for k, v in header.items() if k != "__metadata__")[-1]
    flip(file, begin + entry["data_offsets"][1] - 1)
    done = invar("verify", answer["receipt"], "--model-name", model, code=1)
    assert name in done.text, done.text


def test_one_bit_of_a_weight_after_the_plan_was_made(answer, model, tmp_path):
    """The plan is cached, the file keeps its size and time: loading still notices."""
    run = [
        "run",
        "--model-name",
        model,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        4,
        "--task-dir",
        tmp_path / "task",
        "--receipt-path",
        tmp_path / "r.json",
    ]
    invar(*run)
    file = model / SHARDS[1]
    header, begin = safetensors_header(file)
    name, entry = sorted((k, v) for k, v in header.items() if k != "__metadata__")[0]
    before = file.stat()
    with open(file, "r+b") as f:
        f.seek(begin + entry["data_offsets"][0])
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 0x80]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    for done in (
        invar(*run, code=1),
        invar("verify", answer["receipt"], "--model-name", model, code=1),
    ):
        assert name in done.text, done.text


def test_another_tokenizer_or_config(answer, model):
    text = (model / "tokenizer.json").read_text()
    (model / "tokenizer.json").write_text(text + "\n")
    assert "tokenizer" in invar("verify", answer["receipt"], "--model-name", model, code=1).text
    (model / "tokenizer.json").write_text(text)
    invar("verify", answer["receipt"], "--model-name", model)
    text = (model / "config.json").read_text()
    (model / "config.json").write_text(
        text.replace('"rms_norm_eps": 1e-05', '"rms_norm_eps": 1e-06')
    )
    done = invar("verify", answer["receipt"], "--model-name", model, code=1)
    assert "model.config" in done.text or "config" in done.text
    (model / "config.json").write_text(text.replace("0.02", "0.03"))
    assert "config" in invar("verify", answer["receipt"], "--model-name", model, code=1).text


def test_resharding_keeps_the_program_and_the_weights(answer, model, generate):
    """Where a tensor lies is no part of what it is."""
    headers, blobs = {}, b""
    for shard in SHARDS:
        header, begin = safetensors_header(model / shard)
        data = (model / shard).read_bytes()[begin:]
        for name, entry in header.items():
            if name != "__metadata__":
                a, b = entry["data_offsets"]
                headers[name] = {**entry, "data_offsets": [len(blobs), len(blobs) + b - a]}
                blobs += data[a:b]
        (model / shard).unlink()
    (model / "model.safetensors.index.json").unlink()
    text = json.dumps(headers).encode()
    (model / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + blobs)
    other = generate(model=model)
    assert other["content"]["model"]["weights"] == answer["content"]["model"]["weights"]
    assert other["content"]["program"] == answer["content"]["program"]
    assert other["tokens"] == answer["tokens"]
    invar("verify", answer["receipt"], "--model-name", model)


def test_start_up_needs_nothing():
    out = invar("--version").out.decode()
    assert out.startswith("invar ")
    assert "run" in invar("--help").out.decode()
    for command in ("run", "export", "compile", "infer", "decode", "validate", "verify"):
        assert "--" in invar(command, "--help").out.decode()
