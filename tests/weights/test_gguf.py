"""Models in GGUF files: their numbers, receipts, tokenizers and refusals (spec/weights.md)."""

import hashlib
import json
import shutil
from pathlib import Path

import gguf_files as gguf
import numpy as np
import pytest
from conftest import MODEL, cpu_isas, invar, refused

CONFIG = json.loads((MODEL / "config.json").read_text())
HEADS = {"q_proj": CONFIG["num_attention_heads"], "k_proj": CONFIG["num_key_value_heads"]}
RUN = ("--prompt-text", "ROMEO:", "--max-new-tokens", 8, "--no-do-sample")
BLOCKS = gguf.BLOCKS


def heads_of(name):
    return HEADS.get(name.split(".")[-2], 0)


def as_gguf(tensors, pre="smaug-bpe", **metadata):
    """The shipped model with these tensors of transformers as the bytes of a GGUF file."""
    stored = {}
    for name, (dtype, shape, raw) in tensors.items():
        if heads_of(name):
            raw = gguf.paired(raw, shape[0], heads_of(name))
        stored[gguf.gguf_name(name)] = (dtype, shape, raw)
    keys = {**gguf.llama_metadata(CONFIG), **gguf.byte_level_metadata(MODEL, pre), **metadata}
    return gguf.file_bytes(keys, stored)


def as_folder(folder, tensors):
    """The shipped model with these tensors as a checkpoint folder."""
    folder.mkdir()
    for file in (
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
    ):
        shutil.copy(MODEL / file, folder)
    gguf.write_safetensors(folder / "model.safetensors", tensors)
    return folder


@pytest.fixture(scope="session")
def demo():
    return gguf.read_safetensors(MODEL)


def converted(demo, dtype):
    """The shipped model in another type of floats."""
    if dtype == "BF16":
        return demo
    kind = {"F32": "<f4", "F16": "<f2"}[dtype]
    return {
        name: (dtype, shape, gguf.unpack("BF16", raw).astype(kind).tobytes())
        for name, (_, shape, raw) in demo.items()
    }


def receipt(model, path, *options):
    invar("run", "--model-name", model, *RUN, "--receipt-path", path, *options)
    return json.loads(path.read_text())


def what_was_computed(r):
    """A receipt without the names and texts of the model's files, and without what binds them."""
    others = ("receipt_hash", "digests", "model")
    out = {key: r[key] for key in r if key not in others and not key.startswith("execution")}
    same = ("weights", "tensors")
    return out, {key: r["model"][key] for key in same}


def spread(demo, rng, first):
    """The shipped model with random blocks in its matrices, each format in turn -> the tensors as a
    GGUF file has them, and the same unpacked."""
    packed, plain = {}, {}
    for name, (dtype, shape, raw) in demo.items():
        kind = BLOCKS[first % len(BLOCKS)]
        if len(shape) == 1:
            packed[name] = plain[name] = (dtype, shape, raw)
            continue
        first += 1
        if shape[-1] % gguf.TYPES[kind][1]:
            kind = "Q8_0"
        raw = gguf.random_bytes(kind, shape[0] * shape[1], rng)
        numbers = gguf.unpack(kind, raw)
        assert np.isfinite(numbers).all()
        packed[name] = (kind, shape, raw)
        plain[name] = ("F32", shape, numbers.astype("<f4").tobytes())
        if kind == "MXFP4":
            bits = numbers.view(np.uint32) >> 16
            assert ((bits << 16).view(np.float32) == numbers).all()
            plain[name] = ("BF16", shape, bits.astype("<u2").tobytes())
    assert {t[0] for t in packed.values()} >= set(BLOCKS)
    return packed, plain


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_receipts_are_those_of_the_checkpoint(dtype, demo, tmp_path):
    tensors = converted(demo, dtype)
    (tmp_path / "demo.gguf").write_bytes(as_gguf(tensors))
    ours = receipt(tmp_path / "demo.gguf", tmp_path / "a.json")
    theirs = receipt(as_folder(tmp_path / "m", tensors), tmp_path / "b.json")
    assert what_was_computed(ours) == what_was_computed(theirs)
    assert ours["model"]["name"] == "demo.gguf"
    if dtype == "BF16":
        assert theirs["model"]["weights"] == receipt(MODEL, tmp_path / "c.json")["model"]["weights"]
        invar("verify", tmp_path / "a.json")  # the file of the run is found again
        invar("verify", tmp_path / "a.json", "--model-name", tmp_path / "demo.gguf")


