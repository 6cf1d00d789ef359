"""Exact gradients: no split of a batch into micro-batches reaches a bit."""

import sys
from pathlib import Path

import pytest
from conftest import BUILD

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path[:0] = [str(BUILD / "python"), str(Path(__file__).parent)]
import invar  # noqa: E402
import torch  # noqa: E402
from invar import primitives as p  # noqa: E402
from invar import training as t  # noqa: E402
from tiny_training import Model, drawn, loss  # noqa: E402

NAN = b"\0\0\xc0\x7f"


@pytest.fixture(autouse=True)
def registered_nowhere_else():
    """What a test registers concerns no other, whatever keeps its parameters alive."""
    from invar.autograd import exact

    yield
    exact.REGISTERED.clear()


def accumulated(parts, shape):
    exact = t.ExactGradients([("w", torch.nn.Parameter(torch.zeros(shape)))])
    for part in parts:
        exact.accumulators["w"].add(part)
    return exact


def wide(units, shape, seed=0):
    """Numbers of exponents from 2^-40 to 2^12, whose floating sum depends on the order."""
    x = drawn(seed, (units, *shape))
    return x * torch.exp2(torch.floor(drawn(seed + 1, x.shape) * 26 - 14))


def test_any_split_has_the_same_sum():
    x = wide(24, (3, 5))
    orders = [x, x.flip(0), *(x[torch.randperm(24)] for _ in range(3))]
    assert len({o.sum(0).numpy().tobytes() for o in orders}) > 1  # floating sums tell them apart
    found = set()
    for order in orders:
        for size in (1, 5, 24):
            exact = accumulated(order.split(size), (3, 5))
            assert exact.accumulators["w"].count == 24
            found.add(exact.accumulators["w"].value().numpy().tobytes())
    assert len(found) == 1
    wanted = torch.round(x.double() * 2.0**49).sum(0) * 2.0**-49
    assert torch.equal(torch.frombuffer(bytearray(found.pop()), dtype=torch.float32),
                       wanted.float().reshape(-1))  # fmt: skip


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 2.0**14, -(2.0**20)])
def test_what_is_no_sum_is_nan(bad):
    x = wide(4, (3,))
    x[2, 1] = bad
    for order in (x, x.flip(0)):
        exact = accumulated(order.split(1), (3,))
        assert exact.accumulators["w"].value().numpy().tobytes() == NAN * 3


def test_a_sum_that_may_overflow_is_nan():
    part = torch.full((1, 2), 2.0**13)
    assert accumulated([part], (2,)).accumulators["w"].value().tolist() == [2.0**13] * 2
    assert accumulated([part] * 2, (2,)).accumulators["w"].value().numpy().tobytes() == NAN * 2
    assert accumulated([part, -part], (2,)).accumulators["w"].value().numpy().tobytes() == NAN * 2


def test_the_value_rounds_once():
    sums = torch.tensor(
        [0, 1, -1, 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**62 + 2**38, 2**62 + 2**38 + 1]
    )
    found = p.fixed_value(sums, torch.tensor(0)).double() * 2.0**49
    wanted = [0, 1, -1, 2**24, 2**24 + 4, -(2**24), 2**62, 2**62 + 2**39]
    assert found.tolist() == wanted


def gradients(model, exact, batch, size):
    exact.zero()
    for part in zip(*(x.split(size) for x in batch)):
        exact.backward(loss(model, *part))
    exact.write(divisor=len(batch[0]))
    return [x.grad for x in exact.parameters.values()] + [exact.loss(len(batch[0]))]


def test_micro_batches_have_the_same_gradients():
    model, batch = Model(), (drawn(5, (12, 7, 4)), drawn(6, (12, 7, 3)))
    exact = t.ExactGradients(model)
    found = {
        b"".join(g.numpy().tobytes() for g in gradients(model, exact, batch, size))
        for size in (1, 3, 5, 12)
    }
    assert len(found) == 1
    weight, bias = (x.detach().double().requires_grad_() for x in (model.weight, model.bias))
    x, y = (part.double() for part in batch)
    total = (((x @ weight + bias) ** 2 * model.fixed.double() - y) ** 2).sum() / 12
    total.backward()
    for found, wanted in zip(
        gradients(model, exact, batch, 12), (weight.grad, bias.grad, total.detach())
    ):
        assert (found - wanted).abs().max() <= 1e-6 * wanted.abs().max()
    assert model.fixed.grad is None


