"""Operation sets: what each may run, what its receipts say, and what verify says of them. Where a
library has to be there it is a planted one (tests/operation_sets/planted.cc), whose bits are not
those of reproducible kernels."""

import copy
import json
import os
import re

import onnx
import pytest
from conftest import BUILD, MODEL, cpu_isas, few_rooms, invar, refused
from onnx import helper
from receipt_oracle import put, reseal

SETS = ("default", "deterministic", "reproducible")
PLANTED = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/operation_sets")}
# More tokens than the rows from which on a library is asked.
LONG = (
    "ROMEO:\nBut, soft! what light through yonder window breaks?\n"
    "It is the east, and Juliet is the sun.\nArise, fair sun, and kill\n"
)


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """The shipped model as plans of every set, one weight of it a value: of constant ones a library
    has no use on a CPU."""
    folder = tmp_path_factory.mktemp("plans")
    invar("export", "--model-name", MODEL, "-o", folder)
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    nodes, name = model.graph.node, "model.layers.0.self_attn.o_proj.weight.transposed"
    zero = helper.make_tensor("zero", onnx.TensorProto.FLOAT, [], [0.0])
    model.graph.initializer.append(zero)
    # w + 0 * the smallest position: w, as a value.
    made = [
        helper.make_node("Cast", ["position_ids"], ["p0"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceMin", ["p0"], ["p1"], keepdims=0),
        helper.make_node("Mul", ["p1", "zero"], ["p2"]),
        helper.make_node("Add", [name, "p2"], ["as a value"]),
    ]
    reader = next(i for i, n in enumerate(nodes) if n.op_type == "MatMul" and name in n.input)
    nodes[reader].input[1] = "as a value"
    for node in reversed(made):
        nodes.insert(reader, node)
    onnx.save(model, folder / "model.onnx")
    for one in SETS:
        invar(
            "compile", folder / "model.onnx", "-o", folder / f"{one}.invar", "--operation-set", one
        )
    return folder


@pytest.fixture(scope="module")
def made(generate, plans):
    """made(set, *options, **planted) -> a run of 12 tokens after a long prompt, with the planted
    library."""

    def f(operation_set, *options, library=True, **planted):
        env = {**(PLANTED if library else os.environ), **planted}
        return generate(
            "--plan", plans / f"{operation_set}.invar", *options, prompt=LONG, tokens=12, env=env
        )

    return f


@pytest.fixture(scope="module")
def deterministic(made):
    return made("deterministic")


@pytest.fixture(scope="module")
def verify(plans):
    """Verifies with the plan of the set that the receipt names."""

    def f(receipt, *options, code=0, library=True, **planted):
        env = {**(PLANTED if library else os.environ), **planted}
        claimed = json.loads(receipt.read_text())["program"]["operation_set"]
        plan = plans / f"{claimed if claimed in SETS else SETS[0]}.invar"
        return invar(
            "verify", receipt, "--model-name", MODEL, "--plan", plan, *options, code=code, env=env
        )

    return f


def write(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content))
    return path


def test_an_unknown_set_is_refused_with_the_known_ones(tmp_path):
    for command in (
        ["run", "--model-name", MODEL, "--prompt-text", "A"],
        ["compile", tmp_path / "model.onnx"],
    ):
        for name in ("fast", "Default", "reproducible "):
            refused(*command, "--operation-set", name, names=[name, *SETS])


def test_every_set_runs_the_shipped_model(generate, answer):
    digests = set()
    for name in SETS:
        got = generate("--operation-set", name)
        assert (
            got["libraries"] == []
            and got["operation_set"] == name
            and got["content"]["program"]["operation_set"] == name
        )
        digests.add(got["content"]["program"]["digest"])
        assert {"kernels", "libraries", "processor", "prefill_chunk", "kv_cache"} <= set(
            got["content"]["execution"]
        ) or name == SETS[2]
        if name == SETS[2]:
            assert got["receipt_hash"] == answer["receipt_hash"]
            assert set(got["content"]["execution"]) == {
                "device",
                "isa",
                "machine",
                "plan",
                "threads",
                "version",
            }
    assert len(digests) == 3


def test_a_library_is_used_where_the_set_allows_it(made):
    of = {name: made(name) for name in SETS}
    assert len(of["default"]["prompt_tokens"]) > 33
    for name in SETS[:2]:
        assert "matmul onednn" in of[name]["kernels"] and of[name]["libraries"] == ["oneDNN 99.1.0"]
        execution = of[name]["content"]["execution"]
        assert execution["libraries"] == "oneDNN 99.1.0" and "matmul onednn" in execution["kernels"]
    logits = {name: of[name]["content"]["output"]["logits"] for name in SETS}
    assert (
        logits["default"] == logits["deterministic"]
        and logits["default"][0] != logits["reproducible"][0]
    )
    assert of["reproducible"]["libraries"] == [] and not any(
        "onednn" in k for k in of["reproducible"]["kernels"]
    )
    assert of["reproducible"]["receipt_hash"] == made("reproducible", library=False)["receipt_hash"]
    forced = made("default", "--isa", cpu_isas()[-1])
    assert (
        forced["libraries"] == []
        and forced["content"]["output"] == of["reproducible"]["content"]["output"]
    )


def test_a_default_receipt_is_checked_and_then_refused(made, verify, tmp_path):
    content = made("default")["content"]
    done = verify(write(tmp_path, content), code=3)
    assert "default" in done.errors[0] and "VERIFIED" not in done.text
    assert "no run can verify it" in invar("validate", write(tmp_path, content)).text
    for where, value, name in [
        (("model", "config"), "0" * 64, "model.config"),
        (("program", "digest"), "0" * 64, "program.digest"),
        (("input", "tokens", 1), 7, "input.tokens"),
        (("output", "text"), "To be.", "output.text"),
    ]:
        assert name in verify(write(tmp_path, reseal(put(content, where, value))), code=1).text


def test_a_deterministic_receipt_repeats_here(deterministic, verify):
    for options in ([], ["--threads", 1], ["--threads", 3], ["--prefill-chunk", 5]):
        done = verify(deterministic["receipt"], *options)
        assert "REPEATED ON THIS MACHINE" in done.text and "VERIFIED" not in done.text
        assert "nothing is said of any other" in done.text
    done = verify(deterministic["receipt"], "--json").json()
    assert (
        done["ok"]
        and done["verdict"] == "REPEATED ON THIS MACHINE BY A GIVEN PLAN"
        and "deterministic" in done["compared"]["promise"]
    )


@pytest.mark.parametrize(
    "options",
    [["--prefill-chunk", 40], ["--prefill-chunk", 7], ["--no-kv-cache"], ["--threads", 3]],
    ids=str,
)
def test_however_it_was_run(made, verify, options):
    assert "REPEATED" in verify(made("deterministic", *options)["receipt"]).text


def test_another_machine_or_software_is_refused_by_name(deterministic, verify, tmp_path):
    receipt, content = deterministic["receipt"], deterministic["content"]
    for differs, done in [
        ("oneDNN 99.1.7", verify(receipt, code=3, PLANTED_PATCH="7")),
        ("isa", verify(receipt, "--isa", "reference", code=3)),
    ]:
        assert differs in done.errors[0] and "VERIFIED" not in done.text
    for key in ("processor", "version", "machine", "libraries", "kernels"):
        other = verify(write(tmp_path, reseal(put(content, ("execution", key), "another"))), code=3)
        assert f"{key}: the receipt has 'another', here it is" in other.errors[0]
    for key in ("processor", "prefill_chunk", "kv_cache", "libraries"):
        less = copy.deepcopy(content)
        del less["execution"][key]
        assert key in verify(write(tmp_path, reseal(less)), code=3).errors[0]
    for value in ("0", "-1", "x", "", "9" * 30):
        verify(write(tmp_path, reseal(put(content, ("execution", "prefill_chunk"), value))), code=3)


def test_bits_that_do_not_repeat_are_found(deterministic, verify, made, tmp_path):
    assert (
        "output.logits[0]"
        in verify(
            made("deterministic", PLANTED_NOISE="1")["receipt"], code=1, PLANTED_NOISE="1"
        ).text
    )
    content = put(deterministic["content"], ("output", "logits", 3), "0" * 64)
    done = verify(write(tmp_path, reseal(content)), code=1)
    assert "NOT REPEATED" in done.text and "output.logits[3]" in done.text


def test_a_forged_set_is_found(made, deterministic, verify, tmp_path):
    contents = {
        "deterministic": deterministic["content"],
        "default": made("default")["content"],
        "reproducible": made("reproducible")["content"],
    }
    for name, content in contents.items():
        for other in SETS:
            if other != name:
                done = verify(
                    write(tmp_path, reseal(put(content, ("program", "operation_set"), other))),
                    code=1,
                )
                assert "program.digest" in done.text
        unknown = write(tmp_path, reseal(put(content, ("program", "operation_set"), "fast")))
        assert "program.operation_set" in invar("validate", unknown, code=1).text
        assert "program.operation_set" in verify(unknown, code=1).text


def test_what_a_library_does_to_threads_stays_with_it(made, deterministic):
    struck = made("deterministic", PLANTED_STRIKE="1")
    assert struck["content"]["output"] == deterministic["content"]["output"]


def test_a_library_that_refuses_is_named(plans, tmp_path):
    done = invar(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        LONG,
        "--plan",
        plans / "default.invar",
        "--max-new-tokens",
        2,
        "--receipt-path",
        tmp_path / "r.json",
        code=70,
        env={**PLANTED, "PLANTED_REFUSE": "1"},
    )
    assert "oneDNN 99.1.0" in done.errors[0] and not (tmp_path / "r.json").exists()


def test_plans_carry_their_set(tmp_path):
    invar("export", "--model-name", MODEL, "-o", tmp_path)
    texts = {}
    for name in SETS:
        invar(
            "compile",
            tmp_path / "model.onnx",
            "-o",
            tmp_path / f"{name}.invar",
            "--operation-set",
            name,
        )
        texts[name] = (tmp_path / f"{name}.invar").read_text()
        assert f'\noperations "{name}"\n' in texts[name]
    invar("compile", tmp_path / "model.onnx", "-o", tmp_path / "p.invar")
    programs = {re.search(r"\nprogram .*\n", text)[0] for text in texts.values()}
    assert len(programs) == len(SETS)
    neutral = lambda text, name: re.sub(
        r"\nprogram .*\n",
        "\n",
        text.replace(f'operations "{name}"', "").replace(f"{name}.invar", ""),
    )
    assert (tmp_path / "p.invar").read_text().replace("p.invar", "reproducible.invar") == texts[
        "reproducible"
    ]
    assert len({neutral(text, name) for name, text in texts.items()}) == 1
    run = [
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        LONG,
        "--max-new-tokens",
        2,
        "--receipt-path",
        tmp_path / "r.json",
        "--json",
    ]
    assert invar(*run, "--plan", tmp_path / "default.invar").json()["operation_set"] == "default"
    refused(
        *run,
        "--plan",
        tmp_path / "default.invar",
        "--operation-set",
        "reproducible",
        names=["default", "reproducible"],
    )
    (tmp_path / "p.invar").write_text(
        texts["default"].replace('operations "default"', 'operations "fast"')
    )
    refused("infer", tmp_path / "p.invar", "--tokens", "1", code=3, names=["fast", *SETS])


def test_the_doctor_checks_no_library():
    doctor = ["doctor", "--rooms", few_rooms()]
    report = invar(*doctor, "--json", env=PLANTED).json()
    assert (
        "oneDNN 99.1.0" in report["libraries"]
        and "oneDNN 99.1.0; not checked" in invar(*doctor, env=PLANTED).text
    )
    assert report["ok"] and not {r["isa"].split("_")[0] for r in report["rows"]} - {
        "reference",
        "scalar",
        "avx2",
        "avx512",
        "neon",
        "cuda",
    }


def test_the_systems_own_library_repeats(made, verify):
    if not made("default", library=False)["libraries"]:
        pytest.skip("there is no oneDNN on this machine")
    first, second = (
        made("deterministic", library=False),
        made("deterministic", "--threads", 3, library=False),
    )
    assert first["receipt_hash"] == second["receipt_hash"]
    assert "REPEATED ON THIS MACHINE" in verify(first["receipt"], library=False).text
