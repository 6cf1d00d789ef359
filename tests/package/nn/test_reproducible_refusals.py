"""What invar.reproducible(), invar.ops and invar.nn refuse: by name, with the user's line, with one
kind of exception."""

import sys

import pytest
import torch
from built import invar, whole
from invar import ops
from test_reproducible import Spy

X = torch.ones(2, 3)
REFUSED = {
    "autocast": (lambda: torch.autocast("cpu")(torch.mm)(X, X.T), "autocast"),
    "fft": (lambda: torch.fft.fft(X), "torch.fft.fft"),
    "poisson": (lambda: torch.poisson(X), "poisson"),
    "mode": (lambda: X.mode(1), "mode"),
    "svd": (lambda: torch.linalg.svd(X), "svd"),
    "lgamma": (lambda: torch.lgamma(X), "lgamma"),
    "complex": (lambda: X.to(torch.complex64) * 1j, "complex64"),
    "index twice": (lambda: X.clone().index_put_((torch.tensor([0, 0]),), X), "stands twice"),
    "histc": (lambda: torch.histc(X), "histc"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_named_with_the_line(name):
    function, named = REFUSED[name]
    with pytest.raises(invar.NotCovered, match=named) as e, invar.reproducible():
        function()
    assert isinstance(e.value, NotImplementedError)
    assert "test_reproducible_refusals.py:" in str(e.value) and "\n" not in str(e.value)
    torch.ones(2).sum()  # nothing of the context is left


AUTOCAST = {
    "invar.ops": (lambda: ops.matmul(X, X.T), "matmul: under torch.autocast"),
    "a list of tensors": (lambda: ops.cat([X, X]), "cat: under torch.autocast"),
    "invar.nn": (lambda: invar.nn.Linear(3, 2)(X), "linear: under torch.autocast"),
    "from_torch_module": (
        lambda: invar.from_torch_module(torch.nn.Sequential(torch.nn.Linear(3, 2)))(X),
        "linear: under torch.autocast",
    ),
    "a module of one's own": (
        lambda: invar.from_torch_module(Own())(X),
        "torch.matmul: under torch.autocast",
    ),
    "bitexact": (lambda: invar.bitexact.matmul(X, X.T), "matmul: under torch.autocast"),
    "attention": (
        lambda: invar.reproducible()(torch.nn.MultiheadAttention(3, 1))(X, X, X),
        "multi_head_attention_forward: under torch.autocast",
    ),
    "what invar.ops has not": (
        lambda: invar.reproducible()(torch.chain_matmul)(X, X.T),
        "chain_matmul.*under torch.autocast",
    ),
}  # fmt: skip


class Own(torch.nn.Module):
    def forward(self, x):
        return torch.matmul(x, x.T)


@pytest.mark.parametrize("name", AUTOCAST)
def test_autocast_is_refused_everywhere(name):
    function, said = AUTOCAST[name]
    with torch.autocast("cpu"), pytest.raises(invar.NotCovered, match=said):
        function()
    with torch.autocast("cpu"), torch.autocast("cpu", enabled=False):
        function()


def test_autocast_changes_nothing_of_arrays_of_numpy():
    with torch.autocast("cpu"):
        assert ops.sum(X.numpy()) == 6


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_has_the_bits_of_invars_module(need_weights, batch_first):
    """With masks, biases and dropout, of one sequence and of several."""
    options = dict(dropout=0.25, kdim=6, vdim=10, batch_first=batch_first)
    for more in ({}, options):
        theirs = torch.nn.MultiheadAttention(8, 2, **more)
        ours = invar.from_torch_module(theirs)
        hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
        for shape in ((5, 8), (3, 5, 8) if more and batch_first else (5, 3, 8)):
            x = whole(shape, 4)
            k, v = (whole((*shape[:-1], n), 5) for n in (6, 10)) if more else (x, x)
            found = []
            for model in (theirs, ours):
                torch.manual_seed(3)
                with invar.reproducible():
                    y, weights = model(x, k, v, need_weights=need_weights, attn_mask=hidden)
                    model.zero_grad()
                    y.square().sum().backward()
                found.append([y, *([weights] if need_weights else []), *(p.grad for p in model.parameters())])  # fmt: skip
            assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_attention_that_invars_module_refuses_is_made_of_kernels():
    layer = torch.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)
    x = whole((5, 3, 8), 4)
    with Spy() as spy, invar.reproducible():
        y = layer(x, x, x)[0]
    assert spy.seen == set()
    torch.testing.assert_close(y, layer(x, x, x)[0])


def test_refusals_in_backward_name_the_function_and_the_line():
    x = whole((3, 4), 1).requires_grad_()
    with invar.reproducible():
        y = Cumulated.apply(x)
        with pytest.raises(invar.NotCovered, match=r"histc.*refusals\.py:\d+: return torch\.histc"):
            y.sum().backward()
        y = x.unfold(0, 2, 1)
        with pytest.raises(
            invar.NotCovered, match=r"the gradient of torch\.Tensor\.unfold .*: y\.sum"
        ):
            y.sum().backward()
    scales = torch.ones(2, requires_grad=True)
    z = ops.matmul_nbits(x, torch.ones(4, 2, dtype=torch.int8), scales).sum()
    with pytest.raises(
        invar.NotCovered, match=r"^matmul_nbits: operand 2 .*refusals\.py:\d+: z\.b"
    ):
        z.backward()


class Cumulated(torch.autograd.Function):
    """Its gradient is computed by what has no reproducible kernel."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return torch.histc(grad)


def test_exceptions_have_one_name():
    """The kinds of invar.Error that the package raises."""
    import invar.errors as errors

    kinds = {name for name in vars(errors) if isinstance(getattr(errors, name), type) and issubclass(getattr(errors, name), invar.Error)}  # fmt: skip
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").split(".")[0] == "invar":
            for name, value in vars(module).items():
                if isinstance(value, type) and issubclass(value, invar.Error):
                    assert name in kinds | {"Error", "Failed", "Internal"}, (module, name)
