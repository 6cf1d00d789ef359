"""invar.nn: each module has torch's constructor, parameters, state dict and text, computes what
torch's does, and its gradients; what it does not cover it names at construction."""

import copy
import pickle

import pytest
import torch
from built import digest, invar, whole
from invar import nn
from invar.nn.counterparts import COUNTERPARTS
from torch import nn as of_torch
from torch.utils.checkpoint import checkpoint

PLANE, LINE, ROOM = (2, 4, 6, 6), (2, 4, 8), (2, 4, 4, 4, 4)
# Class -> arguments of the constructor, shapes of the inputs.
CASES = {
    "Linear": [((6, 5), [(2, 3, 6)]), ((6, 5, False), [(6,)])],
    "Bilinear": [((4, 3, 5), [(2, 4), (2, 3)])],
    "Conv1d": [((4, 6, 3), [LINE]), ((4, 4, 3, 2, 1, 2, 2), [LINE])],
    "Conv2d": [((4, 6, 3, 1, "same"), [PLANE]), ((4, 4, 3, 2, 1, 1, 4, False), [PLANE])],
    "Conv3d": [((4, 2, 2), [ROOM])],
    "ConvTranspose1d": [((4, 3, 3, 2), [LINE])],
    "ConvTranspose2d": [((4, 6, 3, 2, 1, 1, 2), [PLANE])],
    "ConvTranspose3d": [((4, 2, 2), [ROOM])],
    "LayerNorm": [((8,), [LINE]), (((4, 8), 1e-3, False), [LINE])],
    "RMSNorm": [((8,), [LINE]), ((8, 1e-6), [LINE])],
    "GroupNorm": [((2, 4), [PLANE])],
    "BatchNorm1d": [((4,), [LINE]), ((4,), [(5, 4)])],
    "BatchNorm2d": [((4,), [PLANE]), ((4, 1e-5, None), [PLANE]), ((4, 1e-5, 0.1, False, False), [PLANE])],
    "BatchNorm3d": [((4,), [ROOM])],
    "InstanceNorm1d": [((4,), [LINE])],
    "InstanceNorm2d": [((4, 1e-5, 0.1, True), [PLANE])],
    "InstanceNorm3d": [((4,), [ROOM])],
    "MaxPool1d": [((2,), [LINE])],
    "MaxPool2d": [((3, 2, 1), [PLANE])],
    "MaxPool3d": [((2,), [ROOM])],
    "AdaptiveMaxPool1d": [((4,), [LINE])],
    "AdaptiveMaxPool2d": [((3,), [PLANE])],
    "AvgPool1d": [((2,), [LINE])],
    "AvgPool2d": [((3, 2, 1), [PLANE])],
    "AvgPool3d": [((2,), [ROOM])],
    "AdaptiveAvgPool1d": [((4,), [LINE])],
    "AdaptiveAvgPool2d": [((1,), [PLANE]), ((3,), [PLANE])],
    "LPPool1d": [((2, 2), [LINE])],
    "LPPool2d": [((2, 2), [PLANE])],
    "Upsample": [((None, 2), [PLANE]), (((9, 9), None, "bilinear", False), [PLANE])],
    "UpsamplingNearest2d": [((None, 2), [PLANE])],
    "UpsamplingBilinear2d": [((None, 2), [PLANE])],
    "MultiheadAttention": [((8, 2), [(5, 2, 8)] * 3), ((8, 2, 0.0, False, False, False, 4, 4, True),
                                                      [(2, 5, 8), (2, 3, 4), (2, 3, 4)])],
    "TransformerEncoderLayer": [((8, 2, 16, 0.0), [(5, 2, 8)])],
    "TransformerDecoderLayer": [((8, 2, 16, 0.0), [(5, 2, 8), (3, 2, 8)])],
    "GLU": [((1,), [LINE])],
    "PReLU": [((4,), [LINE])],
    "Softmax": [((-1,), [LINE])],
    "LogSoftmax": [((1,), [LINE])],
    "Softmin": [((-1,), [LINE])],
    "Threshold": [((0.1, 2.0), [LINE])],
    "Softmax2d": [((), [PLANE])],
    "AdaptiveAvgPool3d": [((2,), [ROOM])],
    "AdaptiveMaxPool3d": [((3,), [ROOM])],
    "LPPool3d": [((2, 2), [ROOM])],
    "LocalResponseNorm": [((3, 0.1), [PLANE])],
    "CosineSimilarity": [((), [LINE, LINE])],
    "PairwiseDistance": [((), [LINE, LINE])],
    "Unfold": [((3, 1, 1, 2), [PLANE])],
    "Fold": [(((4, 5), 2), [(2, 12, 12)])],
    "LSTM": [((4, 3), [(5, 2, 4)]), ((4, 3, 2, True, True, 0.0, True), [(2, 5, 4)]),
             ((4, 6, 2, False, False, 0.0, True, 3), [(5, 2, 4)]), ((4, 3), [(5, 4)])],
    "GRU": [((4, 3), [(5, 2, 4)]), ((4, 3, 2, True, True, 0.0, True), [(2, 5, 4)]),
            ((4, 3, 1, False), [(5, 4), (1, 3)])],
    "RNN": [((4, 3), [(5, 2, 4)]), ((4, 3, 2, "relu", True, True, 0.0, True), [(2, 5, 4)])],
    "LSTMCell": [((4, 3), [(5, 4)]), ((4, 3, False), [(4,)])],
    "GRUCell": [((4, 3), [(5, 4), (5, 3)]), ((4, 3), [(4,)])],
    "RNNCell": [((4, 3), [(5, 4), (5, 3)]), ((4, 3, True, "relu"), [(5, 4)])],
    "Transformer": [((8, 2, 1, 1, 16, 0.0), [(5, 2, 8), (3, 2, 8)])],
    "RReLU": [((), [LINE])],
}  # fmt: skip
TRAINING = {"RReLU"}  # those that draw there: compared outside of training
for (
    _name
) in """CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish ReLU
ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink""".split():
    CASES[_name] = [((), [LINE])]
