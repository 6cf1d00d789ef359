"""Losses of margins and rankings, windows as columns, sampling, and dropout of channels."""

import pytest
from accuracy import EPSILON, case, check, close, ids, invar, near, ops, randn, raw, refused, torch
from torch.nn import functional as F

X, Y, Z = randn(6, 5), randn(6, 5, seed=1), randn(6, 5, seed=2)
SIGN = torch.tensor([1.0, -1, 1, 1, -1, -1])
SIGNS = (Y > 0).float() * 2 - 1
CLASS, HOW = torch.tensor([0, 4, 2, 3, 1, 1]), ("mean", "sum", "none")
LABELS = torch.tensor([[1, 3, -1, 2, 0], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4], [4, -1, 4, 4, 4],
                       [2, 2, -1, 1, 1], [3, 0, 4, 2, -1]])  # fmt: skip
W = torch.tensor([0.5, 1, 2, 0.25, 3])
IMAGE, COLUMNS = randn(2, 3, 6, 7, seed=3), randn(2, 12, 20, seed=4)
GRID = randn(2, 4, 5, 2, seed=5).tanh() * 1.3
GRID3, ROOM = randn(2, 3, 2, 2, 3, seed=6).tanh() * 1.2, randn(2, 3, 4, 3, 5, seed=7)
POOLED, INDICES = F.max_pool2d(IMAGE, 2, return_indices=True)
LOG = torch.log_softmax(randn(9, 3, 5, seed=8) / 16, -1)
TARGETS = torch.tensor([[1, 2, 2, 4], [3, 3, 3, 1], [4, 1, 0, 0]])
LENGTHS = torch.tensor([9, 7, 8]), torch.tensor([4, 3, 2])


def ctc(log_probs, targets, ins, outs, **options):
    """torch has no kernel of half types."""
    found = F.ctc_loss(log_probs.double(), targets, ins, outs, **options)
    return found.to(log_probs.dtype)