def test_layers_of_transformers():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = invar.from_torch_module(layer)
    exact, x = t.ExactGradients(model), drawn(7, (6, 5, 8))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    of = lambda layer, x: layer(x, src_mask=mask)[:, -1].square().mean(dim=-1)
    found = set()
    for size in (1, 4, 6):
        exact.zero()
        for part in x.split(size):
            exact.backward(of(model, part))
        exact.write(divisor=6)
        found.add(b"".join(p.grad.numpy().tobytes() for p in model.parameters()))
    assert len(found) == 1
    ours = [p.grad.clone() for p in model.parameters()]
    exact.close()
    layer = layer.double()
    layer.zero_grad()
    of(layer, x.double()).mean().backward()
    for a, b in zip(ours, layer.parameters()):
        assert (a - b.grad).abs().max() <= 1e-5 * max(1, b.grad.abs().max())


def test_close_gives_ordinary_gradients_back():
    model = Model()
    exact = t.ExactGradients(model)
    exact.close()
    loss(model, drawn(5, (2, 7, 4)), drawn(6, (2, 7, 3))).sum().backward()
    assert model.weight.grad is not None


def test_a_parameter_without_contributions_has_no_gradient():
    model = Model()
    model.other = torch.nn.Parameter(torch.ones(2))
    exact = t.ExactGradients(model)
    gradients(model, exact, (drawn(5, (2, 7, 4)), drawn(6, (2, 7, 3))), 1)
    assert model.other.grad is None and model.weight.grad is not None


def test_refusals_name_the_parameter():
    model = Model()
    exact = t.ExactGradients(model)
    with pytest.raises(invar.NotCovered, match="^weight: it got a gradient that is not"):
        (model.weight * 2).sum().backward()
    with pytest.raises(invar.NotCovered, match="^weight: it got a gradient that is not"):
        p.matmul(drawn(1, (2, 4)), model.weight[:, ::2], trans_a=0, trans_b=0).sum().backward()
    with pytest.raises(invar.NotCovered, match="^bias: it got a gradient that is not"):
        p.mul(drawn(1, (2, 3)), model.bias.clone()).sum().backward()
    with pytest.raises(invar.BadInput, match=r"^weight: contributions of shape \(2, 3\), expected"):
        exact.accumulators["weight"].add(torch.zeros(2, 3))
    with pytest.raises(invar.NotCovered, match="^weight: contributions of torch.float64"):
        exact.accumulators["weight"].add(torch.zeros(2, 4, 3, dtype=torch.float64))
    with pytest.raises(invar.BadInput, match="expected one torch.float32 loss for each unit"):
        exact.backward(torch.zeros(()))
    with pytest.raises(invar.NotCovered, match="^half: parameters of torch.bfloat16"):
        t.ExactGradients([("half", torch.nn.Parameter(torch.zeros(2, dtype=torch.bfloat16)))])
    with pytest.raises(invar.BadInput, match="no parameter that requires a gradient"):
        t.ExactGradients([])


def test_packed_sequences_are_refused():
    from torch.nn.utils import rnn

    packed = rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
    layer = invar.nn.GRU(4, 3)
    layer(packed)
    exact = t.ExactGradients(layer)
    with pytest.raises(invar.NotCovered, match="packed sequence under ExactGradients"):
        layer(packed)
    invar.nn.GRU(4, 3)(packed)
    exact.close()
    layer(packed)


@pytest.mark.parametrize("layer", [torch.nn.BatchNorm2d(3), torch.nn.Dropout(0.1)])
def test_modules_that_mix_units(layer):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), layer)
    with pytest.raises(invar.NotCovered, match=rf"^1 \({type(layer).__name__}\): (in tr|its mask)"):
        t.ExactGradients(model)
    exact = t.ExactGradients(model.eval())
    model.train()
    with pytest.raises(invar.NotCovered, match="in training mode|its mask"):
        exact.zero()


class Tied(torch.nn.Module):
    """An embedding that is the last matrix, too, and a table of positions."""

    def __init__(self, positions_per_unit):
        super().__init__()
        self.table = torch.nn.Parameter(drawn(1, (7, 4)))
        self.positions = torch.nn.Parameter(drawn(2, (3, 4)))
        self.gain = torch.nn.Parameter(drawn(3, (4,)))
        self.each = positions_per_unit

    def forward(self, tokens):
        at = torch.arange(3)
        at = at.expand(len(tokens), 3) if self.each else at
        x = p.add(p.gather(self.table, tokens, axis=0), p.gather(self.positions, at, axis=0))
        x = p.mul(x, self.gain)
        return p.matmul(x.reshape(-1, 4), self.table, trans_a=0, trans_b=1).reshape(*x.shape[:2], 7)


def squares(model, tokens):
    y = model(tokens)
    return p.reduce_sum(p.mul(y, y), axes=[1, 2], keepdims=0)


TOKENS = torch.tensor([[0, 1, 1], [6, 0, 2], [3, 3, 3], [5, 1, 0]])


