"""Recurrent layers and cells: compositions of linear, sigmoid and tanh, one step after the other,
with the gradients that follow."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from invar import ops
from invar.autograd import exact
from invar.errors import NotCovered
from invar.nn.counterparts import counterpart
from invar.ops.random import torch_seed

States = tuple[torch.Tensor, ...]


def _joined(x: Any, h: torch.Tensor, weight: Any, bias: Any) -> torch.Tensor:
    return ops.add(x, ops.linear(h, weight, bias))


def _lstm(x: torch.Tensor, states: States, weight: Any, bias: Any, projection: Any) -> States:
    """x: W x + b of the gates i, f, g, o; states (h, c)."""
    i, f, g, o = _joined(x, states[0], weight, bias).chunk(4, -1)
    kept = ops.mul(ops.sigmoid(f), states[1])
    c = ops.add(kept, ops.mul(ops.sigmoid(i), ops.tanh(g)))
    h = ops.mul(ops.sigmoid(o), ops.tanh(c))
    return (h if projection is None else ops.linear(h, projection), c)


def _gru(x: torch.Tensor, states: States, weight: Any, bias: Any, projection: Any) -> States:
    """x: W x + b of the gates r, z, n; n + z (h - n)."""
    (h,) = states
    of_r, of_z, of_n = x.chunk(3, -1)
    r, z, n = ops.linear(h, weight, bias).chunk(3, -1)
    r, z = ops.sigmoid(ops.add(of_r, r)), ops.sigmoid(ops.add(of_z, z))
    n = ops.tanh(ops.add(of_n, ops.mul(r, n)))
    return (ops.add(n, ops.mul(z, ops.sub(h, n))),)


def _plain(activation: Any) -> Callable[..., States]:
    def step(x: Any, states: States, weight: Any, bias: Any, projection: Any) -> States:
        return (activation(_joined(x, states[0], weight, bias)),)

    return step


_STEPS = {
    "LSTM": _lstm,
    "GRU": _gru,
    "RNN_TANH": _plain(ops.tanh),
    "RNN_RELU": _plain(ops.relu),
}


def _unrolled(
    step: Any, inputs: Sequence[torch.Tensor], first: States, reverse: bool, *weights: Any
) -> tuple[list[torch.Tensor], States]:
    """All outputs, in order, and the last states. Sequences are sorted: the longest come first, and
    inputs[t] has the rows of those that have a step t."""
    outputs: list[torch.Tensor] = []
    begun = 0 if reverse else len(first[0])
    states = tuple(s[:begun] for s in first)
    ended: list[States] = []
    for x in reversed(inputs) if reverse else inputs:
        rows, running = len(x), len(states[0])
        if rows > running:
            pairs = zip(states, first)
            states = tuple(
                torch.cat([s, new[running:rows]]) if running else new[:rows] for s, new in pairs
            )
        elif rows < running:
            ended.append(tuple(s[rows:] for s in states))
            states = tuple(s[:rows] for s in states)
        states = step(x, states, *weights)
        outputs.append(states[0])
    if ended:
        states = tuple(torch.cat([s, *more]) for s, *more in zip(states, *reversed(ended)))
    return (outputs[::-1] if reverse else outputs), states


def layers(
    mode: str,
    rows: torch.Tensor,
    split: Any,
    first: States,
    weights: Sequence[Any],
    ways: int,
    dropout: float = 0.0,
) -> tuple[torch.Tensor, States]:
    """The outputs of the last layer, as `rows` lies, and the last states of all. rows: the inputs
    of all steps [N, T, ...], or packed end to end, whose products with weights are one call; split:
    rows -> those of each step; first: states [layers * ways, N, H]; weights: (input, states, and
    biases and projection or None) of each layer and way."""
    last: list[States] = []
    for k in range(0, len(weights), ways):
        found = []
        for way in range(ways):
            w, u, b, c, projection = weights[k + way]
            begin = tuple(s[k + way] for s in first)
            inputs = split(ops.linear(rows, w, b))
            outputs, states = _unrolled(_STEPS[mode], inputs, begin, way == 1, u, c, projection)
            found.append(outputs)
            last.append(states)
        steps = [torch.cat(pair, -1) for pair in zip(*found)]
        rows = torch.stack(steps, 1) if rows.ndim == 3 else torch.cat(steps)
        if dropout and k + ways < len(weights):
            rows = ops.dropout(rows, dropout, True, **torch_seed(rows))
    return rows, tuple(torch.stack(list(s)) for s in zip(*last))


class _Layers:
    """The forward pass of layers in one or two directions."""

    def _computed(self: Any, rows: Any, split: Any, first: States) -> tuple[Any, States]:
        names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"]
        ways = ["", "_reverse"][: 2 if self.bidirectional else 1]
        weights = [
            [getattr(self, f"{name}_l{layer}{way}", None) for name in names]
            for layer in range(self.num_layers)
            for way in ways
        ]
        dropout = self.dropout if self.training else 0.0
        return layers(self.mode, rows, split, first, weights, len(ways), dropout)

    def _first(self: Any, given: Any, rows: torch.Tensor, n: int) -> States:
        """The states at the beginning: given, or zeros."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size]
        sizes += [self.hidden_size] * (self.mode == "LSTM")
        if given is None:
            return tuple(rows.new_zeros(count, n, size) for size in sizes)
        states = given if isinstance(given, tuple | list) else (given,)
        if len(states) != len(sizes):
            raise RuntimeError(f"hx: expected {len(sizes)} tensors, got {len(states)}")
        for s, size in zip(states, sizes):
            if tuple(s.shape) != (count, n, size):
                raise RuntimeError(f"hx: expected shape {(count, n, size)}, got {tuple(s.shape)}")
        return tuple(states)

    def forward(self: Any, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"input: expected 2 or 3 dimensions, got {input.ndim}")
        batched, first = input.ndim == 3, self.batch_first
        rows = input if batched else input.unsqueeze(0)
        rows = rows if first or not batched else rows.transpose(0, 1)  # [N, T, I]
        if rows.shape[-1] != self.input_size or not rows.shape[1]:
            raise RuntimeError(
                f"input: expected steps of {self.input_size} elements, got {tuple(input.shape)}"
            )
        lift = lambda s: s.unsqueeze(1)
        if hx is not None and not batched:
            hx = tuple(map(lift, hx)) if isinstance(hx, tuple | list) else lift(hx)
        states = self._first(hx, rows, len(rows))
        found, last = self._computed(rows, lambda x: x.unbind(1), states)
        if not batched:
            found, last = found.squeeze(0), tuple(s.squeeze(1) for s in last)
        elif not first:
            found = found.transpose(0, 1)
        return found, last if self.mode == "LSTM" else last[0]

    def _packed(self: Any, input: PackedSequence, hx: Any) -> Any:
        if any(id(p) in exact.REGISTERED for p in self.parameters()):
            raise NotCovered(
                f"invar.nn.{type(self).__name__}: a packed sequence under ExactGradients: its rows are "
                "no units; pad the sequences instead"
            )
        rows, sizes, order, back = input
        counts = sizes.tolist()
        if hx is not None and order is not None:
            ordered = lambda s: s.index_select(1, order)
            hx = tuple(map(ordered, hx)) if isinstance(hx, tuple | list) else ordered(hx)
        states = self._first(hx, rows, counts[0])
        found, last = self._computed(rows, lambda x: x.split(counts), states)
        if back is not None:
            last = tuple(s.index_select(1, back) for s in last)
        found = PackedSequence(found, sizes, order, back)
        return found, last if self.mode == "LSTM" else last[0]


