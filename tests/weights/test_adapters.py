"""Adapters of PEFT (spec/weights.md weights.23 to weights.26). The oracle of a program with an
adapter is the same model in Python, layer by layer; the oracle of a merged checkpoint is numpy.
adapters.json has what peft makes of them."""

import hashlib
import json
import math
import random
import shutil

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from conftest import (
    MODEL,
    ROOT,
    SHARDS,
    execute,
    invar,
    refused,
    rewrite_header,
    safetensors_header,
)
from test_packed import models

PREFIX = "base_model.model."
SHAPES = {
    "self_attn.q_proj": (256, 256),
    "self_attn.k_proj": (128, 256),
    "self_attn.v_proj": (128, 256),
    "self_attn.o_proj": (256, 256),
    "mlp.gate_proj": (704, 256),
    "mlp.up_proj": (704, 256),
    "mlp.down_proj": (256, 704),
}
NAMES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


def write_tensors(path, tensors):
    header, data = {}, b""
    for name in sorted(tensors):
        raw = np.ascontiguousarray(tensors[name]).tobytes()
        header[name] = {
            "dtype": NAMES[str(tensors[name].dtype)],
            "shape": list(tensors[name].shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def matrices(seed, modules, rank=lambda module: 4, dtype=np.float32, size=0.1):
    """The tensors of these modules, such as layers.0.self_attn.q_proj, by their names in a file."""
    rng, made = np.random.default_rng(seed), {}
    for module in modules:
        out, into = SHAPES[module.split(".", 2)[2]]
        path, r = f"{PREFIX}model.{module}", rank(module)
        made[path + ".lora_A.weight"] = rng.normal(0, size, (r, into)).astype(dtype)
        made[path + ".lora_B.weight"] = rng.normal(0, size, (out, r)).astype(dtype)
    return made


def write_adapter(folder, tensors, **config):
    folder.mkdir(exist_ok=True)
    said = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 6, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(said | config))
    write_tensors(folder / "adapter_model.safetensors", tensors)
    return folder


def layers(*names):
    return [f"layers.{i}.{name}" for i in range(5) for name in names]


def of_attention(folder):
    """An adapter of queries and values."""
    tensors = matrices(1, layers("self_attn.q_proj", "self_attn.v_proj"), size=0.06)
    return write_adapter(folder, tensors, target_modules=["q_proj", "v_proj"])


def of_patterns(folder):
    """Patterns of modules, of ranks and of scales, in bf16."""

    def rank(module):
        return 3 if module == "layers.1.mlp.down_proj" else 6 if "up_proj" in module else 4

    names = layers("mlp.up_proj", "mlp.down_proj", "self_attn.k_proj")
    names.remove("layers.2.self_attn.k_proj")
    return write_adapter(
        folder,
        matrices(2, names, rank, ml_dtypes.bfloat16),
        target_modules=r".*\.(up_proj|down_proj|k_proj)",
        exclude_modules=["layers.2.self_attn.k_proj"],
        rank_pattern={r"layers\.1\.mlp\.down_proj": 3, "up_proj": 6},
        alpha_pattern={"k_proj": 3},
        use_rslora=True,
    )


def of_tables(folder):
    """modules_to_save: norms and the table of logits, which the model shares with that of
    tokens."""
    rng = np.random.default_rng(3)
    tensors = {
        **matrices(3, layers("self_attn.q_proj")[1:4:2], dtype=np.float16),
        PREFIX + "lm_head.weight": rng.normal(0, 0.1, (2048, 256)).astype(np.float32),
        PREFIX + "model.norm.weight": rng.normal(1, 0.1, 256).astype(np.float32),
    }
    return write_adapter(
        folder,
        tensors,
        target_modules=["q_proj"],
        layers_to_transform=[1, 3],
        modules_to_save=["lm_head", "model.norm"],
    )


def of_logits(folder):
    """Every linear layer and the table of logits, as peft stores it with the table itself."""
    tensors = matrices(4, layers(*SHAPES), size=0.05)
    rng = np.random.default_rng(4)
    head = PREFIX + "lm_head."
    tensors[head + "lora_A.weight"] = rng.normal(0, 0.1, (4, 256)).astype(np.float32)
    tensors[head + "lora_B.weight"] = rng.normal(0, 0.1, (2048, 4)).astype(np.float32)
    names = [name.split(".")[1] for name in SHAPES]
    return write_adapter(folder, tensors, target_modules=[*names, "lm_head"], lora_alpha=4)


ADAPTERS = {"poet": of_attention, "patterns": of_patterns, "tables": of_tables, "all": of_logits}
PROMPT = [0, 848, 27]  # "ROMEO:"
ANSWER = 32


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """adapter(name): one of these, made once."""
    folder = tmp_path_factory.mktemp("adapters")
    return lambda name: made if (made := folder / name).exists() else ADAPTERS[name](made)


@pytest.fixture(scope="module")
def attention(adapter):
    return adapter("poet")


@pytest.fixture(scope="module")
def mixed(adapter):
    return adapter("patterns")


@pytest.mark.parametrize("name", ADAPTERS)
def test_greedy_tokens_are_those_of_peft(name, adapter, generate):
    """adapters.json has the tokens of transformers and peft (make_adapters.py)."""
    wanted = json.loads((ROOT / "tests/weights/adapters.json").read_text())[name]
    made = generate("--adapter", adapter(name), "--no-do-sample", tokens=ANSWER)["content"]
    assert made["input"]["tokens"] == PROMPT
    assert made["output"]["tokens"] == wanted


def scale(config, module, rank):
    alpha = config.get("alpha_pattern", {}).get(module.rsplit(".", 1)[1], config["lora_alpha"])
    return alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)


