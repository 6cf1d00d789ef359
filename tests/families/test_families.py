"""Each family against transformers, by the vectors that tools/families/make_vectors.py wrote:
logits in float64 and greedy tokens. The same answer whatever computes it."""

import hashlib
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import BIN, BUILD, MODEL, ROOT, invar

sys.path.insert(0, str(Path(__file__).parent))
from random_checkpoint import write  # noqa: E402

LINES = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
# Of the largest logit. Sums in float32 err by about 1e-7 of it.
ALLOWED = 1e-6
# Where transformers' own float32 errs by more, as recurrent layers and versions of the residual
# stream do, up to that and this.
ALLOWED_RECURRENT = 2e-6
ALLOWED_EXACT16 = 5e-4


def ids(tokens):
    return ",".join(map(str, tokens))


@pytest.fixture(scope="module", params=VECTORS)
def model(request, tmp_path_factory):
    """-> (what transformers computes, the compiled plan)."""
    vector = VECTORS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])
    long = ["--long-context"] if request.param.endswith("-long-context") else []
    invar("export", "--model-name", folder / "model", "-o", folder, *long)
    invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
    return vector, folder / "plan.invar"


def test_the_specification_shows_a_program_of_another_family(tmp_path):
    """spec/program.md has the text and the digest of what its config.json becomes."""
    page = (ROOT / "spec/program.md").read_text().split("## Example of another family\n")[1]
    config = page.split("```json\n")[1].split("```")[0]
    vector = VECTORS["gemma3"]
    write(tmp_path / "model", json.loads(config), vector["shapes"], vector["seed"])
    invar("export", "--model-name", tmp_path / "model", "-o", tmp_path)
    text = invar("compile", tmp_path / "model.onnx", "--emit", "program").out.decode()
    assert text == page.split("```\n")[2] and hashlib.sha256(text.encode()).hexdigest() in page


def logits(plan, vector, *options):
    out = plan.parent / "logits.bin"
    invar("infer", plan, "--tokens", ids(vector["tokens"]), "--logits-output", out, *options)
    return np.fromfile(out, "<f4").reshape(len(vector["tokens"]), -1)


def test_logits_against_float64(model):
    vector, plan = model
    ours = logits(plan, vector)
    allowed = ALLOWED
    if any(re.search(r"conv_?1d|\.altup\.", name) for name in vector["shapes"]):
        allowed = max(ALLOWED, min(ALLOWED_RECURRENT, vector["float32_error"]))
    for row, exact in vector["rows"].items():
        error = np.abs(ours[int(row)] - np.array(exact)).max() / vector["largest"]
        print(f"row {row}: {error:.2g} of the largest")
        assert error <= allowed


def test_greedy_tokens_equal_transformers(model):
    vector, plan = model
    n = len(vector["greedy"])
    run = ["--tokens", ids(vector["tokens"]), "--no-do-sample", "--max-new-tokens", n]
    done = invar("infer", plan, *run).json()
    assert json.dumps(vector["greedy"])[1:-1] in json.dumps(done)


def test_bits_do_not_depend_on_what_computes_them(model):
    vector, plan = model
    ours = logits(plan, vector).tobytes()
    chunks = (1, 7, 63, 64, 65) if len(vector["tokens"]) > 65 else (1,)
    for options in (
        ["--isa", "scalar", "--threads", 1],
        ["--threads", 3, "--prefill-chunk", 5],
        *(["--prefill-chunk", n] for n in chunks),
        ["--no-kv-cache"],
        ["--tensor-parallel", 2],
    ):
        assert logits(plan, vector, *options).tobytes() == ours, options


RECURRENT = [n for n, v in VECTORS.items() if any(re.search("conv_?1d", t) for t in v["shapes"])]


@pytest.mark.parametrize("model", RECURRENT, indirect=True)
def test_chunks_of_recurrent_layers_are_those_of_positions(model):
    """Their chunks have 64 positions, whatever the pieces of a prompt."""
    vector, plan = model
    ours = logits(plan, vector).tobytes()
    for chunk in (7, 63, 64, 65):
        assert logits(plan, vector, "--prefill-chunk", chunk).tobytes() == ours, chunk


