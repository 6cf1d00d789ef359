"""`invar verify` of several receipts, and of some steps of one."""

import json

from conftest import MODEL, invar, verdict_rows
from receipt_oracle import put, reseal


def test_a_row_has_every_caveat_of_the_single_verdict(generate, answer, tmp_path):
    """The table of several receipts once said VERIFIED alone."""
    key = tmp_path / "k.key"
    invar("keygen", key)
    later = generate("--previous", answer["receipt"], "--sign", key, "--seed", 6, tokens=4)[
        "receipt"
    ]
    plan = tmp_path / "task"
    run = ["run", "--model-name", MODEL, "--prompt-text", "x", "--max-new-tokens", 1]
    invar(*run, "--task-dir", plan, "--receipt-path", tmp_path / "x.json")
    given = ["--model-name", MODEL, "--plan", plan / "plan.invar"]
    for how, word, known in (
        ([], "VERIFIED", {"folder", "named", "weights", "previous", "signed"}),
        (given, "VERIFIED BY A GIVEN PLAN", {"named", "weights", "program", "previous", "signed"}),
        (["--spot", 1, "--salt", "s"], "SPOT CHECKED",
         {"folder", "named", "weights", "steps", "missed", "previous", "signed"}),
    ):  # fmt: skip
        single = invar("verify", later, *how, "--json").json()
        assert single["verdict"] == word and set(single["caveats"]) == known
        table = invar("verify", later, later, *how).out.decode()
        assert table.startswith(word + " ")
        for what in known:
            assert f"\n  {what:<9} {single['compared'][what]}\n" in table, what
        assert table.count("\n  also ") == 1  # the second says nothing new
        whole = invar("verify", later, later, *how, "-v").out.decode()
        assert whole.count(invar("verify", later, *how).out.decode()) == 2
    # Where the folder and the turn before are given and the key was asked for, less is left open.
    done = invar("verify", answer["receipt"], later, "--model-name", MODEL)
    assert "\n  previous" in done.text and "\n  folder" not in done.text
    done = invar("validate", later, later, "--require-key", f"{key}.pub")
    assert "\n  note " in done.text and "\n  signed" not in done.text


def test_several_receipts_are_verified_in_one_load(generate, answer, tmp_path):
    other = generate("--seed", 5, tokens=8)["receipt"]
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(reseal(put(answer["content"], ("output", "logits", 2), "0" * 64))))
    junk = tmp_path / "junk.json"
    junk.write_text("{}")
    done = invar("verify", answer["receipt"], other)
    lines = verdict_rows(done)
    assert [line.split()[0] for line in lines] == ["VERIFIED", "VERIFIED", "2"]
    assert answer["receipt_hash"] in lines[0] and lines[2] == "2 of 2 hold"
    assert done.text.count("compile ") == 1 and done.text.count("load ") == 1
    lines = verdict_rows(invar("verify", other, wrong, answer["receipt"], code=1))
    assert [line[:12] for line in lines[:3]] == ["VERIFIED    ", "NOT VERIFIED", "VERIFIED    "]
    assert "output.logits[2]" in lines[1] and lines[3] == "2 of 3 hold"
    for command in ("verify", "validate"):
        lines = verdict_rows(invar(command, other, junk, wrong, code=2))
        assert lines[1].startswith("REFUSED ") and "not a receipt" in lines[1]
        objects = [
            json.loads(line)
            for line in invar(command, other, junk, "--json", code=2).out.decode().splitlines()
        ]
        assert [o["ok"] for o in objects] == [True, False] and objects[1]["exit_code"] == 2


def test_some_steps(answer, tmp_path):
    steps = len(answer["tokens"])
    done = invar("verify", answer["receipt"], "--spot", 4, "--salt", "pepper").text
    assert "SPOT CHECKED" in done and f"4 of {steps} recomputed" in done and "pepper" in done
    assert f"probability {steps - 4}/{steps}" in done
    salts = [
        invar("verify", answer["receipt"], "--spot", 1, "--json").json()["compared"]["missed"]
        for _ in range(2)
    ]
    assert salts[0] != salts[1]
    done = invar("verify", answer["receipt"], "--steps", "3:9").text
    assert "SPOT CHECKED" in done and f"6 of {steps} recomputed" in done
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(reseal(put(answer["content"], ("output", "logits", 7), "0" * 64))))
    assert "output.logits[7]" in invar("verify", path, "--steps", "3:9", code=1).text
    assert "SPOT CHECKED" in invar("verify", path, "--steps", "8:20").text
    assert "output.logits[7]" in invar("verify", path, "--spot", steps, code=1).text
    for options in (["--steps", "9:3"], ["--steps", f"0:{steps + 1}"], ["--spot", steps + 1]):
        done = invar("verify", path, *options, code=2)  # before a model is looked for
        assert f"{path}: " in done.errors[0] and "answer" in done.errors[0]
        assert "compile" not in done.text
    for options in (["--steps", "3"], ["--steps", ":"], ["--steps", "a:b"], ["--salt", "x"]):
        invar("verify", path, *options, code=2)
    invar("verify", path, "--spot", 2, "--steps", "0:1", code=2)
    assert "--salt" in invar("verify", path, "--spot", 2, "--salt", "", code=2).errors[0]