def test_shared_parameters_and_rows_of_units():
    model = Tied(True)
    exact = t.ExactGradients(model)
    exact.check(lambda tokens: squares(model, tokens), (TOKENS,))
    found = set()
    for size in (1, 2, 4):
        exact.zero()
        for part in TOKENS.split(size):
            exact.backward(squares(model, part))
        exact.write()
        found.add(b"".join(x.grad.numpy().tobytes() for x in model.parameters()))
    assert len(found) == 1
    table, positions, gain = (x.detach().double().requires_grad_() for x in model.parameters())
    ((((table[TOKENS] + positions) * gain) @ table.T) ** 2).sum().backward()
    for x, wanted in zip(model.parameters(), (table, positions, gain)):
        assert (x.grad - wanted.grad).abs().max() <= 1e-6 * wanted.grad.abs().max()


def test_units_that_meet_are_seen():
    model = Tied(False)  # positions get a gradient that is summed over the batch
    exact = t.ExactGradients(model)
    with pytest.raises(invar.NotCovered, match="^(positions|gather: positions)"):
        exact.check(lambda tokens: squares(model, tokens), (TOKENS,))

    def weighted(x, y):
        losses = loss(plain, x, y)
        return p.mul(losses, p.reduce_mean(losses, axes=[0], keepdims=1))

    plain = Model()
    exact = t.ExactGradients(plain)
    with pytest.raises(invar.NotCovered, match="^weight: its sum depends on which units"):
        exact.check(weighted, (drawn(5, (2, 7, 4)), drawn(6, (2, 7, 3))))


def splits(exact, losses, batch, sizes=(1, 2, 4), seed=5):
    """The gradients for each size of micro-batches, as bytes, by name."""
    found = []
    for size in sizes:
        exact.zero()
        for first in range(0, len(batch[0]), size):
            part = [x[first : first + size] for x in batch]
            with exact.part(first, len(part[0]), seed):
                exact.backward(losses(*part))
        exact.write()
        named = exact.parameters.items()
        found.append({n: x.grad.numpy().tobytes() for n, x in named if x.grad is not None})
    return found


def row_losses(y):
    return invar.ops.sum(invar.ops.square(y).reshape(len(y), -1), 1)


