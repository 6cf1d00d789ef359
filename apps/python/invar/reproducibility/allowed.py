"""Kernels of torch that run under reproducible() as they are, by their names in aten: they move
data, make it, or compute with integers and truth values. Each gives the same bits on every machine.

What is not here and has no handler (kernels.py) is refused."""

# Views, copies, creation, selection: no arithmetic.
MOVES = frozenset(
    """
    _reshape_alias _reshape_copy _unsafe_view alias as_strided broadcast_tensors chunk clone contiguous
    detach detach_ diagonal diagonal_backward diagonal_copy empty empty_like empty_strided expand expand_as
    expand_copy flatten flip
    fill fill_ index_fill full full_like hsplit lift lift_fresh lift_fresh_copy masked_fill masked_fill_
    masked_select movedim new_empty new_empty_strided new_full new_ones new_zeros
    ones ones_like permute repeat
    repeat_interleave reshape resize_ roll rot90 scalar_tensor select select_backward
    select_scatter set_ slice slice_backward slice_scatter split split_with_sizes split_copy
    split_with_sizes_copy squeeze squeeze_ stack
    swapaxes t t_ transpose transpose_ unbind unfold unsafe_split unsafe_split_with_sizes
    unsqueeze unsqueeze_ view view_as_real
    view_as_complex zero zero_ zeros zeros_like cat concat concatenate where diag_embed tril triu
    tril_ triu_ tril_indices triu_indices eye constant_pad_nd index index_select
    gather take embedding masked_scatter copy_to
    pin_memory _pin_memory is_pinned record_stream pixel_shuffle pixel_unshuffle im2col
    _foreach_zero_ channel_shuffle reflection_pad1d reflection_pad2d reflection_pad3d
    replication_pad1d replication_pad2d replication_pad3d unfold_copy view_copy permute_copy
    _pack_padded_sequence _pack_padded_sequence_backward
    """.split()
)

# What torch is asked about tensors, and the profiler's marks.
QUESTIONS = frozenset(
    """
    _local_scalar_dense dim is_contiguous is_nonzero is_same_size is_set_to item numel size
    storage_offset stride sym_size sym_numel sym_stride sym_storage_offset
    _has_compatible_shallow_copy_type _nested_tensor_from_mask_left_aligned
    is_strides_like_format is_non_overlapping_and_dense data_ptr retain_grad result_type
    _version _to_cpu nonzero nonzero_static equal _assert_async _async_error _functional_assert_async
    """.split()
)

# Exact for operands of every type: comparisons, and tests of special values.
EXACT = frozenset(
    """
    eq ne lt le gt ge eq_ ne_ lt_ le_ gt_ ge_ isnan isinf isfinite isposinf isneginf signbit
    logical_and logical_or logical_xor logical_not logical_and_ logical_or_ logical_not_
    any all _is_all_true _is_any_true isclose allclose copysign heaviside fmax fmin searchsorted
    bucketize
    """.split()
) - {"isclose", "allclose"}  # these two compute a bound

# Exact where every operand and the result are integers or truth values.
INTEGER = frozenset(
    """
    abs add sub rsub mul neg floor_divide remainder fmod div sum prod cumsum cumprod max min amax
    amin aminmax maximum minimum clamp clamp_min clamp_max argmax argmin sort argsort topk
    searchsorted bucketize bincount unique_consecutive unique_dim _unique2 _unique
    bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift __and__
    __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ __ixor__ sign square mm bmm arange
    scatter_add index_add index_put_accumulate addmm cummax cummin diff isin pow ceil floor round trunc
    linspace dot count_nonzero relu addcmul nan_to_num mv vdot addmv baddbmm addr addcmul trace nansum
    linalg_cross sgn
    """.split()
)

# Random whole numbers: on the host the same on every machine, of torch's generator there.
RANDOM_INTEGERS = frozenset("randperm randint randint_like random random_".split())

# Exchanges between processes that add nothing; sums only of integers.
EXCHANGES = frozenset(
    """
    broadcast_ allgather_ _allgather_base_ allgather_coalesced_ allgather_into_tensor_coalesced_
    gather_ scatter_ send recv_ recv_any_source_ barrier monitored_barrier_ alltoall_ alltoall_base_
    """.split()
)
SUMS = frozenset(
    "allreduce_ allreduce_coalesced_ reduce_ reduce_scatter_ _reduce_scatter_base_".split()
)
