"""Random calls of the functions that invar.ops has, over shapes (of no, one and several elements),
types, broadcasts and strides."""

import itertools

import invar
import torch
import torch.nn.functional as F
from compared import Call

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
SIZES = (0, 1, 1, 2, 3, 4, 5)


class Draw:
    """What a call is made of; `random` is a random.Random."""

    def __init__(self, random):
        self.random = random
        self.pick, self.chance = random.choice, lambda p: random.random() < p

    def shape(self, low=0, high=4, none=0.06):
        n = self.random.randint(low, high)
        return tuple(0 if self.chance(none) else self.random.randint(1, 5) for _ in range(n))

    def broadcast(self, shape):
        """A shape that broadcasts with this one."""
        cut = self.random.randint(0, len(shape)) if self.chance(0.3) else 0
        return tuple(1 if self.chance(0.25) else n for n in shape[cut:])

    def dtype(self, kinds=FLOATS + WHOLE + (torch.bool,)):
        return self.pick((torch.float32, *kinds)) if torch.float32 in kinds else self.pick(kinds)

    def tensor(self, shape, dtype=torch.float32, low=-4.0, high=4.0, grad=None):
        """Multiples of 1/64, in any strides."""
        n = 1
        for m in shape:
            n *= m
        made = torch.Generator().manual_seed(self.random.randrange(2**31))
        if dtype == torch.bool:
            x = torch.rand(n, generator=made) < 0.5
        elif not dtype.is_floating_point:
            low = max(low, 0) if dtype == torch.uint8 else low
            x = torch.randint(int(low), int(high) + 1, (n,), generator=made).to(dtype)
        else:
            x = torch.randint(int(low * 64), int(high * 64) + 1, (n,), generator=made).double() / 64
            x = (x + 2**-9).to(dtype)
        x = self.laid(x.reshape(shape))
        wants = dtype.is_floating_point if grad is None else grad
        return x.requires_grad_(wants and dtype.is_floating_point)

    def laid(self, x):
        """The same elements elsewhere: transposed, or every other one of memory."""
        how = self.random.random()
        if x.ndim > 1 and how < 0.2:
            order = list(range(x.ndim))
            self.random.shuffle(order)
            back = sorted(range(x.ndim), key=order.__getitem__)
            return x.permute(order).contiguous().permute(back)
        if how < 0.35:
            return torch.stack([x, x], -1)[..., 0]
        if how < 0.42 and x.ndim and x.shape[0] > 1:
            return x[:1].expand(x.shape)
        return x

    def dim(self, ndim):
        return self.random.randint(-max(ndim, 1), max(ndim, 1) - 1)

    def dims(self, ndim):
        """One, several, none, or None."""
        how = self.random.random()
        if how < 0.2:
            return None
        if how < 0.5 or not ndim:
            return self.dim(ndim)
        chosen = [d for d in range(ndim) if self.chance(0.5)]
        return [d - ndim if self.chance(0.3) else d for d in chosen]

    def number(self):
        return self.pick((0, 1, 2, 3, -1, 0.5, -1.5, 2.5, True))


