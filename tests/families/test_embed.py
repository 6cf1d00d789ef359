"""invar embed and rerank: against sentence-transformers, by the vectors that
tools/families/make_embed_vectors.py wrote; receipts, files of texts, and what is wrong with
them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import execute, invar

sys.path.insert(0, str(Path(__file__).parent))
from encoder_folder import (  # noqa: E402
    CLS,
    QUERY,
    SEP,
    TEXTS,
    WORDS,
    write_encoder,
    write_files,
)

HERE = Path(__file__).parent
VECTORS = {
    v["name"]: v for v in map(json.loads, (HERE / "encoder_vectors.jsonl").read_text().splitlines())
}
PEER = json.loads((HERE / "embed_vectors.json").read_text())
# Of the largest number: both sides round each sum to float32.
ALLOWED = 3e-6


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """-> a function: the folder of the encoder of this name, and options of a command."""
    root, made = tmp_path_factory.mktemp("encoders"), {}

    def folder(name):
        if name not in made:
            made[name] = root / name
            write_encoder(made[name], VECTORS[name])
        return ["--model-name", made[name], "--tasks-root", root / "tasks"]

    return folder


def lines(done):
    return [json.loads(line) for line in done.out.decode().splitlines()]


def vectors(done):
    return np.array([row["embedding"] for row in lines(done)], np.float32)


@pytest.mark.parametrize("name", PEER["embed"])
def test_vectors_are_those_of_sentence_transformers(models, name):
    for texts, prompt, key in (
        (TEXTS, [], "plain"),
        (TEXTS[:1], ["--prompt-name", "query"], "query"),
    ):
        ours = vectors(invar("embed", *models(name), "--json", *prompt, *texts))
        peer = np.array(PEER["embed"][name][key])
        assert np.abs(ours - peer).max() <= ALLOWED * np.abs(peer).max()


@pytest.mark.parametrize("name", PEER["rerank"])
def test_scores_and_order_are_those_of_sentence_transformers(models, name):
    done = invar("rerank", *models(name), "--query", QUERY, *TEXTS)
    rows = [line.split("\t") for line in done.out.decode().splitlines()]
    peer = np.array(PEER["rerank"][name])
    order = [int(row[1]) for row in rows]
    assert order == list(np.argsort(-peer, kind="stable"))
    assert np.abs(np.array([float(row[0]) for row in rows]) - peer[order]).max() <= ALLOWED
    assert [row[2] for row in rows] == [TEXTS[i] for i in order]
    found = lines(invar("rerank", *models(name), "--query", QUERY, "--json", *TEXTS))
    assert [row["index"] for row in found] == order
    assert [repr(row["score"]) for row in found] == [repr(float(row[0])) for row in rows]


def test_bits_do_not_depend_on_batch_threads_or_instruction_set(models):
    texts = [*TEXTS, TEXTS[0], "hello dog", "a dog"]
    whole = lines(invar("embed", *models("bert"), "--json", *texts))
    for options in (["--batch-size", 1], ["--isa", "scalar", "--threads", 1], ["--threads", 3]):
        found = lines(invar("embed", *models("bert"), "--json", *options, *texts))
        assert [r["embedding"] for r in found] == [r["embedding"] for r in whole]
    for text, row in zip(texts, whole, strict=True):
        alone = lines(invar("embed", *models("bert"), "--json", text))
        assert alone[0]["embedding"] == row["embedding"]


def test_receipts_do_not_depend_on_the_batch_and_verify(models, tmp_path):
    model = models("bert")
    texts = ["hello world", "hello dog"]
    invar("embed", *model, *texts, "--receipt-path", tmp_path / "r.json")
    invar("embed", *model, texts[1], "--receipt-path", tmp_path / "one.json", "--isa", "scalar")
    one, two = (json.loads((tmp_path / f).read_text()) for f in ("one.json", "r.2.json"))
    assert one["receipt_hash"] == two["receipt_hash"]
    new = ["--output", tmp_path / "a/b/v.npy", "--receipt-path", tmp_path / "c/r.json"]
    invar("embed", *model, texts[1], *new)
    assert np.load(tmp_path / "a/b/v.npy").shape[0] == 1
    assert json.loads((tmp_path / "c/r.json").read_text())["receipt_hash"] == one["receipt_hash"]
    verify = ["verify", tmp_path / "one.json", "--model-name", model[1]]
    assert invar(*verify, "--text", texts[1]).text.lstrip().startswith("VERIFIED")
    done = invar(*verify, "--text", texts[0], code=1)
    assert "input.tensors[input_ids]" in done.text
    invar(*verify, "--text", texts[1], "--prompt-name", "query", code=1)
    # Who has the ONNX model and the ids alone.
    invar("export", "--model-name", model[1], "--output", tmp_path)
    np.save(tmp_path / "ids.npy", np.array([[CLS, WORDS.index("hello"), WORDS.index("dog"), SEP]]))
    ids = ["--input", f"input_ids={tmp_path / 'ids.npy'}"]
    invar("verify", tmp_path / "one.json", "--model", tmp_path / "model.onnx", *ids)
    one["output"]["tensors"][0]["sha256"] = "0" * 64
    (tmp_path / "one.json").write_text(json.dumps(one))
    invar(*verify, "--text", texts[1], code=1)


def test_receipts_of_scores_verify(models, tmp_path):
    model = models("bert-reranker")
    path = tmp_path / "r.json"
    invar("rerank", *model, "--query", QUERY, TEXTS[3], "--receipt-path", path)
    verify = ["verify", path, "--model-name", model[1]]
    invar(*verify, "--query", QUERY, "--document", TEXTS[3])
    invar(*verify, "--query", TEXTS[3], "--document", QUERY, code=1)
    invar(*verify, "--query", QUERY, code=2)
    invar(*verify, "--text", QUERY, code=3)
    names = [t["name"] for t in json.loads(path.read_text())["output"]["tensors"]]
    assert names == ["logits", "scores"]


def test_a_file_of_texts(models, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(TEXTS) + "\n")
    rows = [json.dumps(TEXTS[0]), *(json.dumps({"text": t}) for t in TEXTS[1:])]
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    expected = vectors(invar("embed", *models("bert"), "--json", *TEXTS))
    for file in ("t.txt", "t.jsonl"):
        out = tmp_path / f"{file}.npy"
        invar("embed", *models("bert"), "--text-file", tmp_path / file, "--output", out)
        assert np.load(out).tobytes() == expected.tobytes()


def test_a_bad_line_is_named_and_the_others_finish(models, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('"hello"\n{"text": 1}\n{"text": "world"}\n\n"open\n""\n')
    done = execute(["embed", *models("bert"), "--json", "--text-file", path])
    assert done.code == 2
    assert [row["index"] for row in lines(done) if "index" in row] == [0, 2]
    assert len(done.errors) == 3
    for error, line in zip(done.errors, (2, 5, 6), strict=True):
        assert f"t.jsonl:{line}" in error
    out = tmp_path / "t.npy"
    assert execute(["embed", *models("bert"), "--text-file", path, "--output", out]).code == 2
    assert np.isnan(np.load(out)).all(axis=1).tolist() == [False, True, False, True, True]


def test_a_text_that_is_too_long_is_cut_with_a_remark(models):
    done = invar("embed", *models("bert"), TEXTS[2])
    row = lines(done)[0]
    assert row["tokens"] == 40 and row["cut"] == 9 * 8 + 2 - 40
    assert "cut" in done.err.decode()


def test_a_folder_without_modules_is_pooled_by_mean_with_a_remark(models):
    assert "mean" in invar("embed", *models("bert-plain"), TEXTS[0]).err.decode()


REFUSALS = [
    ("bert", ["embed"], {}, 2, "a text or --text-file"),
    ("bert", ["embed", ""], {}, 2, "empty"),
    ("bert", ["embed", "a", "--prompt-name", "passage"], {}, 2, "document, query"),
    ("bert", ["rerank", "--query", "a", "b"], {}, 3, "invar embed"),
    ("bert-reranker", ["embed", "a"], {}, 3, "invar rerank"),
    ("bert", ["run", "--prompt-text", "a"], {}, 3, "invar embed"),
    ("bert", ["embed", "a"], {"tokenizer.json": None}, 2, "no tokenizer.json"),
    ("bert", ["embed", "a"], {"modules.json": [{"type": "x.Transformer"}]}, 3, "x.Transformer"),
    ("bert", ["embed", "a"], {"modules.json": {}}, 2, "not a list of modules"),
    (
        "bert",
        ["embed", "a"],
        {"sentence_bert_config.json": {"do_lower_case": True}},
        3,
        "do_lower_case",
    ),
    (
        "bert",
        ["embed", "a"],
        {"sentence_bert_config.json": {"max_seq_length": 1}},
        2,
        "special tokens",
    ),
    ("bert", ["embed", "a"], {"1_Pooling/config.json": {"pooling_mode": "late"}}, 3, "late"),
    ("bert", ["embed", "a"], {"1_Pooling/config.json": None}, 2, "1_Pooling/config.json"),
    ("bert", ["embed", "a"], {"1_Pooling/config.json": {"pooling_mode": []}}, 2, "no pooling mode"),
    *(
        ("bert", ["embed", "a"], {"1_Pooling/config.json": {key: value}}, code, key)
        for key, value, code in (
            ("pooling_mode_unknown", True, 3),
            ("word_embedding_dimension", -1, 2),
        )
    ),
    ("bert", ["embed", "a", "--output", "/proc/no/x.npy"], {}, 2, "cannot be made"),
    ("bert", ["embed", "a", "--output", "x", "--receipt-path", "./x"], {}, 2, "one file"),
    (
        "bert",
        ["embed", "a", "--prompt-name", "query"],
        {"1_Pooling/config.json": {"include_prompt": False}},
        3,
        "include_prompt",
    ),
]


@pytest.mark.parametrize("name, command, files, code, words", REFUSALS)
def test_refusals(tmp_path, name, command, files, code, words):
    write_encoder(tmp_path / "m", VECTORS[name])
    write_files(tmp_path / "m", {k: v for k, v in files.items() if v is not None})
    for file in (k for k, v in files.items() if v is None):
        (tmp_path / "m" / file).unlink()
    options = ["--model-name", tmp_path / "m", "--tasks-root", tmp_path / "tasks"]
    done = invar(command[0], *options, *command[1:], code=code)
    assert words in done.errors[0]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"is_decoder": True}, "is_decoder"),
        ({"hidden_act": "gelu_fast"}, "gelu_fast"),
        ({"auto_map": {"AutoModel": "x.Y"}}, "auto_map"),
        ({"architectures": ["BertForQuestionAnswering"]}, "BertForQuestionAnswering"),
        ({"model_type": "deberta-v2", "architectures": ["DebertaV2Model"]}, "deberta-v2"),
        ({"model_type": "new", "architectures": ["NewModel"]}, '"new"'),
    ],
)
def test_what_a_config_asks_for_beyond_is_refused_by_name(tmp_path, change, words):
    vector = VECTORS["bert"]
    write_encoder(tmp_path / "m", {**vector, "config": {**vector["config"], **change}})
    for command in (["export", "--output", tmp_path / "out"], ["embed", "a"]):
        done = invar(command[0], "--model-name", tmp_path / "m", *command[1:], code=3)
        assert words in done.errors[0] or change["architectures"][0] in done.errors[0]
