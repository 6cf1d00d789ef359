"""Packed weights of safetensors are the checkpoint of their numbers (spec/weights.md weights.16 to
weights.21). The oracle unpacks with numpy and ml_dtypes."""

import json
import shutil

import gguf_files as gguf
import ml_dtypes
import numpy as np
import pytest
from conftest import MODEL, cpu_isas, invar, refused

FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
FP4 = np.concatenate([FP4, -FP4])
F32, BF16, E4M3 = np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def stored(array):
    """An array -> (dtype, shape, bytes) of safetensors."""
    names = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float8_e4m3fn": "F8_E4M3",
             "float8_e5m2": "F8_E5M2"}  # fmt: skip
    names |= {
        "int8": "I8",
        "uint8": "U8",
        "int32": "I32",
        "int64": "I64",
        "float8_e8m0fnu": "F8_E8M0",
    }
    return names[str(array.dtype)], list(array.shape), np.ascontiguousarray(array).tobytes()


def spread(scale, rows, columns, block):
    """Scales of blocks [a, b] for each element."""
    return np.repeat(np.repeat(scale, block[0], 0), block[1], 1)[:rows, :columns]


def fp8_codes(rng, shape):
    raw = rng.integers(0, 256, shape, dtype=np.uint8)
    raw[raw & 0x7F == 0x7F] = 0x30  # no NaN
    return raw.view(E4M3)


def scales(rng, shape, dtype=F32):
    return (rng.uniform(0.5, 1.5, shape) * 2.0**-13).astype(dtype)


