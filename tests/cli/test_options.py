"""Numbers on the command line: read as they are written, in range, or refused by name before
anything is computed."""

import json

import pytest
from conftest import MODEL, invar, refused


@pytest.fixture
def receipt_of(tasks, tmp_path):
    """receipt_of(*options) -> the sampling that a run with them puts in its receipt."""

    def f(*options):
        path = tmp_path / "r.json"
        invar(
            "run",
            "--model-name",
            MODEL,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            1,
            "--tasks-root",
            tasks,
            "--receipt-path",
            path,
            *options,
        )
        return json.loads(path.read_text())["input"]

    return f


def refused_option(option, value):
    return refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "ROMEO:",
        option,
        value,
        names=[option, value],
    )


@pytest.mark.parametrize(
    "option", ["--top-k", "--seed", "--max-new-tokens", "--threads", "--prefill-chunk"]
)
@pytest.mark.parametrize(
    "value",
    ["010", "0x10", "+5", " 5", "5 ", "1_0", "1e1", "1.0", "-1", "", "18446744073709551616"],
)
def test_whole_numbers_are_plain_digits(option, value):
    refused_option(option, value)


@pytest.mark.parametrize("option", ["--temperature", "--top-p"])
@pytest.mark.parametrize(
    "value",
    [
        "0x1p-1",
        "+0.5",
        " 0.5",
        "0,5",
        "0.5f",
        "1e",
        "nan",
        "inf",
        "-inf",
        "",
        "1e400",
        "1e39",
        "1e-46",
        "1e-400",
    ],
)
def test_decimal_numbers(option, value):
    refused_option(option, value)


@pytest.mark.parametrize(
    "option,name,value",
    [("--temperature", "temperature", v) for v in ("1e-45", "1e-38", "-0.5")]
    + [("--top-p", "top_p", v) for v in ("1e-45", "1e-38", "0", "-0", "-0.5")],
)
def test_small_numbers_say_what_is_wrong(option, name, value):
    done = refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "ROMEO:",
        option,
        value,
        names=[f"{name}: {value} is outside 1.1754944e-38"],
    )
    assert "not a number" not in done.text


def test_a_temperature_of_zero_is_greedy(receipt_of):
    greedy = receipt_of("--no-do-sample")
    assert greedy["do_sample"] is False and greedy["temperature"] == "1"
    for options in (["--top-p", "0.5"], ["--seed", 7], ["--no-do-sample"]):
        assert receipt_of("--temperature", 0, *options) == greedy
    refused(
        "run", "--model-name", MODEL, "--prompt-text", "x", "--do-sample", "--temperature", 0,
        names=["temperature: 0"],
    )  # fmt: skip


def test_decimals_are_rounded_once(receipt_of):
    # Halfway between two binary32 numbers plus less than binary64 or an x86 long double resolves:
    # rounded in two steps it goes down.
    assert (
        receipt_of("--temperature", "1.00000005960464477539062500000000001")["temperature"]
        == "1.0000001"
    )
    assert receipt_of("--temperature", "1.2e-38", "--top-p", ".5") | {"tokens": 0} == receipt_of(
        "--temperature", "12E-39", "--top-p", "0.5"
    ) | {"tokens": 0}
    assert receipt_of("--top-p", "5e-1")["top_p"] == "0.5"
    assert (
        receipt_of("--top-k", "2147483647", "--seed", "18446744073709551615")["top_k"] == 2147483647
    )


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--model-name", MODEL, "--prompt-text", "x"],
        ["infer", "no.plan"],
        ["verify", "no.json"],
        ["doctor"],
        ["bench"],
    ],
    ids=lambda c: c[0],
)
def test_one_limit_of_threads(command):
    refused(*command, "--threads", 1025, names=["--threads: 1025", "1024"])


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", 1, "--seed", 1],
        ["--temperature", 1, "--temperature", 1],
        ["--top-k", 1, "--top-k", 2],
    ],
)
def test_an_option_given_twice(options):
    refused("run", "--model-name", MODEL, "--prompt-text", "x", *options, names=[options[0]])


