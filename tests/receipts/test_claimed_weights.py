"""The weights of a receipt: a verification hashes them once, against the claimed digests. What is
claimed wrongly is found all the same, and named with the digest of the bytes."""

import hashlib
import json
import shutil

import pytest
from conftest import MODEL, SHARDS, invar, safetensors_header
from receipt_oracle import merkle_root, put, reseal, sha256

NUMERICS = ("fp32", "exact16")


@pytest.fixture(scope="module", params=NUMERICS)
def honest(generate, request):
    return generate("--numerics", request.param, tokens=5)


def forged(honest, tmp_path, name, digest):
    """The receipt with another digest of the first tensor, all its own hashes fitting."""
    first = honest["content"]["model"]["tensors"][0] | {"sha256": digest}
    tensors = [first, *honest["content"]["model"]["tensors"][1:]]
    content = put(honest["content"], ("model", "tensors"), tensors)
    content["model"]["weights"] = merkle_root(
        sha256(f"{json.dumps(t['name'])} {t['dtype']} {t['shape']} sha256 {t['sha256']}\n".encode())
        for t in sorted(tensors, key=lambda t: t["name"])
    ).hex()
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(reseal(content)))
    return path


def test_a_forged_digest(honest, tmp_path):
    tensor = honest["content"]["model"]["tensors"][0]
    lie = forged(honest, tmp_path, "lie", "0" * 64)
    done = invar("verify", lie, "--model-name", MODEL, code=1)
    assert f"model.tensors[{tensor['name']}].sha256" in done.text
    assert tensor["sha256"] in done.text and "0" * 64 in done.text


def test_the_honest_receipt_beside_forged_ones(honest, tmp_path):
    lies = [forged(honest, tmp_path, f"lie{i}", str(i) * 64) for i in range(2)]
    order = [lies[0], honest["receipt"], lies[1]]
    done = invar("verify", *order, "--model-name", MODEL, code=1)
    verdicts = [line for line in done.text.split("\n") if "VERIFIED" in line]
    assert [line.startswith("NOT VERIFIED") for line in verdicts[:3]] == [True, False, True]


def test_another_byte_of_the_weights(honest, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    path = model / SHARDS[2]
    header, begin = safetensors_header(path)
    tensor, (a, b) = next((k, v["data_offsets"]) for k, v in header.items() if "data_offsets" in v)
    content = bytearray(path.read_bytes())
    content[begin + a] ^= 1
    path.write_bytes(content)
    found = hashlib.sha256(content[begin + a : begin + b]).hexdigest()
    done = invar("verify", honest["receipt"], "--model-name", model, code=1)
    assert f", this machine computes {found}" in done.text
