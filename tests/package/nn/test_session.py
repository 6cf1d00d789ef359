"""invar.InferenceSession: the answers and receipts of invar.generate()."""

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