def test_the_profile_exact16(model):
    """Its bits do not depend on what computes them either, and stay near the exact logits."""
    vector, fp32 = model
    plan = fp32.parent / "exact16.invar"
    invar("compile", plan.parent / "model.onnx", "--numerics", "exact16", "-o", plan)
    ours = logits(plan, vector)
    for row, exact in vector["rows"].items():
        error = np.abs(ours[int(row)] - np.array(exact)).max() / vector["largest"]
        print(f"row {row}: {error:.2g} of the largest")
        assert error <= ALLOWED_EXACT16
    for options in (
        ["--isa", "scalar", "--threads", 1],
        ["--threads", 3, "--prefill-chunk", 5],
        ["--no-kv-cache"],
        ["--tensor-parallel", 2],
    ):
        assert logits(plan, vector, *options).tobytes() == ours.tobytes(), options


@pytest.mark.parametrize("model", ["phi3", "gpt_neox", "bloom", "mixtral", "qwen3"], indirect=True)
def test_ranks_divide_fused_layers_heads_and_experts(model):
    """Of two ranks the second has half of the weights, but for the embedding, and of the memory."""
    _, plan = model

    def ranks(count):
        report = ["compile", plan.parent / "model.onnx", "--tensor-parallel", count, "--report"]
        return invar(*report, "--json").json()["partitions"]

    alone, (_, second) = ranks(1)[0], ranks(2)
    assert second["weights_bytes"] < 0.52 * alone["weights_bytes"]
    assert 2 * second["state_bytes_per_token"] == alone["state_bytes_per_token"]


@pytest.mark.parametrize("model", ["mamba2", "lfm2", "qwen3", "gemma4"], indirect=True)
def test_a_report_tells_states_apart(model):
    """Bytes that a sequence takes whatever its length, and those of each token."""
    vector, plan = model
    report = ["compile", plan.parent / "model.onnx", "--report", "--json"]
    [part] = invar(*report).json()["partitions"]
    per_token, per_sequence = part["state_bytes_per_token"], part["state_bytes_per_sequence"]
    assert (per_token > 0) == (vector["config"]["model_type"] != "mamba2")
    assert (per_sequence > 0) == any("conv" in name for name in vector["shapes"])


SHIPPED_TOKENS = 2048


def with_tokenizer(name, folder, changes=None):
    """A checkpoint with the tokenizer of the shipped model, so with as many tokens."""
    vector = VECTORS[name]
    config = {**vector["config"], **(changes or {})}
    text = config.get("text_config", config)
    old = text["vocab_size"]
    for key in ("vocab_size", "vocab_size_per_layer_input"):
        if key in text:
            text = {**text, key: SHIPPED_TOKENS}
    config = {**config, "text_config": text} if "text_config" in config else text
    shapes = {
        k: [SHIPPED_TOKENS if n == old else n for n in s] for k, s in vector["shapes"].items()
    }
    write(folder, config, shapes, vector["seed"])
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / file, folder)
    return folder


def run_of(folder, tmp_path, count, **how):
    run = ["run", "--model-name", folder, "--prompt-text", "ROMEO:", "--no-do-sample"]
    run += ["--receipt-path", folder / "receipt.json", "--tasks-root", tmp_path / "tasks"]
    return invar(*run, "--max-new-tokens", count, **how)


@pytest.mark.parametrize("name", ["gemma3-whole", "gemma4-whole", "llama4-whole"])
def test_a_run_says_that_pictures_are_not_taken(name, tmp_path):
    folder = with_tokenizer(name, tmp_path / "model")
    said = run_of(folder, tmp_path, 2).err.decode()
    kind = VECTORS[name]["config"]["model_type"]
    assert f"of {kind} the text model alone is used: pictures" in said
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["model"]["text_of"] == kind
    told = invar("verify", folder / "receipt.json", "--model-name", folder, "--json").json()
    assert told["verdict"] == "VERIFIED"


WHOLE = re.findall(
    r'^    {"(\w+)", "(\w+)", "(\w+)"',
    (ROOT / "src/checkpoint/text_config.h").read_text().split("kWholeModels")[1],
    re.M,
)
# Text models of other families than the usual one.
WHOLE += [
    ("llava", "LlavaForConditionalGeneration", "mistral"),
    ("llava_next", "LlavaNextForConditionalGeneration", "granite"),
    ("mistral3", "Mistral3ForConditionalGeneration", "ministral3"),
    ("mistral3", "Mistral3ForConditionalGeneration", "mistral4"),
    ("internvl", "InternVLForConditionalGeneration", "qwen3"),
]
PLACES = {
    "idefics2": "model.text_model.",
    "idefics3": "model.text_model.",
    "smolvlm": "model.text_model.",
    "qwen2_5_omni": "thinker.model.",
    "qwen3_omni_moe": "thinker.model.",
}


