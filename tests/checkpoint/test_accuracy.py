"""How far our logits are from float64, beside what float32 in transformers achieves. The one place
with tolerances."""

import json

import numpy as np
from conftest import MODEL, ROOT, invar

DATA = ROOT / "tests/accuracy/shakespeare-4m"
# Times the error of float32 in transformers. Over all prompts both are led by the rounding of
# rotary angles at late positions (5.4e-5 ours, 5.9e-5 theirs, of logits up to 12); in short prompts
# by the order of sums, where a chain of 256 is about three times less accurate than a vector
# library's lanes (4e-6 and 1.3e-6).
ALLOWED_OVERALL, ALLOWED_PER_PROMPT = 2, 4


def reference():
    about = json.loads(DATA.with_suffix(".json").read_text())
    rows = np.fromfile(DATA.with_suffix(".bin"), "<f8").reshape(-1, about["vocab_size"])
    for prompt in about["prompts"]:
        n = len(prompt["positions"])
        yield prompt, rows[:n]
        rows = rows[n:]
    assert len(rows) == 0


def test_logits_against_float64(tmp_path):
    invar("export", "--model-name", MODEL, "-o", tmp_path)
    plan = tmp_path / "plan.invar"
    invar("compile", tmp_path / "model.onnx", "-o", plan)
    all_ours, all_theirs = [], []
    for prompt, exact in reference():
        out = tmp_path / "logits.bin"
        invar(
            "infer", plan, "--tokens", ",".join(map(str, prompt["tokens"])), "--logits-output", out
        )
        ours = np.fromfile(out, "<f4").reshape(len(prompt["tokens"]), exact.shape[1])[
            prompt["positions"]
        ]
        error, theirs = np.abs(ours - exact), prompt["transformers_fp32_max_error"]
        print(
            f"{len(prompt['tokens'])} tokens: max error {error.max():.3g} (transformers fp32: {theirs:.3g}), "
            f"rms {np.sqrt((error**2).mean()):.3g}; logits up to {np.abs(exact).max():.3g}"
        )
        assert error.max() <= ALLOWED_PER_PROMPT * theirs
        all_ours.append(error.max())
        all_theirs.append(theirs)
    print(f"overall: max error {max(all_ours):.3g} (transformers fp32: {max(all_theirs):.3g})")
    assert max(all_ours) <= ALLOWED_OVERALL * max(all_theirs)


def test_greedy_answer_equals_transformers(tmp_path):
    greedy = json.loads(DATA.with_suffix(".json").read_text())["greedy"]
    done = invar(
        "run",
        "--model-name",
        MODEL,
        "--no-do-sample",
        "--prompt-text",
        greedy["prompt"],
        "--max-new-tokens",
        len(greedy["tokens"]),
        "--tasks-root",
        tmp_path,
        "--receipt-path",
        tmp_path / "r.json",
        "--json",
    ).json()
    assert done["tokens"] == greedy["tokens"]
    assert done["text"] == greedy["text"]
