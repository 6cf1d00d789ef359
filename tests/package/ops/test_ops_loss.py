"""Losses."""

import pytest
from accuracy import case, check, ids, ops, randn, raw, refused, torch

X, Y, P = (
    randn(6, 5),
    randn(6, 5, seed=1),
    torch.rand(6, 5, generator=torch.Generator().manual_seed(2)) * 0.98 + 0.01,
)
C, IMAGE = torch.tensor([0, 4, 2, -100, 1, 1]), randn(2, 5, 3, 4, seed=3)
CI = torch.randint(0, 5, (2, 3, 4), generator=torch.Generator().manual_seed(4))
W = torch.tensor([0.5, 1, 2, 0.25, 3])
LOG = torch.log_softmax(X, 1)
HOW = ("mean", "sum", "none")

CASES = [
    *(
        case(n, X, Y, reduction=r, error=16)
        for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for r in HOW
    ),
    *(
        case(n, X, Y, reduction=r, weight=P, error=16)
        for n in ("mse_loss", "l1_loss", "huber_loss")
        for r in HOW
    ),
    case("smooth_l1_loss", X, Y, beta=0.3),
    case("smooth_l1_loss", X, Y, beta=0),
    case("huber_loss", X, Y, delta=0.3),
    *(case("binary_cross_entropy", P, P.flip(0), *w, reduction=r) for r in HOW for w in [(), (W,)]),
    case("binary_cross_entropy", (P > 0.5).float(), P),
    *(
        case("binary_cross_entropy_with_logits", X, P, reduction=r, **w)
        for r in HOW
        for w in [{}, {"weight": W}, {"pos_weight": W}]
    ),
    *(case("kl_div", LOG, P, reduction=r) for r in (*HOW, "batchmean")),
    *(case("kl_div", LOG, LOG.flip(0), reduction=r, log_target=True) for r in (*HOW, "batchmean")),
    case("kl_div", LOG, (P - 0.5).relu(), reduction="none"),
    *(case("nll_loss", LOG, C, *w, reduction=r) for r in HOW for w in [(), (W,)]),
    case("nll_loss", LOG[0], C[1]),
    case("nll_loss", LOG, C.clamp(0), ignore_index=1),
    case("nll_loss", IMAGE, CI, W),
    *(
        case("cross_entropy", X, C, reduction=r, label_smoothing=s, **w)
        for r in HOW
        for s in (0.0, 0.1)
        for w in [{}, {"weight": W}]
    ),
    *(
        case("cross_entropy", IMAGE, CI, reduction=r, label_smoothing=s, error=16)
        for r in HOW
        for s in (0.0, 0.3)
    ),
    case("cross_entropy", X[0], C[1]),
    case("cross_entropy", X, C * 0 - 100),
    case("cross_entropy", IMAGE, CI, W, ignore_index=2, error=16),
    *(
        case("cross_entropy", X, P, reduction=r, label_smoothing=s, **w)
        for r in HOW
        for s in (0.0, 0.1)
        for w in [{}, {"weight": W}]
    ),
    case("cross_entropy", IMAGE, IMAGE.softmax(1), W, error=16),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_losses(c):
    check(c)


def test_a_row_does_not_depend_on_its_batch():
    x, i = randn(9, 3000), torch.arange(9)
    whole = ops.cross_entropy(x, i, reduction="none")
    for k in range(9):
        assert raw(ops.cross_entropy(x[k : k + 1], i[k : k + 1], reduction="none")) == raw(whole[k])


def test_refusals():
    refused(RuntimeError, "reduction", ops.mse_loss, X, Y, reduction="median")
    refused(NotImplementedError, "size_average", ops.mse_loss, X, Y, True)
    refused(RuntimeError, "do not broadcast", ops.l1_loss, X, Y[:, :3])
    refused(
        RuntimeError,
        "cross_entropy: argument 'target': expected input's shape",
        ops.cross_entropy,
        X,
        C[:3],
    )
    refused(RuntimeError, "cross_entropy: argument 'weight'", ops.cross_entropy, X, C, W[:3])
    refused(RuntimeError, "label_smoothing", ops.cross_entropy, X, C, label_smoothing=2.0)
    classes = "nll_loss: argument 'target': expected indices of 0 ... 4, got some of "
    refused(IndexError, classes + "-99 ... 5", ops.nll_loss, LOG, C + 1)
    refused(IndexError, "cross_entropy: .* got some of -1 ... 4", ops.cross_entropy, X, C.clamp(-1))
    ignored = ops.cross_entropy(X, C.clamp(-1), ignore_index=-1)
    assert raw(ignored) == raw(ops.cross_entropy(X, C))
    refused(RuntimeError, "expected the shape of input", ops.binary_cross_entropy, P, P[:2])
