"""What a terminal would obey or hide in foreign text (names in files, paths, a model's answer) is
shown escaped."""

import json
import os
import shutil
import unicodedata

import pseudo_terminal
import pytest
from conftest import MODEL, SHARDS, execute, invar, refused, rewrite_header
from onnx import TensorProto, helper

HOSTILE = "\x1b[2J\nVERIFIED  r.json\r\x07\u009b1m\u202e\u2028\u200b\ufeff\x7f"


def assert_harmless(data, lines=None):
    """Bytes for a terminal: valid UTF-8 in lines, without control or direction characters."""
    text = data.decode("utf-8")
    for c in text:
        kind = unicodedata.category(c)
        assert c == "\n" or kind not in ("Cc", "Cf", "Zl", "Zp"), f"{c!r} in {text!r}"
    assert not any(line.startswith("VERIFIED") for line in text.split("\n")), text
    if lines is not None:
        assert text.count("\n") == lines, text


def on_terminal(*args):
    """-> (exit code, bytes) of the program with standard output and error on a terminal."""
    env = {**os.environ, "NO_COLOR": "1"}
    return pseudo_terminal.on_terminal(*args, env=env, breaks=False)


@pytest.fixture(scope="module")
def receipt(answer):
    return json.loads(answer["receipt"].read_text())


# --- receipts -------------------------------------------------------------------------------------


def test_a_refusal_among_several_is_shown_once(tmp_path):
    (tmp_path / "junk.json").write_text("{")
    code, out = on_terminal("validate", tmp_path / "junk.json", tmp_path / "none.json")
    assert code == 2 and out.count(b"not JSON") == 1 and out.count(b"No such file") == 1, out
    assert out.count(b"REFUSED") == 2 and b"invar: " not in out
    code, out = on_terminal("validate", tmp_path / "junk.json")
    assert code == 2 and out.count(b"not JSON") == 1 and out.startswith(b"invar: ")


def test_hostile_members_of_a_receipt(receipt, tmp_path):
    changed = json.loads(json.dumps(receipt))
    changed[HOSTILE] = 1
    changed["input"][HOSTILE] = 1
    changed["digests"][HOSTILE] = "x"
    changed["execution"][HOSTILE] = HOSTILE
    changed["execution_digests"][HOSTILE] = HOSTILE
    changed["output"]["finish_reason"] = HOSTILE
    changed["model"]["revision"] = HOSTILE
    changed["model"]["tensors"][0]["dtype"] = HOSTILE
    changed["program"]["operation_set"] = HOSTILE
    path = tmp_path / "r.json"
    for ascii_only in (True, False):
        path.write_text(json.dumps(changed, ensure_ascii=ascii_only))
        for command in ("validate", "verify"):
            done = invar(command, path, code=1)
            assert done.out.startswith(b"NOT V")
            assert_harmless(done.out)
            assert b"\\x1b[2J\\x0aVERIFIED" in done.out and b"\\u{202e}" in done.out
            done = invar(command, path, "--json", code=1)
            assert_harmless(done.out, lines=1)
            assert any(HOSTILE in f["field"] for f in done.json()["findings"])


def test_hostile_name_of_a_receipt(receipt, tmp_path):
    for name in (HOSTILE.encode(), b"r\xff\x1b[2J.json", "r\n.json".encode()):
        path = os.fsencode(tmp_path) + b"/" + name.replace(b"/", b"")
        done = refused("validate", path)
        assert_harmless(done.err, lines=1)
        with open(path, "w") as f:
            json.dump(receipt, f)
        done = invar("validate", path)
        assert_harmless(done.out)
        assert done.out.startswith(b"VALID  ")
        done = invar("validate", path, "--json")
        assert_harmless(done.out, lines=1)
        with open(path, "w") as f:
            f.write("{")
        assert_harmless(refused("validate", path).err, lines=1)


def test_visible_names_stay(receipt, tmp_path):
    path = tmp_path / "Quittung für 日本語 עברית.json"
    path.write_text(json.dumps(receipt))
    assert f"VALID  {path}".encode() in invar("validate", path).out


# --- folders and models ---------------------------------------------------------------------------


