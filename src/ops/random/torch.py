"""The counter-based generator (random.2) in torch."""

import torch


def words(seed, offset, n):
    """The words of numbers offset to offset + n of Philox4x32-10 (random.2), in i64."""
    low = 2**32 - 1
    e = offset.reshape(()) + torch.arange(n, device=offset.device)  # modulo 2^64
    quad = e >> 2 & 2**62 - 1
    c = [quad & low, quad >> 32, torch.zeros_like(e), torch.full_like(e, 2**31)]
    k = [seed.reshape(()) & low, seed.reshape(()) >> 32 & low]

    def product(m, x):
        """Upper and lower word of m x: x in halves, so that nothing exceeds 63 bits."""
        upper, lower = m * (x >> 16), m * (x & 0xFFFF)
        return (upper + (lower >> 16)) >> 16, ((upper << 16 & low) + lower) & low

    for _ in range(10):
        (a, b), (d, f) = product(0xD2511F53, c[0]), product(0xCD9E8D57, c[2])
        c = [d ^ c[1] ^ k[0], f, a ^ c[3] ^ k[1], b]
        k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
    return torch.stack(c, -1).gather(-1, (e & 3).unsqueeze(-1)).squeeze(-1)


def bits(seed, offset, shape):
    return words(seed, offset, torch.Size(shape).numel()).to(torch.int32).reshape(shape)


def uniform(seed, offset, shape):
    drawn = words(seed, offset, torch.Size(shape).numel()) >> 8
    return (drawn.float() * 2.0**-24).reshape(shape)


def dropout(x, seed, offset, ratio):
    u = uniform(seed, offset, x.shape)
    one = torch.ones((), device=x.device)
    return torch.where(u >= ratio, x * (one / (one - ratio)), torch.zeros_like(x))