def read_tensors(path):
    header, begin = safetensors_header(path)
    data, types = path.read_bytes()[begin:], {v: k for k, v in NAMES.items()}
    kinds = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data[t["data_offsets"][0] : t["data_offsets"][1]], kinds[types[t["dtype"]]]
        ).reshape(t["shape"])
        for name, t in header.items()
    }


@pytest.mark.parametrize(
    "which, numerics", [("poet", "fp32"), ("patterns", "fp32"), ("patterns", "exact16")]
)
def test_every_row_of_logits_is_the_clauses(which, numerics, adapter, generate, tmp_path):
    """The exported model without the adapter, into which add(y, mul((x A) B, s)) is written
    here."""
    folder = adapter(which)
    options = ["--no-do-sample", "--numerics", numerics]
    content = generate("--adapter", folder, *options, tokens=12)["content"]
    invar("export", "--model-name", MODEL, "--output", tmp_path)
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    config = json.loads((folder / "adapter_config.json").read_text())
    tensors = read_tensors(folder / "adapter_model.safetensors")
    nodes, changed = [], 0
    for node in model.graph.node:
        nodes.append(node)
        name = node.output[0]
        if (a := tensors.get(f"{PREFIX}{name}.lora_A.weight")) is None:
            continue
        b = tensors[f"{PREFIX}{name}.lora_B.weight"]
        s = np.array([scale(config, name, len(a))], np.float32)
        for part, value in (("A", a.T), ("B", b.T), ("s", s)):
            value = np.ascontiguousarray(value.astype(np.float32))
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, f"{name}.{part}"))
        node.output[0] = name + ".y"
        for op, one, two, to in (
            ("MatMul", node.input[0], name + ".A", name + ".xA"),
            ("MatMul", name + ".xA", name + ".B", name + ".xAB"),
            ("Mul", name + ".xAB", name + ".s", name + ".low"),
            ("Add", name + ".y", name + ".low", name),
        ):
            nodes.append(onnx.helper.make_node(op, [one, two], [to]))
        changed += 1
    assert 2 * changed == len(tensors)
    del model.graph.node[:], model.metadata_props[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "changed.onnx")
    plan, logits = tmp_path / "changed.invar", tmp_path / "logits"
    invar("compile", tmp_path / "changed.onnx", "--output", plan, "--numerics", numerics)
    tokens = content["input"]["tokens"] + content["output"]["tokens"][:-1]
    ids = ",".join(map(str, tokens))
    invar("infer", plan, "--tokens", ids, "--logits-output", logits)
    rows = np.frombuffer(logits.read_bytes(), "<f4").reshape(len(tokens), -1)
    digests = [hashlib.sha256(row.tobytes()).hexdigest() for row in rows]
    assert digests[len(content["input"]["tokens"]) - 1 :] == content["output"]["logits"]


def test_a_receipt_binds_its_adapter(attention, mixed, generate, tmp_path):
    made = generate("--adapter", attention, tokens=8)
    content = made["content"]["model"]
    files = [
        (attention / f"adapter_{f}").read_bytes() for f in ("config.json", "model.safetensors")
    ]
    both = b"".join(hashlib.sha256(f).digest() for f in files)
    assert content["adapter"] == hashlib.sha256(both).hexdigest()
    assert content["adapter_name"] == "poet"
    assert made["content"]["output"] != generate(tokens=8)["content"]["output"]

    invar("verify", made["receipt"])  # this machine knows both folders
    invar("verify", made["receipt"], "--model-name", MODEL, "--adapter", attention)
    with_another = refused(
        "verify", made["receipt"], "--model-name", MODEL, "--adapter", mixed, code=1
    )
    assert "model.adapter: the receipt says " + content["adapter"] in with_another.text
    plain = generate(tokens=8)["receipt"]
    done = refused("verify", plain, "--model-name", MODEL, "--adapter", attention, code=1)
    assert "model.adapter: the receipt says no adapter" in done.text
    elsewhere = {"env": {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}}
    refused(
        "verify", made["receipt"], "--model-name", MODEL, names=["poet", "--adapter"], **elsewhere
    )
    # The same numbers under exact16 are another program with the same adapter.
    other = generate("--adapter", attention, "--numerics", "exact16", tokens=8)
    assert other["content"]["model"] == made["content"]["model"]
    assert other["content"]["program"] != made["content"]["program"]
    invar("verify", other["receipt"])


