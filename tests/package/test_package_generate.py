"""invar.generate() and invar.verify(): the answer, the receipt and the refusals of the command
line, byte for byte."""

import copy
import json
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import BUILD, MODEL, ROOT, execute, refused, safetensors_header
from conftest import invar as program
from receipt_oracle import leaf, merkle_root

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402

GOLDEN = ROOT / "tests/golden/romeo.receipt.json"
ROMEO = {"prompt": "ROMEO:", "max_new_tokens": 64}


@pytest.fixture(scope="module")
def romeo(tasks):
    answer = invar.generate(MODEL, **ROMEO, tasks_root=tasks)
    pieces = list(answer)
    return answer, pieces


@pytest.fixture
def command(generate):
    """command(*options) -> (what `invar run --json` says, the bytes of its receipt)."""

    def f(*options):
        said = generate(*options, tokens=16)
        return said, said["receipt"].read_bytes()

    return f


def test_the_committed_receipt_of_the_demo(romeo):
    answer, _ = romeo
    golden = json.loads(GOLDEN.read_text())
    assert (
        answer.receipt_hash
        == golden["receipt_hash"]
        == "e8032411df4cf61c8e2cebf9b15e3e447aa0a5ce9d05b77ac5073e76f003765a"
    )
    assert answer.tokens == golden["output"]["tokens"] and answer.text == golden["output"]["text"]
    assert (
        answer.receipt["digests"] == golden["digests"]
        and answer.finish_reason == golden["output"]["finish_reason"]
    )


def test_text_comes_in_pieces(romeo):
    answer, pieces = romeo
    assert "".join(pieces) == answer.text and len(pieces) > 20 and all(pieces)
    assert list(answer) == [] and next(answer, None) is None


def test_the_receipt_is_that_of_the_command_line_to_the_byte(tasks, command, tmp_path):
    said, receipt = command()
    path = tmp_path / "python.json"
    answer = invar.generate(MODEL, "ROMEO:", max_new_tokens=16, tasks_root=tasks, receipt_path=path)
    assert not path.exists()
    assert answer.text == said["text"] and answer.tokens == said["tokens"]
    assert path.read_bytes() == receipt and answer.receipt_json.encode() == receipt
    assert answer.receipt == json.loads(receipt) and answer.receipt_hash == said["receipt_hash"]


@pytest.mark.parametrize(
    "options,arguments",
    [
        (["--no-do-sample"], {"do_sample": False}),
        (
            ["--temperature", "1.5", "--top-k", 0, "--top-p", "0.95", "--seed", 7],
            {"temperature": 1.5, "top_k": 0, "top_p": 0.95, "seed": 7},
        ),
        (
            ["--temperature", "0.1", "--seed", 18446744073709551615],
            {"temperature": 0.1, "seed": 2**64 - 1},
        ),
        (["--no-generation-config"], {"generation_config": False}),
        (
            ["--min-p", "0.1", "--min-new-tokens", 3, "--stop", "the", "--stop", "\n"],
            {"min_p": 0.1, "min_new_tokens": 3, "stop_strings": ["the", "\n"]},
        ),
        (
            ["--repetition-penalty", "1.3", "--no-repeat-ngram-size", 2]
            + ["--suppress-tokens", "9,5"],
            {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "suppress_tokens": (9, 5)},
        ),
        (
            ["--temperature", "0.9", "--stream", 2**64 - 1, "--logit-bias", "13:-1.1,297:0.3"]
            + ["--frequency-penalty", "0.1", "--presence-penalty", "-0.2"]
            + ["--stop", ":", "--stop-in-answer", "--logprobs", 2],
            {
                **{"temperature": 0.9, "stream": 2**64 - 1, "logit_bias": {297: 0.3, 13: -1.1}},
                **{"frequency_penalty": 0.1, "presence_penalty": -0.2},
                **{"stop_strings": ":", "stop_in_answer": True, "logprobs": 2},
            },
        ),
        (
            ["--no-kv-cache", "--prefill-chunk", 1, "--threads", 1],
            {"kv_cache": False, "prefill_chunk": 1, "threads": 1},
        ),
        (["--operation-set", "deterministic"], {"operation_set": "deterministic"}),
        ([], {"speculate": "prompt"}),
        (
            ["--structured-outputs", '{"json": {"type": "array"}}', "--stop-token-ids", 9]
            + ["--bad-words", "thee", "--seed", 3],
            {
                **{"structured_outputs": {"json": {"type": "array"}}, "stop_token_ids": [9]},
                **{"bad_words": "thee", "seed": 3, "speculate": "prompt"},
            },
        ),
    ],
    ids=[
        "greedy",
        "drawn",
        "coldest seed",
        "no defaults",
        "min_p",
        "penalty",
        "stream",
        "execution",
        "deterministic",
        "drafts",
        "form",
    ],
)
def test_parameters(tasks, command, options, arguments):
    said, receipt = command(*options)
    answer = invar.generate(MODEL, "ROMEO:", max_new_tokens=16, tasks_root=tasks, **arguments)
    assert answer.receipt_hash == said["receipt_hash"] and answer.receipt_json.encode() == receipt
    assert answer.logprobs == said.get("logprobs", [])


