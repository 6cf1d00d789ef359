"""with invar.reproducible(): torch code computes the same bits whatever torch's own kernels would
do; what it does not cover it names."""

import pytest
import torch
from built import digest, invar, script, whole
from invar import ops
from invar.reproducibility import allowed, kernels_mode
from invar.reproducibility.kernels.handlers import HANDLERS
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from training_program import PROGRAMS, trained


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_bits_depend_on_no_kernel_of_torch(name):
    """torch's kernels for another instruction set, and other threads, change the bits of torch
    alone."""
    said = script(
        "from built import digest\nimport invar\n"
        + PROGRAMS[name]
        + "print(digest(run(invar.reproducible(), 2)))",
        ATEN_CPU_CAPABILITY="default",
    )
    assert said.strip() == digest(trained(name, invar.reproducible()))


class Spy(TorchDispatchMode):
    """What reaches torch's kernels after all."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        space, name = function._schema.name.split("::")
        base = kernels_mode.plain(name)
        numbers = [x for x in kernels_mode.flat([*args, result]) if isinstance(x, torch.Tensor)]
        if function.namespace == "invar":
            return result
        known = allowed.MOVES | allowed.QUESTIONS | allowed.EXACT | {"copy", "_to_copy", "scatter"}
        if space != "invar" and base not in known and any(x.is_floating_point() for x in numbers):
            self.seen.add(base)
        return result


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_arithmetic_kernel_of_torch_runs(name):
    with Spy() as spy:
        trained(name, invar.reproducible())
    # Weights and data are made before, outside of the context.
    assert spy.seen - {"add", "mul", "uniform", "normal"} == set()


def test_arithmetic_is_seen():
    with Spy() as spy:
        x = whole((4, 8), 1).requires_grad_()
        spy.seen.clear()
        with invar.reproducible():
            ((x @ x.T).sigmoid() * x.sum()).mean().backward()
            torch.optim.SGD([x], lr=0.1, momentum=0.9, weight_decay=0.1).step()
    assert spy.seen == set()
    with Spy() as spy:
        (x @ x.T).mean()
    assert spy.seen == {"mm", "mean"}


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
@pytest.mark.parametrize("own", [False, True], ids=["invar.optim", "kernels"])
def test_fused_optimisers_are_the_plain_ones(name, own, monkeypatch):
    """Those of torch step as invar.optim's. A class of one's own calls torch's kernels: one
    (_fused_adam_) or one for each part of the formula."""
    found, called = [], []
    kernel = f"_fused_{name.lower()}_"
    run = HANDLERS[kernel]
    monkeypatch.setitem(HANDLERS, kernel, lambda *a, **k: called.append(kernel) or run(*a, **k))
    cls = getattr(torch.optim, name)
    if own:
        cls = type("Own", (cls,), {})
    how = {"momentum": 0.9, "nesterov": True} if name == "SGD" else {"betas": (0.875, 0.999)}
    for fused in (False, True):
        p = whole((3, 4), 7).requires_grad_()
        kind = {"fused": True} if fused else {"foreach": False}
        optimizer = cls([p], lr=0.01, weight_decay=0.1, maximize=True, **how, **kind)
        with invar.reproducible():
            for k in range(3):
                p.grad = whole(p.shape, 9 + k)
                optimizer.step()
        found.append(digest([p]))
    assert found[0] == found[1] and called == [kernel] * 3 * own


OPTIMISERS = {
    "SGD": dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": dict(weight_decay=0.01, amsgrad=True),
    "AdamW": dict(maximize=True),
    "Adagrad": dict(lr_decay=0.1, initial_accumulator_value=0.1),
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": dict(momentum=0.9, centered=True),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_of_torch_step_as_those_of_invar(name):
    """With closures, schedules and hooks, and a state dict that goes from one to the other."""
    found, seen = [], []
    for module in (torch.optim, invar.optim):
        a, b = (whole((3, 4), 7).requires_grad_(), whole((5,), 8).requires_grad_())
        optimizer = getattr(module, name)([a, b], **OPTIMISERS[name])
        optimizer.register_step_pre_hook(lambda o, *_: seen.append(digest([o.param_groups[0]["params"][0]])))  # fmt: skip
        optimizer.register_step_post_hook(lambda o, *_: seen.append(digest([o.param_groups[0]["params"][0]])))  # fmt: skip
        schedule = invar.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def closure():
            optimizer.zero_grad()
            loss = (a * a).sum() + (b * b).sum()
            loss.backward()
            return loss

        with invar.reproducible():
            losses = []
            for _ in range(3):
                losses.append(optimizer.step(closure))
                schedule.step()
        if module is torch.optim:  # the rest of the way as the other
            state = optimizer.state_dict()
            optimizer = getattr(invar.optim, name)([a, b], **OPTIMISERS[name])
            optimizer.load_state_dict(state)
        closure()
        optimizer.step()
        found.append(digest([a, b, *losses]))
    assert found[0] == found[1]
    assert len(set(seen[:6])) == 4 and seen[:6] == seen[6:12]  # hooks see what is before and after


def test_optimisers_outside_of_the_context_are_those_of_torch():
    from torch.optim import optimizer

    before = dict(optimizer._global_optimizer_pre_hooks)
    found = []
    for inside in (False, True):
        p = whole((33,), 7).requires_grad_()
        adam = torch.optim.Adam([p], lr=0.3, betas=(0.7, 0.77))
        if inside:
            with pytest.raises(ZeroDivisionError), invar.reproducible():
                adam.step(lambda: 1 / 0)
        for k in range(5):
            p.grad = whole(p.shape, 9 + k)
            adam.step()
        found.append(digest([p]))
    assert found[0] == found[1]
    assert dict(optimizer._global_optimizer_pre_hooks) == before


def test_an_optimiser_that_invar_does_not_cover_is_made_of_kernels():
    """bf16, a rate that is a tensor: still the same bits on every machine."""
    for x, lr in ((whole((9,), 7).bfloat16(), 0.1), (whole((9,), 7), torch.tensor(0.1))):
        p = x.requires_grad_()
        with Spy() as spy, invar.reproducible():
            optimizer = torch.optim.Adam([p], lr=lr)
            p.grad = torch.ones_like(p)
            optimizer.step()
        assert spy.seen == set() and p.detach()[0] != whole((9,), 7)[0]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_of_activations_change_no_bit(reentrant):
    def block(x):
        return torch.tanh(F.linear(x, w)) * x.sum(-1, keepdim=True)

    w, found = whole((6, 6), 1).requires_grad_(), []
    for keep in (True, False):
        x = whole((4, 6), 2).requires_grad_()
        w.grad = None
        with invar.reproducible():
            y = block(x) if keep else checkpoint(block, x, use_reentrant=reentrant)
            y.square().sum().backward()
        found.append(digest([y, x.grad, w.grad]))
    assert found[0] == found[1]


def test_rows_added_to_twice_keep_their_order():
    table = whole((4, 3), 4).requires_grad_()
    rows = torch.tensor([1, 1, 3, 1])
    with invar.reproducible():
        table[rows].mul(whole((4, 3), 5)).sum().backward()
        there = torch.zeros(4, 3).index_put((rows,), whole((4, 3), 5), accumulate=True)
    want = torch.zeros(4, 3)
    for row, values in zip(rows, whole((4, 3), 5)):
        want[row] += values
    assert torch.equal(table.grad, want) and torch.equal(there, want)


X = torch.ones(2, 3)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_of_torch(name):
    """Their bits are those of invar.nn, gradients too; cells, packed and padded sequences."""
    from torch.nn.utils import rnn

    torchs = getattr(torch.nn, name)(4, 3, 2, bidirectional=True)
    ours = getattr(invar.nn, name)(4, 3, 2, bidirectional=True)
    ours.load_state_dict(torchs.state_dict())
    cell, our_cell = getattr(torch.nn, f"{name}Cell")(4, 3), getattr(invar.nn, f"{name}Cell")(4, 3)
    our_cell.load_state_dict(cell.state_dict())
    packed = rnn.pack_sequence([whole((n, 4), n) for n in (3, 5, 1)], enforce_sorted=False)
    found = []
    for layers, step in ((torchs, cell), (ours, our_cell)):
        x = whole((5, 2, 4), 1).requires_grad_()
        with invar.reproducible():
            y = layers(x)[0]
            y.sum().backward()
            h = step(x[0])
            found.append([y, x.grad, h if name != "LSTM" else h[0], layers(packed)[0].data])
            found[-1] += [p.grad for p in layers.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_whole_numbers_stay_torchs():
    with invar.reproducible():
        x = torch.arange(10).reshape(2, 5)
        assert (x.sum() + x.max() - x.cumsum(1)[0, -1]).item() == 45 + 9 - 10
        assert torch.bincount(x.flatten() % 3).tolist() == [4, 3, 3]
        assert (x // 3 % 2 == 0).sum().item() == 6 and x.float().tolist()[1][4] == 9.0
        torch.manual_seed(1)
        assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4]


def test_floor_division():
    with invar.reproducible():
        for made in (X // 0.3, 2 // X):
            assert torch.equal(made, made.floor())
        assert torch.equal(X // 0.3, ops.floor_divide(X, 0.3))
        assert (torch.tensor([-7]) // 2).tolist() == [-4]
        assert (7 // torch.tensor([-2])).tolist() == [-4]


def test_distributions_check_their_arguments():
    with invar.reproducible():
        # torch's compiler, once it ran in this process, leaves such checks off.
        normal = torch.distributions.Normal(torch.zeros(2), torch.ones(2), validate_args=True)
        assert torch.equal(normal.log_prob(torch.zeros(2)), torch.full((2,), -0.9189385))
        with pytest.raises(ValueError, match="scale"):
            torch.distributions.Normal(0.0, -1.0, validate_args=True)


def test_arguments_by_the_names_of_numpy():
    with invar.reproducible():
        assert torch.equal(X.sum(axis=-1, keepdims=True), X.sum(-1, keepdim=True))


def test_as_a_decorator_and_nested():
    @invar.reproducible()
    def mean(x):
        with invar.reproducible():
            return x.mean()

    assert mean(X).item() == 1.0
    assert mean(X).item() == 1.0


# What draws random values.
DRAWN = {
    "randn": lambda: torch.randn(3, 5),
    "rand": lambda: torch.rand(7),
    "normal_": lambda: torch.empty(40).normal_(1, 0.5),
    "uniform_": lambda: torch.empty(4, 4).uniform_(-1, 1),
    "bernoulli": lambda: torch.bernoulli(torch.full((20,), 0.3)),
    "dropout": lambda: F.dropout(torch.ones(30), 0.4),
    "linear": lambda: torch.nn.Linear(5, 3).weight,
    "kaiming": lambda: torch.nn.init.kaiming_normal_(torch.empty(6, 4)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_values_follow_torchs_seed(name):
    def drawn(seed):
        torch.manual_seed(seed)
        with invar.reproducible():
            return DRAWN[name](), DRAWN[name]()

    first, second = drawn(5)
    again, _ = drawn(5)
    assert digest([first]) == digest([again]) != digest([second])
    assert digest([drawn(6)[0]]) != digest([first])
    said = script(
        "import torch\nfrom built import digest, invar\nfrom test_reproducible import DRAWN\n"
        f"torch.manual_seed(5)\nwith invar.reproducible():\n    print(digest([DRAWN['{name}']()]))",
        ATEN_CPU_CAPABILITY="default",
    )
    assert said.strip() == digest([first])


def test_modules_begin_with_the_bits_of_their_seed():
    torch.manual_seed(5)
    with invar.reproducible():
        model = torch.nn.Linear(5, 3)
    torch.manual_seed(5)
    weight = invar.nn.init.kaiming_uniform_(torch.empty(3, 5), a=5**0.5)
    assert digest([weight]) == digest([model.weight])


def test_generators_and_their_states():
    generator = torch.Generator().manual_seed(3)
    state = generator.get_state()
    with invar.reproducible():
        first = torch.randn(4, generator=generator)
        generator.set_state(state)
        assert torch.equal(first, torch.randn(4, generator=generator))


def test_a_checkpoint_drops_out_the_same_again():
    x = whole((8, 8), 1).requires_grad_()
    with invar.reproducible():
        y = checkpoint(lambda x: F.dropout(x * 2, 0.5), x, use_reentrant=False)
        y.sum().backward()
    assert torch.equal(x.grad == 0, y == 0)


IN_PLACE = {
    "relu": (), "relu6": (), "hardswish": (), "hardsigmoid": (), "silu": (), "mish": (), "selu": (),
    "elu": (0.5,), "celu": (0.5,), "leaky_relu": (0.1,), "hardtanh": (-0.5, 0.5), "threshold": (0.1, 0.2),
}  # fmt: skip


@pytest.mark.parametrize("keyword", [True, False])
@pytest.mark.parametrize("name", IN_PLACE)
def test_activations_in_place_have_the_bits_of_those_that_are_not(name, keyword):
    function, more = getattr(F, name), IN_PLACE[name]
    with invar.reproducible():
        found = []
        for place in (False, True):
            x = (whole((5, 7), 3) / 4).requires_grad_()
            y = x * 2
            z = function(y, *more, inplace=place) if keyword else function(y, *more, place)
            assert (z is y) == place
            (z * whole((5, 7), 4)).sum().backward()
            found.append((z, x.grad))
        assert all(torch.equal(a, b) for a, b in zip(*found))
        with pytest.raises(RuntimeError, match="leaf"):
            function(torch.ones(3, requires_grad=True), *more, inplace=True)


def test_whole_numbers_are_sorted_by_dimension_and_order():
    x = torch.tensor([[3, 1, 2], [0, 5, 5]])
    for options in (
        {"descending": True},
        {"dim": 0},
        {"dim": 0, "descending": True, "stable": True},
    ):
        expected = torch.sort(x, **{**options, "stable": True})
        with invar.reproducible():
            assert all(torch.equal(a, b) for a, b in zip(torch.sort(x, **options), expected))
            assert torch.equal(torch.argsort(x, **options), expected.indices)


@pytest.mark.parametrize("sorted_", [False, True])
def test_packed_sequences_of_a_script(sorted_):
    """Those of a padded tensor, whose parts have the bits of sequences alone."""
    lengths = [5, 3, 2] if sorted_ else [2, 5, 3]
    model, x = torch.nn.LSTM(4, 6), (whole((5, 3, 4), 3) / 8).requires_grad_()
    pack, unpack = torch.nn.utils.rnn.pack_padded_sequence, torch.nn.utils.rnn.pad_packed_sequence
    with invar.reproducible():
        y, found = unpack(model(pack(x, torch.tensor(lengths), enforce_sorted=sorted_))[0])
        y.sum().backward()
        assert found.tolist() == lengths
        for i, n in enumerate(lengths):
            assert torch.equal(y[:n, i], model(x[:n, i : i + 1])[0][:, 0])
            assert not x.grad[n:, i].any() and x.grad[:n, i].any()


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_dropout(causal):
    """It draws from torch's generator; the mean of its weights is that of attention without."""
    q, k = (whole((2, 3, 8), seed).div(8).requires_grad_() for seed in (3, 4))
    v = torch.eye(3).expand(2, 3, 3)
    drawn = lambda p: F.scaled_dot_product_attention(q, k, v, None, p, causal)
    with invar.reproducible():
        found = []
        for _ in range(2):
            torch.manual_seed(1)
            y = drawn(0.5)
            y.square().sum().backward()
            found.append((y, q.grad, k.grad))
            q.grad = k.grad = None
        assert all(torch.equal(a, b) for a, b in zip(*found))
        weights, kept = drawn(0.0), found[0][0] != 0
        assert 0 < kept.sum() < kept.numel()
        assert (found[0][0] / 2 - weights)[kept].abs().max() < 1e-6  # kept ones are doubled


