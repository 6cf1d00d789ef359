"""Activations and softmax."""

import pytest
from accuracy import case, check, ids, near, ops, randn, raw, refused, torch

X = torch.linspace(-9, 9, 96).reshape(4, 6, 4)
EDGES = torch.tensor([0.0, -0.0, 3.0, -3.0, 6.0, float("inf"), -float("inf"), float("nan")])
LONG = randn(5, 4000)

SMOOTH = (
    "silu mish hardswish hardsigmoid selu relu6 relu hardtanh elu celu leaky_relu "
    "rrelu hardshrink softshrink tanhshrink softsign softplus logsigmoid gelu glu"
).split()

CASES = [
    *(case(n, X, error=16) for n in SMOOTH),
    *(
        case(n, EDGES, narrow=False)
        for n in "relu6 relu hardtanh leaky_relu elu hardshrink softplus logsigmoid".split()
    ),
    case("gelu", X, approximate="tanh"),
    case("hardtanh", X, -0.5, 2.0),
    case("elu", X, 0.3),
    case("celu", X, 0.7, error=16),
    case("leaky_relu", X, 0.2),
    case("rrelu", X, 0.1, 0.5),
    case("hardshrink", X, 1.25),
    case("softshrink", X, 1.0),
    case("threshold", X, 0.5, 0.0),
    case("threshold", X, 0.5, -3.0),
    case("threshold", EDGES, 1.0, 2.0, narrow=False),
    case("softplus", X, 2.0),
    case("softplus", X, 0.5, 3.0),
    case("softplus", X, 1, 4),
    case("softplus", X * 9),
    case("prelu", X, torch.tensor([0.25])),
    case("prelu", X, torch.linspace(-1, 1, 6)),
    case("prelu", X[0, 0], torch.tensor([0.25])),
    case("glu", X, 1),
    case("relu", torch.tensor([-3, 0, 4])),
    case("relu", torch.tensor([-3, 0, 4], dtype=torch.int8)),
    *(case(n, X, d) for n in ("softmax", "log_softmax", "softmin") for d in (0, 1, -1)),
    *(case(n, LONG, 1, error=16) for n in ("softmax", "log_softmax")),
    case("softmax", torch.tensor(3.0), 0),
    case("softmax", torch.empty(0, 3), 1),
    case("softmax", X[0], dim=1, dtype=torch.float32, narrow=False),
    case("softmax", torch.tensor([1, 2, 3]), dim=0, dtype=torch.float32),
    case("softmax", torch.tensor([[1.0, -float("inf"), 2], [float("nan"), 0, 1]]), 1, narrow=False),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_activations(c):
    check(c)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4), (2, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_without_a_dimension_chooses_as_torch_does(name, shape):
    with pytest.warns(UserWarning):
        wanted = getattr(torch.nn.functional, name)(randn(*shape) / 9)
    near(getattr(ops, name)(randn(*shape) / 9), wanted)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_row_does_not_depend_on_its_batch(name):
    whole = getattr(ops, name)(LONG, 1)
    for i in range(5):
        assert raw(getattr(ops, name)(LONG[i : i + 1], 1)) == raw(whole[i])


def test_refusals():
    refused(NotImplementedError, "silu: argument 'inplace'", ops.silu, X, inplace=True)
    refused(NotImplementedError, "relu: argument 'inplace'", ops.relu, X, True)
    refused(RuntimeError, "gelu: argument 'approximate'", ops.gelu, X, "fast")
    refused(RuntimeError, "glu: argument 'input': expected an even size", ops.glu, X[:, :, :3])
    refused(RuntimeError, "prelu: argument 'weight'", ops.prelu, X, torch.ones(5))
    refused(NotImplementedError, "rrelu: argument 'training'", ops.rrelu, X, training=True)
    refused(
        RuntimeError,
        "softmax: argument 'input': expected elements of a floating type",
        ops.softmax,
        X.long(),
        0,
    )
    refused(IndexError, "softmax: argument 'dim'", ops.softmax, X, 3)