for _mode in ("Reflection", "Replication", "Circular"):
    for _name, _shape in [("1d", LINE), ("2d", PLANE), ("3d", ROOM)]:
        CASES[f"{_mode}Pad{_name}"] = [((2,), [_shape])]
CASES["Conv2d"] += [((4, 4, 3, 1, 1, 1, 1, True, m), [PLANE]) for m in ("reflect", "circular")]
CASES["GELU"].append((("tanh",), [LINE]))
LOSSES = """MSELoss L1Loss SmoothL1Loss HuberLoss KLDivLoss BCELoss BCEWithLogitsLoss NLLLoss
CrossEntropyLoss PoissonNLLLoss MultiLabelSoftMarginLoss""".split()
SIGNED = {
    "HingeEmbeddingLoss": 1,
    "SoftMarginLoss": 1,
    "MarginRankingLoss": 2,
    "CosineEmbeddingLoss": 2,
}
OF_THREE = {
    "GaussianNLLLoss": {},
    "TripletMarginLoss": dict(margin=0.5, p=1, swap=True),
    "TripletMarginWithDistanceLoss": dict(swap=True),
}
DROPOUTS = "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split()
ALL = [(name, i) for name in CASES for i in range(len(CASES[name]))]


def made(name, arguments):
    """Torch's module and ours, with the same parameters."""
    torchs = getattr(of_torch, name)(*arguments)
    for i, x in enumerate([*torchs.parameters(), *torchs.buffers()]):
        if x.is_floating_point():
            x.data.copy_(whole(x.shape, i, 2**-11) + 2.0**-3)
    ours = getattr(nn, name)(*arguments)
    ours.load_state_dict(torchs.state_dict())
    return torchs, ours