def test_the_scale_is_a_parameter(attention, tmp_path):
    out = tmp_path / "out"
    invar("export", "--model-name", MODEL, "--adapter", attention, "--output", out)
    text = (out / "model.onnx").read_bytes()
    assert b"lora_scale" in text and b"0x3fc00000" in text  # 6 / 4
    assert (out / "adapter_model.safetensors").is_symlink()


def merged_by_numpy(w, a, b, s):
    """weights.26"""
    a, b = a.astype(np.float32).astype(np.float64), b.astype(np.float32).astype(np.float64)
    t = np.zeros(w.shape)
    for j in range(len(a)):
        t += b[:, j : j + 1] * a[j]
    return (w.astype(np.float64) + float(np.float32(s)) * t).astype(np.float32).astype(w.dtype)


def test_a_merged_checkpoint_has_the_bytes_of_the_clause(mixed, generate, tmp_path):
    out = tmp_path / "merged"
    options = ["--merge", "--model-name", MODEL, "--adapter", mixed, "--output", out]
    assert invar("export", *options).out.decode().strip() == str(out)
    config = json.loads((mixed / "adapter_config.json").read_text())
    low = read_tensors(mixed / "adapter_model.safetensors")
    changed = 0
    for shard in SHARDS:
        made, stored = read_tensors(out / shard), read_tensors(MODEL / shard)
        assert safetensors_header(out / shard) == safetensors_header(MODEL / shard)
        for name, w in stored.items():
            path = PREFIX + name.removesuffix(".weight")
            if path + ".lora_A.weight" in low:
                a, b = low[path + ".lora_A.weight"], low[path + ".lora_B.weight"]
                w = merged_by_numpy(w, a, b, scale(config, path, len(a)))
                changed += 1
            assert made[name].tobytes() == w.tobytes(), name
    assert changed == 14
    for file in ("config.json", "tokenizer.json", "generation_config.json"):
        assert (out / file).read_bytes() == (MODEL / file).read_bytes()
    generate(model=out, tokens=2)
    refused("export", *options, names=["not empty"])
    refused("export", "--merge", "--model-name", MODEL, "--output", out, names=["--adapter"])


def test_a_table_of_its_own(adapter, generate, tmp_path):
    folder = shutil.copytree(adapter("tables"), tmp_path / "a")
    tensors = read_tensors(folder / "adapter_model.safetensors")
    made = generate("--adapter", folder, tokens=4)
    names = {t["name"]: t["sha256"] for t in made["content"]["model"]["tensors"]}
    for own in ("lm_head.weight", "model.norm.weight"):
        assert names[own] == hashlib.sha256(tensors[PREFIX + own].tobytes()).hexdigest()
    assert "model.embed_tokens.weight" in names
    merge = ["export", "--merge", "--model-name", MODEL, "--adapter", folder, "--output"]
    refused(*merge, tmp_path / "m", code=3, names=["lm_head.weight", "--adapter"])
    tensors[PREFIX + "model.embed_tokens.weight"] = tensors.pop(PREFIX + "lm_head.weight")
    write_tensors(folder / "adapter_model.safetensors", tensors)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["modules_to_save"] = ["embed_tokens", "model.norm"]
    (folder / "adapter_config.json").write_text(json.dumps(config))
    refused(*run(folder), code=3, names=["the same tensor"])


def run(folder, model=MODEL):
    return ["run", "--model-name", model, "--adapter", folder, "--prompt-text", "x"]


