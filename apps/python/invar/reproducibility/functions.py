"""Which functions and methods of torch go to invar.ops: data."""

import functools
import importlib
import inspect
import math

import torch
import torch.nn.functional as F

from invar import ops
from invar.reproducibility import allowed, random

# Functions of torch, methods of torch.Tensor and functions of torch.special, which invar.ops has
# under the same name.
MATH = """
count_nonzero floor_divide
abs acos acosh add addmm addmv addcmul addcdiv amax amin argmax argmin argsort asin asinh atan atan2 atanh
baddbmm bmm ceil clamp cos cosh cumprod cumsum dist div dot einsum erf erfc exp exp2 expm1 fix floor fmod frac
lerp logit log log10 log1p log2 logaddexp logsumexp log_softmax matmul max maximum mean min minimum mm mul
mv neg norm outer pow prod reciprocal relu remainder round rsqrt nan_to_num scatter_add scatter_reduce index_add sigmoid sign
sin sinh softmax sort sqrt square std sub sum tan tanh topk trunc var var_mean prelu
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d celu selu
""".split()

# Functions of torch.nn.functional, likewise.
NEURAL = """
linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
rms_norm layer_norm group_norm batch_norm instance_norm local_response_norm normalize
cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
binary_cross_entropy_with_logits kl_div cosine_embedding_loss margin_ranking_loss
hinge_embedding_loss soft_margin_loss gaussian_nll_loss poisson_nll_loss cosine_similarity
triplet_margin_loss triplet_margin_with_distance_loss multi_margin_loss multilabel_margin_loss
multilabel_soft_margin_loss ctc_loss pairwise_distance
relu relu6 leaky_relu elu selu celu gelu silu mish softplus softsign hardsigmoid hardswish hardtanh
logsigmoid tanhshrink softshrink hardshrink softmin softmax log_softmax threshold prelu glu
sigmoid tanh
scaled_dot_product_attention embedding embedding_bag unfold fold grid_sample affine_grid
max_unpool1d max_unpool2d max_unpool3d
max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d lp_pool1d lp_pool2d
adaptive_max_pool3d lp_pool3d interpolate upsample pad
""".split()

# Those that draw.
DROPPING = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()

RECURRENT = """
lstm lstm_cell gru gru_cell rnn_tanh rnn_tanh_cell rnn_relu rnn_relu_cell
""".split()

# Another name in torch -> the name in invar.ops.
ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "divide": "div",
    "expit": "sigmoid",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
    "true_divide": "div",
    "__abs__": "abs",
    "__add__": "add",
    "__div__": "div",
    "__floordiv__": "floor_divide",
    "__matmul__": "matmul",
    "__mod__": "remainder",
    "__mul__": "mul",
    "__neg__": "neg",
    "__pow__": "pow",
    "__radd__": "add",
    "__rmul__": "mul",
    "__sub__": "sub",
    "__truediv__": "div",
}

# Operators whose second operand comes first.
REVERSED = {
    "__rsub__": "sub",
    "__rtruediv__": "div",
    "__rdiv__": "div",
    "__rfloordiv__": "floor_divide",
    "__rpow__": "pow",
    "__rmatmul__": "matmul",
}

_MATH_SPACES = (torch, torch.Tensor, torch.special)


def _targets():
    """(name in torch, where, name in invar.ops, whether operands change places) of all entries."""
    for name in MATH:
        yield name, _MATH_SPACES, name, False
    for name in NEURAL:
        yield name, (F,), name, False
    for name, target in ALIASES.items():
        yield name, _MATH_SPACES, target, False
    for name, target in REVERSED.items():
        yield name, (torch.Tensor,), target, True
    yield "vector_norm", (torch.linalg,), "vector_norm", False
    yield "matmul", (torch.linalg,), "matmul", False


def missing():
    """Names of the table that invar.ops does not have. Such functions are left to kernels.py, which
    covers or refuses what they are made of."""
    return sorted({target for *_, target, _ in _targets() if not hasattr(ops, target)})