def test_channels_last_is_kept():
    """Layout, and the bits of the other one."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
    )
    x, found = whole((2, 3, 9, 8), 3), []
    for layout in (torch.contiguous_format, torch.channels_last):
        with invar.reproducible():
            y = net(x.to(memory_format=layout)) * 2
            (grad,) = torch.autograd.grad(y.square().sum(), net[0].weight)
        assert y.is_contiguous(memory_format=layout)
        found.append(digest([y, grad]))
    assert found[0] == found[1]
    with invar.reproducible():
        assert x.to(torch.float64, memory_format=torch.channels_last).stride()[1] == 1


@pytest.mark.parametrize("of", ["numbers", "mean", "std", "both"])
def test_normal_numbers_of_means_and_deviations(of):
    mean = torch.full((2000,), 3.0) if of in ("mean", "both") else 3.0
    std = torch.full((2000,), 0.5) if of in ("std", "both") else 0.5
    more = ((2000,),) if of == "numbers" else ()
    found = []
    for _ in range(2):
        torch.manual_seed(5)
        with invar.reproducible():
            found.append(torch.normal(mean, std, *more))
    assert torch.equal(*found) and found[0].shape == (2000,)
    assert abs(float(found[0].mean()) - 3) < 0.1 and abs(float(found[0].std()) - 0.5) < 0.05


def test_dropout2d_of_two_dimensions():
    x = torch.ones(40, 50)
    with invar.reproducible():
        y = torch.nn.functional.dropout2d(x, 0.5)
    assert set(y.unique().tolist()) == {0.0, 2.0}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("space", [torch, torch.linalg, torch.Tensor], ids=["torch", "linalg", "Tensor"])  # fmt: skip
def test_whole_numbers_of_every_function_with_a_kernel_are_torchs(space):
    """What torch computes of integers as integers stays so: none becomes a floating number."""
    made = torch.Generator().manual_seed(1)
    v, w, m, n, b, c = (
        torch.randint(-40, 40, shape, generator=made)
        for shape in ((3,), (3,), (3, 3), (3, 3), (2, 3, 3), (2, 3, 3))
    )
    given = [(v,), (m,), (v, w), (m, v), (m, n), (b, c), (v, m, w), (m, v, w), (m, n, m), (b, c, b), (m, 1)]  # fmt: skip
    copied = lambda args: [x.clone() if isinstance(x, torch.Tensor) else x for x in args]
    compared = 0
    for name in sorted(set(HANDLERS) | allowed.INTEGER):
        function = getattr(space, name, None)
        for args in given if function is not None and not name.endswith("_") else ():
            try:
                want = function(*copied(args))
            except (RuntimeError, TypeError, IndexError, ValueError):
                continue
            if not isinstance(want, torch.Tensor) or want.is_floating_point():
                continue
            with invar.reproducible():
                got = function(*copied(args))
            assert got.dtype == want.dtype and torch.equal(got, want), (name, args)
            compared += 1
    assert compared > (3 if space is torch.linalg else 100)
