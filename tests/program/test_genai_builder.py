"""Whole graphs of onnxruntime-genai's builder, from tiny models with random weights: `invar run`
chooses the tokens of transformers, or where weights are packed or of 16 bits those of onnxruntime.
Tier 3 runs them: tests/requirements-all.txt has the builder."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from conftest import MODEL, ROOT, invar

if not all(map(find_spec, ("torch", "transformers", "onnxruntime_genai", "onnxruntime"))):
    pytest.skip(
        "needs torch, transformers, onnxruntime and onnxruntime_genai (tests/requirements-all.txt)",
        allow_module_level=True,
    )
import onnxruntime  # noqa: E402
import torch  # noqa: E402

sys.path.insert(0, str(ROOT / "tools/families"))
from tiny_models import config_of, model_of  # noqa: E402

PROMPT, NEW = "ROMEO: What light through yonder window", 12


def built(kind, precision, folder, settings):
    """-> (the model, the builder's folder)."""
    model = model_of(config_of(kind, **settings))
    model.save_pretrained(folder / "model")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / file, folder / "model")
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", folder / "model"]
    command += ["-o", folder / "out", "-p", precision, "-e", "cpu", "-c", folder / "cache"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return model, folder / "out"


def of_transformers(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0, -1].numpy()


def of_runtime(session, tokens, head_dim):
    """Of the whole prefix, without a past."""
    kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    given = {
        "input_ids": np.array([tokens]),
        "attention_mask": np.ones((1, len(tokens)), np.int64),
        "position_ids": np.arange(len(tokens))[None],
    }
    sizes = {"batch_size": 1, "kv_cache_dim": head_dim}
    for i in session.get_inputs():
        if i.name not in given:
            shape = [sizes.get(d, 0) if isinstance(d, str) else d for d in i.shape]
            given[i.name] = np.zeros(shape, kinds[i.type])
    named = {i.name: given[i.name] for i in session.get_inputs()}
    return session.run(["logits"], named)[0][0, -1]


@pytest.mark.parametrize(
    "kind,precision,settings",
    [
        ("llama", "fp32", {}),
        ("qwen3", "fp32", {}),
        ("gemma2", "fp32", {}),
        ("gpt_oss", "fp32", {}),
        ("llama", "int4", {}),
        ("qwen3", "int4", {}),
        ("olmo", "int4", {"hidden_size": 64}),
        ("smollm3", "int4", {"hidden_size": 64}),
        ("lfm2", "int4", {"hidden_size": 64}),
        ("llama", "fp16", {}),
        ("qwen3", "fp16", {}),
        ("lfm2", "fp16", {"hidden_size": 64}),
        ("gpt_oss", "fp16", {}),
        ("gemma2", "fp16", {}),
    ],
)
def test_a_graph_of_the_builder_answers(tmp_path, kind, precision, settings):
    model, folder = built(kind, precision, tmp_path, settings)
    run = ["run", "--model-name", folder, "--prompt-text", PROMPT, "--no-do-sample"]
    run += ["--max-new-tokens", NEW, "--receipt-path", tmp_path / "r.json"]
    answers = set()
    for way in ([], ["--isa", "scalar", "--prefill-chunk", 3]):
        told = invar(*run, "--tasks-root", tmp_path / "tasks", *way)
        assert b"whole prefix" not in told.err
        receipt = json.loads((tmp_path / "r.json").read_text())
        answers.add(receipt["receipt_hash"])
    assert len(answers) == 1
    if precision != "fp32":
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    tokens = list(receipt["input"]["tokens"])
    for chosen in receipt["output"]["tokens"]:
        logits = of_transformers(model, tokens)
        if precision != "fp32":
            logits = of_runtime(session, tokens, 16)
        assert chosen == logits.argmax()
        tokens.append(chosen)
    assert "VERIFIED" in invar("verify", tmp_path / "r.json", "--model-name", folder).text