# Whose results torch lays out by itself, whatever the layout of images.
ANY_LAYOUT = frozenset(
    "linear bilinear matmul mm bmm einsum scaled_dot_product_attention embedding __matmul__".split()
)
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


def laid(found, args):
    """A result in the layout of the first operand, where that is channels last."""
    x = args[0] if args else None
    if type(x) is not torch.Tensor or x.ndim not in LAYOUTS or x.is_contiguous():
        return found
    layout = LAYOUTS[x.ndim]
    if type(found) is not torch.Tensor or found.ndim != x.ndim:
        return found
    last = x.is_contiguous(memory_format=layout)
    return found.contiguous(memory_format=layout) if last else found


def with_indices(pool, *args, **kwargs):
    """(values, indices), whatever return_indices says."""
    return pool(*args, **{**kwargs, "return_indices": True})


def weight_norm(v, g, dim=0):
    """torch._weight_norm: v (g / the norm of v over all other dimensions)."""
    others = None if dim == -1 else [d for d in range(v.ndim) if d != dim]
    length = ops.vector_norm(v, 2, others, keepdim=dim != -1)
    return ops.mul(v, ops.div(g, length))


def std_mean(*args, **kwargs):
    dim = args[1] if len(args) > 1 and not isinstance(args[1], bool) else kwargs.get("dim")
    keepdim = kwargs.get("keepdim", False)
    return ops.std(*args, **kwargs), ops.mean(args[0], dim, keepdim)


def cdist(x1, x2, p=2.0, compute_mode=None):
    """The norms of order p of the differences of all pairs of rows."""
    return ops.vector_norm(ops.sub(x1.unsqueeze(-2), x2.unsqueeze(-3)), p, -1)


def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """With dropout the weights are a tensor, as in invar.nn.MultiheadAttention; a query that sees
    nothing gives 0."""
    plain = query, key, value, attn_mask, 0.0, is_causal, scale, enable_gqa
    if not dropout_p:
        return ops.scaled_dot_product_attention(*plain)
    if is_causal and attn_mask is not None:
        return ops.scaled_dot_product_attention(*plain)  # refuses it
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(times, -3) for x in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = ops.matmul(ops.mul(query, scale), key.mT)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    hidden = None
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = ops.add(scores, attn_mask)
        hidden = torch.isneginf(scores).all(-1, keepdim=True)
        scores = scores.masked_fill(hidden, 0.0)
    weights = ops.softmax(scores, -1)
    if hidden is not None:
        weights = weights.masked_fill(hidden, 0.0)
    return ops.matmul(random.dropping("dropout")(weights, dropout_p, True), value)


OTHERS = {
    "_weight_norm": weight_norm,
    "std_mean": std_mean,
    "cdist": cdist,
}


@functools.cache
def places():
    """A function of torch.nn.functional that takes `inplace` -> where that stands among its
    arguments."""
    names = {"relu", "rrelu", *DROPPING, *NEURAL}
    found = {}
    for function in (getattr(F, name) for name in names):
        code = getattr(inspect.unwrap(function), "__code__", None)  # those of C++ have none
        names_of = code.co_varnames[: code.co_argcount] if code else ()
        if "inplace" in names_of:
            found[function] = names_of.index("inplace")
    return found


# Those whose kernels in place kernels.py has; of others the result is computed, then copied.
OWN_PLACE = frozenset(getattr(F, name) for name in ("relu", *DROPPING))


def in_place(function):
    """An activation whose result goes to where its input was. The gradient needs the input as it
    was before."""

    def written(input, *args, **kwargs):
        return input.copy_(function(input.clone(), *args, **kwargs))

    return written


class Otherwise(Exception):
    """A counterpart does not have this form of a function: it runs as torch has it, and its kernels
    are judged."""