def fp8_blocks(rng, rows, columns):
    w, s = fp8_codes(rng, (rows, columns)), scales(rng, (-(-rows // 128), -(-columns // 128)))
    parts = {"weight": w, "weight_scale_inv": s}
    return parts, w.astype(F32) * spread(s, rows, columns, (128, 128))


def fp8_of_powers(rng, rows, columns):
    w = fp8_codes(rng, (rows, columns))
    s = rng.integers(112, 116, (-(-rows // 128), -(-columns // 128)), dtype=np.uint8)
    parts = {"weight": w, "weight_scale_inv": s.view(ml_dtypes.float8_e8m0fnu)}
    return parts, w.astype(F32) * spread(np.exp2(s.astype(F32) - 127), rows, columns, (128, 128))


def fp8_matrix(rng, rows, columns):
    w, s = fp8_codes(rng, (rows, columns)), scales(rng, ())
    return {"weight": w, "weight_scale": s, "input_scale": scales(rng, ())}, w.astype(F32) * s


def fp8_e5m2(rng, rows, columns):
    raw = rng.integers(0, 256, (rows, columns), dtype=np.uint8) & 0xBF  # neither NaN nor infinity
    w, s = raw.view(ml_dtypes.float8_e5m2), scales(rng, (rows, 1))
    return {"weight": w, "weight_scale": s}, w.astype(F32) * s


def fp8_rows(rng, rows, columns):
    w, s = fp8_codes(rng, (rows, columns)), scales(rng, (rows, 1), BF16)
    return {"weight": w, "weight_scale": s}, (w.astype(F32) * s.astype(F32)).astype(BF16)


def int8_rows(rng, rows, columns):
    w = rng.integers(-128, 128, (rows, columns), dtype=np.int8)
    s, z = scales(rng, (rows, 1), BF16), rng.integers(-9, 9, (rows, 1), dtype=np.int8)
    q = w.astype(F32) - z.astype(F32)
    return {"weight": w, "weight_scale": s, "weight_zero_point": z}, (q * s.astype(F32)).astype(
        BF16
    )


def words(codes, bits):
    """Integers along the last axis -> words, the first in the lowest bits."""
    in_word = 32 // bits
    codes = codes.astype(np.uint32)
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % in_word)])
    codes = codes.reshape(*codes.shape[:-1], -1, in_word)
    shifts = np.arange(in_word, dtype=np.uint32) * np.uint32(bits)
    return np.bitwise_or.reduce(codes << shifts, axis=-1).view(np.int32)


def packed_4(rng, rows, columns):
    groups = columns // 64
    q = rng.integers(0, 16, (rows, columns))
    z, s = rng.integers(0, 16, (rows, groups)), scales(rng, (rows, groups), BF16)
    order = rng.permutation(np.arange(columns) // 64).astype(np.int32)
    parts = {
        "weight_packed": words(q, 4),
        "weight_shape": np.array([rows, columns]),
        "weight_scale": s,
    }
    parts |= {"weight_zero_point": words(z.T, 4).T, "weight_g_idx": order}
    return parts, ((q - z[:, order]).astype(F32) * s.astype(F32)[:, order]).astype(BF16)


def packed_8(rng, rows, columns):
    q, s = rng.integers(0, 256, (rows, columns)), scales(rng, (rows, 1), np.float16)
    parts = {
        "weight_packed": words(q, 8),
        "weight_shape": np.array([rows, columns]),
        "weight_scale": s,
    }
    return parts, ((q - 128).astype(F32) * s.astype(F32)).astype(np.float16)


def fp4(rng, rows, columns, divided):
    raw = rng.integers(0, 256, (rows, columns // 2), dtype=np.uint8)
    s = np.abs(fp8_codes(rng, (rows, columns // 16)).astype(F32)).astype(E4M3)
    codes = FP4[np.stack([raw & 15, raw >> 4], -1).reshape(rows, columns)]
    if divided:
        g = np.array([rng.uniform(1e4, 2e4)], F32)
        parts = {"weight_packed": raw, "weight_scale": s, "weight_global_scale": g}
        return parts, (codes * np.repeat(s.astype(F32) / g, 16, 1)).astype(BF16)
    g = np.array(rng.uniform(1e-5, 2e-5), F32)
    parts = {"weight": raw, "weight_scale": s, "weight_scale_2": g, "input_scale": g}
    return parts, codes * np.repeat(s.astype(F32) * g, 16, 1)


def mxfp4(rng, rows, columns):
    raw = rng.integers(0, 256, (rows, columns // 2), dtype=np.uint8)
    s = rng.integers(112, 116, (rows, columns // 32), dtype=np.uint8)
    codes = FP4[np.stack([raw & 15, raw >> 4], -1).reshape(rows, columns)]
    numbers = codes * np.repeat(np.exp2(s.astype(F32) - 127), 32, 1)
    return {"weight_packed": raw, "weight_scale": s}, numbers.astype(BF16)


def nvfp4(rng, rows, columns):
    return fp4(rng, rows, columns, True)


def nvfp4_of_modelopt(rng, rows, columns):
    return fp4(rng, rows, columns, False)


def gptq(rng, rows, columns, bits, less, ordered):
    groups = columns // 64
    q = rng.integers(0, 1 << bits, (columns, rows))
    z, s = rng.integers(less, 1 << bits, (groups, rows)), scales(rng, (groups, rows), np.float16)
    order = np.arange(columns, dtype=np.int32) // 64
    if ordered:
        order = rng.permutation(order)
    parts = {
        "qweight": words(q.T, bits).T,
        "qzeros": words(z - less, bits),
        "scales": s,
        "g_idx": order,
    }
    return parts, ((q - z[order]).astype(F32) * s.astype(F32)[order]).T


def gptq_4(rng, rows, columns):
    return gptq(rng, rows, columns, 4, 1, True)


def gptq_4_in_order(rng, rows, columns):
    return gptq(rng, rows, columns, 4, 1, False)


def gptq_8(rng, rows, columns):
    parts, numbers = gptq(rng, rows, columns, 8, 0, False)
    del parts["g_idx"]
    return parts, numbers


def awq(rng, rows, columns):
    groups = columns // 64
    q, z = rng.integers(0, 16, (columns, rows)), rng.integers(0, 16, (groups, rows))
    s = scales(rng, (groups, rows), np.float16)

    def interleaved(x):
        return words(x.reshape(len(x), -1, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(x.shape), 4)

    parts = {"qweight": interleaved(q), "qzeros": interleaved(z), "scales": s}
    order = np.arange(columns) // 64
    return parts, ((q - z[order]).astype(F32) * s.astype(F32)[order]).T


# The tables of bitsandbytes.
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635]
NF4 += [-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725]
NF4 += [0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941]
NF4 += [0.7229568362236023, 1.0]
FP4_OF_BITSANDBYTES = [0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3]


def four_bits(rng, rows, columns, table=NF4):
    size, outer, offset = 64, 256, 0.04
    blocks = rows * columns // size
    codes = rng.integers(0, 16, rows * columns, dtype=np.uint8)
    table = np.array(table, F32)
    outer_table = np.sort(rng.uniform(-1, 1, 256)).astype(F32)
    absmax, n = rng.integers(0, 256, blocks, dtype=np.uint8), scales(rng, -(-blocks // outer))
    state = {"quant_type": "nf4", "blocksize": size, "dtype": "bfloat16", "shape": [rows, columns]}
    state |= {"nested_blocksize": outer, "nested_dtype": "float32", "nested_offset": offset}
    a = outer_table[absmax] * np.repeat(n, outer)[:blocks] + F32(offset)
    parts = {"weight": (codes[0::2] << 4 | codes[1::2])[:, None], "weight.absmax": absmax}
    parts |= {
        "weight.quant_map": table,
        "weight.nested_quant_map": outer_table,
        "weight.nested_absmax": n,
    }
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    parts |= {"weight.quant_state.bitsandbytes__nf4": text}
    return parts, (table[codes] * np.repeat(a, size)).astype(BF16).reshape(rows, columns)


def four_bits_of_another_table(rng, rows, columns):
    return four_bits(rng, rows, columns, np.sort(rng.uniform(-1, 1, 16)))


def four_bits_plain(rng, rows, columns):
    parts, _ = four_bits(rng, rows, columns, np.array(FP4_OF_BITSANDBYTES, F32) / F32(12))
    codes = np.stack([parts["weight"] >> 4, parts["weight"] & 15], -1).ravel()
    a = scales(rng, rows * columns // 64)
    parts = {k: v for k, v in parts.items() if "nested" not in k and "state" not in k}
    state = {"quant_type": "fp4", "blocksize": 64, "dtype": "float16", "shape": [rows, columns]}
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    parts |= {"weight.absmax": a, "weight.quant_state.bitsandbytes__fp4": text}
    numbers = (parts["weight.quant_map"][codes] * np.repeat(a, 64)).astype(np.float16)
    return parts, numbers.reshape(rows, columns)


def int8_through_127(rng, rows, columns):
    w, s = rng.integers(-127, 128, (rows, columns), dtype=np.int8), scales(rng, rows) * F32(127)
    parts = {"weight": w, "SCB": s, "weight_format": np.array(0, np.uint8)}
    return parts, w.astype(F32) * s[:, None] * F32(7.874015718698502e-3)


def compressed(format_, **weights):
    return {
        "quant_method": "compressed-tensors",
        "format": format_,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }


BLOCKS = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
BLOCKS |= {"activation_scheme": "dynamic"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True, "sym": False}
CASES = {
    "fp8-blocks": (BLOCKS, fp8_blocks),
    "fp8-blocks-e8m0": ({**BLOCKS, "scale_fmt": "ue8m0"}, fp8_of_powers),
    "fp8-matrix": ({"quant_method": "fp8", "activation_scheme": "static"}, fp8_matrix),
    "fp8-e5m2": ({"quant_method": "fp8", "fmt": "e5m2"}, fp8_e5m2),
    "fp8-rows": (compressed("float-quantized", num_bits=8, type="float"), fp8_rows),
    "int8-rows": (compressed("int-quantized", num_bits=8, type="int"), int8_rows),
    "packed-4": (compressed("pack-quantized", num_bits=4, group_size=64), packed_4),
    "packed-8": (compressed("pack-quantized", num_bits=8, group_size=None), packed_8),
    "nvfp4": (compressed("nvfp4-pack-quantized", num_bits=4, group_size=16), nvfp4),
    "mxfp4": (compressed("mxfp4-pack-quantized", num_bits=4, group_size=32), mxfp4),
    "nvfp4-modelopt": ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, nvfp4_of_modelopt),
    "gptq-4": (GPTQ, gptq_4),
    "gptq-8": ({**GPTQ, "bits": 8, "checkpoint_format": "gptq_v2"}, gptq_8),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, four_bits),
    "fp4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, four_bits_plain),
    "nf4-other": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        four_bits_of_another_table,
    ),
    "int8-bitsandbytes": (
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        int8_through_127,
    ),
    "gptq-4-in-order": ({**GPTQ, "desc_act": False}, gptq_4_in_order),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"}, awq),
}


def write(folder, tensors, settings=None):
    folder.mkdir()
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(MODEL / file, folder)
    config = json.loads((MODEL / "config.json").read_text())
    config |= {"num_hidden_layers": 1, **({"quantization_config": settings} if settings else {})}
    (folder / "config.json").write_text(json.dumps(config))
    gguf.write_safetensors(folder / "model.safetensors", tensors)
    return folder


def models(name, folder):
    """A layer of the shipped model with packed matrices, and with their numbers."""
    settings, pack = CASES[name]
    rng = np.random.default_rng(7)
    packed, plain = {}, {}
    for tensor, t in gguf.read_safetensors(MODEL).items():
        if ".layers." in tensor and ".layers.0." not in tensor:
            continue
        if not tensor.endswith("proj.weight"):
            packed[tensor] = plain[tensor] = t
            continue
        parts, numbers = pack(rng, *t[1])
        base = tensor.removesuffix("weight")
        packed |= {base + part: stored(array) for part, array in parts.items()}
        plain[tensor] = stored(numbers)
    return write(folder / "packed", packed, settings), write(folder / "plain", plain), packed


def digest(model):
    return invar("digest", model, "--json").json()


@pytest.mark.parametrize("name", CASES)
def test_packed_matrices_are_their_numbers(name, tmp_path):
    packed, plain, _ = models(name, tmp_path)
    ours, theirs = digest(packed), digest(plain)
    assert ours["model"]["weights"] == theirs["model"]["weights"]
    assert ours["program"] == theirs["program"]


# What kernels unpack: tables that they do not know, two products a number.
UNPACKED = {"nf4-other", "int8-bitsandbytes"}


@pytest.mark.parametrize("name", CASES)
def test_matrices_stay_packed(name, tmp_path):
    answers = []
    packed, plain, _ = models(name, tmp_path)
    ways = [(plain, ()), (packed, ())]
    if name in ("gptq-4", "nf4"):  # lookups, and scales of each column: in lanes of every width
        ways += [(packed, ("--isa", isa, "--threads", 2)) for isa in cpu_isas()]
    for model, way in ways:
        task, receipt = tmp_path / model.name / "task", tmp_path / (model.name + ".json")
        run = ["--prompt-text", "A quiet", "--max-new-tokens", 3, "--task-dir", task, *way]
        invar("run", "--model-name", model, *run, "--receipt-path", receipt)
        answers.append(json.loads(receipt.read_text())["output"])
    task = tmp_path / "packed/task"
    assert (task / "packed-weights.txt").exists() == (name not in UNPACKED)
    assert (task / "unpacked-weights.bin").exists() == (name in UNPACKED)
    assert all(answer == answers[0] for answer in answers)


def test_records_of_the_cache_leave_weights_to_the_plan(tmp_path):
    """Files of weights may be larger than any that is read at once."""
    packed, _, _ = models("nf4-other", tmp_path)
    task = tmp_path / "task"
    invar("run", "--model-name", packed, "--prompt-text", "A", "--max-new-tokens", 1,
          "--task-dir", task, "--receipt-path", tmp_path / "r.json")  # fmt: skip
    record = json.loads((task / "identity").read_text().rpartition("}")[0] + "}")
    weights = task / "unpacked-weights.bin"
    assert record["files"][weights.name] == weights.stat().st_size
    assert len(record["files"]["plan.invar"]) == 64


def damaged(tensors, end, **changes):
    name = next(n for n in tensors if n.endswith("q_proj." + end))
    dtype, shape, raw = tensors[name]
    out = dict(tensors)
    out[name] = (changes.get("dtype", dtype), changes.get("shape", shape), changes.get("raw", raw))
    if changes.get("gone"):
        del out[name]
    return out


@pytest.mark.parametrize(
    "name, end, changes, names",
    [
        ("fp8-blocks", "weight_scale_inv", {"gone": True}, ["q_proj.weight_scale'", "missing"]),
        ("fp8-blocks", "weight_scale_inv", {"shape": [4, 1]}, ["has shape [4, 1]", "[2, 2]"]),
        ("fp8-blocks", "weight", {"raw": b"\x7f" * 65536}, ["row 0", "infinite or none"]),
        ("fp8-rows", "weight_scale", {"raw": b"\x80\x7f" * 256}, ["row 0", "infinite or none"]),
        ("packed-4", "weight_shape", {"raw": b"\0" * 16}, ["a size of 0"]),
        ("packed-4", "weight_g_idx", {"raw": b"\xff" * 1024}, ["names the group -1 of 4"]),
        ("gptq-4", "qzeros", {"raw": b"\xff" * 512}, ["zero of 15"]),
        ("gptq-4", "scales", {"shape": [256, 4]}, ["has shape [256, 4]"]),
        ("awq", "qzeros", {"gone": True}, ["q_proj.qzeros'", "missing"]),
        ("nf4", "weight.nested_absmax", {"shape": [2, 2]}, ["has shape [2, 2]"]),
        (
            "nf4",
            "weight.quant_state.bitsandbytes__nf4",
            {"raw": b"{" * 155},
            ["the shape of a matrix"],
        ),
        ("nvfp4", "weight_global_scale", {"raw": b"\0" * 4}, ["infinite or none"]),
    ],
)
def test_damaged_parts_are_named(name, end, changes, names, tmp_path):
    _, _, tensors = models(name, tmp_path)
    write(tmp_path / "m", damaged(tensors, end, **changes), CASES[name][0])
    code = 3 if end == "qzeros" and "raw" in changes else 2
    refused(
        "export", "--model-name", tmp_path / "m", "-o", tmp_path / "out", code=code, names=names
    )
    assert not (tmp_path / "out/model.onnx").exists()


@pytest.mark.parametrize(
    "settings, names",
    [
        ({"quant_method": "aqlm"}, ["'aqlm'", "fp8, compressed-tensors, gptq, awq"]),
        ({"bits": 4}, ["a method without a name"]),
        ({**GPTQ, "bits": 3}, ["bits = 3"]),
        ({**GPTQ, "checkpoint_format": "marlin"}, ["marlin"]),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, ["gemv"]),
        ({"quant_method": "fp8", "fmt": "e3m4"}, ["e3m4"]),
        (compressed("mxfp8-quantized", num_bits=8), ["mxfp8-quantized"]),
        (compressed("pack-quantized", num_bits=3), ["num_bits = 3"]),
        ({"quant_method": "hqq"}, ["'hqq'"]),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, ["'modelopt'"]),
    ],
)
def test_other_settings_are_refused_by_name(settings, names, tmp_path):
    write(tmp_path / "m", {}, settings)
    refused("export", "--model-name", tmp_path / "m", "-o", tmp_path / "out", code=3,
            names=["quantization_config", "GGUF", *names] if "fmt" not in settings else names)  # fmt: skip