@pytest.mark.parametrize("option", ["--temperature", "--top-k", "--top-p"])
def test_greedy_and_sampling_exclude_each_other(option):
    refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "x",
        "--no-do-sample",
        option,
        1,
        names=[option, "--no-do-sample"],
    )


@pytest.mark.parametrize(
    "command",
    [["decode", "--model-name", MODEL, "--tokens"], ["infer", "no.plan", "--stop-tokens"]],
    ids=lambda c: c[0],
)
@pytest.mark.parametrize("ids", ["1,010", "1,+2", "1,-2", "2147483648"])
def test_token_ids(command, ids):
    refused(*command, ids, names=[command[-1]])


@pytest.mark.parametrize(
    "option",
    [
        ["--max-new-tokens", 3],
        ["--temperature", "0.5"],
        ["--top-k", 3],
        ["--no-do-sample"],
        ["--stop-tokens", "1"],
    ],
)
def test_options_of_generation_where_nothing_is_generated(tmp_path, option):
    invar("export", "--model-name", MODEL, "-o", tmp_path)
    invar("compile", tmp_path / "model.onnx")
    refused(
        "infer",
        tmp_path / "plan.invar",
        "--tokens",
        "1,2",
        "--logits-output",
        tmp_path / "l",
        *option,
        names=["generates no tokens"],
    )
    refused(
        "infer",
        tmp_path / "plan.invar",
        "--input",
        "input_ids=x.npy",
        *option,
        names=["generates no tokens"],
    )


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--model-name", MODEL, "--messages", ""),
        ("run", "--model-name", MODEL, "--prompt-text", "x", "--plan", ""),
        ("run", "--model-name", "", "--prompt-text", "x"),
        ("verify", "r.json", "--model-name", MODEL, "--steps", ""),
        ("rerank", "--model-name", MODEL, "--query", "", "a document"),
    ],
)
def test_an_empty_value_is_no_value(command):
    option = command[command.index("") - 1]
    assert f"{option}: empty" in refused(*command).text


def test_an_empty_prompt_is_a_prompt():
    assert invar("encode", "--model-name", MODEL, "--prompt-text", "").json() == [0]


def test_encode_reads_the_tokenizer_of_an_encoder(tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((MODEL / name).read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    ids = [
        invar("encode", "--model-name", m, "--prompt-text", "ROMEO:").json()
        for m in (MODEL, tmp_path)
    ]
    assert ids[0] == ids[1]
    text = [invar("decode", "--model-name", m, "--tokens", "5,6").out for m in (MODEL, tmp_path)]
    assert text[0] == text[1]


def test_a_file_of_bad_lines_alone_is_one_short_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text("no\n" * 50)
    said = refused("run", "--model-name", MODEL, "--prompt-file", path).text
    assert "bad.jsonl:1:1" in said and "and 47 more prompts" in said and "bad.jsonl:4" not in said


def test_a_redaction_is_the_same_receipt(tmp_path):
    receipt, redacted = tmp_path / "r.json", tmp_path / "redacted.json"
    invar("run", "--model-name", MODEL, "--prompt-text", "x", "--max-new-tokens", 1, "--salt-prompt",
          "--receipt-path", receipt)  # fmt: skip
    invar("redact", receipt, "--output", redacted)
    assert "of equal hash" in invar("diff", receipt, redacted, code=1).text


def test_the_text_of_a_receipt_needs_its_encoder(tmp_path):
    receipt = tmp_path / "r.json"
    invar("run", "--model-name", MODEL, "--prompt-text", "x", "--max-new-tokens", 1,
          "--receipt-path", receipt)  # fmt: skip
    assert "need --model-name" in refused("verify", receipt, "--text", "x").text
