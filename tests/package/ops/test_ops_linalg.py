"""Products of matrices."""

import numpy as np
import pytest
from accuracy import case, check, ids, near, ops, randn, raw, refused, torch

functional = torch.nn.functional
A, B = randn(2, 3, 40), randn(2, 40, 5, seed=1)
ROW, COLUMN, SQUARE = randn(40, seed=2), randn(40, seed=3), randn(6, 6, seed=4)
HIDDEN = randn(300, 70, seed=5)

CASES = [
    *(
        case("matmul", x, y)
        for x, y in [
            (A, B),
            (ROW, COLUMN),
            (A, ROW),
            (ROW, B),
            (A[0], B),
            (A, B[1]),
            (A[:, None], B),
            (HIDDEN.T, HIDDEN),
            (torch.empty(3, 0), torch.empty(0, 2)),
            (torch.empty(0, 3), torch.empty(3, 2)),
        ]
    ),
    case("mm", A[0], B[0]),
    case("bmm", A, B),
    case("mv", A[0], ROW),
    case("dot", ROW, COLUMN),
    case("outer", ROW, COLUMN),
    case("addmm", randn(5, seed=6), A[0], B[0]),
    case("addmm", randn(3, 5, seed=6), A[0], B[0], beta=0.5, alpha=2.0, error=16),
    case("addmm", torch.full((3, 5), float("nan")), A[0], B[0], beta=0),
    case("addmv", randn(3), A[0], ROW),
    case("baddbmm", randn(2, 3, 5), A, B, alpha=0.5),
    case("linear", A, randn(7, 40)),
    case("linear", A, randn(7, 40), randn(7)),
    case("linear", ROW, randn(7, 40), randn(7)),
    case("linear", A, ROW),
    case("linear", torch.empty(0, 40), randn(7, 40)),
    case("bilinear", randn(4, 3), randn(4, 5, seed=7), randn(2, 3, 5), randn(2)),
    case("tensordot", A, B, dims=([0, 2], [0, 1])),
    case("tensordot", SQUARE, SQUARE, dims=1),
    case("tensordot", randn(2, 3), randn(2, 3), dims=2),
    *(
        case("einsum", e, *o)
        for e, o in [
            ("bij,bjk->bik", (A, B)),
            ("bij,bjk", (A, B)),
            ("ii->i", (SQUARE,)),
            ("ii", (SQUARE,)),
            ("iij->j", (randn(4, 4, 3),)),
            ("...ij,...jk->...ik", (A, B)),
            ("i,j->ij", (ROW, COLUMN)),
            ("bij,j->bi", (A, ROW)),
            ("bij->jb", (A,)),
            ("bij->", (A,)),
            ("bij,bjk,k->bi", (A, B, randn(5))),
            ("...j,j->...", (A, ROW)),
            ("bij,bij->", (A, A)),
            ("bij,cjk->bcik", (A, B)),
            ("ij,jk,kl->il", (A[0], B[0], randn(5, 4))),
            ("ij,jk->ik", (randn(2, 1), randn(3, 4))),
            ("b i j -> b j i", (A,)),
            ("a...,a...->...", (A, A)),
            ("ij,kl->", (SQUARE, SQUARE)),
        ]
    ),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_products(c):
    check(c)


@pytest.mark.parametrize("name,x", [("matmul", HIDDEN), ("linear", HIDDEN)])
def test_a_row_does_not_depend_on_its_batch(name, x):
    w = randn(70, 33, seed=8)
    w = w if name == "matmul" else w.T.contiguous()
    whole = getattr(ops, name)(x, w)
    for i in (0, 1, 17, 299):
        assert raw(getattr(ops, name)(x[i : i + 1], w)) == raw(whole[i]), i
    assert raw(getattr(ops, name)(x[5:260], w)) == raw(whole[5:260])


def test_bf16_weights_are_widened():
    x, w = HIDDEN.bfloat16(), randn(33, 70).bfloat16()
    wide = ops.matmul(x.float(), w.float().T)
    assert raw(ops.linear(x, w)) == raw(wide.bfloat16())


def test_binary64():
    a, b = randn(9, 300).double() / 3, randn(300, 4, seed=1).double() / 7
    got = ops.matmul(a, b)
    assert got.dtype == torch.float64
    near(got, a @ b)


def test_integers():
    a, b = (
        torch.randint(-128, 128, (3, 7), dtype=torch.int8),
        torch.randint(0, 256, (7, 5), dtype=torch.uint8),
    )
    za, zb = torch.tensor(-3, dtype=torch.int8), torch.tensor([1, 2, 3, 4, 255], dtype=torch.uint8)
    wanted = lambda x, y: ((a.long() - x) @ (b.long() - y)).int()
    assert torch.equal(ops.matmul_integer(a, b), wanted(0, 0))
    assert torch.equal(ops.matmul_integer(a, b, za, zb), wanted(za.long(), zb.long()))
    assert torch.equal(ops.matmul_integer(a, b, b_zero_point=zb), wanted(0, zb.long()))


def test_weights_of_eight_and_four_bits():
    x = randn(3, 32)
    q = torch.randint(-128, 128, (32, 6), dtype=torch.int8)
    scales = torch.rand(2, 6) + 0.5
    w = q.float() * scales.repeat_interleave(16, 0)
    assert raw(ops.matmul_nbits(x, q, scales, block=16)) == raw(ops.matmul(x, w))
    packed = torch.randint(0, 256, (6, 2, 8), dtype=torch.uint8)
    nibbles = torch.stack([packed & 15, packed >> 4], -1).reshape(6, 32).float() - 8
    w = nibbles * scales.T.repeat_interleave(16, 1)
    got = ops.matmul_nbits(x, packed, scales.T.contiguous(), bits=4, block=16, trans_b=True, zero=8)
    assert raw(got) == raw(ops.linear(x, w))
    assert ops.matmul_nbits(x.bfloat16(), q, scales, block=16).dtype == torch.bfloat16


def test_matrices_by_index():
    x, w, i = randn(5, 8), randn(3, 8, 4), torch.tensor([2, 0, -1, 1, 2])
    wanted = torch.stack([ops.matmul(x[k], w[j]) for k, j in enumerate(i)])
    assert raw(ops.grouped_matmul(x, i, w)) == raw(wanted)
    assert raw(ops.grouped_matmul(x, i, list(w))) == raw(wanted)


def test_refusals():
    x = torch.ones(2, 3)
    refused(RuntimeError, r"matmul: .* \(2, 3\) and \(2, 3\)", ops.matmul, x, x)
    refused(
        RuntimeError,
        "matmul: argument 'other': expected elements of float32 .* float64",
        ops.matmul,
        x,
        x.double(),
    )
    refused(NotImplementedError, "elements of bool", ops.matmul, x.bool(), x.bool())
    refused(RuntimeError, "mm: argument 'mat2': expected 2 dimensions", ops.mm, x, A)
    refused(RuntimeError, "bmm: argument 'mat2': expected 2 matrices", ops.bmm, A, randn(3, 40, 5))
    refused(
        RuntimeError, "linear: argument 'bias': expected shape", ops.linear, x, x, torch.ones(3)
    )
    refused(RuntimeError, "at least one dimension", ops.matmul, x, torch.tensor(1.0))
    refused(TypeError, "expected torch.Tensor or numpy.ndarray, got list", ops.matmul, x, [1])
    refused(RuntimeError, "einsum: argument 'equation'", ops.einsum, "ij,jk", x)
    refused(RuntimeError, "einsum: argument 'equation'", ops.einsum, "ij->ik", x)
    refused(RuntimeError, "einsum: letter 'j'", ops.einsum, "ij,jk->ik", x, x)
    refused(RuntimeError, "expected int8 or uint8", ops.matmul_integer, x, x)
    refused(RuntimeError, "NumPy", ops.matmul, x, np.ones((3, 2), "f4"))