@counterpart
class LSTM(_Layers, nn.LSTM):
    """torch.nn.LSTM with the same bits on every machine: c' = sigmoid(f) c + sigmoid(i) tanh(g),
    h' = sigmoid(o) tanh(c'), with projections, directions, layers, dropout and packed sequences."""


@counterpart
class GRU(_Layers, nn.GRU):
    """torch.nn.GRU with the same bits on every machine: h' = n + z (h - n)."""


@counterpart
class RNN(_Layers, nn.RNN):
    """torch.nn.RNN with the same bits on every machine."""


class _Cell:
    """One step. States without a batch get one for its time."""

    def _step(self: Any, step: Any, input: torch.Tensor, states: Any, count: int) -> States:
        if input.ndim not in (1, 2):
            raise ValueError(f"input: expected 1 or 2 dimensions, got {input.ndim}")
        x = input if input.ndim == 2 else input.unsqueeze(0)
        if states is None:
            states = (x.new_zeros(len(x), self.hidden_size),) * count
        states = tuple(s if s.ndim == 2 else s.unsqueeze(0) for s in states)
        for s in states:
            if tuple(s.shape) != (len(x), self.hidden_size):
                raise RuntimeError(
                    f"hx: expected shape {(len(x), self.hidden_size)}, got {tuple(s.shape)}"
                )
        x = ops.linear(x, self.weight_ih, self.bias_ih)
        found: States = step(x, states, self.weight_hh, self.bias_hh, None)
        return found if input.ndim == 2 else tuple(s.squeeze(0) for s in found)


