"""The exporter finds attention that a model writes out, and its mask by its values; a count of
tokens becomes a state."""

import importlib.util
import math
from types import SimpleNamespace

import pytest
from conftest import BUILD

NEEDED = ("torch", "onnxscript")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if MISSING or not (BUILD / "python/invar").is_dir():
    pytest.skip(f"{', '.join(MISSING) or 'the package'} is missing", allow_module_level=True)
import torch  # noqa: E402
from invar.exporter import graph, program, scores, trace  # noqa: E402

CONFIG = SimpleNamespace(vocab_size=64, max_position_embeddings=48)
HEADS, SIZE = 2, 4


class Model(torch.nn.Module):
    """One layer of attention: `weigh` makes scores of products and positions [S]."""

    def __init__(self, weigh, joined=False):
        super().__init__()
        torch.manual_seed(0)
        self.rows = torch.nn.Embedding(64, HEADS * SIZE)
        self.qkv = torch.nn.Linear(HEADS * SIZE, 3 * HEADS * SIZE)
        self.weigh, self.joined = weigh, joined

    def forward(self, input_ids, position_ids):
        b, s = input_ids.shape
        rows = self.qkv(self.rows(input_ids)).view(b, s, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
        q, k, v = (x.reshape(b * HEADS, s, SIZE) if self.joined else x for x in rows)
        products = torch.bmm(q, k.transpose(1, 2)) if self.joined else q @ k.transpose(2, 3)
        products = products.view(b, HEADS, s, s)
        weights = torch.softmax(self.weigh(products, torch.arange(s)), -1)
        weights = weights.view(q.shape[0], s, s) if self.joined else weights
        return (weights @ v).view(b, HEADS, s, SIZE).transpose(1, 2).reshape(b, s, -1)


def causal(products, at, window=1000):
    seen = (at <= at[:, None]) & (at > at[:, None] - window)
    return products.masked_fill(~seen, -torch.inf)


def multiplied(products, at):
    """As GPT 1 masks."""
    seen = (at <= at[:, None]).float()
    return products / math.sqrt(SIZE) * seen + -1e4 * (1 - seen)


def found(weigh, **settings):
    """-> the attributes of the Attention nodes that the exported model has."""
    with torch.no_grad():
        made = program.exported(Model(weigh, **settings), CONFIG, True, 2)
        made = program.exported(scores.with_rooms(made, CONFIG), CONFIG, True, 2)
    model = graph.convert(made).model
    nodes = [n for n in model.graph if n.op_type == "Attention"]
    assert not [n for n in model.graph if n.op_type == "Softmax"]
    return [{a.name: a.value for a in n.attributes.values()} for n in nodes]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize(
    ("weigh", "scale", "window"),
    [
        (causal, 1.0, 0),
        (lambda p, at: causal(p * 0.25, at), 0.25, 0),
        (lambda p, at: causal(p, at, window=7) / 2, 0.5, 7),
        (multiplied, 0.5, 0),
    ],
)
def test_written_attention_is_one_operator(weigh, scale, window, joined):
    (node,) = found(weigh, joined=joined)
    assert (node["q_num_heads"], node["kv_num_heads"]) == (HEADS, HEADS)
    assert (node["scale"], node["window"]) == (scale, window)


@pytest.mark.parametrize(
    "weigh",
    [
        lambda p, at: p,  # every query sees all keys
        lambda p, at: causal(p, at + at % 2),  # in pairs
        lambda p, at: causal(p - 0.01 * (at[:, None] - at), at),  # a bias of positions
        lambda p, at: causal(torch.tanh(p), at),
        lambda p, at: causal(p, at) + p.sort().values,  # by what the tokens are
    ],
)
def test_other_scores_are_refused(weigh):
    with pytest.raises(trace.NotTraceable, match="no masked products"):
        found(weigh)


def test_masks_of_too_many_positions_are_refused():
    made = program.exported(Model(causal), CONFIG, True, 2)
    for most, said in ((None, "unknown"), (scores.MOST_POSITIONS + 1, "4097")):
        config = SimpleNamespace(vocab_size=64, max_position_embeddings=most)
        with pytest.raises(trace.NotTraceable, match=f"for {said} positions"):
            scores.with_rooms(made, config)


class Counts(torch.nn.Module):
    """Rows by the number of tokens so far that are no padding, and by the positions."""

    def __init__(self):
        super().__init__()
        self.rows = torch.nn.Embedding(64, 8)

    def forward(self, input_ids, **given):
        count = torch.cumsum(input_ids.ne(1), dim=1)
        places = torch.arange(2, input_ids.shape[1] + 2)
        return SimpleNamespace(logits=self.rows(count) + self.rows(places))


def test_counts_are_states_and_positions_are_inputs():
    with torch.no_grad():
        model = graph.convert(program.exported(program.Logits(Counts()), CONFIG, True, 2)).model
    assert graph.place_states(model, True) == 1
    assert [v.name for v in model.graph.inputs][:2] == ["input_ids", "position_ids"]
    assert model.graph.inputs[2].name == "past_key_values.0.recurrent"
    assert not [n for n in model.graph if n.op_type in ("CumSum", "Range")]


def test_a_small_number_is_kept():
    """onnxscript would drop both."""

    class Norm(torch.nn.Module):
        def forward(self, input_ids, position_ids):
            return (input_ids.float() + 1e-8) * (1 + 2**-18)

    made = program.exported(Norm(), CONFIG, True, 2)
    assert {"Add", "Mul"} <= {n.op_type for n in graph.convert(made).model.graph}
