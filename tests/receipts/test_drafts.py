"""invar run --speculate: whatever drafts tokens, answers and receipts are, to the byte, those
without. src/generate/speculate/drafter_test.cc has drafts that are always right or wrong."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import BIN, MODEL, ROOT, invar, refused

sys.path.insert(0, str(ROOT / "tests/families"))
from random_checkpoint import write  # noqa: E402
from test_families import SHIPPED_TOKENS, VECTORS, with_tokenizer  # noqa: E402

TEXT = "ROMEO:\nBut soft, what light through yonder window breaks?\n" * 3
SAMPLED = ["--temperature", "0.8", "--seed", 3]


@pytest.fixture
def run(tasks, tmp_path):
    """run(*options) -> the receipt's bytes, and the answer with its counts."""

    def f(*options, model=MODEL, text=TEXT):
        path = tmp_path / "r.json"
        command = ["run", "--model-name", model, "--tasks-root", tasks, "--prompt-text", text]
        done = invar(*command, "--receipt-path", path, "--json", *options)
        return path.read_bytes(), done.json()

    return f


@pytest.mark.parametrize(
    "options",
    [
        ["--no-do-sample"],
        SAMPLED,
        [*SAMPLED, "--repetition-penalty", "1.2", "--no-repeat-ngram-size", 6],
        ["--no-do-sample", "--stop", "light", "--stop", "breaks?\nBut"],
        [*SAMPLED, "--numerics", "exact16", "--prefill-chunk", 7],
        ["--no-do-sample", "--threads", 1, "--no-kv-cache"],
        ["--no-do-sample", "--n-partitions", 2],
    ],
)
def test_receipts_are_those_without_drafts(run, options):
    options = [*options, "--max-new-tokens", 60]
    receipt, plain = run(*options)
    assert "drafted" not in plain
    for how in ("prompt", MODEL):
        same, answer = run(*options, "--speculate", how)
        assert same == receipt, how
        assert 0 <= answer["accepted"] <= answer["drafted"]
        # Its own model draws the same tokens, where the computation is the same.
        if how == MODEL and "exact16" not in options:
            assert answer["accepted"] == answer["drafted"] > len(answer["tokens"]) / 2


@pytest.mark.parametrize("name", ["qwen3_next", "falcon_h1", "lfm2"])
def test_models_with_states_of_fixed_size(run, name, tmp_path):
    target = with_tokenizer(name, tmp_path / "target")
    draft = with_tokenizer("qwen3_5", tmp_path / "draft")
    for options in (["--no-do-sample"], SAMPLED, ["--no-do-sample", "--prefill-chunk", 5]):
        options = [*options, "--max-new-tokens", 50]
        receipt, _ = run(*options, model=target)
        for how in ("prompt", draft, target):
            same, answer = run(*options, "--speculate", how, model=target)
            assert same == receipt, (how, options)
        assert answer["accepted"] == answer["drafted"] > 0
    assert "VERIFIED" in invar("verify", tmp_path / "r.json", "--model-name", target).text


def test_a_conversation_keeps_its_receipts(tasks, model, tmp_path):
    (model / "chat_template.jinja").write_bytes(
        (ROOT / "tests/chat/templates/chatml.jinja").read_bytes()
    )
    made = []
    for number, how in enumerate(([], ["--speculate", "prompt"], ["--speculate", model])):
        folder = tmp_path / str(number)
        command = ["chat", "--model-name", model, "--tasks-root", tasks, "--receipts", folder]
        command += ["--date", "2026-01-02T03:04:05", "--context", 400, "--max-new-tokens", 20, *how]
        command = [str(c) for c in command]
        lines = b"Speak, speak.\nSpeak, speak.\n"
        subprocess.run([BIN, *command], input=lines, capture_output=True, check=True, timeout=300)
        made.append([(folder / f"turn-{n}.json").read_bytes() for n in (1, 2)])
    assert made[0] == made[1] == made[2]


def test_what_has_no_drafts_is_refused_by_name(tasks, tmp_path, model):
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('"a"\n"b"\n')
    command = [
        "run",
        "--model-name",
        MODEL,
        "--tasks-root",
        tasks,
        "--receipt-path",
        tmp_path / "r.json",
    ]
    batch = [*command, "--prompt-file", prompts, "--batch-size", 2, "--speculate", "prompt"]
    refused(*batch, code=3, names=("--speculate prompt", "--batch-size"))
    text = [*command, "--prompt-text", "x"]
    refused(*text, "--speculate", tmp_path / "none", names=("--speculate", "none"))
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    which = f"token {min(words['a'], words['b'])} is another"
    refused(*text, "--speculate", model, code=3, names=("--speculate", "vocabulary", which))
    refused(*text, "--speculate", "mtp", code=3, names=("--speculate mtp", "no head"))
    shutil.rmtree(model)
    set_ = ["--operation-set", "deterministic", "--speculate", "prompt"]
    refused(*text, *set_, code=3, names=("--speculate prompt", "reproducible"))
    # With one at a time each prompt has its drafts.
    done = invar(*batch[:-4], "--speculate", "prompt")
    assert done.text.count("drafted tokens accepted") == 2