class Row:
    """What becomes of a function or method of torch: its name, the function of invar.ops, whether
    its first two operands change places, where its argument `inplace` stands, whether a result in
    place is copied there; whether nothing of the user's runs inside; whether it computes with whole
    numbers as torch does."""

    __slots__ = ("name", "counterpart", "swapped", "place", "copies_place", "trusted", "whole")

    def __init__(self, function, name, counterpart, swapped=False, target=""):
        self.name, self.counterpart, self.swapped = name, counterpart, swapped
        self.place = places().get(function)
        self.copies_place = self.place is not None and function not in OWN_PLACE
        self.trusted = name not in CALLING
        self.whole = target in WHOLE


CALLING = frozenset({"triplet_margin_with_distance_loss"})  # functions of the user
WHOLE = allowed.INTEGER - set("div sort argsort topk scatter_add index_add arange linspace".split())
MOVED, ASKED = object(), object()

# Functions whose kernels run as they are (allowed.MOVES and EXACT), whatever they are given: they
# need not be judged one by one.
MOVING = """
reshape reshape_as view view_as permute transpose swapaxes swapdims movedim moveaxis t squeeze
unsqueeze expand expand_as flatten unflatten narrow select chunk split tensor_split unbind
contiguous clone detach cat concat stack flip roll tril triu diagonal gather index_select
masked_fill zeros ones empty full zeros_like ones_like empty_like full_like new_zeros new_ones
new_empty new_full zero_ item tolist __getitem__ eq ne lt le gt ge isnan logical_and logical_or
logical_not logical_xor
""".split()

# Attributes that compute nothing.
ATTRIBUTES = """
shape dtype device ndim is_cuda is_cpu is_meta is_sparse is_nested is_quantized layout requires_grad
grad grad_fn is_leaf itemsize nbytes names data _version _base output_nr retains_grad
""".split()
QUESTIONS = """
size stride dim numel is_contiguous is_floating_point is_complex storage_offset data_ptr __len__
element_size ndimension nelement requires_grad_ get_device is_signed
""".split()


def later(module, name):
    """A function of invar.nn, which is imported when it is called."""

    def function(*args, **kwargs):
        return importlib.import_module(module).FUNCTIONS[name](*args, **kwargs)

    return function


@functools.cache
def table():
    """A function or method of torch -> its Row, MOVED or ASKED; others run, and their kernels are
    judged."""
    found = {}
    for name in MOVING:
        for space in (torch, torch.Tensor):
            if hasattr(space, name):
                found[getattr(space, name)] = MOVED
    for name in QUESTIONS:
        found[getattr(torch.Tensor, name)] = ASKED
    for name in ATTRIBUTES:
        attribute = getattr(torch.Tensor, name, None)  # some came and went with versions
        if attribute is None:
            continue
        found[attribute.__get__] = found[attribute.__set__] = ASKED
    for name in ("T", "mT"):
        found[getattr(torch.Tensor, name).__get__] = MOVED
    return found | routes()


def routes():
    """A function or method of torch that invar.ops has -> its Row."""
    found = {}

    def add(function, name, counterpart, swapped=False, target=""):
        found.setdefault(function, Row(function, name, counterpart, swapped, target))

    for name in DROPPING:
        add(getattr(F, name), name, random.dropping(name))
    for name in RECURRENT:
        add(getattr(torch, name), name, later("invar.nn.recurrent", name))
    for name, function in OTHERS.items():
        add(getattr(torch, name), name, function)
    add(F.scaled_dot_product_attention, "scaled_dot_product_attention", attention)
    name = "multi_head_attention_forward"
    add(F.multi_head_attention_forward, name, later("invar.nn.attention", name))
    add(F.rrelu, "rrelu", random.rrelu)
    for kind in ("max_pool", "adaptive_max_pool"):
        for n in (1, 2, 3):
            name = f"{kind}{n}d"
            pool = functools.partial(with_indices, getattr(ops, name))
            add(getattr(F, f"{name}_with_indices"), name, pool)
    for name, spaces, target, swapped in _targets():
        function = getattr(ops, target, None)
        for space in spaces if function is not None else ():
            if hasattr(space, name):
                add(getattr(space, name), name, function, swapped, target)
    return found
