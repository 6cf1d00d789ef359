"""invar run --n and --logprobs: answer j of n is the one of a run alone that names its stream, and
log-probabilities are those of the logits that the receipt binds (spec/sampling.md)."""

import hashlib
import json
import sys

import numpy as np
import pytest
from conftest import MODEL, ROOT, invar, refused

sys.path.insert(0, str(ROOT / "tools/sampling"))
import vectors  # noqa: E402

DRAWN = ["--temperature", "0.9", "--seed", 7, "--top-p", "0.95"]


@pytest.fixture
def run(tasks, tmp_path):
    """run(*options) -> the lines of JSON and the receipts by their names."""
    count = 0

    def f(*options, prompt=("--prompt-text", "ROMEO:"), tokens=12):
        nonlocal count
        count += 1
        folder = tmp_path / f"receipts {count}"
        folder.mkdir()
        done = invar(
            *("run", "--model-name", MODEL, "--tasks-root", tasks, *prompt, "--json"),
            *("--max-new-tokens", tokens, "--receipt-path", "r.json", *options),
            cwd=folder,
        )
        lines = [json.loads(line) for line in done.out.splitlines()]
        return lines, {file.name: file.read_bytes() for file in folder.iterdir()}

    return f


def test_n_answers(run):
    lines, receipts = run(*DRAWN, "--n", 3)
    assert sorted(receipts) == ["r.1.json", "r.2.json", "r.3.json"]
    assert [line["sampling"].get("stream", 0) for line in lines] == [0, 1, 2]
    assert len({line["text"] for line in lines}) == 3
    for batch in (2, 3):
        assert run(*DRAWN, "--n", 3, "--batch-size", batch)[1] == receipts
    for j in range(3):
        assert run(*DRAWN, "--stream", j)[1] == {"r.json": receipts[f"r.{j + 1}.json"]}
    later = run(*DRAWN, "--stream", 1, "--n", 2)[1]
    assert later == {"r.1.json": receipts["r.2.json"], "r.2.json": receipts["r.3.json"]}


def test_n_greedy_answers_are_one(run):
    receipts = run("--no-do-sample", "--n", 2)[1]
    assert receipts["r.1.json"] == receipts["r.2.json"] == run("--no-do-sample")[1]["r.json"]


def test_n_answers_to_each_line(run, tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text('"ROMEO:"\n{"bad": 1}\n"JULIET:"\n')
    options = [*DRAWN, "--n", 2]
    lines = invar(
        *("run", "--model-name", MODEL, "--prompt-file", path, "--json", "--max-new-tokens", 5),
        *(*options, "--receipt-path", tmp_path / "r.json"),
        code=2,
    )
    assert lines.errors and len(lines.errors) == 1
    names = sorted(file.name for file in tmp_path.glob("r.*"))
    assert names == ["r.1.1.json", "r.1.2.json", "r.3.1.json", "r.3.2.json"]
    alone = run(*DRAWN, "--stream", 1, prompt=("--prompt-text", "JULIET:"), tokens=5)[1]
    assert (tmp_path / "r.3.2.json").read_bytes() == alone["r.json"]


def test_streams_that_there_are(run):
    where = ["run", "--model-name", MODEL, "--prompt-text", "A"]
    for n in ("0", "1025", "-1", "x"):
        refused(*where, "--n", n, names=["--n"])
    refused(*where, *DRAWN, "--stream", 2**64 - 1, "--n", 2, names=["--stream", "--n 2"])
    refused(*where, "--batch-size", 2, names=["--batch-size", "--prompt-file", "--n"])


def rows_of(line, tmp_path):
    """The logits of the positions that chose the answer."""
    path, exported = tmp_path / "logits", tmp_path / "exported"
    invar("export", "--model-name", MODEL, "-o", exported)
    invar("compile", exported / "model.onnx")
    tokens = line["prompt_tokens"] + line["tokens"]
    plan = exported / "plan.invar"
    listed = ",".join(map(str, tokens[:-1]))
    invar("infer", plan, "--tokens", listed, "--logits-output", path)
    logits = np.frombuffer(path.read_bytes(), "<f4").reshape(len(tokens) - 1, -1)
    return logits[len(line["prompt_tokens"]) - 1 :]


@pytest.mark.parametrize(
    "options",
    [[], [*DRAWN, "--repetition-penalty", "1.3", "--logit-bias", "5:9", "--suppress-tokens", "3"]],
)
def test_logprobs(run, tmp_path, options):
    (line,), receipts = run(*options, "--logprobs", 3, tokens=5)
    assert run(*options, tokens=5)[1] == receipts, "no receipt binds them"
    receipt = json.loads(receipts["r.json"])
    rows = rows_of(line, tmp_path)
    assert len(line["logprobs"]) == len(rows) == 5
    for row, step, token, digest in zip(
        rows, line["logprobs"], line["tokens"], receipt["output"]["logits"]
    ):
        assert hashlib.sha256(row.tobytes()).hexdigest() == digest, "the model's own row"
        expected = vectors.logprobs(list(row))
        assert step["token"] == token
        order = sorted(range(len(row)), key=lambda i: (-row[i], i))[:3]
        assert [top["token"] for top in step["top_logprobs"]] == order
        for one in (step, *step["top_logprobs"]):
            assert np.float32(one["logprob"]) == expected[one["token"]]
            assert one["logprob"] == float(str(expected[one["token"]])), "the shortest digits"


def test_logprobs_of_many_at_once(run):
    options = [*DRAWN, "--n", 3, "--logprobs", 2]
    one_by_one, together = (run(*options, "--batch-size", size)[0] for size in (1, 3))
    assert [a["logprobs"] for a in one_by_one] == [b["logprobs"] for b in together]
    assert all(step["top_logprobs"] == [] for step in run("--logprobs", 0)[0][0]["logprobs"])
    where = ["run", "--model-name", MODEL, "--prompt-text", "A"]
    refused(*where, "--logprobs", 2, names=["--logprobs", "--json"])
    refused(*where, "--logprobs", 21, "--json", names=["--logprobs", "21"])