def outputs(module, inputs):
    found = module(*inputs)
    first = found[0] if isinstance(found, tuple) else found
    first.square().sum().backward() if first.requires_grad else None
    gradients = [x.grad for x in [*inputs, *module.parameters()] if x.grad is not None]
    return [first, *gradients, *(b for b in module.buffers() if b.is_floating_point())]


@pytest.mark.parametrize("name, case", ALL)
def test_a_module_is_torchs(name, case):
    arguments, shapes = CASES[name][case]
    torchs, ours = made(name, arguments)
    assert isinstance(ours, getattr(of_torch, name)) and repr(ours) == repr(torchs)
    inputs = [whole(shape, 20 + i, 2**-8) for i, shape in enumerate(shapes)]
    in_f32 = [x.clone().requires_grad_() for x in inputs]
    if name in TRAINING:
        torchs.eval(), ours.eval()
    got = outputs(ours, in_f32)
    want = outputs(torchs.double(), [x.double().requires_grad_() for x in inputs])
    assert len(got) == len(want)
    for a, b in zip(got, want):
        torch.testing.assert_close(
            a.double(), b, rtol=2e-4, atol=2e-4 * max(1, b.abs().max().item())
        )
    again = pickle.loads(pickle.dumps(copy.deepcopy(ours).eval()))
    assert digest([again(*inputs)[0]]) == digest([ours.eval()(*inputs)[0]])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss_is_torchs(name, reduction):
    x = whole((6, 5), 1).sigmoid() if name == "BCELoss" else whole((6, 5), 1, 2**-8)
    classes = name in ("NLLLoss", "CrossEntropyLoss")
    target = torch.arange(6) % 5 if classes else whole((6, 5), 2).abs()
    options = {"ignore_index": 2} if classes else {}
    a, b = x.clone().requires_grad_(), x.double().requires_grad_()
    ours = getattr(nn, name)(**options, reduction=reduction)(a, target)
    torchs = getattr(of_torch, name)(**options, reduction=reduction)(
        b, target if classes else target.double()
    )
    ours.square().sum().backward(), torchs.square().sum().backward()
    torch.testing.assert_close(ours.double(), torchs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(a.grad.double(), b.grad, rtol=1e-4, atol=1e-5)


def test_every_module_has_a_case():
    known = {*CASES, *LOSSES, *SIGNED, *OF_THREE, *DROPOUTS, "Embedding", "EmbeddingBag", "TransformerEncoder",
             "TransformerDecoder", "NonDynamicallyQuantizableLinear", "CTCLoss", "MultiMarginLoss",
             "MultiLabelMarginLoss", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"}  # fmt: skip
    assert {cls.__name__ for cls in COUNTERPARTS} == known
    assert {n for n in nn.__all__ if getattr(nn, n) in COUNTERPARTS.values()} == known - {
        "NonDynamicallyQuantizableLinear"
    }


def test_embeddings():
    rows = torch.tensor([[1, 2, 1], [0, 3, 3]])
    for name, arguments in [("Embedding", (5, 4, 0)), ("EmbeddingBag", (5, 4))]:
        torchs, ours = made(name, arguments)
        a, b = ours(rows), torchs(rows)
        a.square().sum().backward(), b.square().sum().backward()
        torch.testing.assert_close(a, b)
        torch.testing.assert_close(ours.weight.grad, torchs.weight.grad)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformers_with_masks(norm_first):
    def layers(of):
        layer = of.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=norm_first)
        return of.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    torchs, ours = layers(of_torch), layers(nn)
    ours.load_state_dict(torchs.state_dict())
    x, padded = whole((2, 5, 8), 1), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    mask = of_torch.Transformer.generate_square_subsequent_mask(5)
    for options in [{"mask": mask}, {"src_key_padding_mask": padded}]:
        torch.testing.assert_close(ours(x, **options), torchs(x, **options), rtol=1e-4, atol=1e-5)


def test_attention_gives_its_weights():
    torchs, ours = made("MultiheadAttention", (8, 2))
    x = whole((5, 2, 8), 1)
    for average in (True, False):
        for a, b in zip(
            ours(x, x, x, average_attn_weights=average),
            torchs(x, x, x, average_attn_weights=average),
        ):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    without, none = ours(x, x, x, need_weights=False)
    assert none is None
    torch.testing.assert_close(without, torchs(x, x, x)[0], rtol=1e-4, atol=1e-6)


REFUSED = [
    (lambda: nn.Embedding(3, 4, max_norm=1.0), "invar.nn.Embedding: max_norm=1.0"),
    (lambda: nn.Embedding(3, 4, sparse=True), "sparse=True"),
    (lambda: nn.EmbeddingBag(3, 4, scale_grad_by_freq=True), "scale_grad_by_freq=True"),
    (lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True), "add_bias_kv=True"),
    (lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True), "add_zero_attn=True"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation=torch.fft.fft), "activation"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_construction_names_what_is_not_covered(case):
    construct, named = REFUSED[case]
    with pytest.raises(invar.NotCovered, match=named):
        construct()


