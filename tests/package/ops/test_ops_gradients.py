"""Gradients of functions that are compositions, beside torch's in float64: each is a chain of the
rules of its operations, so these are the chains."""

import pytest
from accuracy import as_type, case, ids, near, of_torch, ops, results, torch

made = torch.Generator().manual_seed(0)
X, M = torch.randn(3, 4, 6, generator=made), torch.randn(4, 6, generator=made)
U, W = torch.rand(3, 4, 6, generator=made) * 0.9 + 0.05, torch.rand(6, generator=made)
IMAGE, LOGITS = torch.randn(2, 6, 7, 8, generator=made), torch.randn(3, 5, generator=made)
C, I = torch.tensor([1, 0, -100]), torch.tensor([[0, 1], [3, 0]])
PLACES = torch.randint(0, 3, (3, 4, 6), generator=made)

CASES = [
    *(
        case(n, X)
        for n in ("silu", "gelu", "tanhshrink", "glu", "softmin", "logsigmoid", "softplus")
    ),
    *(case(n, X, M) for n in ("add", "div", "maximum", "atan2", "logaddexp")),
    *(case(n, X, dim=(0, 2), keepdim=True) for n in ("sum", "mean", "var", "std", "amax", "norm")),
    case("max", X, 1),
    case("prod", X, 1),
    case("logit", U),
    case("pow", U, 2.5),
    case("clamp", X, -0.5, 0.5),
    case("linear", X, torch.randn(5, 6, generator=made), torch.randn(5, generator=made)),
    case("addmm", torch.randn(4, 4, generator=made), M, M.T, beta=0.5, alpha=2.0),
    case("rms_norm", X, (6,), W),
    case("layer_norm", X, (6,), W, W * 2),
    case("group_norm", IMAGE, 3, W, W + 1),
    case("batch_norm", IMAGE, None, None, W, W + 1, True),
    case("normalize", X),
    case("cosine_similarity", X, X + 1),
    case("scaled_dot_product_attention", IMAGE, IMAGE * 0.5, IMAGE + 1, is_causal=True),
    case("conv2d", IMAGE, torch.randn(4, 6, 3, 3, generator=made), W[:4], 2, 1),
    case("adaptive_avg_pool2d", IMAGE, (3, 4)),
    case("max_pool2d", IMAGE, 2),
    case("embedding", I, M, 0),
    case("embedding_bag", I, M),
    case("gather", X, 1, PLACES),
    case("scatter_add", X, 1, PLACES, X * 2),
    case("index_add", X, 1, torch.tensor([3, 0]), X[:, :2] * 2),
    case("sort", X, 1),
    case("interpolate", IMAGE, (9, 5)),
    case("interpolate", IMAGE, (9, 5), mode="bilinear"),
    case("cross_entropy", LOGITS, C),
    case("cross_entropy", LOGITS, LOGITS.softmax(1), label_smoothing=0.1),
    case("nll_loss", LOGITS, C),
    case("huber_loss", X, X * 0.3),
    case("binary_cross_entropy_with_logits", X, U),
    case("kl_div", X, U, log_target=True),
]


def gradients(function, c, dtype):
    leaf = lambda a: as_type(dtype)(a.detach().clone()).requires_grad_(a.is_floating_point())
    args = [leaf(a) if isinstance(a, torch.Tensor) else a for a in c.args]
    y = results(function(*args, **c.kwargs))[0]
    along = torch.linspace(-1, 2, y.numel()).reshape(y.shape).to(dtype)
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    return torch.autograd.grad(y, leaves, along)


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_gradients(c):
    found = gradients(getattr(ops, c.name), c, torch.float32)
    for got, want in zip(found, gradients(of_torch(c.name), c, torch.float64), strict=True):
        assert got.dtype == torch.float32
        near(got, want, 512)


DOUBLE = X[:, :3].double()
IN_F64 = {
    "softmax": lambda x: ops.softmax(x, 1),
    "log_softmax": lambda x: ops.log_softmax(x, -1),
    "softmin": lambda x: ops.softmin(x, 0),
    "layer_norm": lambda x: ops.layer_norm(x, (3, 6), DOUBLE[0] + 2, DOUBLE[1]),
    "rms_norm": lambda x: ops.rms_norm(x, (6,), DOUBLE[0, 0] + 2),
}


@pytest.mark.parametrize("name", IN_F64)
def test_functions_of_f64_have_torchs_gradcheck(name):
    x = DOUBLE.clone().requires_grad_()
    assert torch.autograd.gradcheck(IN_F64[name], x)
    assert torch.autograd.gradgradcheck(IN_F64[name], x)
    assert IN_F64[name](x).dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_narrow_operands_have_narrow_gradients(dtype):
    x, w = X.to(dtype).requires_grad_(), torch.randn(5, 6).to(dtype).requires_grad_()
    ops.linear(ops.silu(x), w).sum().backward()
    assert x.grad.dtype == w.grad.dtype == dtype


def test_running_statistics_take_no_part():
    x, mean, var = IMAGE.clone().requires_grad_(), torch.zeros(6), torch.ones(6)
    ops.batch_norm(x, mean, var, training=True).sum().backward()
    assert not mean.requires_grad and not var.requires_grad and x.grad is not None