def of_text(text_type):
    """-> config, shapes and seed of a text model, also of one that is within larger ones alone."""
    for v in VECTORS.values():
        if v["config"]["model_type"] == text_type:
            return v, v["config"], v["shapes"]
    v = next(
        v
        for v in VECTORS.values()
        if v["config"].get("text_config", {}).get("model_type") == text_type
    )
    place = re.compile(r"model\.language_model\.|language_model\.model\.")
    names = {n: place.sub("model.", n).removeprefix("language_model.") for n in v["shapes"]}
    shapes = {
        names[n]: s
        for n, s in v["shapes"].items()
        if names[n].startswith(("model.embed", "model.layers", "model.norm", "lm_head"))
    }
    name = {"glm4v_text": "Glm4vTextModel", "mllama_text_model": "MllamaForCausalLM"}[text_type]
    config = {**v["config"]["text_config"], "architectures": [name]}
    if text_type == "glm4v_text":
        config.pop("rope_scaling")  # how three positions share it
    return v, config, shapes


def said(text):
    """The config with keys whose defaults are others within larger models."""
    keys = {"rms_norm_eps": 1e-6, "norm_topk_prob": False, "attention_bias": False}
    keys["head_dim"] = text["hidden_size"] // text["num_attention_heads"]
    if not {"rope_parameters", "rope_scaling"} & text.keys():
        keys["rope_theta"] = 10000.0
    return keys | text


@pytest.mark.parametrize("kind,architecture,text_type", WHOLE)
def test_a_whole_model_is_its_text_model(kind, architecture, text_type, tmp_path):
    """The same logits, wherever the tensors of the text lie, and whatever lies beside them."""
    vector, text, stored = of_text(text_type)
    if kind.startswith(("qwen", "voxtral", "glm4v_moe")):
        text = said(text)
    tied = "lm_head.weight" not in stored
    whole = {"model_type": kind, "architectures": [architecture]}
    about = {"text_config": text, "vision_config": {"model_type": "siglip"}}
    about["tie_word_embeddings"] = tied
    place = PLACES.get(kind, "model.language_model.")
    omni = place.startswith("thinker.")
    whole |= {"thinker_config": about} if omni else about
    answers = []
    for number, config in enumerate((text, whole)):
        folder = tmp_path / str(number)
        shapes = dict(stored)
        if number:
            shapes = {n.replace("model.", place, 1): s for n, s in shapes.items()}
        if number and omni:
            shapes = {n.replace("lm_head", "thinker.lm_head"): s for n, s in shapes.items()}
        write(folder / "model", config, shapes, vector["seed"], like=text)
        invar("export", "--model-name", folder / "model", "-o", folder)
        invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
        answers.append(logits(folder / "plan.invar", vector).tobytes())
    assert answers[0] == answers[1]


def test_llama_4_ends_with_its_first_chunk(tmp_path):
    """Of 128 positions, as a model whose layers all see all of them has."""
    full = {"layer_types": ["full_attention"] * 4}
    for number, (changes, code) in enumerate(
        [({}, 0), ({**full, "attention_chunk_size": 16}, 0), ({"attention_chunk_size": 16}, 2)]
    ):
        folder = with_tokenizer("llama4", tmp_path / str(number), changes)
        done = run_of(folder, tmp_path, 30, code=code)
        assert code == 0 or "16" in done.errors[0]


@pytest.mark.parametrize("name", ["deepseek_v32", "glm_moe_dsa"])
def test_a_model_with_an_indexer_ends_where_it_begins_to_choose(name, tmp_path):
    for number, (most, code) in enumerate([(36, 0), (16, 2)]):
        folder = with_tokenizer(name, tmp_path / str(number), {"index_topk": most})
        done = run_of(folder, tmp_path, 30, code=code)
        assert code == 0 or str(most) in done.errors[0]


