"""A causal language model of transformers -> an exported program."""

import contextlib
import inspect

import torch
from torch.overrides import TorchFunctionMode

from invar.exporter import scores, trace


class Counted(TorchFunctionMode):
    """While a model is traced that counts positions itself: a row of numbers as long as the
    sequence is that of the positions, and a running sum of integers is a state."""

    def __init__(self, ids, positions):
        super().__init__()
        self.seq, self.positions = ids.shape[1], positions

    def is_seq(self, size):
        return isinstance(size, torch.SymInt) and size.node.expr == self.seq.node.expr

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.arange and len(args) in (1, 2):
            begin, end = (0, *args)[-2:]
            if self.is_seq(end - begin):
                return (self.positions[0] + begin).to(kwargs.get("dtype") or torch.int64)
        if function in (torch.cumsum, torch.Tensor.cumsum):
            x, axis = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
            if x.dim() == 2 and axis in (1, -1) and self.is_seq(x.shape[1]):
                if not x.is_floating_point():
                    return running_sum(x)
        return function(*args, **kwargs)


def running_sum(x):
    """Of integers [B, S]: exact below 2^24."""
    values = x.to(torch.float32)[..., None, None]
    ones = torch.ones_like(values)
    return trace.recurrent(ones, ones, values, None, None, 1.0).view(x.shape).to(torch.int64)


def takes(model, name):
    return name in inspect.signature(model.forward).parameters


class Logits(torch.nn.Module):
    """input_ids and, for a graph with states, position_ids, i64 [B, S] -> logits [B, S,
    vocabulary]."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        # Some have positions of their own, which count the tokens that are no padding.
        own = any(hasattr(m, "create_position_ids_from_input_ids") for m in model.modules())
        self.takes_positions = not own and takes(model, "position_ids")

    def forward(self, input_ids, position_ids=None):
        given = {"input_ids": input_ids, "use_cache": False, "return_dict": True}
        if position_ids is None:
            return self.model(**given).logits
        if self.takes_positions:
            return self.model(**given, position_ids=position_ids).logits
        with Counted(input_ids, position_ids):
            return self.model(**given).logits


def traced(model, remember):
    """The exported program. remember: for a graph with states, so with attention as a node, with
    positions as an input, and for a batch where sequences stay apart; else with the attention that
    transformers calls eager, of one sequence."""
    config = model.config.get_text_config()

    def with_states(module):
        # Experts take rows of one axis, whatever the sequence (joins_sequences).
        if not any(hasattr(m, "_is_expert_parallel") for m in model.modules()):
            program = exported(module, config, True, 2)
            if not joins_sequences(program):
                return program
        return exported(module, config, True, 1)

    with trace.replaced(), torch.no_grad():
        model.set_experts_implementation(trace.NAME)
        if remember:
            model.set_attn_implementation(trace.NAME)
            # Where a Window comes to code that takes it for a tensor, attention is written out.
            with contextlib.suppress(TypeError, AttributeError):
                program = with_states(Logits(model))
                if any(n.kwargs.get("domain") == "invar" for n in program.graph.nodes):
                    return program
        model.set_attn_implementation("eager")
        if not remember:
            return exported(Logits(model), config, False, 1)
        program = with_states(Logits(model))
        sequences = 2 if isinstance(sizes_of(program)[0], torch.SymInt) else 1
        return exported(scores.with_rooms(program, config), config, True, sequences)


def exported(module, config, positions, sequences):
    ids = torch.tensor([[5, 3, 9, 4, 7, 6, 8], [8, 4, 3, 5, 9, 6, 7]]) % config.vocab_size
    ids = ids[:sequences]
    given = (ids, torch.arange(ids.shape[1]).expand_as(ids))[: 2 if positions else 1]
    sizes = {1: torch.export.Dim.DYNAMIC} | ({0: torch.export.Dim.AUTO} if sequences > 1 else {})
    return torch.export.export(module, given, dynamic_shapes=(sizes,) * len(given), strict=False)


def sizes_of(program):
    """Of input_ids."""
    return next(n for n in program.graph.nodes if n.name == "input_ids").meta["val"].shape


def joins_sequences(program):
    """Whether sequences of a batch become rows of one axis, which a session does not take: experts
    do that."""
    sizes = (d for n in program.graph.nodes for d in getattr(n.meta.get("val"), "shape", ()))
    return any(isinstance(d, torch.SymInt) and len(d.node.expr.free_symbols) > 1 for d in sizes)
