"""Checkpoints that are damaged, or outside the guarantee: one clear line, the right exit code."""

import json
import struct

import pytest
from conftest import ROOT, SHARDS, refused, refused_any, rewrite_header


@pytest.mark.parametrize("keep", [0, 4, 8, 100, -2, -100000])
def test_truncated_safetensors(model, run_on, keep):
    file = model / SHARDS[1]
    data = file.read_bytes()
    file.write_bytes(data[:keep])
    refused(*run_on(model), names=[SHARDS[1]])


def first_tensor(change):
    def f(header):
        name = sorted(k for k in header if k != "__metadata__")[0]
        change(header[name])
        return header

    return f


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.update(data_offsets=[e["data_offsets"][0], 1 << 40]),
        lambda e: e.update(data_offsets=[e["data_offsets"][1], e["data_offsets"][0]]),
        lambda e: e.update(data_offsets=[-1, 5]),
        lambda e: e.update(data_offsets=[1 << 63, (1 << 63) + 8]),
        lambda e: e.update(data_offsets=[e["data_offsets"][0] + 2, e["data_offsets"][1] + 2]),
        lambda e: e.update(data_offsets="here"),
        lambda e: e.update(shape=[1 << 62, 1 << 62]),
        lambda e: e.update(shape=[-1]),
        lambda e: e.update(dtype="F13"),
        lambda e: e.pop("shape"),
    ],
    ids=[
        "beyond the file",
        "backwards",
        "negative",
        "2^63",
        "shifted",
        "no list",
        "huge shape",
        "negative shape",
        "dtype",
        "no shape",
    ],
)
def test_wrong_tensor_entries(model, run_on, change):
    rewrite_header(model / SHARDS[0], first_tensor(change))
    done = refused_any(*run_on(model))
    assert SHARDS[0] in done.text, done.text


@pytest.mark.parametrize("size", [1 << 60, (1 << 64) - 1, 100_000_001, 1 << 31])
def test_enormous_header(model, run_on, size):
    file = model / SHARDS[2]
    file.write_bytes(struct.pack("<Q", size) + file.read_bytes()[8:])
    refused(*run_on(model), names=[SHARDS[2]])


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"a": 1}', b"\xff\xff", b"[" * 100_000], ids=repr
)
def test_header_that_is_not_one(model, run_on, text):
    (model / SHARDS[0]).write_bytes(struct.pack("<Q", len(text)) + text)
    refused(*run_on(model), names=[SHARDS[0]])


def test_overlapping_tensors(model, run_on):
    def overlap(header):
        same = [k for k in sorted(header) if k != "__metadata__" and header[k]["shape"] == [256]][
            :2
        ]
        header[same[0]]["data_offsets"] = header[same[1]]["data_offsets"]
        return header

    rewrite_header(model / SHARDS[0], overlap)
    refused(*run_on(model), names=[SHARDS[0]])


def test_missing_shard(model, run_on):
    (model / SHARDS[1]).unlink()
    refused(*run_on(model), names=[SHARDS[1]])


def test_missing_tensor(model, run_on):
    rewrite_header(
        model / SHARDS[0],
        lambda h: {k: v for k, v in h.items() if k != "model.embed_tokens.weight"},
    )
    done = refused_any(*run_on(model))
    assert "embed_tokens" in done.text or SHARDS[0] in done.text


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors.index.json"])
@pytest.mark.parametrize(
    "text",
    [None, b"", b"{", b"[]", b"\x00\x01", b"{}"],
    ids=["missing", "empty", "cut", "list", "binary", "object"],
)
def test_damaged_json(model, run_on, name, text):
    if text is None:
        (model / name).unlink()
        if name.startswith("model."):
            for s in SHARDS:
                (model / s).unlink()  # without both there are no weights at all
            name = "safetensors"
    else:
        (model / name).write_bytes(text)
    done = refused_any(*run_on(model))
    assert name in done.text, done.text


@pytest.mark.parametrize(
    "name",
    ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"],
)
def test_json_that_nests(model, run_on, name):
    (model / name).write_text('{"x":' + "[" * 100_000 + "]" * 100_000 + "}")
    refused(*run_on(model), names=[name, "nested"])


@pytest.mark.parametrize(
    "change,name",
    [
        ({"architectures": ["RwkvForCausalLM"], "model_type": "rwkv"}, "rwkv"),
        ({"hidden_act": "relu"}, "relu"),
        (
            {"rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0}},
            "longrope",
        ),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"hidden_size": -256}, "hidden_size"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps"),
        ({"vocab_size": 4096}, "embed_tokens"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quant"),
    ],
)
def test_config_outside_the_guarantee(model, run_on, change, name):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **change}))
    done = refused_any(*run_on(model))
    assert name.lower() in done.text.lower(), done.text


@pytest.mark.parametrize(
    "config,name",
    [
        (
            {"architectures": ["DbrxForCausalLM"], "model_type": "dbrx", "max_seq_len": 1024},
            "DbrxForCausalLM",
        ),
        ({"model_type": "prophetnet"}, "prophetnet"),
        ({"model_type": None}, "model_type"),
        ({}, "model_type"),
        (
            {
                "architectures": ["DogeForCausalLM"],
                "model_type": "doge",
                "max_position_embeddings": 64,
            },
            "DogeForCausalLM",
        ),
        (
            {"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"},
            "LlamaForSequenceClassification",
        ),
    ],
)
def test_architecture_is_refused_before_anything_else(model, run_on, tmp_path, config, name):
    """Whatever else it lacks, in every command that opens more than its tokenizer."""
    (model / "config.json").write_text(json.dumps(config))
    (model / "tokenizer.json").write_text("{}")
    receipt = tmp_path / "r.json"
    receipt.write_bytes((ROOT / "tests/golden/romeo.receipt.json").read_bytes())
    for command in (
        run_on(model),
        ["export", "--model-name", model, "-o", tmp_path / "out"],
        ["verify", receipt, "--model-name", model],
    ):
        refused(*command, code=3, names=["config.json", name])


def test_context_of_a_checkpoint(model, run_on):
    config = json.loads((model / "config.json").read_text())
    for value, shown in [
        (0, "0"),
        (-5, "-5"),
        ("512", '"512"'),
        (512.5, "512.5"),
        (1 << 31, "2147483648"),
        (1 << 63, "9223372036854775808"),
    ]:
        (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": value}))
        refused(*run_on(model), names=["max_position_embeddings", shown])
    for absent in (
        {**config, "max_position_embeddings": None},
        {k: v for k, v in config.items() if k != "max_position_embeddings"},
    ):
        (model / "config.json").write_text(json.dumps(absent))  # transformers' default, 2048
        args = run_on(model)
        args[args.index(4)] = 2046
        refused(*args, names=["2048", "--max-new-tokens 2045"])


def test_tokenizer_outside_the_guarantee(model, run_on):
    text = json.loads((model / "tokenizer.json").read_text())
    text["model"]["type"] = "Trigram"
    (model / "tokenizer.json").write_text(json.dumps(text))
    refused(*run_on(model), code=3, names=["Trigram"])
