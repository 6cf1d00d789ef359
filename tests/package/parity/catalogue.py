"""Calls of torch's own catalogue of operations (torch.testing: OpInfo), for each type of
elements."""

import warnings

import invar
import torch
from compared import Call, seeded, tensors_in

TYPES = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32,
    torch.uint8, torch.int8, torch.int16, torch.bool,
)  # fmt: skip
REAL = TYPES[:4]

# Their results are random, or are memory that nobody wrote.
OPEN = set(
    """bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal
    multinomial new_empty new_empty_strided nn.functional.alpha_dropout nn.functional.dropout
    nn.functional.dropout2d nn.functional.dropout3d nn.functional.feature_alpha_dropout
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.rrelu
    nn.functional.multi_head_attention_forward nn.functional.scaled_dot_product_attention
    normal pca_lowrank rand_like randint randint_like randn randn_like svd_lowrank uniform
    resize_ resize_as_ hash_tensor as_strided as_strided_copy as_strided_scatter""".split()
)
NOT_HERE = ("jiterator", "torch.ops.aten._flash", "torch.ops.aten._efficient", "torch._scaled_mm")


def operations():
    """The catalogue, by names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.name not in OPEN and not op.name.startswith(NOT_HERE)]


def named(op):
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def counterpart(op):
    """The function of invar.ops; None where it has none."""
    short = op.name.split(".")[-1]
    if short not in invar.ops.__all__:
        return None
    for module in (torch, torch.nn.functional, torch.special, torch.linalg):
        if getattr(module, short, None) is op.op:  # not a way around it, of other arguments
            return getattr(invar.ops, short)
    return None


def pairs(seed=None, share=1.0):
    """(operation, type): all, or a share that the seed chooses."""
    for op in operations():
        supported = op.supported_dtypes("cpu")
        for dtype in TYPES:
            chance = seeded(seed, named(op), dtype).random()
            if dtype in supported and (seed is None or chance < share):
                yield op, dtype


def calls(op, dtype, most=None, seed=0):
    """Calls of one operation, under reproducible() and of invar.ops; `most`: as many samples."""
    torch.manual_seed(seeded(seed, named(op), dtype).randrange(2**31))
    wants = dtype in REAL and op.supports_autograd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=wants))
    chosen = seeded(seed, named(op), dtype)
    if most is not None and len(samples) > most:
        samples = chosen.sample(samples, most)
    ours = counterpart(op)
    for sample in samples:
        if chosen.random() < 0.3 and not any(
            x.layout != torch.strided for x in tensors_in([sample.input])
        ):
            try:
                sample = sample.noncontiguous()
            except (RuntimeError, AttributeError):
                pass
        args = (sample.input, *sample.args)
        yield Call(named(op), op.op, args, sample.kwargs)
        if ours is not None:
            yield Call(named(op), op.op, args, sample.kwargs, ours)


def wrong_calls(op):
    """Calls that torch refuses."""
    if op.error_inputs_func is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.error_inputs("cpu"))
    ours = counterpart(op)
    for error in samples:
        sample = error.sample_input
        args = (sample.input, *sample.args)
        if any(x.device.type != "cpu" for x in tensors_in([args, sample.kwargs])):
            continue
        yield Call(named(op), op.op, args, sample.kwargs)
        if ours is not None:
            yield Call(named(op), op.op, args, sample.kwargs, ours)