def test_adapters_that_are_refused(attention, tmp_path):
    tensors = matrices(1, layers("self_attn.q_proj"))
    targets = {"target_modules": ["q_proj"]}
    a = f"{PREFIX}model.layers.2.self_attn.q_proj.lora_A.weight"
    b = a.replace("lora_A", "lora_B")

    def no(*names, code=3, tensors=tensors, **config):
        folder = write_adapter(tmp_path / "a", tensors, **(targets | config))
        refused(*run(folder), code=code, names=names)

    for key, value, word in (
        ("peft_type", "IA3", "IA3"),
        ("task_type", "SEQ_CLS", "SEQ_CLS"),
        ("bias", "lora_only", "lora_only"),
        ("use_dora", True, "DoRA"),
        ("trainable_token_indices", [1], "table of tokens"),
        ("init_lora_weights", "pissa", "pissa"),
        ("target_parameters", ["mlp.experts"], "target_parameters"),
        ("layer_replication", [[0, 2]], "layer_replication"),
        ("a_later_method", "yes", "a_later_method"),
    ):
        no("adapter_config.json", word, **{key: value})
    for key, value in (("r", 0), ("lora_alpha", "x"), ("rank_pattern", [1]), ("use_rslora", 1)):
        no("adapter_config.json", key, code=2, **{key: value})
    no("target_modules", code=2, target_modules=[])
    no("pattern", "'('", target_modules="(")
    no("q_proj.lora_A", "target_modules", code=2, target_modules=["v_proj"])
    no("v_proj.lora_A.weight", "missing", code=2, target_modules=["q_proj", "v_proj"])
    no(b, "missing", code=2, tensors={n: t for n, t in tensors.items() if n != b})
    no(a, "[4, 255]", "[4, 256]", code=2, tensors=tensors | {a: tensors[a][:, :255]})
    no(a, "[3, 256]", "another rank", code=2, tensors=tensors | {a: tensors[a][:3]})
    far = {n.replace("layers.2", "layers.9"): t for n, t in tensors.items()}
    no("layers.2.self_attn.q_proj", "missing", code=2, tensors=far)
    no("layers.9", code=3, tensors=tensors | {n: t for n, t in far.items() if "layers.9" in n})
    extra = {PREFIX + "score.weight": np.zeros((2, 256), np.float32)}
    no("score.weight", code=2, tensors=tensors | extra)
    no("score", "no tensor", code=2, tensors=tensors | extra, modules_to_save=["score"])
    more = {PREFIX + "model.embed_tokens.weight": np.zeros((2050, 256), np.float32)}
    no("resized vocabulary", "[2050, 256]", tensors=tensors | more)
    no("base_model.model.", code=2, tensors={"q_proj.lora_A.weight": tensors[a]})
    (tmp_path / "a/adapter_model.safetensors").unlink()
    refused(*run(tmp_path / "a"), names=["adapter_model.safetensors"])
    refused(*run(tmp_path / "none"), names=["no such folder"])
    refused(*run(MODEL), names=["adapter_config.json"])
    refused("run", "--model-name", attention, "--prompt-text", "x", names=["--adapter"])


def test_damaged_adapters_are_refused_or_run(attention, tmp_path):
    """Bytes of both files are changed: a line and an exit code, or an answer; never another end."""
    rng = random.Random(5)
    folder = tmp_path / "a"
    for turn in range(24):
        shutil.copytree(attention, folder, dirs_exist_ok=True)
        path = folder / ("adapter_config.json" if turn % 2 else "adapter_model.safetensors")
        data = bytearray(path.read_bytes())
        header = len(data) if turn % 2 else 8 + int.from_bytes(data[:8], "little")
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(header)] = rng.randrange(256)
        path.write_bytes(data[: rng.randint(0, len(data))] if turn % 6 == 0 else data)
        options = ["--adapter", folder, "--output", tmp_path / "out"]
        done = execute(["export", "--model-name", MODEL, *options])
        assert done.code in (0, 2, 3), done.text
        assert len(done.errors) == (1 if done.code else 0), done.text


def test_rows_of_many_ranks(attention, tmp_path):
    """A header that claims more than the file has is refused before anything is read."""
    folder = tmp_path / "a"
    shutil.copytree(attention, folder)

    def grow(header):
        name = next(n for n in header if n.endswith("lora_A.weight"))
        header[name]["shape"] = [2**40, 256]
        return header

    rewrite_header(folder / "adapter_model.safetensors", grow)
    refused(*run(folder), names=["adapter_model.safetensors"])


@pytest.mark.parametrize("name", ["gptq-4", "gptq-4-in-order"])  # unpacked, packed
def test_a_packed_model_takes_an_adapter(name, generate, tmp_path):
    packed, plain, _ = models(name, tmp_path)
    tensors = matrices(1, ["layers.0.self_attn.q_proj", "layers.0.mlp.down_proj"])
    folder = write_adapter(tmp_path / "a", tensors, target_modules=["q_proj", "down_proj"])
    made = [generate("--adapter", folder, model=m, tokens=4)["content"] for m in (packed, plain)]
    assert made[0]["output"] == made[1]["output"]
    assert made[0]["program"] == made[1]["program"]
    merge = ["export", "--merge", "--adapter", folder, "--output", tmp_path / "m", "--model-name"]
    refused(*merge, packed, code=3, names=["proj.weight", "is packed", "--adapter"])
    invar(*merge, plain)