@counterpart
class LSTMCell(_Cell, nn.LSTMCell):
    def forward(
        self, input: torch.Tensor, hx: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        h, c = self._step(_lstm, input, hx, 2)
        return h, c


@counterpart
class GRUCell(_Cell, nn.GRUCell):
    def forward(self, input: torch.Tensor, hx: torch.Tensor | None = None) -> torch.Tensor:
        return self._step(_gru, input, None if hx is None else (hx,), 1)[0]


@counterpart
class RNNCell(_Cell, nn.RNNCell):
    def forward(self, input: torch.Tensor, hx: torch.Tensor | None = None) -> torch.Tensor:
        step = _STEPS[f"RNN_{self.nonlinearity.upper()}"]
        return self._step(step, input, None if hx is None else (hx,), 1)[0]


def _parts(
    params: Sequence[torch.Tensor], biases: bool, count: int, projected: bool
) -> list[list[Any]]:
    """The flat list of weights of torch's functions, by layer and way."""
    size = len(params) // count
    found = []
    for k in range(count):
        part = list(params[k * size : (k + 1) * size])
        projection = part.pop() if projected else None
        found.append([*part[:2], *(part[2:4] if biases else (None, None)), projection])
    return found


def of_torch(mode: str) -> Callable[..., Any]:
    """torch.lstm, torch.gru, torch.rnn_tanh or torch.rnn_relu, in both of their forms."""

    def function(input: torch.Tensor, second: Any, third: Any, *rest: Any) -> Any:
        """(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first),
        or (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
        bidirectional)."""
        packed = isinstance(rest[0], list | tuple)
        hx, params = (third, rest[0]) if packed else (second, third)
        biases, count, dropout, train, both, *first = rest[1:] if packed else rest
        ways = 2 if both else 1
        hx = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        projected = mode == "LSTM" and hx[0].shape[-1] != hx[1].shape[-1]
        weights = _parts(params, biases, count * ways, projected)
        dropout = dropout if train else 0.0
        if packed:
            counts = second.tolist()
            rows, last = layers(mode, input, lambda x: x.split(counts), hx, weights, ways, dropout)
        else:
            rows = input if first[0] else input.transpose(0, 1)
            rows, last = layers(mode, rows, lambda x: x.unbind(1), hx, weights, ways, dropout)
            rows = rows if first[0] else rows.transpose(0, 1)
        return (rows, *last)

    return function


def cell_of_torch(mode: str) -> Callable[..., Any]:
    """torch.lstm_cell, torch.gru_cell, torch.rnn_tanh_cell or torch.rnn_relu_cell."""

    def function(
        input: torch.Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
    ) -> Any:
        states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        found = _STEPS[mode](ops.linear(input, w_ih, b_ih), states, w_hh, b_hh, None)
        return found if mode == "LSTM" else found[0]

    return function


FUNCTIONS = {
    name: make(mode)
    for mode in _STEPS
    for name, make in ((mode.lower(), of_torch), (f"{mode.lower()}_cell", cell_of_torch))
}
