"""Bad input: one clear line that names what and where, the right exit code, nothing lost."""

import json
import os
import shutil
import struct
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BIN, MODEL, ROOT, SHARDS, execute, invar, refused, rewrite_header
from onnx import TensorProto, helper, numpy_helper
from receipt_oracle import leaf, merkle_root


@pytest.fixture
def run_on(tmp_path):
    """run_on(model, *options): the arguments of a short run whose receipt goes to the test's
    folder."""

    def f(model, *options):
        return [
            "run",
            "--model-name",
            model,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            4,
            "--task-dir",
            tmp_path / "task",
            "--receipt-path",
            tmp_path / "receipt.json",
            *options,
        ]

    return f


# --- checkpoints ----------------------------------------------------------------------------------


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


def refused_any(*args):
    """Bad input or outside the guarantee: a dtype may be either."""
    done = execute(args)
    assert done.code in (2, 3) and len(done.errors) == 1, done.text
    return done


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
        ({"architectures": ["MambaForCausalLM"], "model_type": "mamba"}, "mamba"),
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
        ({"model_type": "t5"}, "t5"),
        ({"model_type": None}, "model_type"),
        ({}, "model_type"),
        (
            {
                "architectures": ["PhimoeForCausalLM"],
                "model_type": "phimoe",
                "max_position_embeddings": 64,
            },
            "PhimoeForCausalLM",
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


def test_nul_in_a_path(model, tmp_path):
    content = json.loads((ROOT / "tests/golden/romeo.receipt.json").read_text())
    content["execution"]["model_path"] = str(MODEL) + "\0/elsewhere"
    (tmp_path / "r.json").write_text(json.dumps(reseal_execution(content)))
    no_earlier_run = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    refused("verify", tmp_path / "r.json", env=no_earlier_run, names=["NUL"])


def test_a_revision_of_the_cache_is_one_name(tmp_path):
    hub = tmp_path / "models--a--b"
    (hub / "refs").mkdir(parents=True)
    (hub / "snapshots").mkdir()
    (hub / "snapshots/abc").symlink_to(MODEL)
    for revision, code in [(b"abc\n", 0), (b"abc\0/x", 2), (b"abc/../abc", 2)]:
        (hub / "refs/main").write_bytes(revision)
        invar(
            "encode",
            "--model-name",
            "a/b",
            "--prompt-text",
            "x",
            code=code,
            env={**os.environ, "HF_HUB_CACHE": str(tmp_path)},
        )


def test_no_control_character_of_a_file_reaches_the_terminal(tmp_path):
    done = refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "x",
        "--isa",
        "a\x1b[2Jb\x7f",
        names=["a\\x1b[2Jb\\x7f"],
    )
    assert b"\x1b" not in done.err


def reseal_execution(content):
    execution = {k: leaf("execution." + k, v) for k, v in sorted(content["execution"].items())}
    return {
        **content,
        "execution_digests": {k: d.hex() for k, d in execution.items()},
        "execution_hash": merkle_root(execution.values()).hex(),
    }


def test_tokenizer_outside_the_guarantee(model, run_on):
    text = json.loads((model / "tokenizer.json").read_text())
    text["model"]["type"] = "Trigram"
    (model / "tokenizer.json").write_text(json.dumps(text))
    refused(*run_on(model), code=3, names=["Trigram"])


def test_no_such_model(run_on):
    refused(*run_on("no/such"), names=["no/such"])
    refused(*run_on("nowhere"), names=["nowhere"])
    refused(*run_on("/dev/null"), names=["/dev/null"])


# --- ONNX -----------------------------------------------------------------------------------------


def onnx_model(nodes, inputs=("x",), outputs=("y",), initializers=()):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in inputs]
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in outputs]
    graph = helper.make_graph(nodes, "g", info, out, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def test_onnx_with_a_cycle(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="first"),
        helper.make_node("Mul", ["a", "x"], ["b"], name="second"),
        helper.make_node("Mul", ["b", "x"], ["y"], name="third"),
    ]
    path = tmp_path / "cycle.onnx"
    path.write_bytes(onnx_model(nodes).SerializeToString())
    done = refused("compile", path, names=[str(path)])
    assert "cycle" in done.text and "first" in done.text and "second" in done.text


def test_onnx_with_unknown_operators(tmp_path):
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"], domain="com.example"),
        helper.make_node("Bernoulli", ["a"], ["y"]),
    ]
    path = tmp_path / "unknown.onnx"
    path.write_bytes(onnx_model(nodes).SerializeToString())
    done = refused("compile", path, code=3, names=["Frobnicate", "Bernoulli"])
    assert not (tmp_path / "plan.invar").exists(), done.text


