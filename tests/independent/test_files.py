"""GGUF files and adapters of PEFT: their receipts are those of the independent implementation."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from conftest import MODEL, execute
from files import made_adapter, made_gguf, mutations_of_files
from pages.files.gguf_tokenizer import PATTERNS, files_of
from pages.model import Model

PAGE = Path(__file__).resolve().parents[2] / "spec/gguf.md"
PROFILES = ["fp32", "exact16"]


def receipt_of(folder, model, *options):
    path = folder / "r.json"
    done = execute(["run", "--model-name", model, "--receipt-path", path, *options])
    assert done.code == 0, done.text
    return json.loads(path.read_bytes())


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", made_gguf.TOKENIZERS)
def test_gguf_files(kind, profile, tmp_path):
    """weights.2 to weights.15: a matrix in each format, and both kinds of tokenizers."""
    path = tmp_path / f"{kind}.gguf"
    made_gguf.make(path, kind)
    receipt = receipt_of(tmp_path, path, "--numerics", profile, *mutations_of_files.GGUF_RUN)
    assert Model(path, profile).repeated(receipt) == receipt
    if profile == "fp32":
        golden = json.loads(mutations_of_files.RECEIPTS[f"gguf_{kind}"].read_bytes())
        assert receipt["receipt_hash"] == golden["receipt_hash"]


TEXTS = {  # gguf.2 to gguf.7: other keys, and tensors that are not there
    "yarn": ({
        "llama__rope__scaling__type": "yarn", "llama__rope__scaling__factor": 3.3,
        "llama__rope__scaling__original_context_length": 4096,
        "llama__rope__scaling__yarn_beta_fast": 24.0, "llama__rope__freq_base": 12345.678,
    }, ["rope_freqs.weight"]),
    "linear": ({
        "llama__rope__scaling__type": "linear", "llama__rope__scaling__factor": 2.0,
        "llama__attention__layer_norm_rms_epsilon": None,
    }, ["rope_freqs.weight"]),
    "tied": ({
        "llama__attention__layer_norm_rms_epsilon": 1e-30, "llama__rope__freq_base": 3e15,
        "tokenizer__ggml__add_bos_token": False, "tokenizer__ggml__bos_token_id": None,
        "tokenizer__ggml__pre": "smaug-bpe",
    }, ["rope_freqs.weight", "output.weight"]),
    "ends": ({
        "tokenizer__ggml__add_eos_token": True, "tokenizer__ggml__eot_token_id": 9,
        "tokenizer__ggml__pre": "qwen2", "tokenizer__chat_template": None,
        "llama__rope__scaling__type": "none", "general__alignment": 32,
    }, ["rope_freqs.weight"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_gguf_files(name, tmp_path):
    changed, without = TEXTS[name]
    made_gguf.make(tmp_path / "m.gguf", "bytes", without, **changed)
    options = ["--prompt-text", "The 1234 seas", "--max-new-tokens", 2]
    receipt = receipt_of(tmp_path, tmp_path / "m.gguf", *options)
    assert Model(tmp_path / "m.gguf").repeated(receipt) == receipt


def patterns_of_the_page():
    """gguf.8: names -> patterns, whether whole, whether begins"""
    block = PAGE.read_text("utf-8").split("```\n")[3]
    parts = dict(re.findall(r"^([A-Z]) = (.*)$", block, re.M))
    found = {}
    for line in block.split("\n\n", 1)[1].splitlines():
        if not line.startswith("  "):
            names, _, flags = line.partition(": ")
            row = []
            for name in names.split():
                found[name] = row, "whole" in flags, "begins" in flags
            continue
        text = re.sub(r"\{([CTUVW])\}", lambda m: parts[m.group(1)], line[2:])
        coded = r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})"
        row.append(re.sub(coded, lambda m: chr(int(m.group(1) or m.group(2), 16)), text))
    return found


def test_patterns_here_are_those_of_the_page():
    page = patterns_of_the_page()
    assert {n: (list(p), w, b) for n, (p, w, b) in PATTERNS.items()} == {
        n: page[n] for n in PATTERNS
    }


@pytest.mark.parametrize("name", patterns_of_the_page())
def test_patterns_of_the_page(name, tmp_path, monkeypatch):
    """The digest that receipts bind is that of the text with the patterns of each name."""
    monkeypatch.setitem(PATTERNS, name, patterns_of_the_page()[name])
    made_gguf.make(tmp_path / "m.gguf", tokenizer__ggml__pre=name)
    done = execute(["digest", tmp_path / "m.gguf", "--json"])
    keys = made_gguf.BYTES | {"tokenizer.ggml.pre": name}
    own = hashlib.sha256(files_of(keys)["tokenizer.json"]).hexdigest()
    assert json.loads(done.out)["model"]["tokenizer"] == own


@pytest.mark.parametrize("profile", PROFILES)
def test_adapters(profile, tmp_path):
    """weights.23 to weights.25: ranks and scales by patterns, roots, a tensor that is replaced."""
    made_adapter.make(tmp_path / "made")
    options = [
        "--adapter",
        tmp_path / "made",
        "--numerics",
        profile,
        *mutations_of_files.ADAPTER_RUN,
    ]
    receipt = receipt_of(tmp_path, MODEL, *options)
    assert Model(MODEL, profile, tmp_path / "made").repeated(receipt) == receipt
    if profile == "fp32":
        golden = json.loads(mutations_of_files.RECEIPTS["adapter"].read_bytes())
        assert receipt["receipt_hash"] == golden["receipt_hash"]


def test_one_scale(tmp_path):
    """weights.24: the scale of all modules is one parameter."""
    scales = {r"layers\.[13]\.mlp\.up_proj": 6, "up_proj": 12}
    made_adapter.make(tmp_path / "a", use_rslora=False, lora_alpha=8, alpha_pattern=scales)
    options = ["--adapter", tmp_path / "a", "--prompt-text", "ROMEO:", "--max-new-tokens", 2]
    receipt = receipt_of(tmp_path, MODEL, *options)
    own = Model(MODEL, adapter=tmp_path / "a")
    assert "parameter lora_scale 0x40000000\n" in own.program_text()
    assert own.repeated(receipt) == receipt
