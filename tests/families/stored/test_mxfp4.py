"""gpt-oss with experts in MXFP4 is the checkpoint of the same numbers in bf16."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import invar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from random_checkpoint import values  # noqa: E402

HERE = Path(__file__).resolve().parents[1]
LINES = (HERE / "vectors.jsonl").read_text().splitlines()
VECTOR = next(v for v in map(json.loads, LINES) if v["name"] == "gpt_oss")
INNER = 64  # a multiple of 32, the elements of a block
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def bf16(x):
    words = x.astype("<f4").view("<u4")
    assert (words & 0xFFFF == 0).all(), "not exact"
    return (words >> 16).astype("<u2").tobytes()


def write(folder, tensors, vector=None, **settings):
    """`tensors`: name -> (dtype, shape, bytes)."""
    folder.mkdir(parents=True)
    own = {**VECTOR["config"], "intermediate_size": INNER}
    config = {**(vector["config"] if vector else own), **settings}
    (folder / "config.json").write_text(json.dumps(config))
    at, header = 0, {}
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    data = b"".join(t[2] for t in tensors.values())
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def checkpoint():
    """-> (tensors with MXFP4, the same with bf16)."""
    packed, plain = {}, {}
    random = np.random.default_rng(1)
    for number, (name, shape) in enumerate(VECTOR["shapes"].items()):
        shape = [2 * INNER if n == 88 else INNER if n == 44 else n for n in shape]
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            data = values(name, shape, 1, number).astype("<f4").tobytes()
            packed[name] = plain[name] = ("F32", shape, data)
            continue
        experts, inside, outside = shape
        blocks = random.integers(0, 256, (experts, outside, inside // 32, 16), dtype=np.uint8)
        scales = random.integers(121, 125, blocks.shape[:3], dtype=np.uint8)
        codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:3], 32)
        numbers = np.ldexp(E2M1[codes], scales[..., None].astype(int) - 127)
        numbers = numbers.reshape(experts, outside, inside).transpose(0, 2, 1)
        packed[name + "_blocks"] = ("U8", list(blocks.shape), blocks.tobytes())
        packed[name + "_scales"] = ("U8", list(scales.shape), scales.tobytes())
        plain[name] = ("BF16", shape, bf16(np.ascontiguousarray(numbers)))
    return packed, plain


MXFP4 = {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": []}}


def test_the_numbers_are_those_of_bf16(tmp_path):
    packed, plain = checkpoint()
    answers, programs = [], []
    for name, tensors, settings in (("packed", packed, MXFP4), ("plain", plain, {})):
        folder = tmp_path / name
        write(folder / "model", tensors, **settings)
        invar("export", "--model-name", folder / "model", "-o", folder)
        made = invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
        programs.append(next(x for x in made.text.splitlines() if "program" in x))
        run = ["--tokens", "1,5,9,2", "--logits-output", folder / "logits.bin"]
        invar("infer", folder / "plan.invar", *run)
        answers.append((folder / "logits.bin").read_bytes())
    assert answers[0] == answers[1] and len(answers[0]) > 0
    assert programs[0] == programs[1]


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
TOKENIZER = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": BYTES,
    "decoder": BYTES,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
}


def test_experts_stay_packed_in_the_cache(tmp_path):
    packed, plain = checkpoint()
    answers = []
    for name, tensors, settings in (("packed", packed, MXFP4), ("plain", plain, {})):
        folder = tmp_path / name
        write(folder / "model", tensors, **settings)
        (folder / "model/tokenizer.json").write_text(json.dumps(TOKENIZER))
        run = ["--prompt-text", "abbab", "--max-new-tokens", 3, "--no-do-sample"]
        invar("run", "--model-name", folder / "model", "--task-dir", folder / "task",
              "--receipt-path", folder / "r.json", *run)  # fmt: skip
        answers.append(json.loads((folder / "r.json").read_text())["output"])
    assert (tmp_path / "packed/task/packed-weights.txt").exists()
    assert not (tmp_path / "packed/task/unpacked-weights.bin").exists()
    assert answers[0] == answers[1]


def refused(tmp_path, tensors, code, **settings):
    write(tmp_path / "model", tensors, **settings)
    done = invar("export", "--model-name", tmp_path / "model", "-o", tmp_path / "out", code=code)
    assert not (tmp_path / "out/model.onnx").exists()
    return done.errors[0]


def test_another_quantization_is_refused(tmp_path):
    packed, _ = checkpoint()
    other = {"quantization_config": {"quant_method": "awq"}}
    assert "quantization_config" in refused(tmp_path, packed, 3, **other)


@pytest.mark.parametrize("scale", [0, 255])
def test_a_scale_beyond_bf16_is_refused(scale, tmp_path):
    packed, _ = checkpoint()
    name = next(n for n in packed if n.endswith("_scales"))
    dtype, shape, data = packed[name]
    packed[name] = (dtype, shape, data[:-1] + bytes([scale]))
    assert "bf16" in refused(tmp_path, packed, 3, **MXFP4)


def test_blocks_without_scales_are_bad(tmp_path):
    packed, _ = checkpoint()
    name = next(n for n in packed if n.endswith("_scales"))
    assert name in refused(tmp_path, {k: v for k, v in packed.items() if k != name}, 2, **MXFP4)