def scaled(folder, factors):
    """The checkpoint with tensors times a number: the first key that ends a name decides. A matrix
    as a factor takes the tensor's place."""
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[:8], "little")
    for name, stored in json.loads(data[8 : 8 + size]).items():
        factor = next((f for end, f in factors.items() if name.endswith(end)), None)
        if name == "__metadata__" or factor is None:
            continue
        begin, end = (8 + size + offset for offset in stored["data_offsets"])
        old = np.frombuffer(bytes(data[begin:end]), "<f4").reshape(stored["shape"])
        new = factor if isinstance(factor, np.ndarray) else old * np.float32(factor)
        assert new.shape == old.shape, name
        data[begin:end] = new.astype("<f4").tobytes()
    path.write_bytes(data)


def with_head(name, folder):
    """A checkpoint with a head for several tokens, whose parts have the names of its family."""
    vector = VECTORS[name]
    shapes, config = dict(vector["shapes"]), vector["config"]
    hidden, behind = config["hidden_size"], config["num_hidden_layers"]
    last = max(int(k.split(".")[2]) for k in shapes if ".self_attn.o_proj." in k)
    if name.startswith("qwen3"):
        layer, fc = "mtp.layers.0.", "mtp.fc"
        norms = ["mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm"]
    else:
        layer = head = f"model.layers.{behind}."
        fc, norms = head + "eh_proj", [head + n for n in ("enorm", "hnorm", "shared_head.norm")]
        table = shapes["model.embed_tokens.weight"]
        shapes |= {head + "embed_tokens.weight": table, head + "shared_head.head.weight": table}
    own = f"model.layers.{last}."
    shapes |= {layer + k.removeprefix(own): s for k, s in shapes.items() if k.startswith(own)}
    shapes |= {fc + ".weight": [hidden, 2 * hidden]} | {n + ".weight": [hidden] for n in norms}
    old = config["vocab_size"]
    shapes = {k: [SHIPPED_TOKENS if n == old else n for n in s] for k, s in shapes.items()}
    write(folder, {**config, "vocab_size": SHIPPED_TOKENS}, shapes, vector["seed"])
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / file, folder)
    return fc + ".weight", hidden


@pytest.mark.parametrize("name", ["qwen3_next", "qwen3_5", "glm4_moe", "deepseek_v3"])
def test_the_head_for_several_tokens(run, name, tmp_path):
    folder = tmp_path / "model"
    fc, hidden = with_head(name, folder)
    options = ["--no-do-sample", "--max-new-tokens", 40]
    drawn = ["--temperature", "0.7", "--seed", 5, "--max-new-tokens", 40]
    for given in (options, drawn, [*options, "--prefill-chunk", 5]):
        receipt, _ = run(*given, model=folder)
        same, answer = run(*given, "--speculate", "mtp", model=folder)
        assert same == receipt and answer["drafted"] > 0, given
    # Where layers add little to the embedding of a token, which the head passes on, it says what
    # the model says.
    small = {end: 2.0**-10 for end in ("o_proj.weight", "out_proj.weight", "down_proj.weight")}
    one = np.full(hidden, 0 if name.startswith("qwen3") else 1)  # theirs add 1
    norms = {n + ".weight": one for n in ("model.norm", "mtp.norm", "shared_head.norm")}
    norms |= {n + ".weight": one for n in ("pre_fc_norm_embedding", "enorm")}
    scaled(folder, {fc: np.eye(hidden, 2 * hidden), **small, **norms})
    for given in (options, [*options, "--numerics", "exact16"]):
        receipt, _ = run(*given, model=folder)
        same, answer = run(*given, "--speculate", "mtp", model=folder)
        assert same == receipt
        assert answer["accepted"] > 0.7 * answer["drafted"] > 10
    refused(
        *["run", "--model-name", folder, "--prompt-text", "x", "--speculate", "mtp"],
        *["--receipt-path", tmp_path / "r.json", "--n-partitions", 2],
        code=3,
        names=("--speculate mtp", "--n-partitions"),
    )