def test_onnx_that_is_not_one(tmp_path):
    path = tmp_path / "m.onnx"
    good = onnx_model([helper.make_node("Add", ["x", "x"], ["y"])]).SerializeToString()
    for data in [b"", b"\x00" * 100, b"hello", good[: len(good) // 2], b"\xff" * 1000]:
        path.write_bytes(data)
        refused("compile", path, names=[str(path)])
    refused("compile", tmp_path / "nowhere.onnx", names=["nowhere.onnx"])
    refused("compile", tmp_path, names=[str(tmp_path), "a folder", "invar export --model-name"])
    (tmp_path / "model.onnx").write_bytes(b"")
    refused("compile", tmp_path, names=[str(tmp_path / "model.onnx")])


def test_onnx_undefined_and_doubled_values(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(
        onnx_model([helper.make_node("Add", ["x", "ghost"], ["y"])]).SerializeToString()
    )
    refused("compile", path, names=["ghost"])
    path.write_bytes(
        onnx_model(
            [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Mul", ["x", "x"], ["y"])]
        ).SerializeToString()
    )
    refused("compile", path, names=["y"])


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "missing.bin", "short.bin"])
def test_onnx_external_data(tmp_path, location):
    folder = tmp_path / "m"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    (folder / "short.bin").write_bytes(bytes(15))
    w = numpy_helper.from_array(np.zeros((2, 2), np.float32), "w")
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for k, v in {"location": location, "offset": "0", "length": "16"}.items():
        entry = w.external_data.add()
        entry.key, entry.value = k, v
    path = folder / "m.onnx"
    path.write_bytes(
        onnx_model(
            [helper.make_node("Add", ["x", "w"], ["y"])], initializers=[w]
        ).SerializeToString()
    )
    refused("compile", path, names=[location])


def test_exported_model_passes_the_newest_checker(tmp_path):
    invar("export", "--model-name", MODEL, "-o", tmp_path / "out")
    copied = tmp_path / "copied"
    invar("export", "--model-name", MODEL, "-o", copied, "--colocate-tensors")
    onnx.checker.check_model(str(copied / "model.onnx"), full_check=True)
    linked = onnx.load(str(tmp_path / "out/model.onnx"), load_external_data=False)
    assert linked.opset_import[0].version == 23
    assert {"Attention", "RMSNormalization", "RotaryEmbedding"} <= {
        n.op_type for n in linked.graph.node
    }
    # By reference: the model file holds no weights.
    assert os.path.getsize(tmp_path / "out/model.onnx") < 200_000


# --- prompts, options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [b"\xff", b"abc\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"]
)
def test_prompt_of_invalid_utf8(tmp_path, text):
    refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        text,
        "--receipt-path",
        tmp_path / "r.json",
        names=["UTF-8"],
    )
    assert not (tmp_path / "r.json").exists()


def test_prompt_longer_than_the_context(run_on):
    args = run_on(MODEL)
    args[args.index("ROMEO:")] = "thou art " * 500
    refused(*args, names=["512"])
    args = run_on(MODEL)
    args[args.index(4)] = 511
    refused(*args, names=["512", "--max-new-tokens"])


@pytest.mark.parametrize(
    "option,value",
    [
        ("--max-new-tokens", "0"),
        ("--max-new-tokens", "-1"),
        ("--max-new-tokens", "many"),
        ("--max-new-tokens", "99999999999999999999"),
        ("--temperature", "-1"),
        ("--temperature", "nan"),
        ("--temperature", "inf"),
        ("--top-k", "-1"),
        ("--top-p", "0"),
        ("--top-p", "1.5"),
        ("--seed", "-1"),
        ("--threads", "-1"),
        ("--threads", "x"),
        ("--isa", "mmx"),
        ("--prefill-chunk", "-1"),
        ("--device", "abacus"),
        ("--device", "cuda:x"),
        ("--device", "cuda:4096"),
        ("--no-such-option", "1"),
    ],
)
def test_bad_options(run_on, option, value):
    args = run_on(MODEL)
    if option in args:
        args[args.index(option) + 1] = value
    else:
        args += [option, value]
    done = refused_any(*args)
    assert (
        option.lstrip("-") in done.text
        or option.lstrip("-").replace("-", "_") in done.text
        or value in done.text
    ), done.text


def test_usage():
    for args in (
        [],
        ["sing"],
        ["run"],
        ["run", "--model-name", MODEL],
        ["verify"],
        ["compile"],
        ["run", "--prompt-text", "x"],
    ):
        refused(*args)