@pytest.mark.parametrize(
    "name",
    [
        "mistral-window",
        "gemma3",
        "phi3",
        "granite",
        "gpt2",
        "gpt_neox",
        "opt",
        "cohere2",
        "deepseek_v3",
        "qwen3_moe",
        "gpt_oss",
        "qwen3_next",
        "qwen3_5",
        "olmo_hybrid",
        "lfm2",
        "mamba2",
        "granitemoehybrid-mamba",
        "falcon_h1",
        "nemotron_h",
        "gemma3n",
        "kimi_linear",
        "mamba",
        "jamba",
        "afmoe",
        "minimax",
        "zamba2",
        "longcat_flash",
        "recurrent_gemma",
        "xglm",
        "codegen",
    ],
)
def test_receipts_are_equal_and_verify(name, tmp_path):
    folder = with_tokenizer(name, tmp_path / "model")
    run = ["run", "--model-name", folder, "--prompt-text", "ROMEO:\nIs the day so young?"]
    run += ["--no-do-sample", "--max-new-tokens", 24, "--tasks-root", tmp_path / "tasks"]
    receipts = []
    for options in (["--isa", "scalar"], ["--threads", 3, "--prefill-chunk", 4], ["--no-kv-cache"]):
        path = tmp_path / f"{len(receipts)}.json"
        invar(*run, "--receipt-path", path, *options)
        receipts.append(json.loads(path.read_text())["receipt_hash"])
    assert len(set(receipts)) == 1
    assert "VERIFIED" in invar("verify", path, "--model-name", folder).text
    # plan.21: also of plans with parts of tensors, and with constants that are computed from them.
    [task] = (tmp_path / "tasks").iterdir()
    given = ["--model-name", folder, "--plan", task / "plan.invar"]
    assert "VERIFIED BY A GIVEN PLAN" in invar("verify", path, *given).text


@pytest.mark.parametrize(
    "name",
    "lfm2_moe bamba mamba2 kimi_linear jamba minimax zamba2 longcat_flash recurrent_gemma".split(),
)
def test_states_keep_their_bits_in_batches_and_partitions(name, tmp_path):
    folder, prompts = with_tokenizer(name, tmp_path / "model"), tmp_path / "prompts.jsonl"
    texts = ["ROMEO:\n" + "Is the day so young? " * 16, "Ay me! sad hours seem long."]
    prompts.write_text("".join(json.dumps(t) + "\n" for t in texts))
    run = ["run", "--model-name", folder, "--no-do-sample", "--max-new-tokens", 8]
    alone = []
    for number, options in enumerate(([], ["--n-partitions", 2], ["--prefill-chunk", 63])):
        path = tmp_path / f"{number}.json"
        invar(*run, "--prompt-text", texts[0], "--receipt-path", path, *options)
        alone.append(json.loads(path.read_text()))
    assert len({r["receipt_hash"] for r in alone}) == 1
    assert len(alone[0]["input"]["tokens"]) > 65
    out = tmp_path / "batch.json"
    invar(*run, "--prompt-file", prompts, "--batch-size", 2, "--receipt-path", out)
    made = [json.loads(f.read_text())["receipt_hash"] for f in tmp_path.glob("batch*.json")]
    assert len(made) == 2 and alone[0]["receipt_hash"] in made


# Tokens of the shipped tokenizer: 3, and more than 20.
SHORT, LONG = "ROMEO:", "ROMEO:\nIs the day so young? " * 4


def longrope(folder, original=20):
    changes = {"max_position_embeddings": 256, "original_max_position_embeddings": original}
    return with_tokenizer("phi3-long-context", folder, changes)


def test_a_prompt_decides_the_factors_of_longrope(tmp_path):
    """decoder.29: whatever the chunks. Every receipt is verified with the program of its prompt."""
    folder = longrope(tmp_path / "model")
    run = ["run", "--model-name", folder, "--max-new-tokens", 8, "--receipt-path"]
    paths = [tmp_path / f"{n}.json" for n in range(5)]
    invar(*run, paths[0], "--prompt-text", SHORT)
    chunks = (["--threads", 3], ["--prefill-chunk", 1], ["--prefill-chunk", 7], ["--no-kv-cache"])
    for path, options in zip(paths[1:], chunks):
        invar(*run, path, "--prompt-text", LONG, *options)
    short, *long = (json.loads(p.read_text()) for p in paths)
    assert len({r["receipt_hash"] for r in long}) == 1
    assert short["program"]["digest"] != long[0]["program"]["digest"]
    assert len(short["input"]["tokens"]) < 20 < len(long[0]["input"]["tokens"])
    both = ["--receipt-path", paths[0], "--receipt-path", paths[1]]
    assert invar("verify", *both, "--model-name", folder).text.count("VERIFIED") == 2
    invar("trace", paths[1], "--model-name", folder, "-o", tmp_path / "trace")


