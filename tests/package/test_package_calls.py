"""Calls of single operations on tensors of torch: what they share, what they read, where they run,
what they refuse. The parts on a GPU are skipped where torch or this build has none."""

import threading

import numpy as np
import pytest
from conftest import BUILD, package_has_gpu

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import _native  # noqa: E402
from invar import primitives as p  # noqa: E402
from invar.autograd import Torch  # noqa: E402

GPU = package_has_gpu()


@pytest.fixture
def gpu():
    if not GPU:
        pytest.skip("torch or this build has no GPU here")


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not GPU:
        pytest.skip("torch or this build has no GPU here")
    return request.param


def data(x):
    return x.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype("f"))


def test_calls_with_equal_attributes_share_one_operation():
    first = _native.prepared("reduce_sum", {"axes": [1], "keepdims": 0})
    assert first is _native.prepared("reduce_sum", {"axes": [1], "keepdims": 0})
    others = [
        {"axes": [0], "keepdims": 0},
        {"axes": [1], "keepdims": 1},
        {"axes": [1, 0], "keepdims": 0},
    ]
    assert all(first is not _native.prepared("reduce_sum", o) for o in others)
    assert _native.prepared("reduce_max", {"axes": [1], "keepdims": 0}) is not first
    name, axes = "".join(["reduce", "_sum"]), "".join(["ax", "es"])  # names of their own
    assert first is _native.prepared(name, {axes: (1,), "keepdims": 0})
    assert _native.prepared("reduce_sum", {"axes": np.arange(1)}) is None  # read by Python alone
    assert _native.prepared("clip", {"min": 0.0}) is not _native.prepared("clip", {"min": -0.0})


def test_an_axis_from_the_end_is_that_of_each_rank():
    for shape in [(5,), (3, 5), (2, 3, 5), (3, 5)]:
        x = random(*shape)
        assert data(p.softmax(x, axis=-1)) == data(p.softmax(x, axis=len(shape) - 1))


def test_attributes_that_only_python_reads():
    x = random(4, 6)
    want = data(p.reduce_sum(x, axes=[1], keepdims=0))
    for axes in ([1], (1,), torch.Size([1]), np.array([1]), [np.int64(1)]):
        assert data(p.reduce_sum(x, axes=axes, keepdims=np.int64(0))) == want
        assert data(p.reduce_sum(x, axes=axes, keepdims=False)) == want


def test_strides_offsets_and_lazy_negation(device):
    x, y = random(6, 8).to(device), random(6, 8, seed=1).to(device)
    for a, b in [
        (x.t(), y.t()),
        (x[1::2, 2:], y[::2, 1:7]),
        (x[:1].expand(6, 8), y),
        (x[3], y[2, 0]),
        (x.flip(0), y),
        (torch._neg_view(x), y),
        (torch.complex(x, y).conj().imag, torch.complex(x, y).conj()[:, 1:2].imag),
        (torch.nn.Parameter(x), y),
    ]:
        got = p.sub(a, b)
        assert torch.equal(got.detach(), a - b) and got.is_contiguous()
        assert data(got) == data(p.sub(a.detach().cpu(), b.cpu()))


def test_results_are_tensors_of_their_own(device):
    x = random(4, 4).to(device)
    got = p.add(x, x)
    assert got.data_ptr() != x.data_ptr() and got.device == x.device and not got.requires_grad
    assert got.untyped_storage().resizable() and got.is_leaf
    with torch.inference_mode():
        assert p.add(x, x).is_inference()
    for shape in [(0,), (0, 3), (3, 0, 2), (1,), ()]:
        z = torch.ones(shape, device=device)
        assert torch.equal(p.add(z, z), z + z)
    empty = torch.ones(4, 0, device=device)
    assert torch.equal(p.reduce_sum(empty, axes=[1], keepdims=0), torch.zeros(4, device=device))


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8"]
)
def test_element_types(device, dtype):
    x = torch.arange(12, device=device).reshape(3, 4).to(getattr(torch, dtype))
    got = p.transpose(x, perm=[1, 0])
    assert got.dtype == x.dtype and torch.equal(got, x.t())


def test_gradients_are_asked_for_only_where_they_are(device):
    x, y = random(3, 4).to(device).requires_grad_(), random(3, 4, seed=1).to(device)
    assert p.mul(x, y).requires_grad and not p.mul(y, y).requires_grad
    with torch.no_grad():
        assert not p.mul(x, y).requires_grad
    assert not p.mul(x.detach(), y).requires_grad
    p.mul(x, y).sum().backward()
    assert torch.equal(x.grad, y)
    call = p.Call("mul", {})
    assert (
        data(call.run((x, y), Torch)) == data(p.mul(x, y))
        and not call.run((x, y), Torch).requires_grad
    )


def test_subclasses_keep_their_meaning():
    class Marked(torch.Tensor):
        pass

    x = random(3, 4)
    assert _native.call("add", (x.as_subclass(Marked), x), {}) is NotImplemented
    assert _native.call("add", (x, 1.0), {}) is NotImplemented
    assert _native.call("add", (), {}) is NotImplemented
    with torch.autograd.forward_ad.dual_level():  # its derivative must not vanish
        assert (
            _native.call("add", (torch.autograd.forward_ad.make_dual(x, x), x), {})
            is NotImplemented
        )


