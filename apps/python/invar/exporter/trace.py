"""What stands for functions of transformers while a model is traced: attention, linear
attention and short convolutions become single operators, those for which Invar has rooms."""

import contextlib
import sys

import torch
from torch.utils._python_dispatch import _disable_current_modes

NAME = "invar"  # of the attention function and its masks in transformers
MOST_WIDTH = 8  # of a convolution (causal_conv)


class NotTraceable(Exception):
    """What of the model has no operator here, as one sentence."""


class Window:
    """What stands for a causal mask: the layers hand it on to attention."""

    def __init__(self, size):
        # Keys that a query sees, itself among them; 0: all until it; None: another mask.
        self.size = size


def node(op, operands, shape, **attributes):
    """A node of the ONNX graph; what runs it in torch gives zeros."""
    x = operands[0]
    return torch.onnx.ops.symbolic(
        f"invar::{op}", operands, attributes, dtype=x.dtype, shape=shape, version=1
    )


def attend(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    """The attention function of transformers: q [B, H, S, D], k and v of as many or fewer heads ->
    [B, S, H, E] and no weights."""
    given = {
        k for k in ("position_bias", "head_mask", "block_indices") if kwargs.get(k) is not None
    }
    if given:
        raise NotTraceable(f"its attention has {', '.join(sorted(given))}")
    causal = kwargs.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    if isinstance(attention_mask, Window):
        window = attention_mask.size
        if window is None:
            raise NotTraceable("its attention has a mask that is neither causal nor a window")
    elif attention_mask is None and causal:
        window = kwargs.get("sliding_window") or 0
    else:
        raise NotTraceable(
            "its attention is not causal"
            if attention_mask is None
            else "its attention has a mask of its own"
        )
    b, heads, s, size = query.shape
    rows = [x.transpose(1, 2).reshape(b, s, x.shape[1] * x.shape[3]) for x in (query, key, value)]
    sinks, softcap = kwargs.get("s_aux"), float(kwargs.get("softcap") or 0)
    y = node(
        "Attention", [*rows, sinks], [b, s, heads * value.shape[3]],
        q_num_heads=heads, kv_num_heads=key.shape[1], window=int(window), softcap=softcap,
        scale=float(size**-0.5 if scaling is None else scaling),
    )  # fmt: skip
    return y.view(b, s, heads, value.shape[3]), None


def mask(*, mask_function, local_size=None, **kwargs):
    """The mask function of transformers: a Window, where the mask is causal, with or without
    one."""
    with _disable_current_modes():
        zero = torch.zeros((), dtype=torch.int64)
        window = int(local_size or 0)
        for i in {0, 1, 70, window, 3 * window + 5}:
            keys = torch.arange(i + 3)
            sees = torch.as_tensor(mask_function(zero, zero, zero + i, keys)).expand_as(keys)
            if not torch.equal(sees, (keys <= i) & ((keys > i - window) if window else keys >= 0)):
                return Window(None)
    return Window(window)


def recurrent(q, k, v, decay, beta, scale):
    """q, k [B, S, H, D], v [B, S, N, E], decay [B, S, N] or [B, S, N, D] or None, beta [B, S, N] or
    None -> [B, S, N, E]."""
    (b, s, heads, _), values = q.shape, v.shape[2]
    rows = [None if x is None else x.reshape(b, s, -1) for x in (q, k, v, decay, beta)]
    y = node(
        "LinearAttention", rows, [b, s, values * v.shape[3]],
        q_num_heads=heads, kv_num_heads=values, scale=float(scale),
    )  # fmt: skip
    return y.view(b, s, values, v.shape[3])


def delta_rule(query, key, value, g, beta, use_qk_l2norm_in_kernel=False, scale=None, **kwargs):
    """torch_chunk_gated_delta_rule and chunk_kimi_delta_attention of transformers: q, k [B, S, H,
    D], v [B, S, N, E], g [B, S, N] or [B, S, N, D], beta [B, S, N] -> [B, S, N, E] and no state."""
    if use_qk_l2norm_in_kernel:
        query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (query, key))
    return recurrent(
        query, key, value, g, beta, query.shape[3] ** -0.5 if scale is None else scale
    ), None


def state_space(
    hidden_states, dt, A, B, C, chunk_size=0, D=None, dt_bias=None, dt_softplus=False,
    dt_limit=(0.0, float("inf")), z=None, **kwargs,
):  # fmt: skip
    """mamba2_chunk_scan of transformers: x [B, S, N, E], dt [B, S, N], A [N], B and C [B, S, H, D]
    -> [B, S, N, E]."""
    dt = dt if dt_bias is None else dt + dt_bias
    dt = torch.clamp(torch.nn.functional.softplus(dt) if dt_softplus else dt, *dt_limit)
    y = recurrent(C, B, hidden_states * dt[..., None], A * dt, None, 1.0)
    y = y if D is None else y + hidden_states * D[:, None]
    return y if z is None else y * torch.nn.functional.silu(z)


