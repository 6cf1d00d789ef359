"""invar run --prompt-file --batch-size: answers and receipts are, to the byte, those of one prompt
at a time, whichever prompts are computed together."""

import json

import pytest
from conftest import MODEL, ROOT, execute, invar, refused

TEMPLATE = ROOT / "tests/chat/templates/chatml.jinja"
TEXTS = ["ROMEO:", "JULIET:\nO Romeo, Romeo, wherefore", "A", "The king " * 40, "What", "x" * 3]
SAMPLED = ["--temperature", "0.9", "--seed", 7, "--top-p", "0.95"]


@pytest.fixture
def run(tasks, tmp_path):
    """run(lines, batch size, *options) -> exit code, output and the files of the receipts."""
    path = tmp_path / "prompts.jsonl"
    count = 0

    def f(lines, batch, *options, model=MODEL, tokens=24):
        nonlocal count
        count += 1
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        folder = tmp_path / f"receipts {count}"
        folder.mkdir()
        command = ["run", "--model-name", model, "--tasks-root", tasks, "--prompt-file", path]
        command += ["--max-new-tokens", tokens, "--date", "2026-01-02T03:04:05"]
        command += ["--batch-size", batch, "--receipt-path", "r.json", *options]
        done = execute(command, cwd=folder)
        return done, {file.name: file.read_bytes() for file in folder.iterdir()}

    return f


@pytest.mark.parametrize(
    "options",
    [
        [],
        SAMPLED,
        [*SAMPLED, "--stop", "king", "--stop", ":", "--repetition-penalty", "1.2"],
        ["--threads", 1, "--isa", "scalar", "--prefill-chunk", 7],
    ],
)
def test_a_batch_has_the_bytes_of_one_by_one(run, tmp_path, options):
    alone, receipts = run(TEXTS, 1, *options)
    assert alone.code == 0 and len(receipts) == len(TEXTS), alone.text
    lengths = {len(json.loads(r)["output"]["tokens"]) for r in receipts.values()}
    assert "--stop" not in options or len(lengths) > 2  # prompts leave at different steps
    for batch in (2, 3, len(TEXTS), 100):
        done, same = run(TEXTS, batch, *options)
        assert (done.code, done.out) == (0, alone.out) and same == receipts, batch
        assert all(
            f"answered  {tmp_path}/prompts.jsonl:{i + 1}\n" in done.text for i in range(len(TEXTS))
        )
        assert f"{len(TEXTS)} answers, {min(batch, len(TEXTS))} at a time" in done.text


def test_the_receipts_verify(run, tmp_path):
    run(TEXTS, 4, *SAMPLED)
    receipts = sorted((tmp_path / "receipts 1").iterdir())
    assert "6 of 6 hold" in invar("verify", *receipts, "--model-name", MODEL).text


def test_chats_and_texts_in_one_batch(run, model, tmp_path):
    (model / "chat_template.jinja").write_bytes(TEMPLATE.read_bytes())
    lines = [{"messages": [{"role": "user", "content": text}]} for text in TEXTS] + TEXTS[:2]
    lines[1] = lines[1]["messages"]  # a list stands for the object with that list
    alone, receipts = run(lines, 1, *SAMPLED, model=model)
    done, same = run(lines, 3, *SAMPLED, model=model)
    assert (done.code, done.out) == (0, alone.out) and same == receipts
    assert json.loads(receipts["r.1.json"])["input"]["chat"]
    shown, _ = run(lines, 3, *SAMPLED, "--json", model=model)
    objects = [json.loads(line) for line in shown.out.splitlines()]
    assert [o["receipt"] for o in objects] == [f"r.{i + 1}.json" for i in range(len(lines))]
    assert b"answered" not in shown.err
    where = ["--model-name", model, "--messages", tmp_path / "prompts.jsonl"]
    refused("run", *where, names=["prompts.jsonl:2:1: not JSON", "--prompt-file"])


def test_a_bad_line_is_named_and_stops_none(run):
    lines = [TEXTS[0], {"prompt": 7}, TEXTS[1], {"bad": 1}, TEXTS[2], "word " * 2000]
    alone, receipts = run(lines, 1)
    done, same = run(lines, 2)
    assert (done.code, done.out, done.errors) == (2, alone.out, alone.errors) and same == receipts
    assert sorted(same) == ["r.1.json", "r.3.json", "r.5.json"]
    for line in (2, 4, 6):
        assert any(f"prompts.jsonl:{line}: " in error for error in done.errors)


def test_where_there_is_no_batch(run, tasks):
    where = ["run", "--model-name", MODEL, "--tasks-root", tasks]
    refused(*where, "--prompt-text", "A", "--batch-size", 2, names=["--prompt-file"])
    for size in ("0", "-1", "65537", "x"):
        assert run(TEXTS, size)[0].code == 2
    for option, name in (
        (["--operation-set", "deterministic"], "--batch-size"),
        (["--no-kv-cache"], "one sequence at a time"),
    ):
        done, receipts = run(TEXTS, 2, *option)
        assert done.code == 3 and name in done.errors[0] and not receipts
        assert run(TEXTS[:1], 2, *option)[0].code == 0  # one prompt is no batch