CASES = [
    *(case("cosine_embedding_loss", X, Y, SIGN, 0.1, reduction=r) for r in HOW),
    case("cosine_embedding_loss", X[0], Y[0], SIGN[0]),
    *(case("hinge_embedding_loss", X, SIGNS, reduction=r) for r in HOW),
    *(case("margin_ranking_loss", X, Y, SIGNS, 0.5, reduction=r) for r in HOW),
    *(case("soft_margin_loss", X, SIGNS, reduction=r, error=16) for r in HOW),
    *(case("gaussian_nll_loss", X, Y, Z.abs(), full=f) for f in (True, False)),
    case("gaussian_nll_loss", X, Y, Z[:, 0].abs(), reduction="sum", error=16),
    case("gaussian_nll_loss", X, Y, Z[:, :1].abs(), reduction="none"),
    *(case("poisson_nll_loss", X.clamp(max=4), Y.abs(), full=f, reduction=r)
      for f in (True, False) for r in HOW),
    case("poisson_nll_loss", X.abs(), Y.abs(), log_input=False, error=16),
    case("pairwise_distance", X, Y),
    case("pairwise_distance", X, Y, 1, keepdim=True),
    *(case("triplet_margin_loss", X, Y, Z, reduction=r) for r in HOW),
    case("triplet_margin_loss", X, Y, Z, margin=2.0, swap=True, p=1),
    case("triplet_margin_with_distance_loss", X, Y, Z, swap=True, narrow=False),
    *(case("multi_margin_loss", X, CLASS, reduction=r, p=p) for r in HOW for p in (1, 2)),
    case("multi_margin_loss", X, CLASS, margin=0.5, weight=W),
    case("multi_margin_loss", X[0], CLASS[1]),
    *(case("multilabel_margin_loss", X, LABELS, reduction=r) for r in HOW),
    case("multilabel_margin_loss", X[0], LABELS[0]),
    *(case("multilabel_soft_margin_loss", X, (Y > 0).float(), weight=w, reduction=r)
      for r in HOW for w in (None, W)),
    *(case("ctc_loss", LOG, TARGETS, *LENGTHS, torch=ctc, reduction=r) for r in HOW),
    case("ctc_loss", LOG, torch.tensor([1, 2, 2, 4, 3, 3, 3, 4, 1]), *LENGTHS, torch=ctc),
    case("ctc_loss", LOG[:4], TARGETS, torch.tensor([4, 4, 4]), LENGTHS[1], torch=ctc,
         zero_infinity=True, reduction="none"),
    case("ctc_loss", LOG[:4], TARGETS, torch.tensor([4, 4, 4]), LENGTHS[1], torch=ctc,
         reduction="none"),
    case("ctc_loss", LOG[:, 0], TARGETS[0], torch.tensor(9), torch.tensor(4), torch=ctc, blank=3),
    case("local_response_norm", IMAGE, 2),
    case("local_response_norm", IMAGE, 3, alpha=0.1, beta=0.5, k=2.0),
    case("local_response_norm", randn(2, 5, 4), 5),
    case("unfold", IMAGE, 2),
    case("unfold", IMAGE, (3, 2), dilation=(1, 2), padding=(2, 1), stride=(2, 1)),
    case("unfold", IMAGE[0], 3, padding=1),
    case("fold", COLUMNS, (5, 6), 2),
    case("fold", randn(2, 12, 15, seed=6), (6, 5), (2, 2), padding=1, stride=(2, 1), dilation=(3, 2)),
    case("fold", COLUMNS[0], (5, 6), 2),
    case("max_unpool2d", POOLED, INDICES, 2, output_size=(6, 7)),
    case("max_unpool1d", *F.max_pool1d(IMAGE[0], 2, return_indices=True), 2),
    case("max_unpool3d", *F.max_pool3d(ROOM[:, :, :, :2, :4], 2, return_indices=True), 2),
    *(case("grid_sample", IMAGE, GRID, m, b, a, error=64)
      for m in ("bilinear", "nearest") for b in ("zeros", "border", "reflection")
      for a in (False, True)),
    *(case("grid_sample", ROOM, GRID3, "bilinear", b, False, error=64, narrow=False)
      for b in ("zeros", "border", "reflection")),
    *(case("affine_grid", randn(2, 2, 3).tanh(), [2, 3, 4, 5], a) for a in (False, True)),
    case("affine_grid", randn(2, 3, 4).tanh(), [2, 3, 2, 4, 1], False),
    *(case("adaptive_max_pool2d", IMAGE, (4, 3), True) for _ in (0,)),
    case("adaptive_max_pool1d", IMAGE[0], 4, return_indices=True),
    case("adaptive_max_pool3d", ROOM, (2, 3, 2), return_indices=True),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_neural_functions(c):
    check(c)


DROPPED = {
    "dropout1d": ((50, 40, 3), 2),
    "dropout2d": ((50, 40, 3, 2), 2),
    "dropout3d": ((50, 40, 1, 3, 2), 2),
    "feature_alpha_dropout": ((50, 40, 3), 2),
    "alpha_dropout": ((50, 40, 3), 3),
}


def near_of(got, wanted):
    """Of any floating type."""
    close(got, wanted, EPSILON[got.dtype], 2, "near")


@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropouts(name, dtype):
    """Whole channels, or elements; as many as wanted; kept ones are scaled; the mask is the
    seed's."""
    shape, first = DROPPED[name]
    function, x = getattr(ops, name), (randn(*shape).abs() + 1).to(dtype)
    y = function(x, 0.3, True, seed=3)
    assert y.dtype == dtype and raw(y) == raw(function(x, 0.3, True, seed=3, offset=0))
    assert raw(y) != raw(function(x, 0.3, True, seed=4))
    if "alpha" in name:
        limit = -1.0507009873554805 * 1.6732632423543772
        a = ((1 - 0.3) * (1 + 0.3 * limit**2)) ** -0.5
        low = torch.tensor(a * limit - a * 0.3 * limit, dtype=torch.float32).to(dtype)
        dropped = (y.double() - low.double()).abs() < 1e-2
        near_of(y[~dropped], (x.double() * a - a * 0.3 * limit)[~dropped])
    else:
        dropped = y == 0
        near_of(y[~dropped], x.double()[~dropped] / 0.7)
    rows = dropped.reshape(*shape[:first], -1)
    assert torch.equal(rows.all(-1), rows.any(-1))  # all of a channel, or nothing
    assert abs(rows.any(-1).double().mean() - 0.3) < 0.03
    assert function(x, 0.3, False) is x
    assert torch.equal(function(x, 1.0, True) == 0, torch.ones_like(dropped))
    found = []
    for seeded in (torch.manual_seed, invar.manual_seed):  # one seed for tensors
        seeded(5)
        found.append(raw(function(x, 0.3, True)))
    assert len(set(found)) == 1 and found[0] != raw(function(x, 0.3, True))
    made = [raw(function(x, 0.3, True, generator=invar.Generator(5))) for _ in range(2)]
    assert len(set(made)) == 1
    assert raw(ops.dropout(x, 0.3, seed=3)) != raw(y)


def test_dropout_without_a_batch():
    x = torch.ones(40, 6)
    assert torch.equal((ops.dropout1d(x, 0.5, seed=1) == 0).all(1), (ops.dropout1d(x, 0.5, seed=1) == 0).any(1))  # fmt: skip
    refused(RuntimeError, "dropout1d: argument 'input': expected 2 or 3", ops.dropout1d, x[0])
    refused(RuntimeError, "expected a probability", ops.dropout2d, x[None], 1.5)
    refused(NotImplementedError, "inplace", ops.alpha_dropout, x, 0.5, True, True)


def test_sampling_beyond_the_image():
    """Infinite and missing places are outside, or at the border."""
    grid = torch.tensor([[[[float("inf"), 0.0], [float("nan"), 0.0], [1e30, -1e30]]]])
    assert ops.grid_sample(IMAGE[:1], grid, align_corners=False).eq(0).all()
    found = ops.grid_sample(IMAGE[:1], grid[:, :, 2:], padding_mode="border", align_corners=False)
    assert torch.equal(found[0, :, 0, 0], IMAGE[0, :, 0, -1])


def test_refusals():
    refused(NotImplementedError, "bicubic", ops.grid_sample, IMAGE, GRID, "bicubic")
    refused(RuntimeError, "grid_sample: argument 'grid'", ops.grid_sample, IMAGE, GRID[:1])
    refused(RuntimeError, "fold: argument 'input'", ops.fold, COLUMNS, (5, 5), 2)
    refused(RuntimeError, "holds no window", ops.unfold, IMAGE, 9)
    refused(RuntimeError, "max_unpool2d: argument 'output_size'", ops.max_unpool2d, POOLED, INDICES, 2, output_size=(9, 9))  # fmt: skip
    refused(IndexError, "index", ops.max_unpool2d, POOLED, INDICES + 40, 2)
    refused(RuntimeError, "multi_margin_loss: argument 'p'", ops.multi_margin_loss, X, CLASS, 3)
    refused(IndexError, "index", ops.multi_margin_loss, X, CLASS + 4)
    refused(RuntimeError, "ctc_loss: argument 'input_lengths'", ops.ctc_loss, LOG, TARGETS, torch.tensor([10, 1, 1]), LENGTHS[1])  # fmt: skip
    refused(RuntimeError, "ctc_loss: argument 'targets'", ops.ctc_loss, LOG, TARGETS[:, :2], *LENGTHS)  # fmt: skip


DIFFERENTIABLE = [
    c
    for c in CASES
    if c.name not in ("affine_grid", "ctc_loss") and c.kwargs.get("reduction") != "sum"
]


def fixed(c, dtype):
    is_real = lambda x: isinstance(x, torch.Tensor) and x.is_floating_point()  # noqa: E731
    return {k: x.to(dtype) if is_real(x) else x for k, x in c.kwargs.items()}


@pytest.mark.parametrize("c", DIFFERENTIABLE, ids=ids)
def test_gradients_are_those_of_torch(c):
    """Of all floating operands, against torch's in float64."""
    found = []
    for dtype, function in ((torch.float32, getattr(ops, c.name)), (torch.float64, c.torch or getattr(F, c.name))):  # fmt: skip
        leaves = []

        def leaf(x, dtype=dtype, leaves=leaves):
            if not x.is_floating_point() or torch.equal(x.abs(), torch.ones_like(x)):
                return x
            leaves.append(x.to(dtype).clone().requires_grad_())
            return leaves[-1]

        y = function(
            *(leaf(a) if isinstance(a, torch.Tensor) else a for a in c.args), **fixed(c, dtype)
        )
        y = y[0] if isinstance(y, tuple) else y
        weights = 1 + torch.arange(y.numel()).reshape(y.shape) % 3
        grads = torch.autograd.grad((y * weights).sum(), leaves, allow_unused=True)
        found.append([torch.zeros_like(x) if g is None else g for x, g in zip(leaves, grads)])
    for ours, torchs in zip(*found, strict=True):
        near(ours, torchs, 2048 if torchs.abs().max() < 1e-3 else 512)


@pytest.mark.parametrize("reduction", HOW)
@pytest.mark.parametrize("steps", [9, 4])
def test_gradients_of_alignments(reduction, steps):
    """Of logits: torch's gradient of log_probs alone holds only behind log_softmax. Four steps fit
    two of the targets."""
    found = []
    lengths = torch.tensor([steps, min(steps, 7), steps]), LENGTHS[1]
    for dtype, of, log in ((torch.float32, ops, ops), (torch.float64, F, torch)):
        logits = (randn(9, 3, 5, seed=8)[:steps] / 16).to(dtype).requires_grad_()
        how = dict(reduction=reduction, zero_infinity=True)
        loss = of.ctc_loss(log.log_softmax(logits, -1), TARGETS, *lengths, **how)
        (loss * (1 + torch.arange(loss.numel()).reshape(loss.shape))).sum().backward()
        found.append((loss, logits.grad))
    for ours, torchs in zip(*found):
        near(ours, torchs, 256)
    assert steps == 9 or (found[1][1] == 0).any()