def test_prompt_files(tmp_path, run_on):
    file = tmp_path / "p.jsonl"
    args = [a for a in run_on(MODEL) if a not in ("--prompt-text", "ROMEO:")] + [
        "--prompt-file",
        file,
    ]
    refused(*args, names=["p.jsonl"])
    for text, name in [
        ("", "p.jsonl"),
        ('"A"\n{"b": 1}\n', "p.jsonl:2"),
        ('"A"\nnot json\n', "p.jsonl:2"),
        ("7\n", "p.jsonl:1"),
    ]:
        file.write_text(text)
        refused(*args, names=[name])
    for text, name in [
        ('{"prompt": "A", "max_new_tokens": 3}', "max_new_tokens"),
        ('{"promt": "A"}', "promt"),
        ('{"text": "A"}', "text"),
        ('{"prompt": "A", "prompt": "B"}', "given twice"),
        ('{"prompt": ["A"]}', "prompt"),
        ('{"a\\u0000b": 1}', "u0000"),
        ("{}", "prompt"),
    ]:
        file.write_text('"A"\n' + text + "\n")
        refused(*args, names=["p.jsonl:2", name])
    for text, name in [
        ('{"messages": [{"role": "user", "content": "Hi"}]}\n', "no chat template"),
        ('{"messages": [], "prompt": "A"}\n', "messages"),
        ('{"messages": [{}], "prompt": "A"}\n', "prompt"),
    ]:
        file.write_text(text)
        refused(*args, names=["p.jsonl:1", name])
    file.write_text('\ufeff"ROMEO:"\n\n{"prompt": "JULIET:"}\n', encoding="utf-8")
    invar(*args)
    for name in ("receipt.1.json", "receipt.2.json"):
        invar("verify", tmp_path / name)


# --- where things go ------------------------------------------------------------------------------


def test_unwritable_receipt_path(run_on, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in [
        tmp_path / "folder",
        tmp_path / "file/r.json",
        tmp_path / "file/more/r.json",
        "/proc/r.json",
    ]:
        refused(*replace(run_on(MODEL), path), names=[str(path)])


def replace(args, receipt):
    args[args.index("--receipt-path") + 1] = receipt
    return args


def test_unwritable_task_folder(run_on, tmp_path):
    (tmp_path / "task").write_text("a file")
    refused(*run_on(MODEL), names=["task"])


def test_full_disk(run_on, tmp_path):
    """A receipt that does not fit is refused before anything is computed, and the old one stays."""
    disk = tmp_path / "disk"
    disk.mkdir()
    args = replace(run_on(MODEL), disk / "r.json")
    mounted = (
        os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        # Without the right to make a small disk, the kernel's own full device stands for it, as
        # standard output.
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [BIN] + [str(a) for a in args], stdout=full, stderr=subprocess.PIPE
            )
        assert done.returncode == 2 and b"No space left on device" in done.stderr
        invar("verify", disk / "r.json")
        return
    try:
        invar(*args)
        old = (disk / "r.json").read_bytes()
        with open(disk / "filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(512))
            except OSError:
                pass
        done = refused(*args, names=["r.json", "space"])
        assert not done.out and "load" not in done.text
        assert (disk / "r.json").read_bytes() == old
        assert sorted(os.listdir(disk)) == ["filler", "r.json"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_closed_pipe(run_on):
    command = [BIN] + [str(a) for a in run_on(MODEL)]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    errors = p.stderr.read()
    assert p.wait() == 0, errors  # who closed the pipe has what it wanted
    invar("validate", command[command.index("--receipt-path") + 1])


def test_export_over_a_checkpoint_is_refused(model):
    before = {p.name: p.read_bytes() for p in model.iterdir()}
    execute(["export", "--model-name", model, "-o", model])
    execute(["export", "--model-name", model, "-o", model, "--colocate-tensors"])
    after = {p.name: p.read_bytes() for p in model.iterdir() if p.name in before}
    assert before == after, "exporting into the checkpoint's own folder damaged it"


def test_interrupted_first_run_leaves_nothing_wrong(run_on, tmp_path):
    """Killed at any moment, the task folder never makes the next run wrong."""
    for delay in (0.0, 0.01, 0.03, 0.1):
        shutil.rmtree(tmp_path / "task", ignore_errors=True)
        p = subprocess.Popen(
            [BIN] + [str(a) for a in run_on(MODEL)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            p.wait(delay)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        invar(*run_on(MODEL))
        invar("verify", tmp_path / "receipt.json")
