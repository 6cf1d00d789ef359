"""A decoder whose graph has an `If` or a size that a token decides runs as a session does: prompts
in pieces, new tokens, a receipt that `verify` accepts. Its logits are those of the plain decoder,
bit for bit (spec/plan.md, plan.10)."""

import numpy as np
import onnx
import pytest
from conftest import MODEL, cpu_isas, invar, refused
from onnx import TensorProto, helper, numpy_helper

PROMPT = "ROMEO:"
NEW = 12
TOKENS = "5,3,11,2,9,4,1,8,7,6,10,0,12,3"


def with_if(graph, last):
    """The logits come out of an `If`, whose second branch negates them twice. The first runs while
    a token is larger than every position."""

    def branch(name, negations):
        nodes = [helper.make_node("MatMul", list(last.input), [f"{name}0"])]
        nodes += [
            helper.make_node("Neg", [f"{name}{i}"], [f"{name}{i + 1}"]) for i in range(negations)
        ]
        result = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
        return helper.make_graph(nodes, name, [], [result])

    graph.node.remove(last)
    graph.node.extend(
        [
            helper.make_node("ReduceMax", ["input_ids"], ["largest"], keepdims=0),
            helper.make_node("ReduceMax", ["position_ids"], ["newest"], keepdims=0),
            helper.make_node("Less", ["newest", "largest"], ["first"]),
            helper.make_node(
                "If",
                ["first"],
                ["logits"],
                then_branch=branch("then", 0),
                else_branch=branch("else", 2),
            ),
        ]
    )


def with_size(graph, last):
    """The logits are multiplied by max(r, ..., r) / r with as many r as the largest token says, and
    one more."""
    last.output[0] = "plain"
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
    graph.node.extend(
        [
            helper.make_node("ReduceMax", ["input_ids"], ["largest"], keepdims=0),
            helper.make_node("Add", ["largest", "one"], ["count"]),
            helper.make_node("ReduceMax", [last.input[0]], ["r0"], keepdims=0),
            helper.make_node("Reshape", ["r0", "one"], ["r"]),
            helper.make_node("Expand", ["r", "count"], ["many"]),
            helper.make_node("ReduceMax", ["many"], ["most"], keepdims=1),
            helper.make_node("Div", ["most", "r"], ["unit"]),
            helper.make_node("Mul", ["plain", "unit"], ["logits"]),
        ]
    )


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """Name -> plan: the plain decoder and those with control flow."""
    work = tmp_path_factory.mktemp("decoders")
    invar("export", "--model-name", MODEL, "-o", work)
    for name, change in (("if", with_if), ("size", with_size)):
        model = onnx.load(work / "model.onnx", load_external_data=False)
        change(model.graph, next(n for n in model.graph.node if "logits" in n.output))
        onnx.save(model, work / f"{name}.onnx")
    (work / "model.onnx").rename(work / "plain.onnx")
    for name in ("plain", "if", "size"):
        invar("compile", work / f"{name}.onnx", "-o", work / f"{name}.invar")
    assert "= if.1(" in (work / "if.invar").read_text()
    assert "\nbind " in (work / "size.invar").read_text()
    return {name: work / f"{name}.invar" for name in ("plain", "if", "size")}


def generated(plan, *options):
    said = invar("infer", plan, "--tokens", TOKENS, "--max-new-tokens", NEW, *options).json()
    return said["tokens"], said["logits"]


@pytest.mark.parametrize("kind", ["if", "size"])
def test_the_bits_of_the_plain_decoder(plans, kind, tmp_path):
    want = generated(plans["plain"])
    assert generated(plans[kind]) == want
    for options in (
        ["--threads", 1],
        ["--threads", 3, "--prefill-chunk", 5],
        ["--no-kv-cache"],
        *(["--isa", isa, "--threads", 2] for isa in cpu_isas()),
    ):
        assert generated(plans[kind], *options) == want, options
    logits = []
    for name in ("plain", kind):
        invar("infer", plans[name], "--tokens", TOKENS, "--logits-output", tmp_path / name)
        logits.append((tmp_path / name).read_bytes())
    assert logits[0] == logits[1]


@pytest.mark.parametrize("kind", ["if", "size"])
def test_a_receipt_is_verified(plans, generate, kind):
    plain = generate("--plan", plans["plain"], prompt=PROMPT, tokens=NEW)
    answer = generate("--plan", plans[kind], prompt=PROMPT, tokens=NEW)
    assert answer["tokens"] == plain["tokens"]
    assert answer["content"]["output"] == plain["content"]["output"]
    verdict = invar(
        "verify", answer["receipt"], "--model-name", MODEL, "--plan", plans[kind], "--threads", 1
    )
    assert "VERIFIED BY A GIVEN PLAN" in verdict.text
    # A receipt binds the program, so a plan with the same bits confirms it.
    assert answer["receipt_hash"] == plain["receipt_hash"]
    other = invar("verify", answer["receipt"], "--model-name", MODEL, "--plan", plans["plain"])
    assert "VERIFIED" in other.text and "as it was given" in other.text


def test_several_sequences_are_refused(plans):
    refused(
        "infer",
        plans["if"],
        "--tokens",
        "1,2",
        "--tokens",
        "3",
        code=3,
        names=[
            "several sequences need a plan with memory between steps: run one sequence at a time"
        ],
    )


def test_explain_says_what_each_pass_leaves(plans):
    plain = invar("infer", plans["plain"], "--tokens", TOKENS, "--max-new-tokens", 2)
    done = invar(
        "infer",
        plans["plain"],
        "--tokens",
        TOKENS,
        "--max-new-tokens",
        2,
        "--isa",
        "scalar",
        "--explain",
    )
    assert done.json() == plain.json()
    lines = done.err.decode().splitlines()
    passes = [line.split()[1].rstrip(":") for line in lines if line.startswith("pass ")]
    assert passes == [
        "bind-symbols",
        "select-kernels",
        "mark-feeds-state",
        "mark-constants",
        "alias-views",
        "fuse-epilogues",
        "fuse-prologues",
        "fuse-chains",
        "plan-memory",
        "assign-layouts",
        "mark-concurrent",
    ]
    assert any(" = attention scalar (" in line for line in lines)
    assert any("fused into operation " in line for line in lines)
    assert any("concurrent with operation " in line for line in lines)
    assert "pass select-kernels" not in plain.text
    # A plan with control flow is prepared for each length of the sequence.
    done = invar("infer", plans["if"], "--tokens", TOKENS, "--max-new-tokens", 2, "--explain")
    assert done.err.decode().count("pass fuse-epilogues") == 4  # its segment and a body, twice