def test_containers_and_names():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Flatten(), nn.Identity())
    x = whole((2, 3), 1)
    kept = x.clone()
    assert torch.equal(model(x), of_torch.functional.relu(model[0](x))) and torch.equal(x, kept)
    assert nn.Module is of_torch.Module and nn.ModuleList is of_torch.ModuleList


@pytest.mark.parametrize("name", SIGNED)
def test_losses_of_signs(name):
    sign = torch.tensor([1.0, -1, 1, 1, -1, 1])
    sign = sign if name == "CosineEmbeddingLoss" else sign[:, None].expand(6, 5)
    found = []
    for module, dtype in ((nn, torch.float32), (of_torch, torch.float64)):
        xs = [whole((6, 5), 1 + i, 2**-8).to(dtype).requires_grad_() for i in range(SIGNED[name])]
        loss = (
            getattr(module, name)(margin=0.25)(*xs, sign)
            if "Soft" not in name
            else (getattr(module, name)()(*xs, sign.to(dtype)))
        )
        found.append((loss, *torch.autograd.grad(loss, xs)))
    for a, b in zip(*found):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OF_THREE)
def test_losses_of_three_tensors(name):
    found = []
    for module, dtype in ((nn, torch.float32), (of_torch, torch.float64)):
        xs = [whole((6, 5), 1 + i, 2**-8).to(dtype).abs().requires_grad_() for i in range(3)]
        loss = getattr(module, name)(**OF_THREE[name])(*xs)
        found.append((loss, *torch.autograd.grad(loss, xs)))
    for a, b in zip(*found):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-5)


def test_losses_of_classes_and_labels():
    x, classes = whole((6, 5), 1, 2**-8), torch.arange(6) % 5
    labels = torch.tensor([[1, 3, -1, 2, 0]] * 6)
    for name, target in (("MultiMarginLoss", classes), ("MultiLabelMarginLoss", labels)):
        a, b = (
            getattr(m, name)()(x.to(t), target)
            for m, t in ((nn, x.dtype), (of_torch, torch.float64))
        )
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-6)
    log = whole((7, 3, 5), 2, 2**-8).log_softmax(-1)
    lengths = torch.tensor([7, 6, 7]), torch.tensor([3, 2, 1])
    target = torch.tensor([[1, 1, 2], [3, 4, 1], [2, 0, 0]])
    a, b = (
        m.CTCLoss()(log.to(t), target, *lengths)
        for m, t in ((nn, x.dtype), (of_torch, torch.float64))
    )
    torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n, shape", [(1, LINE), (2, PLANE), (3, ROOM)])
