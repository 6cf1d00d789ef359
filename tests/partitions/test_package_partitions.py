"""invar.generate() and invar.verify() of a model in partitions: the receipt of one partition, and
the refusals."""

import copy

import pytest
from conftest import BUILD, MODEL

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402


def answer(tasks, **named):
    return invar.generate(MODEL, "JULIET:", max_new_tokens=12, tasks_root=tasks, **named)


@pytest.fixture(scope="module")
def whole(tasks):
    made = answer(tasks)
    assert "placement" not in made.receipt["execution"]
    return made


@pytest.mark.parametrize(
    "named,parts",
    [
        ({"n_partitions": 1}, 0),
        ({"n_partitions": 2}, 2),
        ({"n_partitions": 5, "prefill_chunk": 1}, 5),
        ({"n_partitions": 3, "kv_cache": False}, 3),
        ({"device": "cpu,cpu"}, 2),
        ({"tensor_parallel": 2}, 1),
        ({"tensor_parallel": 4, "n_partitions": 2, "device": ["cpu", "cpu"]}, 2),
        ({"device": ["cpu", "cpu"], "n_partitions": 4}, 4),
        ({"weights_memory": 6_000_000}, 0),
        ({"weights_memory": 2**62}, 0),
        ({"weights_memory": 6_000_000, "n_partitions": 2}, 2),
        ({"weights_memory": 6_000_000, "tensor_parallel": 2}, 1),
    ],
)
def test_the_receipt_of_one_partition(tasks, whole, named, parts):
    made = answer(tasks, **named)
    assert made.receipt_hash == whole.receipt_hash and made.tokens == whole.tokens
    placement = made.receipt["execution"].get("placement")
    assert (0 if placement is None else len(placement.split("; "))) == parts


def test_pieces_and_an_abandoned_answer(tasks, whole):
    assert "".join(answer(tasks, n_partitions=3)) == whole.text
    left = answer(tasks, n_partitions=2)
    assert whole.text.startswith(next(left))
    del left
    assert answer(tasks, n_partitions=2).text == whole.text


@pytest.mark.parametrize(
    "named",
    [
        {"n_partitions": 3},
        {"n_partitions": 5, "threads": 1, "prefill_chunk": 7},
        {"device": ("cpu", "cpu")},
        {"tensor_parallel": 3},
        {"weights_memory": 6_000_000},
    ],
)
def test_verified_in_other_partitions(whole, named):
    assert invar.verify(whole, MODEL, **named).verdict == "VERIFIED"
    forged = copy.deepcopy(whole.receipt)
    forged["output"]["tokens"][5] ^= 1
    assert not invar.verify(forged, MODEL, **named)


def test_a_part_of_the_steps(whole):
    for named in ({"spot": 2}, {"steps": (3, 6)}):
        assert invar.verify(whole, MODEL, n_partitions=2, **named).verdict == "SPOT CHECKED"


@pytest.mark.parametrize(
    "named,kind,text",
    [
        ({"n_partitions": 6}, invar.BadInput, "6 partitions: the model has 5 layers"),
        ({"n_partitions": -1}, invar.BadInput, "n_partitions: -1 is not a whole number"),
        ({"n_partitions": True}, invar.BadInput, "n_partitions: True is not a whole number"),
        ({"n_partitions": "2"}, invar.BadInput, "n_partitions: '2' is not a whole number"),
        ({"n_partitions": 1, "device": "cpu,cpu"}, invar.BadInput, "2 devices are named for 1"),
        ({"tensor_parallel": 5}, invar.BadInput, "8 query heads and 4 key heads"),
        ({"tensor_parallel": 0}, invar.BadInput, "tensor_parallel: 0 is not a whole number"),
        ({"device": "cpu,"}, invar.BadInput, "device 'cpu,': names, comma separated"),
        ({"device": []}, invar.BadInput, "device: list is no str"),
        ({"device": ["cpu", 0]}, invar.BadInput, "device: int is no str"),
        ({"weights_memory": 1}, invar.BadInput, "that the largest layer needs"),
        ({"weights_memory": "6MB"}, invar.BadInput, "weights_memory: '6MB' is not a whole number"),
    ],
)
def test_refusals(tasks, whole, named, kind, text):
    for call in (lambda: answer(tasks, **named), lambda: invar.verify(whole, MODEL, **named)):
        with pytest.raises(kind) as caught:
            call()
        assert text in str(caught.value) and "\n" not in str(caught.value)


def test_a_deterministic_program_repeats_in_its_parts(tasks):
    made = answer(tasks, n_partitions=2, operation_set="deterministic")
    assert invar.verify(made, MODEL, n_partitions=2)
    with pytest.raises(invar.NotCovered, match="placement: the receipt has 'layers "):
        invar.verify(made, MODEL)
