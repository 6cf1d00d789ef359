"""Many sequences in one step: each has the bytes that it has alone, whoever comes with it
(spec/plan.md, plan.11)."""

import json
from collections import Counter

import pytest
from conftest import MODEL, cpu_isas, invar, refused

ALL = 64
NEW = 14


def tokens_of(sequence):
    """Lengths from 1 to 130: past a block of attention, prompts in several chunks."""
    return [
        (sequence * 7919 + i * 911 + sequence * i) % 2048 for i in range(1 + sequence * 37 % 130)
    ]


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    work = tmp_path_factory.mktemp("sequences")
    invar("export", "--model-name", MODEL, "-o", work)
    invar("compile", work / "model.onnx", "-o", work / "p.invar")
    return work / "p.invar"


@pytest.fixture(scope="module")
def together(plan, tmp_path_factory):
    """together(count, *options) -> the line of each of the first `count` sequences."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.json"

    def f(count, *options):
        path.write_text(json.dumps([tokens_of(i) for i in range(count)]))
        return invar(
            "infer", plan, "--tokens-file", path, "--max-new-tokens", NEW, *options
        ).out.splitlines()

    return f


@pytest.fixture(scope="module")
def stop(together):
    """A token at which some sequences end while others go on."""
    return Counter(
        t for line in together(ALL) for t in json.loads(line)["tokens"][:-1]
    ).most_common(1)[0][0]


@pytest.fixture(scope="module")
def all_of_them(together, stop):
    return together(ALL, "--stop-tokens", stop)


def test_company_does_not_show(plan, all_of_them, stop):
    lengths = {len(json.loads(line)["tokens"]) for line in all_of_them}
    assert len(lengths) > 2 and NEW in lengths  # they leave one by one
    for i in (0, 1, 2, 16, 40, 63):
        alone = invar(
            "infer",
            plan,
            "--tokens",
            ",".join(map(str, tokens_of(i))),
            "--max-new-tokens",
            NEW,
            "--stop-tokens",
            stop,
        )
        assert alone.out == all_of_them[i] + b"\n"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", sorted({"scalar", "avx2", "neon"} & set(cpu_isas())))
def test_other_company_does_not_show(together, all_of_them, stop, isa, threads):
    for count in (1, 2, 3, 17, ALL):
        given = ["--stop-tokens", stop, "--isa", isa, "--threads", threads]
        assert together(count, *given) == all_of_them[:count], count


def test_sampling_is_of_each(plan, together):
    options = ["--temperature", "1.1", "--top-k", 40, "--seed", 5]
    lines = together(3, *options)
    for i in range(3):
        assert (
            invar(
                "infer",
                plan,
                "--tokens",
                ",".join(map(str, tokens_of(i))),
                "--max-new-tokens",
                NEW,
                *options,
            ).out
            == lines[i] + b"\n"
        )


def test_tokens_given_several_times(plan, together, tmp_path):
    given = [x for i in range(3) for x in ("--tokens", ",".join(map(str, tokens_of(i))))]
    assert invar("infer", plan, *given, "--max-new-tokens", NEW).out.splitlines() == together(3)
    invar("infer", plan, *given, "--logits-output", tmp_path / "all")
    expected = b""
    for i in range(3):
        invar(
            "infer",
            plan,
            "--tokens",
            ",".join(map(str, tokens_of(i))),
            "--logits-output",
            tmp_path / "one",
        )
        expected += (tmp_path / "one").read_bytes()
    assert (tmp_path / "all").read_bytes() == expected


def test_what_cannot_be_is_refused(plan, tmp_path):
    two = ["--tokens", "1,2", "--tokens", "3"]
    refused(
        "infer", plan, *two, "--no-kv-cache", code=3, names=["several sequences need their memory"]
    )
    refused("infer", plan, "--tokens", "1,x", names=["--tokens 1,x: not token ids"])
    refused("infer", plan, "--tokens", "-1", names=["entry 0 is not a token id"])
    refused(
        "infer",
        plan,
        "--tokens",
        "1",
        "--tokens",
        "2048",
        names=["token 2048 at position 0 of sequence 1"],
    )
    refused(
        "infer",
        plan,
        *two,
        "--max-new-tokens",
        1 << 30,
        names=["memory between steps (2 x 1073741826 positions)"],
    )
    (tmp_path / "t.json").write_text("[[1, 2], 3]")
    refused(
        "infer",
        plan,
        "--tokens-file",
        tmp_path / "t.json",
        names=["t.json: neither a JSON list of token ids"],
    )
