"""invar.from_torch_module(): the same parameters, forward passes of Invar, refusals by path and
class."""

import copy
import pickle

import pytest
import torch
from built import digest, invar, whole
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Modules of torch, and functions of torch in the forward pass."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 6, bias=False)
        self.layers = [self.first, self.second]  # not only where torch looks

    def forward(self, x, scale: float = 1.0):
        h = torch.tanh(self.layers[0](x))
        return x + self.layers[1](h) * scale / (1 + x.square().mean(-1, keepdim=True))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = self.blocks[0].first

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=0.5)
        return F.relu(self.head(x))


@pytest.fixture
def model():
    made = Model()
    with torch.no_grad():
        for i, p in enumerate(made.parameters()):
            p.copy_(whole(p.shape, i, 2**-11))
    return made


def test_the_copy_shares_parameters_and_leaves_the_model(model):
    ours, x = invar.from_torch_module(model), whole((4, 6), 9)
    assert [*map(id, ours.parameters())] == [*map(id, model.parameters())]
    assert type(model.head) is nn.Linear and type(ours.head) is invar.nn.Linear
    assert isinstance(ours, Model) and repr(ours) == repr(model)
    assert ours.head is ours.blocks[0].first is ours.blocks[0].layers[0]
    torch.testing.assert_close(ours(x), model(x), rtol=1e-5, atol=1e-6)
    with invar.reproducible():
        assert digest([model(x)]) == digest([ours(x)])
    assert ours.state_dict().keys() == model.state_dict().keys()


def test_gradients_are_of_the_shared_parameters(model):
    x, want = whole((4, 6), 9), copy.deepcopy(model).double()
    invar.from_torch_module(model)(x).square().sum().backward()
    want(x.double()).square().sum().backward()
    for p, q in zip(model.parameters(), want.parameters()):
        torch.testing.assert_close(p.grad.double(), q.grad, rtol=1e-4, atol=1e-5)


def test_in_place(model):
    ours, x = invar.from_torch_module(model, inplace=True), whole((4, 6), 9)
    assert ours is model and type(model.head) is invar.nn.Linear
    again = pickle.loads(pickle.dumps(ours))
    assert digest([again(x)]) == digest([ours(x)]) == digest([copy.deepcopy(ours)(x)])
    assert invar.from_torch_module(ours, inplace=True) is ours


def test_hooks_and_parametrisations_are_under_the_mode():
    linear = nn.Linear(3, 4)
    linear.register_forward_pre_hook(lambda module, inputs: (torch.fft.fft(inputs[0]).real,))
    with pytest.raises(invar.NotCovered, match="fft"):
        invar.from_torch_module(linear)(torch.ones(2, 3))

    class Twice(nn.Module):
        def forward(self, weight):
            return weight * 2

    linear = nn.Linear(3, 4)
    nn.utils.parametrize.register_parametrization(linear, "weight", Twice())
    x = whole((2, 3), 1)
    torch.testing.assert_close(invar.from_torch_module(linear)(x), linear(x))


def test_models_of_our_modules_alone_need_no_mode():
    model = invar.from_torch_module(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Flatten()))
    assert type(model) is nn.Sequential and type(model[0]) is invar.nn.Linear


def test_single_modules_of_torch():
    linear = invar.from_torch_module(nn.Linear(3, 4))
    assert type(linear) is invar.nn.Linear


def test_refusals_name_path_and_class(model):
    model.blocks[1].memory = nn.FractionalMaxPool2d(2, 3)
    model.bag = nn.EmbeddingBag(3, 4, max_norm=2.0)
    with pytest.raises(invar.NotCovered) as e:
        invar.from_torch_module(model, inplace=True)
    assert "blocks.1.memory: torch.nn.FractionalMaxPool2d" in str(e.value)
    assert "bag: torch.nn.EmbeddingBag: max_norm=2.0" in str(e.value) and "\n" not in str(e.value)
    assert type(model.head) is nn.Linear  # nothing was changed


def test_refusals_of_compiled_code(model):
    traced = torch.jit.trace(nn.Linear(3, 4), torch.ones(1, 3))
    with pytest.raises(invar.NotCovered, match="TorchScript"):
        invar.from_torch_module(nn.Sequential(traced))
    with pytest.raises(TypeError, match="str is no torch.nn.Module"):
        invar.from_torch_module("model")


def test_what_a_forward_pass_does_not_cover_is_named_when_it_is_reached():
    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x).abs()

    ours = invar.from_torch_module(Spectrum())
    with pytest.raises(invar.NotCovered, match="fft.*test_convert_module_accuracy.py:"):
        ours(torch.ones(2, 4))