UNARY = """abs neg sign floor ceil trunc round sqrt reciprocal rsqrt exp exp2 expm1 log log2 log10 log1p
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid square frac logit isnan
isinf isfinite logical_not bitwise_not nan_to_num relu""".split()
ACTIVATIONS = """relu relu6 elu selu celu gelu silu mish softplus softsign hardsigmoid hardswish hardtanh
logsigmoid tanhshrink softshrink hardshrink leaky_relu""".split()
BINARY = """add sub mul div floor_divide remainder fmod maximum minimum eq ne lt le gt ge logical_and
logical_or logical_xor bitwise_and bitwise_or bitwise_xor pow atan2 logaddexp""".split()
REDUCED = "sum mean prod amax amin all any std var logsumexp norm count_nonzero max min argmax argmin".split()
LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy
binary_cross_entropy_with_logits soft_margin_loss hinge_embedding_loss poisson_nll_loss""".split()


def unary(d):
    name = d.pick(UNARY)
    positive = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "logit")
    low = 0.0 if name in positive else -4.0
    return name, torch, (d.tensor(d.shape(), d.dtype(), low, 0.9 if name == "logit" else 4.0),), {}


def activation(d):
    name = d.pick(ACTIVATIONS)
    return name, F, (d.tensor(d.shape(), d.dtype(FLOATS), -8, 8),), {}


def operands(d):
    shape = d.shape()
    a = d.tensor(shape, d.dtype())
    b = d.number() if d.chance(0.2) else d.tensor(d.broadcast(shape), d.dtype())
    return (a, b) if d.chance(0.5) or not isinstance(b, torch.Tensor) else (b, a)


def binary(d):
    name, more = d.pick(BINARY), {}
    if name in ("add", "sub") and d.chance(0.5):
        more["alpha"] = d.pick((2, 3, -1, 0.5, 100, 0))
    if name == "div" and d.chance(0.5):
        more["rounding_mode"] = d.pick(("floor", "trunc", None))
    a, b = operands(d)
    if name == "atan2":  # whose gradient in torch negates unsigned integers
        a, b = (
            x.float() if isinstance(x, torch.Tensor) and x.dtype == torch.uint8 else x
            for x in (a, b)
        )
    return name, torch, (a, b), more


def ternary(d):
    name, shape = d.pick(("addcmul", "addcdiv", "lerp", "where", "clamp")), d.shape()
    of = lambda low=-4.0: d.tensor(d.broadcast(shape), d.dtype(), low)
    if name == "where":
        return name, torch, (d.tensor(shape, torch.bool), of(), of()), {}
    if name == "lerp":
        kind = d.dtype(FLOATS)
        a, b = d.tensor(shape, kind), d.tensor(d.broadcast(shape), kind)
        return name, torch, (a, b, d.pick((0.3, 0.8, d.tensor(shape, kind)))), {}
    if name == "clamp":
        bounds = d.pick(((-1, 2), (0.5, None), (None, 1), (2, -1), (of(), of()), (None, of())))
        return name, torch, (d.tensor(shape, d.dtype()), *bounds), {}
    more = {"value": d.pick((1, 2, -0.5))} if d.chance(0.6) else {}
    return name, torch, (d.tensor(shape, d.dtype()), of(), of(1.0)), more


def reduction(d):
    name, x = d.pick(REDUCED), d.tensor(d.shape(), d.dtype())
    if name in ("argmax", "argmin", "max", "min", "prod"):
        if d.chance(0.3):
            return name, torch, (x,), {}
        return name, torch, (x, d.dim(x.ndim)), {"keepdim": d.chance(0.4)}
    dims = d.dims(x.ndim)
    more = {} if dims is None and name not in ("logsumexp",) else {"dim": dims}
    if more and name != "count_nonzero":
        more["keepdim"] = d.chance(0.4)
    if name in ("std", "var") and more.get("dim") == []:
        more["dim"] = None  # whose gradient of no dimensions is not that of all, in torch
    if name in ("std", "var") and d.chance(0.6):
        more["correction"] = d.pick((0, 1, 2, 0.5))
    if name == "norm":
        more["p"] = d.pick((1, 2, 3, 0, 0.5, float("inf"), -float("inf"), "fro"))
    if name in ("sum", "mean") and d.chance(0.3):
        more["dtype"] = d.dtype()
    return name, torch, (x,), more


def scan(d):
    x = d.tensor(d.shape(), d.dtype())
    return d.pick(("cumsum", "cumprod", "sort", "argsort")), torch, (x, d.dim(x.ndim)), {}


def softmax(d):
    name, x = (
        d.pick(("softmax", "log_softmax", "softmin", "glu")),
        d.tensor(d.shape(1), d.dtype(FLOATS)),
    )
    return name, F, (x, d.dim(x.ndim)), {}


def product(d):
    kind, k = d.dtype(FLOATS), d.pick(SIZES)
    m, n, batch = d.pick(SIZES), d.pick(SIZES), d.shape(0, 2)
    name = d.pick(("matmul", "mm", "bmm", "mv", "dot", "linear", "addmm", "baddbmm", "outer"))
    of = lambda *shape: d.tensor(shape, kind)
    if name == "matmul":
        a = of(k) if d.chance(0.2) else of(*d.broadcast(batch), m, k)
        return name, torch, (a, of(k) if d.chance(0.2) else of(*batch, k, n)), {}
    more = {"beta": d.pick((0, 1, 0.5)), "alpha": d.pick((1, 2, 0.5))}
    return {
        "mm": (name, torch, (of(m, k), of(k, n)), {}),
        "bmm": (name, torch, (of(2, m, k), of(2, k, n)), {}),
        "mv": (name, torch, (of(m, k), of(k)), {}),
        "dot": (name, torch, (of(k), of(k)), {}),
        "outer": (name, torch, (of(m), of(n)), {}),
        "linear": (name, F, (of(*batch, m, k), of(n, k), *([of(n)] if d.chance(0.5) else [])), {}),
        "addmm": (name, torch, (of(*d.broadcast((m, n))), of(m, k), of(k, n)), more),
        "baddbmm": (name, torch, (of(*d.broadcast((2, m, n))), of(2, m, k), of(2, k, n)), more),
    }[name]


def loss(d):
    name, shape, kind = d.pick(LOSSES), d.shape(1), d.dtype(FLOATS)
    low = 0.0 if name in ("kl_div", "binary_cross_entropy") else -4.0
    high = 0.98 if name == "binary_cross_entropy" else 4.0
    a, b = d.tensor(shape, kind, low, high), d.tensor(shape, kind, low, high, grad=False)
    if name in ("soft_margin_loss", "hinge_embedding_loss"):
        b = torch.where(b > 0, 1.0, -1.0).to(kind)
    return name, F, (a, b), {"reduction": d.pick(("none", "mean", "sum"))}


def classes(d):
    n, c, kind = d.pick((1, 2, 4)), d.pick((1, 3, 5)), d.dtype(FLOATS)
    rest = d.shape(0, 2, 0)
    x = d.tensor((n, c, *rest), kind)
    target = d.tensor((n, *rest), torch.int64, 0, c - 1)
    more = {"reduction": d.pick(("none", "mean", "sum"))}
    if d.chance(0.4):
        more["weight"] = d.tensor((c,), kind, 0.5, 2.0, grad=False)
    if d.chance(0.3):
        more["ignore_index"] = 0
    if d.chance(0.3):
        return "cross_entropy", F, (x, target), {**more, "label_smoothing": 0.1}
    return d.pick(("cross_entropy", "nll_loss")), F, (x, target), more


def similarity(d):
    shape, kind = d.shape(1, 4), d.dtype(FLOATS)
    a, b = (
        d.tensor(shape, kind),
        d.tensor(d.broadcast(shape), d.dtype(FLOATS) if d.chance(0.2) else kind),
    )
    a, b = (a, b) if d.chance(0.5) else (b, a)
    name = d.pick(("cosine_similarity", "cosine_similarity", "pairwise_distance", "normalize"))
    if name == "normalize":
        return name, F, (a,), {"dim": d.dim(a.ndim), "p": d.pick((1, 2, 3.0))}
    if name == "pairwise_distance":
        return name, F, (a, b), {"p": d.pick((1, 2, 3.0)), "keepdim": d.chance(0.3)}
    return name, F, (a, b), {"dim": d.dim(max(a.ndim, b.ndim))}


def norm(d):
    kind, c = d.dtype(FLOATS), d.pick((2, 4))
    shape = (d.pick((0, 1, 2, 3)), c, *d.shape(0, 2, 0.03))
    x, of = (
        d.tensor(shape, kind),
        lambda n: (
            d.tensor(n if isinstance(n, tuple) else (n,), kind, grad=False)
            .contiguous()
            .requires_grad_()
        ),
    )
    name = d.pick(("layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm"))
    wants, more = d.chance(0.6), {}
    if name in ("layer_norm", "rms_norm"):
        last = shape[d.random.randint(1, len(shape) - 1) :] or shape[-1:]
        more = {"weight": of(last)} if wants else {}
        if wants and name == "layer_norm":
            more["bias"] = of(last)
        return name, F, (x, last), more
    more = {"weight": of(c), "bias": of(c)} if wants else {}
    if name == "group_norm":
        return name, F, (x, d.pick((1, 2))), more
    training = d.chance(0.6)
    known = [d.tensor((c,), kind, 0.5, 2.0, grad=False).contiguous().clone() for _ in range(2)]
    if name == "instance_norm":
        return name, F, (x, *known) if d.chance(0.3) else (x,), more
    return name, F, (x, *known), {**more, "training": training}


def windows(d):
    n, kind = d.pick((1, 2, 3)), d.dtype(FLOATS)
    batch = () if d.chance(0.2) else (d.pick((0, 1, 2)),)
    groups = d.pick((1, 1, 2))
    c, m = groups * d.pick((1, 2)), groups * d.pick((1, 3))
    space = [d.random.randint(2, 6) for _ in range(n)]
    kernel = [d.random.randint(1, 3) for _ in range(n)]
    x = d.tensor((*batch, c, *space), kind)
    more = {"stride": d.pick((1, 2)), "padding": d.pick((0, 1))}
    how = d.pick(
        ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")
    )
    name = f"{how}{n}d"
    if how == "conv":
        w = d.tensor((m, c // groups, *kernel), kind)
        bias = d.tensor((m,), kind) if d.chance(0.5) else None
        return name, F, (x, w, bias), {**more, "dilation": d.pick((1, 2)), "groups": groups}
    if how == "conv_transpose":
        w = d.tensor((c, m // groups, *kernel), kind)
        return name, F, (x, w), {**more, "dilation": d.pick((1, 2)), "groups": groups}
    if how.startswith("adaptive"):
        return name, F, (x, [d.random.randint(1, 4) for _ in range(n)]), {}
    more["padding"] = [min(more["padding"], k // 2) for k in kernel]
    if how == "max_pool":
        more["return_indices"] = d.chance(0.4)
    else:
        more["count_include_pad"] = d.chance(0.5)
    return name, F, (x, kernel), {**more, "ceil_mode": d.chance(0.4)}


def resized(d):
    n, kind = d.pick((1, 2, 2, 3)), d.dtype(FLOATS)
    x = d.tensor(
        (d.pick((1, 2)), d.pick((1, 3)), *[d.random.randint(1, 7) for _ in range(n)]), kind
    )
    mode = d.pick(
        ("nearest", "nearest-exact", ("linear", "bilinear", "trilinear")[n - 1], "bicubic", "area")
    )
    more = {"size": [d.random.randint(1, 9) for _ in range(n)]}
    if d.chance(0.4):
        more = {"scale_factor": d.pick((2, 0.5, 1.5, 2.3))}
    if mode in ("linear", "bilinear", "trilinear", "bicubic"):
        more["align_corners"] = d.chance(0.5)
    if mode in ("bilinear", "bicubic"):
        more["antialias"] = d.chance(0.5)
    return "interpolate", F, (x,), {**more, "mode": mode}


def indexed(d):
    shape = d.shape(1, 3)
    x = d.tensor(shape, d.dtype())
    dim = d.dim(len(shape))
    n = shape[dim]
    name = d.pick(
        (
            "gather",
            "scatter_add",
            "scatter_reduce",
            "index_add",
            "index_select",
            "take_along_dim",
            "scatter",
        )
    )
    top = max(n - 1, 0)
    if name in ("index_add", "index_select"):
        i = d.tensor((d.pick((0, 1, 3)) if n else 0,), torch.int64, 0, top)
        if name == "index_select":
            return name, torch, (x, dim, i), {}
        wanted = list(shape)
        wanted[dim] = i.shape[0]
        return name, torch, (x, dim, i, d.tensor(wanted, x.dtype)), d.pick(({}, {"alpha": 2}))
    wanted = [min(m, d.random.randint(1, 5)) for m in shape]
    wanted[dim] = d.random.randint(0, 6) if n else 0
    i = d.tensor(wanted, torch.int64, 0, top)
    if name in ("gather", "take_along_dim"):
        if name == "take_along_dim":
            i = d.tensor(
                [m if k != dim % len(shape) else 3 for k, m in enumerate(shape)] if n else shape,
                torch.int64,
                0,
                top,
            )
            return name, torch, (x, i, dim), {}
        return name, torch, (x, dim, i), {}
    source = d.tensor(wanted, x.dtype)
    if name == "scatter":
        wanted[dim] = min(wanted[dim], n)
        i = torch.argsort(torch.rand(list(shape)), dim)[tuple(slice(m) for m in wanted)]
        return name, torch, (x, dim, i, d.tensor(wanted, x.dtype)), {}
    if name == "scatter_reduce":
        how = d.pick(("sum", "prod", "mean", "amax", "amin"))
        own = d.chance(0.6)
        with torch.no_grad():  # torch counts an element that is left out where it has the extreme
            source = (
                source
                if own or x.dtype == torch.bool
                else (source + 9).requires_grad_(source.requires_grad)
            )
        return name, torch, (x, dim, i, source, how), {"include_self": own}
    return name, torch, (x, dim, i, source), {}


def one_hot(d):
    x = d.tensor(d.shape(0, 2), torch.int64, d.pick((0, 0, -1)), 4, grad=False)
    return "one_hot", F, (x, d.pick((-1, 3, 5, 7))), {}


def moved(d):
    x = d.tensor(d.shape(2, 4), d.dtype())
    name = d.pick(("tril", "triu", "flip", "roll", "tile", "pad"))
    if name in ("tril", "triu"):
        return name, torch, (x, d.pick((0, 1, -2))), {}
    if name == "flip":
        return name, torch, (x, [d.dim(x.ndim)]), {}
    if name == "roll":
        return name, torch, (x, d.pick((1, -2)), d.dim(x.ndim)), {}
    if name == "tile":
        return name, torch, (x, [d.pick((0, 1, 2)) for _ in range(d.pick((1, 2, 5)))]), {}
    mode = d.pick(("constant", "reflect", "replicate", "circular"))
    return name, F, (x, [d.pick((0, 1, 2, -1)) for _ in range(d.pick((2, 4)))]), {"mode": mode}


def folded(d):
    kind = d.dtype(FLOATS)
    x = d.tensor((d.pick((0, 1, 2)), 2, 4, 5), kind)
    more = {
        "kernel_size": d.pick((1, 2, (2, 3))),
        "stride": d.pick((1, 2)),
        "padding": d.pick((0, 1)),
    }
    return "unfold", F, (x,), more


KINDS = (
    unary, activation, binary, binary, ternary, reduction, reduction, scan, softmax, product, loss, classes,
    similarity, norm, windows, resized, indexed, one_hot, moved, folded,
)  # fmt: skip


def calls(random, count):
    """`count` calls, each under reproducible() and of invar.ops."""
    d = Draw(random)
    for kind in itertools.islice(itertools.cycle(KINDS), count):
        name, space, args, kwargs = kind(d)
        theirs = getattr(space, name)
        yield Call(name, theirs, args, kwargs)
        yield Call(name, theirs, args, kwargs, getattr(invar.ops, name))