def test_a_budget_of_reasoning(tasks):
    """It says nothing without reasoning; the shipped model has no token that would end some."""
    asked = {"max_new_tokens": 8, "do_sample": False, "tasks_root": tasks}
    plain, bounded = (
        invar.generate(MODEL, "ROMEO:", **asked, thinking_token_budget=n) for n in (None, 3)
    )
    assert bounded.receipt_json == plain.receipt_json
    with pytest.raises(invar.NotCovered, match="</think> is not one token"):
        invar.generate(MODEL, "ROMEO:\n<think>\n", **asked, thinking_token_budget=3)


def test_words_that_never_come(tasks):
    plain = invar.generate(MODEL, "ROMEO:", max_new_tokens=4, tasks_root=tasks, do_sample=False)
    answer = invar.generate(
        MODEL,
        "ROMEO:",
        max_new_tokens=4,
        tasks_root=tasks,
        do_sample=False,
        bad_words_ids=[plain.tokens[1:3]],
    )
    assert answer.tokens[:2] == plain.tokens[:2] and answer.tokens[2] != plain.tokens[2]
    assert answer.receipt["input"]["bad_words_ids"] == [plain.tokens[1:3]]
    assert invar.verify(answer, MODEL)


def test_do_sample_draws_where_the_checkpoint_says_nothing(tasks):
    drawn = invar.generate(
        MODEL, "ROMEO:", max_new_tokens=4, tasks_root=tasks, do_sample=True, generation_config=False
    ).receipt["input"]
    assert (drawn["do_sample"], drawn["temperature"], drawn["top_k"], drawn["top_p"]) == (
        True,
        "1",
        50,
        "1",
    )


def test_a_binary64_temperature_is_rounded_once(tasks):
    for value in (0.7, np.float32(0.7), np.float64(0.7)):
        answer = invar.generate(MODEL, "A", max_new_tokens=1, tasks_root=tasks, temperature=value)
        assert answer.receipt["input"]["temperature"] == "0.7"


def test_text_before_the_end_computes_the_rest(tasks, romeo):
    answer = invar.generate(MODEL, **ROMEO, tasks_root=tasks)
    first = next(answer)
    assert romeo[0].text.startswith(first) and answer.text == romeo[0].text


def test_an_abandoned_answer_writes_no_receipt(tasks, tmp_path):
    answer = invar.generate(MODEL, **ROMEO, tasks_root=tasks, receipt_path=tmp_path / "r.json")
    next(answer)
    del answer
    assert list(tmp_path.iterdir()) == []


def test_threads_of_python_go_on(tasks, romeo):
    """Two answers in two threads, and one answer shared by two: nothing is lost, nothing computed
    twice."""
    both = [invar.generate(MODEL, **ROMEO, tasks_root=tasks) for _ in range(2)]
    shared, parts = invar.generate(MODEL, **ROMEO, tasks_root=tasks), ([], [])
    work = [threading.Thread(target=lambda a=a: a.text) for a in both] + [
        threading.Thread(target=lambda p=p: p.extend(shared)) for p in parts
    ]
    for t in work:
        t.start()
    for t in work:
        t.join()
    assert [a.receipt_hash for a in both] == [romeo[0].receipt_hash] * 2
    assert sum(map(len, parts)) == len(romeo[1]) and shared.receipt_hash == romeo[0].receipt_hash


