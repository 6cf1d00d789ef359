"""--progress json: every line on standard error is an event of
docs/reference/events.schema.json."""

import json
import shutil

import jsonschema
import pytest
from conftest import MODEL, ROOT, execute, invar

SCHEMA = json.loads((ROOT / "docs/reference/events.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def events(done):
    """The events of a finished program, each checked against the schema."""
    lines = done.err.decode("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    for event in found:
        VALIDATOR.validate(event)
    return found


def of(found, kind):
    return [e for e in found if e["event"] == kind]


def run_args(tmp_path, *more):
    return [
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        8,
        "--receipt-path",
        tmp_path / "r.json",
        *more,
    ]


def test_the_schema_refuses_what_is_none():
    for wrong in ({}, {"event": "phase"}, {"event": "text", "prompt": -1, "text": ""}):
        assert not VALIDATOR.is_valid(wrong)
    assert not VALIDATOR.is_valid({"event": "phase", "phase": "load", "state": "running"})


@pytest.mark.parametrize("before", [True, False])
def test_run(tmp_path, before):
    args = run_args(tmp_path)
    option = ["--progress", "json"]
    done = invar(*(option + args if before else args + option))
    found = events(done)
    ended = [e["phase"] for e in of(found, "phase") if e["state"] == "done"]
    assert ended[-4:] == ["load", "prefill", "decode", "seal"]
    last = [e for e in of(found, "phase") if e["state"] == "running" and e["phase"] == "decode"][-1]
    assert (last["done"], last["total"], last["unit"]) == (8, 8, "tokens")
    text = "".join(e["text"] for e in of(found, "text"))
    assert text + "\n" == done.out.decode()
    (receipt,) = of(found, "receipt")
    assert receipt["hash"] == json.loads((tmp_path / "r.json").read_text())["receipt_hash"]
    assert receipt["path"] == str(tmp_path / "r.json")


def test_a_long_prompt_reports_its_chunks(tmp_path):
    args = run_args(tmp_path, "--prefill-chunk", 1, "--progress", "json")
    args[args.index("ROMEO:")] = "Now is the winter of our discontent " * 12
    prefill = [e for e in of(events(invar(*args)), "phase") if e["phase"] == "prefill"]
    reached = [e["done"] for e in prefill if e["state"] == "running"]
    assert reached == sorted(reached) and reached[-1] == prefill[-2]["total"] > 50


def test_several_prompts(tmp_path):
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('"ROMEO:"\n"JULIET:"\n')
    answers = {}
    for size in (1, 2):
        found = events(
            invar(
                *["run", "--model-name", MODEL, "--prompt-file", prompts, "--max-new-tokens", 8],
                *["--receipt-path", tmp_path / "r.json", "--batch-size", size],
                *["--progress", "json"],
            )
        )
        assert len(of(found, "receipt")) == 2
        answers[size] = [
            "".join(e["text"] for e in of(found, "text") if e["prompt"] == i) for i in (0, 1)
        ]
    assert answers[1] == answers[2] and all(answers[1])


def test_verdicts(answer, tmp_path):
    receipt = answer["receipt"]
    checked = ["--model-name", MODEL, "--progress", "json"]
    (verdict,) = of(events(invar("verify", receipt, *checked)), "verdict")
    assert verdict["status"] == "verified" and verdict["receipt"] == str(receipt)
    (verdict,) = of(events(invar("validate", receipt, "--progress", "json")), "verdict")
    assert verdict["status"] == "valid"
    changed = json.loads(receipt.read_text())
    changed["output"]["tokens"][0] += 1
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(changed))
    done = execute(["verify", bad, receipt, tmp_path / "none.json", *checked])
    found = events(done)
    assert done.code == 2
    assert [v["status"] for v in of(found, "verdict")] == ["failed", "verified"]
    assert of(found, "verdict")[0]["detail"]
    (error,) = of(found, "error")
    assert error["code"] == 2 and "none.json" in error["message"]
    recomputed = [e for e in of(found, "phase") if e["phase"] == "recompute"]
    assert [e["state"] for e in recomputed if e["state"] != "running"] == ["started", "done"]


def test_errors_of_the_parse():
    for args in (
        ["run", "--progress", "json"],
        ["--progress=json"],
        ["--progress", "json", "walk"],
    ):
        done = execute(args)
        (error,) = events(done)
        assert done.code == 2 and error["kind"] == "bad input" and error["hint"]


def test_phases_of_disputes(tmp_path, answer):
    receipt, checked = answer["receipt"], ["--model-name", MODEL, "--progress", "json"]
    done = of(events(invar("trace", receipt, "-o", tmp_path / "t.json", *checked)), "phase")
    assert [e["phase"] for e in done if e["state"] == "done"][-2:] == ["load", "recompute"]
    reached = [e for e in done if e["phase"] == "recompute" and e["state"] == "running"][-1]
    assert reached["done"] == reached["total"] and reached["unit"] == "tokens"
    invar("trace", receipt, "--model-name", MODEL, "-o", tmp_path / "case/a/1.json")
    shutil.copytree(tmp_path / "case/a", tmp_path / "case/b")
    done = of(events(invar("dispute", tmp_path / "case", "--receipt", receipt, *checked)), "phase")
    assert [e["phase"] for e in done if e["state"] == "done"][-1] == "judge"
    question = tmp_path / "case/question.json"
    done = events(
        invar("answer", question, "--receipt", receipt, "-o", tmp_path / "case/b/2.json", *checked)
    )
    assert [e["phase"] for e in of(done, "phase") if e["state"] == "done"][-1] == "recompute"
    done = events(invar("diff", receipt, *checked))
    assert [e["phase"] for e in of(done, "phase") if e["state"] == "done"][-1] == "recompute"
