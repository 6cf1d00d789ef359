"""The Python package on a GPU: tensors of torch that lie there are read there, and results stay.
Skipped where torch or this build has none."""

import threading

import numpy as np
import onnx.parser
import pytest
from conftest import BUILD, few_rooms
from conftest import invar as command

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from test_package_data_dependent_shapes import MASKED, MASKS, SHAPED, X  # noqa: E402

if (
    not torch.cuda.is_available()
    or not command("doctor", "--json", "--rooms", few_rooms()).json()["gpu"]
):
    pytest.skip("torch or this build has no GPU here", allow_module_level=True)
PRODUCT = """<ir_version: 10, opset_import: ["": 21]> g (float[n, 512] x, float[512, 256] w) => (float[n, 256] y) {
    a = MatMul(x, w)
    y = Softmax(a) }"""


@pytest.fixture(scope="module")
def product():
    model, rng = onnx.parser.parse_model(PRODUCT), np.random.default_rng(3)
    x, w = rng.standard_normal((64, 512)).astype("f"), rng.standard_normal((512, 256)).astype("f")
    return invar.compile(model, device="cuda"), x, w, invar.compile(model).run(x=x, w=w)["y"]


def there(*arrays):
    return [torch.from_numpy(a).cuda() for a in arrays]


def test_results_come_back_where_inputs_came_from(product):
    program, x, w, want = product
    x_there, w_there = there(x, w)
    for inputs, kind, on_gpu in [
        ((x, w), np.ndarray, False),
        ((torch.from_numpy(x), w), torch.Tensor, False),
        ((x_there, w_there), torch.Tensor, True),
        ((x_there, w), torch.Tensor, True),
        ((torch.from_numpy(x), w_there), torch.Tensor, True),
        ((x_there.t().contiguous().t(), w_there.clone().requires_grad_()), torch.Tensor, True),
    ]:
        got = program.run(dict(zip("xw", inputs)))["y"]
        assert isinstance(got, kind) and getattr(got, "is_cuda", False) == on_gpu
        assert (got.cpu().numpy() if on_gpu else np.asarray(got)).tobytes() == want.tobytes()
    first = program.run(x=x_there, w=w_there)["y"]
    program.run(x=x_there + 1, w=w_there)  # a result is its own
    assert first.cpu().numpy().tobytes() == want.tobytes()
    assert program.run(x=x_there[:0], w=w_there)["y"].shape == (0, 256)


def test_inputs_that_torch_still_computes_and_memory_that_it_still_reads(product):
    program, x, w, want = product
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            busy, source, w_there = torch.randn(4096, 4096, device="cuda"), *there(x, w)
            for _ in range(5):
                late = torch.zeros_like(source)
                for _ in range(8):
                    busy = busy @ busy / 64
                late.copy_(source)
                got = program.run(x=late, w=w_there)["y"]
                late.fill_(7)
                assert got.cpu().numpy().tobytes() == want.tobytes()
                held, copy = torch.full_like(got, 3), torch.empty_like(got)
                for _ in range(8):
                    busy = busy @ busy / 64
                copy.copy_(held)
                del held  # the next result may lie there
                got = program.run(x=source, w=w_there)["y"]
                assert got.cpu().numpy().tobytes() == want.tobytes() and bool((copy == 3).all())


def test_calls_of_several_threads(product):
    program, x, w, want = product
    inputs, found = [{"x": x, "w": w}, dict(zip("xw", there(x, w)))], []
    work = lambda i: found.extend(program.run(inputs[(i + r) % 2])["y"] for r in range(8))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert len(found) == 32
    assert all(
        (y.cpu().numpy() if isinstance(y, torch.Tensor) else y).tobytes() == want.tobytes()
        for y in found
    )


def test_sizes_that_values_decide():
    model = onnx.parser.parse_model(MASKED)
    host, program, module = (
        invar.compile(model),
        invar.compile(model, device="cuda"),
        invar.convert(model).cuda(),
    )
    for keep in MASKS:
        want = [a.tobytes() for a in host.run(x=X, keep=keep).values()]
        x_there, keep_there = there(X, keep)
        for got in (
            program.run(x=x_there, keep=keep_there).values(),
            program.run(x=X, keep=keep_there).values(),
            module(x_there, keep_there),
        ):
            assert all(t.is_cuda for t in got) and [t.cpu().numpy().tobytes() for t in got] == want


def test_what_is_refused():
    model = onnx.parser.parse_model(SHAPED)
    program, (x, to) = invar.compile(model, device="cuda"), there(X, np.array([-3, -7]))
    for inputs, names in [
        ((x, to), ["= -3"]),
        ((x.double(), to), ["'x'", "f64"]),
        ((x, to[:1]), ["'to'", "[1]"]),
    ]:
        with pytest.raises(invar.BadInput) as e:
            program.run(dict(zip(("x", "to"), inputs)))
        assert all(n in str(e.value) for n in names), str(e.value)
    if torch.cuda.device_count() > 1:
        with pytest.raises(
            invar.BadInput, match="'x': it lies on cuda:1, the program runs on cuda:0"
        ):
            program.run(x=x.to("cuda:1"), to=to)