def refusal(kind, *arguments, **named):
    with pytest.raises(kind) as caught:
        invar.generate(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_chat_messages_are_refused_as_by_the_command_line(tmp_path):
    messages = [{"role": "user", "content": "Hi"}]
    text = refusal(invar.BadInput, MODEL, messages=messages)
    (tmp_path / "p.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    done = refused("run", "--model-name", MODEL, "--prompt-file", tmp_path / "p.jsonl")
    assert done.errors[0].endswith(text.removeprefix("messages")) and "chat template" in text
    both = refusal(invar.BadInput, MODEL, "Hi", messages=messages)
    assert "one of them" in both
    assert "not JSON" in refusal(invar.BadInput, MODEL, messages=[{"content": object()}])


@pytest.mark.parametrize(
    "options,arguments",
    [
        (["--prompt-text", "A", "--max-new-tokens", 4096], {"prompt": "A", "max_new_tokens": 4096}),
        (["--prompt-text", "A", "--temperature", -1], {"prompt": "A", "temperature": -1.0}),
        (["--prompt-text", "A", "--top-p", "1.5"], {"prompt": "A", "top_p": 1.5}),
        (["--prompt-text", "A", "--receipt-path", ""], {"prompt": "A", "receipt_path": ""}),
        (["--prompt-text", "A", "--plan", "none.invar"], {"prompt": "A", "plan": "none.invar"}),
    ],
    ids=[
        "too long",
        "temperature",
        "top_p",
        "receipt name",
        "plan",
    ],
)
def test_refusals_are_the_lines_of_the_command_line(tasks, tmp_path, options, arguments):
    receipt = [] if "receipt_path" in arguments else ["--receipt-path", tmp_path / "r.json"]
    done = execute(["run", "--model-name", MODEL, "--tasks-root", tasks, *receipt, *options])
    assert done.code in (2, 3) and len(done.errors) == 1
    text = refusal(invar.Error, MODEL, tasks_root=tasks, **arguments)
    assert "invar: " + text == done.errors[0]


@pytest.mark.parametrize("name,value", [("isa", "sse9"), ("device", "tpu")])
def test_values_that_the_command_line_checks_first(tasks, name, value):
    """There with a hint for who types them."""
    done = refused("run", "--model-name", MODEL, "--prompt-text", "A", f"--{name}", value)
    assert f"--{name}: {value}" in done.errors[0]
    assert f"'{value}'" in refusal(invar.BadInput, MODEL, "A", tasks_root=tasks, **{name: value})


def test_a_receipt_that_cannot_be_written(tasks):
    """The command line makes folders of results, the package does not."""
    path = "/nowhere/r.json"
    assert path in refusal(invar.Error, MODEL, "A", tasks_root=tasks, receipt_path=path)


def test_an_unknown_operation_set():
    """The command line's parser refuses it, in words of its own; both name what there is."""
    done = refused("run", "--model-name", MODEL, "--prompt-text", "A", "--operation-set", "best")
    text = refusal(invar.BadInput, MODEL, "A", operation_set="best")
    for line in (done.errors[0], text):
        assert "best" in line and "one of default, deterministic, reproducible" in line


@pytest.mark.parametrize("model", ["nowhere", "no/where", "a\0b"])
def test_no_such_model(model):
    assert refusal(invar.BadInput, model, "A").startswith("model ")


@pytest.mark.parametrize(
    "arguments,name",
    [
        ({}, "prompt"),
        ({"prompt": b"A"}, "prompt"),
        ({"prompt": 7}, "prompt"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"prompt": "A", "max_new_tokens": 0}, "max_new_tokens"),
        ({"prompt": "A", "max_new_tokens": 1.5}, "max_new_tokens"),
        ({"prompt": "A", "max_new_tokens": True}, "max_new_tokens"),
        ({"prompt": "A", "top_k": -1}, "top_k"),
        ({"prompt": "A", "top_k": 2**31}, "top_k"),
        ({"prompt": "A", "seed": -1}, "seed"),
        ({"prompt": "A", "seed": 2**64}, "seed"),
        ({"prompt": "A", "temperature": "hot"}, "temperature"),
        ({"prompt": "A", "temperature": float("nan")}, "temperature"),
        ({"prompt": "A", "temperature": float("inf")}, "temperature"),
        ({"prompt": "A", "temperature": 1e300}, "temperature"),
        ({"prompt": "A", "do_sample": 1}, "do_sample"),
        ({"prompt": "A", "do_sample": False, "top_k": 5}, "do_sample"),
        ({"prompt": "A", "do_sample": False, "min_p": 0.1}, "do_sample"),
        ({"prompt": "A", "min_p": 1.5}, "min_p"),
        ({"prompt": "A", "thinking_token_budget": 0}, "thinking_token_budget"),
        ({"prompt": "A", "repetition_penalty": "1"}, "repetition_penalty"),
        ({"prompt": "A", "repetition_penalty": 0}, "repetition_penalty"),
        ({"prompt": "A", "frequency_penalty": 2.5}, "frequency_penalty"),
        ({"prompt": "A", "presence_penalty": "1"}, "presence_penalty"),
        ({"prompt": "A", "logit_bias": [5]}, "logit_bias"),
        ({"prompt": "A", "logit_bias": {5: None}}, "logit_bias"),
        ({"prompt": "A", "logit_bias": {-5: 1}}, "logit_bias"),
        ({"prompt": "A", "logit_bias": {5: 101}}, "logit_bias"),
        ({"prompt": "A", "stream": 2**64}, "stream"),
        ({"prompt": "A", "logprobs": 21}, "logprobs"),
        ({"prompt": "A", "no_repeat_ngram_size": -1}, "no_repeat_ngram_size"),
        ({"prompt": "A", "min_new_tokens": 1.5}, "min_new_tokens"),
        ({"prompt": "A", "suppress_tokens": "5"}, "suppress_tokens"),
        ({"prompt": "A", "suppress_tokens": 5}, "suppress_tokens"),
        ({"prompt": "A", "suppress_tokens": [-1]}, "suppress_tokens"),
        ({"prompt": "A", "structured_outputs": {"json": {"format": "x"}}}, "structured_outputs"),
        ({"prompt": "A", "structured_outputs": {"json": {1, 2}}}, "structured_outputs"),
        ({"prompt": "A", "allowed_token_ids": [10**7]}, "allowed_token_ids"),
        ({"prompt": "A", "bad_words_ids": [5]}, "bad_words_ids"),
        ({"prompt": "A", "bad_words_ids": [[]]}, "bad_words_ids"),
        ({"prompt": "A", "stop_strings": [""]}, "stop_strings"),
        ({"prompt": "A", "stop_strings": [7]}, "stop_strings"),
        ({"prompt": "A", "threads": -1}, "threads"),
        ({"prompt": "A", "threads": 10**9}, "threads"),
        ({"prompt": "A", "device": None}, "device"),
        ({"prompt": "A", "receipt_path": 7}, "receipt_path"),
        ({"prompt": "A", "kv_cache": "yes"}, "kv_cache"),
    ],
)
def test_wrong_input_is_named(arguments, name):
    assert refusal(invar.BadInput, MODEL, **arguments).startswith((name, f"no {name}"))


def test_verify(romeo, tmp_path):
    answer, _ = romeo
    (tmp_path / "r.json").write_text(answer.receipt_json)
    done = program("verify", tmp_path / "r.json", "--model-name", MODEL)
    for receipt in (answer, answer.receipt, str(tmp_path / "r.json"), tmp_path / "r.json"):
        verdict = invar.verify(receipt, MODEL)
        assert verdict and verdict.ok and verdict.verdict == "VERIFIED" and verdict.findings == ()
        assert (
            verdict.receipt_hash == answer.receipt_hash and "64 of 64" in verdict.compared["steps"]
        )
    assert verdict.report == done.out.decode()
    assert invar.verify(GOLDEN, MODEL, threads=1, prefill_chunk=7).ok


@pytest.mark.parametrize("name", ["numerics", "operation_set"])
def test_an_empty_name_is_no_default(name):
    with pytest.raises(invar.BadInput, match=f"{name}: '' is no name"):
        invar.generate(MODEL, "A", max_new_tokens=1, **{name: ""})


def test_verify_finds_the_model_of_an_earlier_run(romeo):
    verdict = invar.verify(romeo[0])
    assert verdict.ok and verdict.compared["folder"].endswith(
        "(the folder of the last run here with these weights)"
    )


def test_validate(romeo, tmp_path):
    verdict = invar.validate(romeo[0].receipt)
    assert (
        verdict.ok and verdict.verdict == "VALID" and verdict.receipt_hash == romeo[0].receipt_hash
    )
    (tmp_path / "r.json").write_text(romeo[0].receipt_json)
    assert (
        invar.validate(tmp_path / "r.json").report
        == program("validate", tmp_path / "r.json").out.decode()
    )


@pytest.mark.parametrize(
    "section,key,value",
    [
        ("output", "text", "Farewell."),
        ("input", "seed", "1"),
        ("model", "config", "0" * 64),
        ("output", "finish_reason", "length"),
    ],
)
def test_a_tampered_receipt(romeo, section, key, value):
    receipt = copy.deepcopy(romeo[0].receipt)
    if receipt[section][key] == value:
        value = "stop"
    receipt[section][key] = value
    for verdict in (invar.validate(receipt), invar.verify(receipt, MODEL)):
        assert not verdict and verdict.verdict.startswith("NOT ") and verdict.receipt_hash == ""
        assert any(f.field == f"{section}.{key}" for f in verdict.findings)
        assert f"{section}.{key}: the receipt says" in verdict.report


def test_a_forged_receipt(romeo, tasks):
    """Hashes that fit, of an answer that this model did not give: only verify() finds it."""
    receipt = copy.deepcopy(romeo[0].receipt)
    receipt["input"]["seed"] = "1"
    receipt["digests"]["input.seed"] = leaf("input.seed", "1").hex()
    receipt["receipt_hash"] = merkle_root(
        [bytes.fromhex(d) for d in receipt["digests"].values()]
    ).hex()
    assert invar.validate(receipt).ok
    verdict = invar.verify(receipt, MODEL)
    assert (
        not verdict.ok
        and verdict.verdict == "NOT VERIFIED"
        and verdict.findings[0].field.startswith("output.tokens[")
    )


def test_another_model(romeo, model):
    shard = model / "model-00002-of-00003.safetensors"
    data = bytearray(shard.read_bytes())
    data[safetensors_header(shard)[1]] ^= 1
    shard.write_bytes(data)
    verdict = invar.verify(romeo[0], model)
    assert not verdict.ok and verdict.findings[0].field.startswith("model.tensors[")


@pytest.mark.parametrize("receipt", ["nowhere.json", {"a": float("nan")}, {"a": {1, 2}}, 7, None])
def test_no_receipt(receipt):
    with pytest.raises(invar.BadInput):
        invar.verify(receipt, MODEL)


def test_a_run_that_promises_nothing_is_not_verified(tasks):
    answer = invar.generate(MODEL, "A", max_new_tokens=2, tasks_root=tasks, operation_set="default")
    assert "no run can verify it" in invar.validate(answer).compared["note"]
    with pytest.raises(invar.NotCovered, match="nobody can verify"):
        invar.verify(answer, MODEL)


def test_rounding_that_another_library_changed(tasks, romeo):
    if platform.machine() != "x86_64":
        pytest.skip("the number of the rounding mode is that of x86-64")
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(BUILD / "python")!r})
import invar
ctypes.CDLL("libm.so.6").fesetround(0x400)  # downwards
print(invar.generate({str(MODEL)!r}, "ROMEO:", max_new_tokens=64, tasks_root={str(tasks)!r}).receipt_hash)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == romeo[0].receipt_hash