def test_pools_and_their_inverse(n, shape):
    x = whole(shape, 3)
    found = []
    for module in (nn, of_torch):
        y, i = getattr(module, f"MaxPool{n}d")(2, return_indices=True)(x)
        found.append([y, i, getattr(module, f"MaxUnpool{n}d")(2)(y, i)])
        found[-1] += getattr(module, f"AdaptiveMaxPool{n}d")(3, return_indices=True)(x)
    assert all(torch.equal(a, b) for a, b in zip(*found))


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("both", [False, True])
def test_packed_sequences_and_states(name, both):
    """Of several lengths: the values of torch, and bits that do not depend on the batch."""
    from torch.nn.utils import rnn

    options = dict(num_layers=2, bidirectional=both)
    torchs, ours = getattr(of_torch, name)(4, 3, **options), getattr(nn, name)(4, 3, **options)
    for i, x in enumerate(torchs.parameters()):
        x.data.copy_(whole(x.shape, i, 2**-11))
    ours.load_state_dict(torchs.state_dict())
    sequences = [whole((n, 4), n) for n in (3, 5, 1, 5)]
    h = whole((4 if both else 2, 4, 3), 9)
    hx = (h, -h) if name == "LSTM" else h
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    found, last = ours(packed, hx)
    wanted, end = torchs(packed, hx)
    for a, b in zip(rnn.pad_packed_sequence(found), rnn.pad_packed_sequence(wanted)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    for a, b in zip(last, end):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    rows, _ = rnn.pad_packed_sequence(found)
    for k, sequence in enumerate(sequences):
        state = tuple(s[:, k : k + 1].clone() for s in (hx if name == "LSTM" else (hx,)))
        alone, _ = ours(sequence[:, None], state if name == "LSTM" else state[0])
        assert torch.equal(alone[:, 0], rows[: len(sequence), k])
    with pytest.raises(RuntimeError, match="hx: expected"):
        ours(packed, h[:1] if name != "LSTM" else (h[:1], h))


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropouts_follow_torchs_seed(name):
    """Also those of torch under reproducible(), in compiled graphs, and in checkpoints of
    activations, which draw again what they drew."""
    shape = {"Dropout1d": LINE, "Dropout3d": ROOM}.get(name, PLANE)
    x = whole(shape, 1) + 1
    module = of_torch.Sequential(*(getattr(nn, name)(0.3) for _ in range(3)))

    def run(function, seed):
        torch.manual_seed(seed)
        leaf = x.clone().requires_grad_()
        outs = [function(leaf) for _ in range(2)]
        return digest([*outs, *torch.autograd.grad(outs[0].sum(), leaf), torch.rand(1)])

    eager = run(module, 1)
    assert eager == run(module, 1) != run(module, 2)
    assert eager == run(lambda x: checkpoint(module, x, use_reentrant=False), 1)
    if name in ("Dropout", "AlphaDropout"):  # one for each way to draw: compilers are slow
        torch._dynamo.reset()
        assert eager == run(torch.compile(module, fullgraph=True, backend="aot_eager"), 1)
    theirs = of_torch.Sequential(*(getattr(of_torch, name)(0.3) for _ in range(3)))
    with invar.reproducible():
        torch.manual_seed(1)
        found = theirs(x)
    torch.manual_seed(1)
    assert torch.equal(found, module(x))
    assert torch.equal(module.eval()(x), x)


def test_dropout_of_converted_modules_follows_torchs_seed():
    model = invar.from_torch_module(
        of_torch.Sequential(of_torch.Linear(6, 6), of_torch.Dropout(0.5))
    )
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(digest([model(whole(PLANE, 1))]))
    assert found[0] == found[1] != found[2]


def test_layers_of_transformers_compile_to_one_graph():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.25)
    model = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    x, found = whole((5, 2, 8), 3), []
    torch._dynamo.reset()
    for function in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(4)
        y = function(x)
        y.square().sum().backward()
        found.append(digest([y, *(p.grad for p in model.parameters())]))
        model.zero_grad()
    assert found[0] == found[1]


def test_slopes_of_rrelu_follow_torchs_seed():
    x, module, found = whole(LINE, 3), nn.RReLU(0.25, 0.5), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(module(x))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    slope = (found[0] / x)[x < 0]
    assert (
        (slope >= 0.25).all() and (slope <= 0.5).all() and torch.equal(found[0][x >= 0], x[x >= 0])
    )
