"""invar run --speculate: whatever drafts tokens, answers and receipts are, to the byte, those
without. src/generate/speculate/drafter_test.cc has drafts that are always right or wrong."""

import json
import shutil
import sys

import pytest
from conftest import MODEL, ROOT, execute, invar, refused

sys.path.insert(0, str(ROOT / "tests/families"))
from test_families import with_tokenizer  # noqa: E402

TEXT = "ROMEO:\nBut soft, what light through yonder window breaks?\n" * 3
SAMPLED = ["--temperature", "0.8", "--seed", 3]


@pytest.fixture
def run(tasks, tmp_path):
    """run(*options) -> the receipt's bytes, and the answer with its counts."""

    def f(*options, model=MODEL, text=TEXT):
        path = tmp_path / "r.json"
        command = ["run", "--model-name", model, "--tasks-root", tasks, "--prompt-text", text]
        done = invar(*command, "--receipt-path", path, "--json", *options)
        return path.read_bytes(), done.json()

    return f


@pytest.mark.parametrize(
    "options",
    [
        ["--no-do-sample"],
        SAMPLED,
        [*SAMPLED, "--repetition-penalty", "1.2", "--no-repeat-ngram-size", 6],
        ["--no-do-sample", "--stop", "light", "--stop", "breaks?\nBut"],
        [*SAMPLED, "--numerics", "exact16", "--prefill-chunk", 7],
        ["--no-do-sample", "--threads", 1, "--no-kv-cache"],
        ["--no-do-sample", "--n-partitions", 2],
    ],
)
def test_receipts_are_those_without_drafts(run, options):
    options = [*options, "--max-new-tokens", 60]
    receipt, plain = run(*options)
    assert "drafted" not in plain
    for how in ("prompt", MODEL):
        same, answer = run(*options, "--speculate", how)
        assert same == receipt, how
        assert 0 <= answer["accepted"] <= answer["drafted"]
        # Its own model draws the same tokens, where the computation is the same.
        if how == MODEL and "exact16" not in options:
            assert answer["accepted"] == answer["drafted"] > len(answer["tokens"]) / 2


@pytest.mark.parametrize("name", ["qwen3_next", "falcon_h1", "lfm2"])
def test_models_with_states_of_fixed_size(run, name, tmp_path):
    target = with_tokenizer(name, tmp_path / "target")
    draft = with_tokenizer("qwen3_5", tmp_path / "draft")
    for options in (["--no-do-sample"], SAMPLED, ["--no-do-sample", "--prefill-chunk", 5]):
        options = [*options, "--max-new-tokens", 50]
        receipt, _ = run(*options, model=target)
        for how in ("prompt", draft, target):
            same, answer = run(*options, "--speculate", how, model=target)
            assert same == receipt, (how, options)
        assert answer["accepted"] == answer["drafted"] > 0
    assert "VERIFIED" in invar("verify", tmp_path / "r.json", "--model-name", target).text


def test_a_conversation_keeps_its_receipts(tasks, model, tmp_path):
    (model / "chat_template.jinja").write_bytes((ROOT / "tests/chat/templates/chatml.jinja").read_bytes())
    made = []
    for number, how in enumerate(([], ["--speculate", "prompt"], ["--speculate", model])):
        folder = tmp_path / str(number)
        command = ["chat", "--model-name", model, "--tasks-root", tasks, "--receipts", folder]
        command += ["--date", "2026-01-02T03:04:05", "--context", 400, "--max-new-tokens", 20, *how]
        invar(*command, stdin=b"Speak, speak.\nSpeak, speak.\n")
        made.append([(folder / f"turn-{n}.json").read_bytes() for n in (1, 2)])
    assert made[0] == made[1] == made[2]


def test_what_has_no_drafts_is_refused_by_name(tasks, tmp_path, model):
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('"a"\n"b"\n')
    command = ["run", "--model-name", MODEL, "--tasks-root", tasks, "--receipt-path", tmp_path / "r.json"]
    batch = [*command, "--prompt-file", prompts, "--batch-size", 2, "--speculate", "prompt"]
    refused(execute(batch), 3, "--speculate prompt", "--batch-size")
    text = [*command, "--prompt-text", "x"]
    refused(execute([*text, "--speculate", tmp_path / "none"]), 2, "--speculate", "none")
    config = json.loads((model / "tokenizer.json").read_text())
    config["added_tokens"][0]["content"] = "<|other|>"
    (model / "tokenizer.json").write_text(json.dumps(config))
    refused(execute([*text, "--speculate", model]), 3, "--speculate", "vocabulary", "token 0")
    shutil.rmtree(model)
    set_ = ["--operation-set", "deterministic", "--speculate", "prompt"]
    refused(execute([*text, *set_]), 3, "--speculate prompt", "reproducible")
    # With one at a time each prompt has its drafts.
    done = invar(*batch[:-4], "--speculate", "prompt")
    assert done.text.count("drafted tokens accepted") == 2


def test_the_package_has_the_same_answers(tmp_path):
    import invar as invar_package

    plain = invar_package.generate(MODEL, TEXT, max_new_tokens=40)
    drafted = invar_package.generate(MODEL, TEXT, max_new_tokens=40, speculate="prompt")
    assert plain.receipt == drafted.receipt
