"""Products of matrices: contractions (spec/contraction.md)."""

from invar import primitives as p


def matmul(input, other):
    """The product of two tensors, broadcast as torch.matmul does: [..., M, K] x [..., K, N] ->
    [..., M, N]; a tensor of one dimension is a row or a column (spec: matmul.2)."""
    return p.matmul(input, other, trans_a=0, trans_b=0)