def selective_scan(
    hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, **kwargs
):
    """mamba_selective_scan of transformers: x, dt [B, N, S], A [N, D], B and C [B, D, S] -> [B, N,
    S]. Each channel is a head with a value of one element."""
    dt = dt if delta_bias is None else dt + delta_bias[..., None]
    dt = (torch.nn.functional.softplus(dt) if delta_softplus else dt).transpose(1, 2)
    x, keys = hidden_states.transpose(1, 2), (m.transpose(1, 2)[:, :, None] for m in (C, B))
    y = recurrent(*keys, (x * dt)[..., None], A * dt[..., None], None, 1.0)
    y = y.squeeze(-1).transpose(1, 2)
    y = y if D is None else y + hidden_states * D[None, :, None]
    return y if z is None else y * torch.nn.functional.silu(z)


def convolve(hidden_states, weight, bias=None, activation=None, **kwargs):
    """causal_conv1d_fn of transformers: x [B, C, S], weight [C, width]."""
    from transformers.activations import ACT2FN

    if weight.shape[-1] > MOST_WIDTH:
        raise NotTraceable(f"a convolution has {weight.shape[-1]} values, more than {MOST_WIDTH}")
    y = node("CausalConvWithState", [hidden_states, weight.unsqueeze(1), bias], hidden_states.shape)
    return y if activation is None else ACT2FN[activation](y)


def expert_products(rows, matrices, chosen, transposed, biases):
    """Rows [T, 1 or k, 1, in], each times the matrix of its expert, [E, in, out] if transposed,
    else [E, out, in] -> [T, k, out]."""
    shape = [*chosen.shape, *matrices.shape[1:]]
    w = torch.onnx.ops.symbolic(
        "Gather", [matrices, chosen], {"axis": 0}, dtype=matrices.dtype, shape=shape
    )
    y = (rows @ (w if transposed else w.transpose(-1, -2))).squeeze(2)
    return y if biases is None else y + biases[chosen]


def experts(self, hidden_states, top_k_index, top_k_weights):
    """The experts function of transformers: a product of one row with a chosen matrix is the
    compiler's grouped_matmul. hidden_states [T, in], the others [T, k] -> [T, in]."""
    biases = {
        n: getattr(self, n + "_bias") if self.has_bias else None
        for n in ("gate_up_proj", "up_proj", "down_proj")
        if hasattr(self, n)
    }
    name = "gate_up_proj" if self.has_gate else "up_proj"
    rows, transposed = hidden_states[:, None, None, :], self.is_transposed
    y = expert_products(rows, getattr(self, name), top_k_index, transposed, biases[name])
    y = self._apply_gate(y) if self.has_gate else self.act_fn(y)
    y = expert_products(
        y[:, :, None, :], self.down_proj, top_k_index, transposed, biases["down_proj"]
    )
    if self.has_post_expert_norm:
        y = self.post_expert_norm(y)
    return (y * top_k_weights[..., None]).sum(1)


def dbrx_experts(self, hidden_states, top_k_index, top_k_weights):
    """DbrxExperts.forward, which loops over the experts that some token has."""
    shape = (self.num_experts, self.ffn_hidden_size, self.hidden_size)
    gate, up, down = (getattr(self.mlp, name).view(shape) for name in ("w1", "v1", "w2"))
    rows = hidden_states.reshape(-1, 1, 1, self.hidden_size)
    gate, up = (expert_products(rows, w, top_k_index, False, None) for w in (gate, up))
    y = (self.mlp.activation_fn(gate) * up)[:, :, None, :]
    y = expert_products(y, down, top_k_index, True, None)
    return (y * top_k_weights[..., None]).sum(1).view(hidden_states.shape)


# Functions of modelling files by their names, and what they are while the model is traced.
REPLACED = {
    "torch_chunk_gated_delta_rule": delta_rule,
    "chunk_kimi_delta_attention": delta_rule,
    "mamba2_chunk_scan": state_space,
    "mamba_selective_scan": selective_scan,
    "causal_conv1d_fn": convolve,
    "find_packed_sequence_indices": lambda position_ids: None,
    "is_torchdynamo_compiling": lambda: True,  # else some make a mask of ones
}

METHODS = {("DbrxExperts", "forward"): dbrx_experts}


@contextlib.contextmanager
def replaced():
    """Registers the functions above and puts them in the place of those of transformers."""
    from transformers import AttentionInterface
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    from transformers.masking_utils import AttentionMaskInterface

    ALL_EXPERTS_FUNCTIONS.register(NAME, experts)

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, mask)
    before = []
    for name, module in list(sys.modules.items()):
        if not name.startswith("transformers.") or module is None:
            continue
        found = [(module, function, ours) for function, ours in REPLACED.items()]
        for (name, method), ours in METHODS.items():
            if name in vars(module):
                found.append((vars(module)[name], method, ours))
        for place, function, ours in found:
            if function in vars(place):
                before.append((place, function, vars(place)[function]))
                setattr(place, function, ours)
    try:
        yield
    finally:
        for place, function, old in reversed(before):
            setattr(place, function, old)