def test_receipts_of_every_format_are_those_of_its_numbers(demo, tmp_path):
    packed, plain = spread(demo, np.random.default_rng(1), 0)
    (tmp_path / "demo.gguf").write_bytes(as_gguf(packed))
    theirs = what_was_computed(receipt(as_folder(tmp_path / "m", plain), tmp_path / "b.json"))
    for options in [(), ("--numerics", "exact16")]:
        ours = receipt(tmp_path / "demo.gguf", tmp_path / "a.json", *options)
        if options:
            theirs = what_was_computed(receipt(tmp_path / "m", tmp_path / "b.json", *options))
        assert what_was_computed(ours) == theirs
    assert invar("verify", tmp_path / "a.json").code == 0
    # Packed, blocks give the bits of their numbers on every instruction set, however work is split.
    plain_receipt = what_was_computed(receipt(tmp_path / "m", tmp_path / "b.json"))
    for way in [*(("--isa", isa, "--threads", 1) for isa in cpu_isas()), ("--prefill-chunk", 3)]:
        task = tmp_path / "task"
        ours = receipt(tmp_path / "demo.gguf", tmp_path / "a.json", "--task-dir", task, *way)
        assert what_was_computed(ours) == plain_receipt
        assert not (task / "unpacked-weights.bin").exists()
        assert (task / "packed-weights.txt").stat().st_size < 1 << 16