def test_hostile_names_of_folders(tmp_path, model):
    folder = tmp_path / ("m" + HOSTILE.replace("/", ""))
    shutil.copytree(model, folder)
    receipts = tmp_path / ("r" + HOSTILE)
    receipts.mkdir()
    done = invar(
        "run",
        "--model-name",
        folder,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        2,
        "--task-dir",
        tmp_path / HOSTILE,
        "--receipt-path",
        receipts / "r.json",
    )
    assert_harmless(done.err)
    done = invar("verify", receipts / "r.json", "--model-name", folder)
    assert_harmless(done.err)
    first, rest = done.out.split(b"\n", 1)
    assert first.startswith(b"VERIFIED  " + str(tmp_path).encode())
    assert_harmless(first[len("VERIFIED") :])
    assert_harmless(rest)
    (folder / "config.json").unlink()
    assert_harmless(refused("run", "--model-name", folder, "--prompt-text", "A").err, lines=1)
    assert_harmless(refused("run", "--model-name", HOSTILE, "--prompt-text", "A").err, lines=1)
    assert_harmless(refused("run", "--no-such-option=" + HOSTILE).err, lines=1)


def test_hostile_names_of_tensors(model, tmp_path):
    def rename(header):
        first = sorted(k for k in header if k != "__metadata__")[0]
        header[HOSTILE] = header.pop(first)
        return header

    index = model / "model.safetensors.index.json"
    names = json.loads(index.read_text())["weight_map"]

    def export():
        done = execute(["export", "--model-name", model, "-o", tmp_path / "out"])
        assert done.code in (2, 3), done.text
        assert_harmless(done.err, lines=1)
        return done.err

    for file in (SHARDS[1], "no" + HOSTILE):  # not where the index says, and in no file
        index.write_text(json.dumps({"weight_map": {**names, HOSTILE: file}}))
        assert b"\\x1b[2J" in export()
    index.write_text(json.dumps({"weight_map": names}))
    rewrite_header(model / SHARDS[0], rename)
    export()
    index.write_text(
        json.dumps(
            {
                "weight_map": {
                    HOSTILE if v == SHARDS[0] and k == min(names) else k: v
                    for k, v in names.items()
                }
            }
        )
    )
    export()
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    export()


def test_hostile_words_of_a_tokenizer_and_a_config(model, tmp_path):
    args = [
        "run",
        "--model-name",
        model,
        "--prompt-text",
        "A",
        "--receipt-path",
        tmp_path / "r.json",
    ]
    text = json.loads((model / "tokenizer.json").read_text())
    text["model"]["type"] = HOSTILE
    (model / "tokenizer.json").write_text(json.dumps(text))
    assert_harmless(refused(*args, code=3).err, lines=1)
    shutil.copy(MODEL / "tokenizer.json", model)
    config = json.loads((model / "config.json").read_text())
    for change in (
        {"model_type": HOSTILE},
        {"quantization_config": {HOSTILE: HOSTILE}},
        {"rope_scaling": {"type": HOSTILE}},
    ):
        (model / "config.json").write_text(json.dumps({**config, **change}))
        done = execute(args)
        assert done.code in (2, 3)
        assert_harmless(b"".join(done.err.splitlines(True)[-1:]), lines=1)


# --- ONNX -----------------------------------------------------------------------------------------


def model_of(nodes, outputs=("y",), name="g"):
    info = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])]
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in outputs]
    return helper.make_model(
        helper.make_graph(nodes, name, info, out),
        opset_imports=[helper.make_opsetid("", 23)],
        ir_version=11,
    )


@pytest.mark.parametrize(
    "nodes,code,lines",
    [
        ([helper.make_node("Bernoulli", ["x"], ["y"], name=HOSTILE)], 3, 1),
        ([helper.make_node(HOSTILE, ["x"], ["y"], domain=HOSTILE)], 3, 1),
        (
            [
                helper.make_node(HOSTILE, ["x"], [HOSTILE], name=HOSTILE),
                helper.make_node("Bernoulli", [HOSTILE], ["y"], name=HOSTILE),
            ],
            3,
            3,
        ),
        ([helper.make_node("Add", ["x", HOSTILE], ["y"], name=HOSTILE)], 2, 1),
        (
            [
                helper.make_node("Sin", ["x"], [HOSTILE]),
                helper.make_node("Cos", ["x"], [HOSTILE]),
                helper.make_node("Cos", ["x"], ["y"]),
            ],
            2,
            1,
        ),
    ],
    ids=["node", "operator", "several", "value", "twice"],
)
def test_hostile_names_in_onnx(tmp_path, nodes, code, lines):
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(nodes, name=HOSTILE).SerializeToString())
    done = invar("compile", path, code=code)
    assert_harmless(done.err, lines)
    assert b"\\x1b[2J" in done.err


