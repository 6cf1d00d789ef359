"""Receipts of packed checkpoints hold for the independent implementation: one of small floats with
scales of blocks, one of integers whose columns name their groups (weights.17, weights.20)."""

import json
import random
import shutil
import struct
import sys

import pytest
from conftest import MODEL, ROOT, execute

sys.path.insert(0, str(ROOT / "tests/independent"))
from pages.files.checkpoint import read_safetensors  # noqa: E402
from pages.model import Model  # noqa: E402


def scales(pick, count, form):
    return struct.pack(f"<{count}{form}", *(pick.uniform(0.5, 1.5) * 2**-13 for _ in range(count)))


def fp8(pick, rows, columns):
    codes = bytes(c if c & 127 != 127 else 48 for c in pick.randbytes(rows * columns))
    blocks = [-(-rows // 128), -(-columns // 128)]
    return {
        "weight": ("F8_E4M3", [rows, columns], codes),
        "weight_scale_inv": ("F32", blocks, scales(pick, blocks[0] * blocks[1], "f")),
    }


def gptq(pick, rows, columns):
    groups = columns // 64
    order = [k // 64 for k in range(columns)]
    pick.shuffle(order)
    zeros = bytes(pick.randrange(15) | pick.randrange(15) << 4 for _ in range(groups * rows // 2))
    return {
        "qweight": ("I32", [columns // 8, rows], pick.randbytes(rows * columns // 2)),
        "qzeros": ("I32", [groups, rows // 8], zeros),
        "scales": ("F16", [groups, rows], scales(pick, groups * rows, "e")),
        "g_idx": ("I32", [columns], struct.pack(f"<{columns}i", *order)),
    }


KINDS = {
    "fp8": (fp8, {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True}),
}


def write(folder, kind):
    """A layer of the model that ships, its matrices random ones of this kind."""
    pack, settings = KINDS[kind]
    pick = random.Random(kind)
    header, data = {}, b""
    for name, t in sorted(p for f in MODEL.glob("*.safetensors") for p in read_safetensors(f)):
        if ".layers." in name and ".layers.0." not in name:
            continue
        base = name.removesuffix("weight")
        parts = (
            {base + p: v for p, v in pack(pick, *t[1]).items()}
            if name.endswith("proj.weight")
            else {name: t}
        )
        for part, (dtype, shape, raw) in parts.items():
            place = [len(data), len(data) + len(raw)]
            header[part] = {"dtype": dtype, "shape": shape, "data_offsets": place}
            data += raw
    folder.mkdir()
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(MODEL / file, folder)
    config = json.loads((MODEL / "config.json").read_text())
    config |= {"num_hidden_layers": 1, "quantization_config": settings}
    (folder / "config.json").write_text(json.dumps(config))
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + data)


@pytest.mark.parametrize("kind", KINDS)
def test_receipts_of_packed_checkpoints(kind, tmp_path):
    write(tmp_path / "m", kind)
    path = tmp_path / "r.json"
    words = ["--prompt-text", "ROMEO:", "--max-new-tokens", 8, "--receipt-path", path]
    done = execute(["run", "--model-name", tmp_path / "m", *words])
    assert done.code == 0, done.text
    receipt = json.loads(path.read_bytes())
    assert list(Model(tmp_path / "m").findings(receipt)) == []
    # A byte that is another one is found.
    file = tmp_path / "m/model.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    assert next(Model(tmp_path / "m").findings(receipt))