@pytest.mark.parametrize("kind", BLOCKS)
def test_numbers_of_every_scale(kind, tmp_path):
    """Random blocks with every finite binary16 scale (of blocks of 256: every eighth)."""
    _, block, length = gguf.TYPES[kind]
    rows = 7936
    blocks = np.random.default_rng(2).integers(
        0, 256, (rows * 256 // block, length), dtype=np.uint8
    )
    scales = np.arange(65536, dtype="<u2")
    scales = scales[(scales & 0x7C00) != 0x7C00]
    for at in gguf.SCALES[kind]:
        some = scales[:: len(scales) // len(blocks)]
        if at != gguf.SCALES[kind][0]:
            some = np.roll(some, 1777)
        blocks[:, at : at + 2] = some[:, None].view(np.uint8)
    if kind == "MXFP4":
        blocks[:, 0] = np.arange(len(blocks)) % 252  # above, twice the largest number is infinite
    expected = gguf.unpack(kind, blocks.tobytes())
    assert np.isfinite(expected).all()
    (tmp_path / "m.gguf").write_bytes(gguf.one_matrix(MODEL, kind, rows, blocks.tobytes()))
    invar("export", "--model-name", tmp_path / "m.gguf", "--output", tmp_path / "out")
    raw = (tmp_path / "out/unpacked-weights.bin").read_bytes()
    wide = (
        np.frombuffer(raw, "<u2").astype(np.uint32) << 16
        if kind == "MXFP4"
        else np.frombuffer(raw, "<u4")
    )
    assert (wide[: expected.size] == expected.view(np.uint32)).all()


@pytest.mark.parametrize("kind", BLOCKS)
def test_scales_that_are_no_numbers_are_refused(kind, tmp_path):
    rows, (_, block, length) = 2, gguf.TYPES[kind]
    blocks = np.full((rows * 256 // block, length), 7, np.uint8)
    for at in gguf.SCALES[kind] or [0]:
        for bad in (b"\xff",) if kind == "MXFP4" else (b"\x00\x7c", b"\x00\xfc", b"\x01\x7e"):
            one = blocks.copy()
            one[-1, at : at + len(bad)] = np.frombuffer(bad, np.uint8)
            (tmp_path / "m.gguf").write_bytes(gguf.one_matrix(MODEL, kind, rows, one.tobytes()))
            out = tmp_path / "out"
            refused("export", "--model-name", tmp_path / "m.gguf", "--output", out,
                    names=["token_embd", "row 1", "infinite"])  # fmt: skip
            assert not (out / "model.onnx").exists()


@pytest.mark.parametrize("kind", BLOCKS)
def test_unpacking_here_is_that_of_the_package_gguf(kind):
    """The oracle of this folder against PyPI's package, which make_vectors.py ran."""
    vectors = json.loads((Path(__file__).parent / "vectors.json").read_text())
    numbers = gguf.unpack(kind, gguf.fixed_bytes(kind))
    if kind == "MXFP4":  # the sign of a zero is the standard's here, and lost there
        numbers = numbers + np.float32(0)
    assert hashlib.sha256(numbers.astype("<f4").tobytes()).hexdigest() == vectors[kind]


def test_a_model_in_parts(demo, tmp_path):
    names = list(demo)
    half = len(names) // 2
    whole = as_gguf(demo)
    (tmp_path / "whole.gguf").write_bytes(whole)
    splits = {"split.count": 2, "split.tensors.count": len(names)}
    one = as_gguf({n: demo[n] for n in names[:half]}, **splits, **{"split.no": 0})
    stored = {n: demo[n] for n in names[half:]}
    for name, (dtype, shape, raw) in stored.items():
        if heads_of(name):
            stored[name] = (dtype, shape, gguf.paired(raw, shape[0], heads_of(name)))
    two = gguf.file_bytes(
        {**splits, "split.no": 1}, {gguf.gguf_name(n): t for n, t in stored.items()}
    )
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "demo-00001-of-00002.gguf").write_bytes(one)
    refused("run", "--model-name", folder, *RUN, names=["demo-00002-of-00002.gguf"])
    (folder / "demo-00002-of-00002.gguf").write_bytes(two)
    ours = receipt(folder, tmp_path / "a.json")
    theirs = receipt(tmp_path / "whole.gguf", tmp_path / "b.json")
    assert what_was_computed(ours) == what_was_computed(theirs)
    refused(
        "run", "--model-name", folder / "demo-00002-of-00002.gguf", *RUN, names=["give the first"]
    )
    (folder / "demo-00002-of-00002.gguf").write_bytes(two.replace(b"split.no", b"split.nu"))
    refused("run", "--model-name", folder, *RUN, names=["of another model"])


def test_a_folder_of_several_files_lists_them_by_size(tmp_path):
    for name, size in [("big.gguf", 3000), ("small.gguf", 20), ("mmproj-x.gguf", 5)]:
        (tmp_path / name).write_bytes(bytes(size))
    refused("run", "--model-name", tmp_path, *RUN, names=["small.gguf (20 B), big.gguf (3.00 kB)"])
    (tmp_path / "big.gguf").unlink()
    refused("run", "--model-name", tmp_path, *RUN, names=["small.gguf", "not a GGUF file"])


def test_what_is_not_read_is_refused_by_name(demo, tmp_path):
    file = tmp_path / "m.gguf"
    norm = "model.norm.weight"
    for number, name in [(16, "IQ2_XXS"), (24, "I8"), (99, "type 99")]:
        tensors = {gguf.gguf_name(n): t for n, t in demo.items() if n != norm}
        tensors["output_norm.weight"] = (number, [256], b"")
        keys = {**gguf.llama_metadata(CONFIG), **gguf.byte_level_metadata(MODEL)}
        file.write_bytes(gguf.file_bytes(keys, tensors))
        refused("run", "--model-name", file, *RUN, code=3, names=["'output_norm.weight'", name])
    file.write_bytes(as_gguf({**demo, norm: demo[norm]}, **{"llama.attention.new": 1}))
    refused("run", "--model-name", file, *RUN, code=3, names=["'llama.attention.new'"])
    tensors = dict(demo)
    del tensors[norm]
    file.write_bytes(as_gguf(tensors))
    refused("run", "--model-name", file, *RUN, names=["'model.norm.weight'", "is missing"])


def test_a_changed_file_is_another_model(demo, tmp_path):
    file = tmp_path / "m.gguf"
    file.write_bytes(as_gguf(demo))
    first = receipt(file, tmp_path / "a.json")
    packed, _ = spread(demo, np.random.default_rng(4), 5)
    file.write_bytes(as_gguf(packed))
    second = receipt(file, tmp_path / "b.json")
    assert first["model"]["config"] != second["model"]["config"]
    assert first["model"]["weights"] != second["model"]["weights"]
    invar("verify", tmp_path / "a.json", "--model-name", file, code=1)
