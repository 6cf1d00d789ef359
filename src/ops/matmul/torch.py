"""Products of integers and of quantized matrices in torch."""

import torch


def matmul_integer(a, b, a_zero=None, b_zero=None):
    """Sums of products of bytes: exact in double precision, which every device multiplies in;
    modulo 2^32."""
    a, b = a.double(), b.double()
    if a_zero is not None:
        a = a - (a_zero.double().reshape(-1, 1) if a.dim() > 1 else a_zero.double())
    if b_zero is not None:
        b = b - b_zero.double()
    return torch.matmul(a, b).long().int()


def dequantized(b, scales, zeros=None, *, k, bits=8, block=0, trans_b=0, zero=0):
    """[N, K] of b's integers without their zero points, times the scales of blocks of k."""
    b = b.flatten(1) if trans_b else b.t()
    if bits == 4:
        b, zeros = halves(b), None if zeros is None else halves(zeros)

    def spread(v):
        if v.numel() == 1:
            return v.reshape(1, 1).float()
        v = v.unsqueeze(1) if v.dim() < 2 else v if trans_b else v.t()
        return v.float().repeat_interleave(block, 1)[:, :k] if block else v.float()

    return (b[:, :k].float() - (zero if zeros is None else spread(zeros))) * spread(scales)


def halves(packed):
    """The two numbers of each byte, the low one first."""
    return torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