def test_errors_name_the_operation_and_the_operand(device):
    x = random(3, 4).to(device)
    for kind, text, do in [
        (invar.BadInput, r"add: .*\[3, 4\] and \[5\]", lambda: p.add(x, x.new_ones(5))),
        (
            invar.NotCovered,
            r"add: operand 1: elements of torch.complex64",
            lambda: p.add(x, x + 0j),
        ),
        (
            invar.Error,
            "add: operand 1.* meta",
            lambda: p.add(x, x.to("meta")),
        ),
        (
            invar.NotCovered,
            "operand 0: torch does not show its memory",
            lambda: p.neg(x.to_sparse()),
        ),
        (invar.BadInput, "add: operand 1: .*float", lambda: p.add(x, 1.0)),
        (invar.BadInput, "add: attribute 'foo'", lambda: p.add(x, x, foo=1)),
        (invar.NotCovered, "rank 9", lambda: p.neg(x.reshape((1,) * 7 + (3, 4)))),
    ]:
        with pytest.raises(kind, match=text) as caught:
            do()
        assert "\n" not in str(caught.value)


def test_an_index_out_of_bounds_on_the_host_is_raised_at_once():
    with pytest.raises(invar.BadInput, match=r"gather: index 7 at \[1\] of operand 1"):
        p.gather(random(3, 4), torch.tensor([0, 7]), axis=0)


def test_calls_from_threads():
    x = random(64, 257)
    want, wrong = data(p.reduce_sum(x, axes=[1], keepdims=0)), []

    def work(seed):
        for i in range(50):
            own = random(8, 8 + (seed + i) % 5, seed=seed)
            sums = p.reduce_sum(own, axes=[1], keepdims=0)
            if data(p.reduce_sum(x, axes=[1], keepdims=0)) != want or sums.shape != (8,):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_numpy_stays_numpy():
    x = random(3, 4).numpy()
    assert isinstance(p.add(x, x), np.ndarray)
    assert p.add(x, x).tobytes() == data(p.add(torch.from_numpy(x), torch.from_numpy(x)))
    assert p.softmax(x, axis=-1).tobytes() == data(p.softmax(torch.from_numpy(x), axis=-1))


def test_a_call_is_queued_on_the_current_stream(gpu):
    x = random(256, 256).cuda()
    want = data(p.matmul(x.cpu(), x.cpu(), trans_a=0, trans_b=0))
    stream = torch.cuda.Stream()
    p.matmul(x, x, trans_a=0, trans_b=0)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # about 0.1 s
        late = x.clone()
        got = p.matmul(late, late, trans_a=0, trans_b=0)
        assert not stream.query()  # nothing has waited
    stream.synchronize()
    assert data(got) == want


def test_cuda_graphs_record_calls(gpu):
    x, w = random(64, 512).cuda(), random(512, 128, seed=1).cuda()
    q = random(2, 4, 16, 32, seed=2).cuda()

    def compute():
        y = p.matmul(x, w, trans_a=0, trans_b=0)
        z = p.softmax(p.reduce_sum(y, axes=[1], keepdims=1), axis=0)
        return p.mul(y, z), p.reduce_sum(q, axes=[0], keepdims=0)

    compute()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = compute()
    x.copy_(random(64, 512, seed=7))
    graph.replay()
    torch.cuda.synchronize()
    assert [data(r) for r in results] == [data(r) for r in compute()]


def test_an_index_out_of_bounds_on_a_gpu_is_reported_later(gpu):
    x, good = random(3, 4).cuda(), torch.tensor([0, 2]).cuda()
    p.gather(x, torch.tensor([0, 7]).cuda(), axis=0)
    with pytest.raises(
        invar.BadInput, match="gather: an earlier call on cuda:0 had an index out of bounds"
    ):
        invar.synchronize()
    invar.synchronize()
    p.gather(x, torch.tensor([-9]).cuda(), axis=0)
    torch.cuda.synchronize()
    with pytest.raises(invar.BadInput, match="gather: an earlier call"):
        p.add(x, x)
    assert torch.equal(p.gather(x, good, axis=0), x[good])
    invar.synchronize()


def test_devices_are_not_mixed(gpu):
    x = random(3, 4)
    with pytest.raises(invar.BadInput, match="operand 1 lies on the host, operand 0 on cuda:0"):
        p.add(x.cuda(), x)
    if torch.cuda.device_count() > 1:
        y = x.to("cuda:1")
        assert data(p.add(y, y)) == data(p.add(x, x)) and torch.cuda.current_device() == 0


def test_attention_keeps_its_keys_in_memory_of_torch(gpu):
    q, k, v = (random(2, 4, 24, 32, seed=s).cuda() for s in range(3))
    given = dict(q_heads=4, kv_heads=4, scale=0.5, heads_first=1, causal=1)
    assert data(p.attention(q, k, v, **given)) == data(
        p.attention(q.cpu(), k.cpu(), v.cpu(), **given)
    )