DROPOUTS = {
    "elements": lambda: invar.nn.Dropout(0.4),
    "channels": lambda: invar.nn.Dropout1d(0.4),
    "alpha": lambda: invar.nn.AlphaDropout(0.4),
    "attention": lambda: invar.nn.TransformerEncoderLayer(8, 2, 16, 0.4, batch_first=True),
    "recurrent": lambda: invar.nn.GRU(8, 4, 2, dropout=0.4, batch_first=True),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_masks_of_dropouts_are_those_of_units(name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(invar.nn.Linear(8, 8), DROPOUTS[name]())
    exact, x = t.ExactGradients(model), drawn(3, (8, 5, 8))

    def losses(x):
        y = model(x)
        return row_losses(y[0] if isinstance(y, tuple) else y)

    before = torch.get_rng_state()
    whole, *parts = splits(exact, losses, [x], (8, 1, 3))
    assert all(part == whole for part in parts) and whole
    assert splits(exact, losses, [x], (8,), seed=6) != [whole]
    assert torch.equal(torch.get_rng_state(), before)
    exact.check(losses, (x,))
    with pytest.raises(invar.NotCovered, match="say which units a pass has"):
        exact.backward(losses(x))
    model.eval()
    assert splits(exact, losses, [x], (8,)) != [whole]


def test_a_checkpoint_within_a_part_draws_again_what_it_drew():
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    model = torch.nn.Sequential(invar.nn.Linear(8, 8), invar.nn.Dropout(0.4), invar.nn.Linear(8, 2))
    exact, x = t.ExactGradients(model), drawn(3, (6, 8))
    plain = splits(exact, lambda x: row_losses(model(x)), [x], (6, 2))
    again = lambda x: row_losses(checkpoint(model, x, use_reentrant=False))
    assert splits(exact, again, [x], (6, 2)) == plain and plain[0] == plain[1]


def test_parts_and_transpositions_of_parameters():
    """Cross attention takes chunks of one matrix; products take transposed views."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = invar.nn.MultiheadAttention(8, 2, batch_first=True)
            self.last = torch.nn.Parameter(drawn(4, (5, 8)))

        def forward(self, x, y):
            found = self.attention(x, y, y, need_weights=False)[0]
            return row_losses(invar.ops.matmul(found, self.last.t()))

    torch.manual_seed(0)
    model, x, y = Model(), drawn(5, (4, 3, 8)), drawn(6, (4, 6, 8))
    exact = t.ExactGradients(model)
    exact.check(model, (x, y))
    whole, *parts = splits(exact, model, [x, y])
    assert all(part == whole for part in parts)
    assert set(whole) == {n for n, _ in model.named_parameters()}
    ours = {n: q.grad.double() for n, q in model.named_parameters()}
    exact.close()
    model.zero_grad()
    model(x, y).sum().backward()
    for name, q in model.named_parameters():
        assert (q.grad - ours[name]).abs().max() <= 1e-5 * max(1, q.grad.abs().max()), name


RULES = {
    "layer_norm": (lambda x, w, b: invar.ops.layer_norm(x, (6,), w, b), (6,), (8, 5, 6)),
    "rms_norm": (lambda x, w, b: invar.ops.add(invar.ops.rms_norm(x, (6,), w), b), (6,), (8, 5, 6)),
    "group_norm": (lambda x, w, b: invar.ops.group_norm(x, 2, w, b), (6,), (8, 6, 3, 2)),
    "batch_norm": (
        lambda x, w, b: invar.ops.batch_norm(x, torch.ones(6), torch.full((6,), 2.0), w, b),
        (6,),
        (8, 6, 3, 2),
    ),
    "embedding": (
        lambda x, w, b: invar.ops.mul(
            invar.ops.embedding(x[:, :, 0].mul(3).long().abs() % 6, w), b
        ),
        (6, 6),
        (8, 9, 6),
    ),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("rows", [1, 2])
def test_units_at_once_are_units_one_by_one(name, rows, monkeypatch):
    """rows: of axis 0, of each unit."""
    from invar.autograd import units

    function, shape, of = RULES[name]
    x = wide(8, of[1:], seed=3) / 64
    x.view(-1)[7] = 2.0**-30
    found = []
    for at_once in (units.AT_ONCE, {}):
        monkeypatch.setattr(units, "AT_ONCE", at_once)
        w = torch.nn.Parameter(drawn(1, shape))
        b = torch.nn.Parameter(drawn(2, shape[:1]))
        exact = t.ExactGradients([("w", w), ("b", b)])
        y = function(x, w, b)
        exact.backward(row_losses(y.reshape(8 // rows, rows, -1)))
        found.append(exact.buffer.clone())
        exact.close()
    assert torch.equal(*found) and found[0].any()


def test_a_trainer_with_dropout_repeats_its_steps(tmp_path):
    """Steps that are resumed, split, or computed without exact gradients draw what they drew."""

    def trainer(exact, micro_batch=None):
        torch.manual_seed(0)
        with invar.reproducible():
            model = torch.nn.Sequential(
                invar.nn.Linear(4, 8), invar.nn.Dropout(0.5), invar.nn.Linear(8, 3)
            )
        batches = lambda step: (drawn(step, (6, 4)),)
        loss = lambda model, x: row_losses(model(x))
        optimizer = invar.optim.SGD(model.parameters(), lr=0.01)
        return t.Trainer(
            model, optimizer, batches, loss, exact=exact, micro_batch=micro_batch, seed=3
        )

    for exact in (True, False):
        whole = t.Recorder(trainer(exact)).run(4)
        t.Recorder(trainer(exact), tmp_path / f"{exact}.json").run(2)
        resumed = t.Recorder(trainer(exact), tmp_path / f"{exact}.json", resume=True).run(4)
        assert resumed.hash == whole.hash
    assert t.Recorder(trainer(True, 4)).run(4).hash == t.Recorder(trainer(True)).run(4).hash


def test_counts_that_do_not_fit_are_refused():
    exact = t.ExactGradients(invar.nn.Linear(4, 4))
    with pytest.raises(invar.BadInput, match="losses: 4 units, in a part of 3"), exact.part(0, 3):
        exact.backward(row_losses(next(iter(exact._model.parameters()))))
    for wrong in (-1, 1.0):
        with pytest.raises(invar.BadInput, match="first: "), exact.part(wrong, 3):
            pass
    for wrong in (0, -1):
        with pytest.raises(invar.BadInput, match=f"divisor: {wrong}, expected"):
            exact.write(divisor=wrong)
    with pytest.raises(invar.BadInput, match="model: NoneType is neither"):
        t.ExactGradients(None)


def test_masks_of_attention_of_a_script_are_those_of_units():
    model, x = invar.nn.Linear(8, 24), drawn(3, (8, 5, 8))
    exact = t.ExactGradients(model)

    def losses(x):
        q, k, v = model(x).chunk(3, -1)
        with invar.reproducible():
            attention = torch.nn.functional.scaled_dot_product_attention
            return row_losses(attention(q, k, v, dropout_p=0.4, is_causal=True))

    first, *others = splits(exact, losses, (x,), (8, 1, 3))
    assert all(first == other for other in others)
    assert splits(exact, losses, (x,), (8,), seed=6) != [first]
