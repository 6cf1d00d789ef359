"""What people try first who come from torch, ONNX Runtime and vLLM: it works, or one line says what
to write."""

import copy
import os
import pickle

import numpy as np
import onnx
import pytest
from conftest import BUILD, MODEL
from onnx import TensorProto, helper, numpy_helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import ops  # noqa: E402

X = np.random.default_rng(0).standard_normal((5, 4)).astype("f")


def model(name="x"):
    value = lambda n, *shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    weights = numpy_helper.from_array(np.arange(12, dtype="f").reshape(4, 3) - 5, "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", [name, "w"], ["z"])],
        "g",
        [value(name, "n", 4)],
        [value("z", "n", 3)],
        [weights],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@pytest.fixture(scope="module")
def program():
    return invar.compile(model())


@pytest.fixture(scope="module")
def session(tasks):
    return invar.InferenceSession(MODEL, tasks_root=str(tasks), max_new_tokens=6)


def test_a_model_in_memory(program):
    want = program.run(x=X)["z"].tobytes()
    assert invar.compile(model().SerializeToString()).run(x=X)["z"].tobytes() == want

    class Exported:  # as torch.onnx.export() returns it
        model_proto = model()

    assert invar.compile(Exported()).run(x=X)["z"].tobytes() == want
    assert invar.compile(model("self")).run(**{"self": X})["z"].tobytes() == want


@pytest.mark.parametrize(
    "arguments, line",
    [
        ({"model": torch.nn.Linear(2, 2)}, r"Linear is neither.*torch\.onnx\.export"),
        ({"model": MODEL}, "a folder: give its .onnx file"),
        ({"device": 0}, "device: int is no str"),
        ({"isa": None}, "isa: NoneType is no str"),
        ({"threads": "4"}, "threads: '4' is not a whole number from 0 to 1024"),
        ({"threads": 2.0}, "threads: 2.0 is not a whole number"),
    ],
)
def test_arguments_of_compile(arguments, line):
    with pytest.raises(invar.BadInput, match=line):
        invar.compile(arguments.pop("model", model()), **arguments)


def test_a_device_of_torch(session):
    assert invar.compile(model(), device=torch.device("cpu")).run(x=X)["z"].shape == (5, 3)
    assert session.complete("ROMEO:", device=torch.device("cpu")).text


@pytest.mark.parametrize("names", [None, ["z"]])
def test_a_call_as_of_onnxruntime(program, names):
    with pytest.raises(invar.BadInput, match="is onnxruntime's: give the dict alone"):
        program.run(names, {"x": X})


@pytest.mark.parametrize("set_, value", [("threads", "4"), ("threads", None), ("isa", None)])
def test_settings_of_another_type(set_, value):
    with pytest.raises(invar.BadInput, match=f"^{set_}: "):
        getattr(invar, f"set_{set_}")(value)


def test_tensors_whose_signs_are_a_flag(program):
    x = torch.from_numpy(X)
    flagged = torch._neg_view(x)
    assert flagged.is_neg() and flagged.is_contiguous()
    want = program.run(x=-x)["z"]
    assert torch.equal(program.run(x=flagged)["z"], want)
    assert torch.equal(program.run(x=torch.complex(x, x).conj().imag)["z"], want)
    assert torch.equal(ops.exp(flagged), ops.exp(-x))


@pytest.mark.parametrize(
    "of, kind",
    [
        (lambda x: x.to("meta"), "meta"),
        (lambda x: x.to_sparse(), "sparse_coo"),
        (lambda x: torch.nested.nested_tensor([x], layout=torch.jagged), "nested"),
    ],
)
def test_tensors_without_elements_in_memory(program, of, kind):
    with pytest.raises(invar.NotCovered, match=f"input 'x': a {kind} tensor"):
        program.run(x=of(torch.from_numpy(X)))


def test_a_program_for_another_process(program, tmp_path):
    want = program.run(x=X)["z"].tobytes()
    onnx.save(model(), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    beside = invar.compile(tmp_path / "m.onnx", threads=1)
    texts = [pickle.dumps(made) for made in (program, beside)]
    for file in tmp_path.iterdir():
        file.unlink()
    for text, made in zip(texts, (program, beside)):
        again = pickle.loads(text)
        assert again.digest == made.digest and again.run(x=X)["z"].tobytes() == want
        assert copy.deepcopy(made) is made
    with pytest.raises(TypeError, match="dims='call' cannot be pickled"):
        pickle.dumps(object.__new__(invar.compiler.ProgramOfCalls))


def test_a_forked_child_leaves_the_files_of_its_parent():
    made = invar.compile(model())
    child = os.fork()
    if child == 0:
        del made
        os._exit(0)
    os.waitpid(child, 0)
    assert made.plan.startswith("invar-plan")


def test_a_session_and_its_answers_for_another_process(session):
    answer = session.complete("ROMEO:", logprobs=1)
    for again in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert repr(again) == repr(answer) and list(again) == []
        assert again.receipt_json == answer.receipt_json
        assert (again.text, again.tokens) == (answer.text, answer.tokens)
        assert (again.logprobs, again.segments) == (answer.logprobs, answer.segments)
        assert invar.validate(again).receipt_hash == answer.receipt_hash
    for other in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session)):
        assert other.complete("ROMEO:", logprobs=1).receipt_json == answer.receipt_json


def test_an_answer_shows_itself(session, tasks):
    answer = invar.generate(MODEL, "ROMEO:", max_new_tokens=6, tasks_root=tasks)
    assert repr(answer) == "<invar.Generation: not at its end; .text computes the rest>"
    assert repr(session.complete("ROMEO:")) == (
        f"<invar.Generation: {answer.text!r}, 6 tokens, length>"
    )


def test_a_receipt_as_json(session):
    text = session.complete("ROMEO:").receipt_json
    assert invar.validate(text).ok and invar.verify(text, MODEL).ok
    assert not invar.validate(text.replace('"schema"', '"scheme"', 1)).ok


def test_what_a_session_does_not_take(session):
    with pytest.raises(invar.BadInput, match="prompt: a list: give one str at a time"):
        session.complete(["ROMEO:", "JULIET:"])
    with pytest.raises(invar.BadInput, match=r"invar\.compile\(\) runs an ONNX model"):
        invar.InferenceSession("model.onnx")