def test_a_sequence_keeps_its_factors(tmp_path):
    folder, prompts = longrope(tmp_path / "model"), tmp_path / "prompts.jsonl"
    run = ["run", "--model-name", folder, "--receipt-path", tmp_path / "r.json"]
    [said] = invar(*run, "--prompt-text", SHORT, "--max-new-tokens", 30, code=2).errors
    assert "--max-new-tokens 17 or less, or a prompt of more than 20 tokens" in said
    prompts.write_text("".join(json.dumps(t) + "\n" for t in (SHORT, LONG)))
    [said] = invar(*run, "--prompt-file", prompts, "--max-new-tokens", 2, code=3).errors
    assert "two programs: answer them in two runs" in said
    export = ["export", "-o", tmp_path / "out", "--long-context", "--model-name"]
    assert "no LongRoPE" in invar(*export, MODEL, code=2).errors[0]
    whole = longrope(tmp_path / "whole", original=256)
    assert "no positions beyond" in invar(*export, whole, code=2).errors[0]


def test_a_conversation_goes_beyond_the_original_length(tmp_path):
    """Its program is the other one from the turn on whose prompt is longer."""
    folder, receipts = longrope(tmp_path / "model"), tmp_path / "receipts"
    (folder / "chat_template.jinja").write_text("{{ messages | map(attribute='content') | join }}")
    chat = ["chat", "--model-name", folder, "--receipts", receipts, "--max-new-tokens", 6]
    command = [str(c) for c in (BIN, *chat, "--context", 200)]
    lines = f"{SHORT}\n{' '.join(LONG.split()[:12])}\n{SHORT}\n"
    subprocess.run(command, input=lines.encode(), check=True, timeout=300)
    made = [json.loads((receipts / f"turn-{n}.json").read_text()) for n in (1, 2, 3)]
    assert [len(r["input"]["tokens"]) > 20 for r in made] == [False, True, True]
    assert len({r["program"]["digest"] for r in made}) == 2
    for n in (1, 2, 3):
        assert (
            "VERIFIED" in invar("verify", receipts / f"turn-{n}.json", "--model-name", folder).text
        )


def package():
    if not (BUILD / "python/invar").is_dir():
        pytest.skip("this build has no Python package (INVAR_PACKAGE)")
    return importlib.import_module("invar")


def test_a_session_of_python_takes_prompts_of_both_lengths(tmp_path):
    python, folder = package(), longrope(tmp_path / "model")
    prompts = (SHORT, LONG, SHORT)
    session = python.InferenceSession(folder, max_new_tokens=4)
    made = [session.complete(p).receipt_hash for p in prompts]
    alone = [python.generate(folder, p, max_new_tokens=4).receipt_hash for p in prompts[:2]]
    assert made == [*alone, alone[0]]


@pytest.mark.parametrize("name", ["qwen3_next", "lfm2", "mamba2", "falcon_h1"])
def test_a_session_of_python_goes_on_and_back(name, tmp_path):
    """Its states go on with a conversation, back to a copy where the next prompt parts from what is
    remembered, and to the start. No receipt tells."""
    python, folder = package(), with_tokenizer(name, tmp_path / "model")
    session = python.InferenceSession(folder, max_new_tokens=6)
    first = "ROMEO:\nIs the day so young? " * 4
    answer = session.complete(first).text
    for prompt in (
        first + answer + "\nBENVOLIO:",  # goes on
        first + answer + "\nBENVOLIO:\nBut new struck nine.",
        first + "\nBut new struck nine.",  # goes back to the end of the first prompt
        "BENVOLIO:",
    ):
        alone = python.generate(folder, prompt, max_new_tokens=6)
        assert session.complete(prompt).receipt_hash == alone.receipt_hash
    assert session._kept.loads == 1
