"""invar.InferenceSession: the answers and receipts of invar.generate()."""

import os
import shutil

import pytest
from built import invar
from conftest import MODEL


@pytest.fixture(scope="module")
def session(tasks):
    return invar.InferenceSession(MODEL, tasks_root=str(tasks), threads=1)


def test_an_answer_has_text_and_receipt(session, tasks):
    answer = session.complete(prompt="ROMEO:", max_new_tokens=4)
    want = invar.generate(MODEL, "ROMEO:", max_new_tokens=4, tasks_root=str(tasks))
    assert answer.text == want.text and answer.receipt_hash == want.receipt_hash
    assert invar.verify(answer.receipt, MODEL).ok
    again = session.complete("ROMEO:", max_new_tokens=4, do_sample=True, temperature=2.0, seed=1)
    assert again.receipt_hash != answer.receipt_hash


def test_a_model_is_loaded_once(tasks):
    """Longer prompts, other sampling and a beginning that the memory holds: receipts are those of a
    model that is loaded for each."""
    session = invar.InferenceSession(MODEL, tasks_root=str(tasks), threads=1)
    assert session._kept.loads == 0
    for prompt, options in [
        ("ROMEO:", {"max_new_tokens": 4}),
        ("ROMEO:\nI do remember an apothecary", {"max_new_tokens": 30}),  # needs more memory
        ("ROMEO:\nI do remember", {"max_new_tokens": 3, "temperature": 1.5, "seed": 7}),
        ("ROMEO:\nI do remember", {"max_new_tokens": 3, "temperature": 1.5, "seed": 7}),
        ("JULIET:", {"max_new_tokens": 8, "stop_strings": "e"}),
    ]:
        with pytest.raises(invar.BadInput):
            session.complete("word " * 9000, **options)  # more than the model has positions
        answer = session.complete(prompt, **options)
        want = invar.generate(MODEL, prompt, tasks_root=str(tasks), threads=1, **options)
        assert answer.receipt_json == want.receipt_json
        assert session._kept.loads == 1
    session.complete("ROMEO:", max_new_tokens=2, kv_cache=False)  # another engine
    assert session._kept.loads == 1


def test_weights_that_change_end_the_session(tasks, tmp_path):
    model = shutil.copytree(MODEL, tmp_path / "model")
    session = invar.InferenceSession(model, tasks_root=str(tasks), max_new_tokens=2)
    session.complete("ROMEO:")
    weights = next(model.glob("*.safetensors"))
    os.utime(weights, (1, 1))
    with pytest.raises(invar.Failed, match=weights.name):
        session.complete("ROMEO:")
    session.complete("ROMEO:")  # loads it again


def test_bad_requests_are_refused_by_name(session):
    with pytest.raises(invar.BadInput, match="no prompt"):
        session.complete(max_new_tokens=4)
    with pytest.raises(invar.BadInput, match="tools and enable_thinking are for messages="):
        session.complete(prompt="x", tools=[])
    with pytest.raises(invar.Error):
        session.complete(messages=[{"role": "user", "content": "x"}])  # the model has no template
    with pytest.raises(TypeError, match="'heat'"):
        invar.InferenceSession(MODEL, heat=1)
    with pytest.raises(TypeError):
        session.complete(prompt="x", heat=1)
    with pytest.raises(invar.BadInput, match="belongs to a call"):
        invar.InferenceSession(MODEL, tools=[])
