"""Contributions of single units to the gradients of parameters (invar.autograd.exact)."""

import pytest
import torch
from gradients import random
from invar import primitives as p
from invar.autograd import exact


class Sums:
    """An accumulator that keeps what it gets. Each row of a batch is a unit."""

    units = 0

    def __init__(self):
        self.parts = []

    def add(self, per_unit):
        assert not per_unit.requires_grad
        self.parts.append(per_unit)


class Pairs(Sums):
    def add_matmul(self, a, b):
        self.parts.append((a, b))


@pytest.fixture
def registered():
    made = []

    def register(parameter, accumulator=None):
        accumulator = accumulator or Sums()
        exact.register(parameter, accumulator)
        made.append(parameter)
        return accumulator

    yield register
    for parameter in made:
        exact.unregister(parameter)


def leaf(*shape, seed=0):
    return torch.nn.Parameter(random(*shape, seed=seed))


CASES = {
    "matmul": ((5, 4), lambda x, w: p.matmul(x, w, trans_a=0, trans_b=1)),
    "matmul plain": ((4, 5), lambda x, w: p.matmul(x, w, trans_a=0, trans_b=0)),
    "bias": ((4,), p.add),
    "bias of channels": ((3, 1), p.add),
    "bias with an axis of units": ((1, 3, 1), lambda x, w: p.sub(x, w)),
    "scale": ((4,), p.mul),
    "quotient": ((3, 4), p.div),
    "number": ((), p.mul),
    "slope": ((3, 1), p.prelu),
    "extreme": ((4,), p.max),
    "causal convolution": ((4, 3), p.causal_conv),
    "its bias": ((4,), lambda x, w: p.causal_conv(x, random(4, 3, seed=4), w)),
}


@pytest.mark.parametrize("name", CASES)
def test_contributions_are_the_gradients_of_units_alone(registered, name):
    shape, function = CASES[name]
    x, w = random(6, 3, 4, seed=1), leaf(*shape, seed=2)
    grad = random(*function(x, w).shape, seed=3)
    alone = [
        torch.autograd.grad(function(x[u : u + 1], w), w, grad[u : u + 1])[0] for u in range(6)
    ]
    sums = registered(w)
    function(x, w).backward(grad)
    assert w.grad is None
    (found,) = sums.parts
    assert found.shape == (6, *shape) and torch.equal(found, torch.stack(alone))
    for start, end in ((0, 2), (2, 6)):  # however they are split
        sums.parts.clear()
        function(x[start:end], w).backward(grad[start:end])
        assert torch.equal(sums.parts[0], found[start:end])


def test_a_parameter_used_twice_gives_twice(registered):
    x, w = random(6, 3, 4, seed=1), leaf(4, 4, seed=2)
    sums = registered(w)
    y = p.matmul(x, w, trans_a=0, trans_b=0)
    p.matmul(y, w, trans_a=0, trans_b=1).sum().backward()
    assert len(sums.parts) == 2 and w.grad is None


def test_factors_of_contributions(registered):
    x, w = random(6, 3, 4, seed=1), leaf(5, 4, seed=2)
    pairs = registered(w, Pairs())
    p.matmul(x, w, trans_a=0, trans_b=1).backward(grad := random(6, 3, 5, seed=3))
    ((a, b),) = pairs.parts
    assert torch.equal(a, grad) and torch.equal(b, x)


def test_other_operands_get_gradients_as_always(registered):
    x, w = leaf(6, 3, 4, seed=1), leaf(5, 4, seed=2)
    function = lambda: p.matmul(x, w, trans_a=0, trans_b=1).sum()
    expected = torch.autograd.grad(function(), x)[0]
    registered(w)
    function().backward()
    assert torch.equal(x.grad, expected)


def test_what_has_no_units_is_refused(registered):
    w = leaf(4, 4, seed=2)
    registered(w)
    with pytest.raises(NotImplementedError, match="mul: operand 1 is a parameter with exact"):
        p.mul(random(4, 4, seed=1), w).sum().backward()
    with pytest.raises(NotImplementedError, match="exp: operand 0 is a parameter with exact"):
        p.exp(w).sum().backward()
    y = p.matmul(random(2, 4, seed=1), w, trans_a=0, trans_b=0)
    with pytest.raises(NotImplementedError, match="no gradients of gradients"):
        torch.autograd.grad(y.sum(), w, create_graph=True, allow_unused=True)
    # Versions of torch's compiler raise the error itself, or their own, whose message may quote it.
    with pytest.raises((torch._dynamo.exc.Unsupported, NotImplementedError)):
        torch.compile(lambda x: p.exp(x), backend="eager", fullgraph=True)(w.detach())


def test_registration():
    w, before = leaf(4, seed=1), set(exact.REGISTERED)
    for wrong in (w * 2, w.detach()):
        with pytest.raises(ValueError, match="no leaf"):
            exact.register(wrong, Sums())
    exact.register(w, Sums())
    assert exact.active()
    assert len(exact.REGISTERED) == len(before) + 1
    del w
    assert set(exact.REGISTERED) == before  # it does not keep parameters alive