def test_names_of_tensors_that_infer_prints(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(
        model_of([helper.make_node("Sin", ["x"], [HOSTILE])], outputs=[HOSTILE]).SerializeToString()
    )
    invar("compile", path)
    import numpy as np

    np.save(tmp_path / "x.npy", np.zeros((2, 2), np.float32))
    done = invar("infer", tmp_path / "plan.invar", "--input", f"x={tmp_path / 'x.npy'}")
    assert_harmless(done.out, lines=1)
    assert HOSTILE in done.json()["outputs"]
    assert_harmless(
        refused("infer", tmp_path / "plan.invar", "--input", f"{HOSTILE}={tmp_path / 'x.npy'}").err,
        lines=1,
    )
    # The text of a stage: exact in a pipe, escaped on a terminal.
    raw = invar("compile", path, "--emit", "plan").out
    code, shown = on_terminal("compile", path, "--emit", "plan")
    assert code == 0
    assert_harmless(shown)
    assert raw.count(b"\n") == shown.count(b"\n")


# --- what a model says ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def speaker(tmp_path_factory):
    """The shipped model whose tokens say control characters: every word of the tokenizer that it
    picks is hostile."""
    folder = tmp_path_factory.mktemp("speaker") / "model"
    shutil.copytree(MODEL, folder)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocab = tokenizer["model"]["vocab"]
    done = invar(
        "run",
        "--model-name",
        folder,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        4,
        "--task-dir",
        folder.parent / "task",
        "--receipt-path",
        folder.parent / "first.json",
        "--json",
    ).json()
    # An added token is decoded to its content as it stands.
    said = ["\x1b[2J", "\u009b31m\u202e", "\r\x07\x7f", "\n\té日"]
    by_id = {i: t for t, i in vocab.items()}
    for i, text in zip(dict.fromkeys(done["tokens"]), said):
        assert by_id[i] not in {t["content"] for t in tokenizer["added_tokens"]}
        vocab.pop(by_id[i])
        vocab[text] = i
        tokenizer["added_tokens"].append(
            {
                "id": i,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": False,
            }
        )
        merges = tokenizer["model"]["merges"]
        pair = [m if isinstance(m, list) else m.split(" ") for m in merges]
        tokenizer["model"]["merges"] = [
            m for m, p in zip(merges, pair) if by_id[i] not in (p[0], p[1], p[0] + p[1])
        ]
    path.write_text(json.dumps(tokenizer))
    return folder


def test_an_answer_on_a_terminal_and_in_a_pipe(speaker, tmp_path):
    args = [
        "--model-name",
        speaker,
        "--max-new-tokens",
        4,
        "--task-dir",
        speaker.parent / "task",
        "--receipt-path",
        tmp_path / "r.json",
    ]
    piped = invar("run", "--prompt-text", "ROMEO:", *args)
    output = json.loads((tmp_path / "r.json").read_text())["output"]
    text, ids = output["text"], ",".join(map(str, output["tokens"]))
    assert "\x1b[2J" in text, text
    assert piped.out == text.encode() + b"\n"

    code, shown = on_terminal("run", "--prompt-text", "ROMEO:\x1b]0;title\x07\u202e", *args)
    assert code == 0, shown
    own = (
        shown.replace(b"\x1b[1m", b"").replace(b"\x1b[0m", b"").replace(b"\r\x1b[K", b"")
    )  # bold, and progress that is redrawn
    assert_harmless(own.replace(b"\t", b" "))
    assert b"\\x1b]0;title\\x07\\u{202e}" in shown

    assert invar("decode", "--model-name", speaker, "--tokens", ids).out == text.encode() + b"\n"
    code, shown = on_terminal("decode", "--model-name", speaker, "--tokens", ids)
    assert code == 0
    assert_harmless(shown.replace(b"\t", b" "))

    done = invar("run", "--prompt-text", "ROMEO:\u202e", "--json", *args)
    assert_harmless(done.out, lines=1)
    code, shown = on_terminal("run", "--prompt-text", "ROMEO:\u202e", "--json", *args)
    assert code == 0
    assert_harmless(shown)
