"""Attention that a model writes out, as a product, a mask and a softmax: found in an exported
program and made the operator of trace.attend."""

from typing import NamedTuple

import torch

from invar.exporter import trace

aten = torch.ops.aten
PRODUCTS = (aten.matmul.default, aten.bmm.default, aten.baddbmm.default)
SOFTMAX = (aten.softmax.int, aten._softmax.default)
SCALES = (aten.mul.Tensor, aten.div.Tensor)
# What hands on the weights as they are.
SAME = (
    aten.view.default, aten.reshape.default, aten.clone.default, aten.contiguous.default,
    aten.dropout.default, aten.to.dtype, aten.type_as.default, aten._to_copy.default,
)  # fmt: skip
OTHER = "its attention has scores that are no masked products"
MOST_POSITIONS = 4096  # for which masks are computed, with a matrix of the square of it


class Written(NamedTuple):
    """Attention that a program writes out: nodes of q, of the transposed k and of v."""

    q: torch.fx.Node
    k: torch.fx.Node
    v: torch.fx.Node
    heads: int
    scale: float
    window: trace.Window


class Program:
    """What a program computes from the sizes of its inputs alone, masks among it."""

    def __init__(self, module, length):
        for n in list(module.graph.nodes):
            if n.target is aten._assert_tensor_metadata.default:
                module.graph.erase_node(n)
        module.graph.eliminate_dead_code()
        self.module, self.length, self.varying = module, length, set()
        ids, positions = (
            next(n for n in module.graph.nodes if n.name == name)
            for name in ("input_ids", "position_ids")
        )
        self.sizes = {
            d.node.expr: size
            for d, size in zip(ids.meta["val"].shape, (1, length), strict=True)
            if isinstance(d, torch.SymInt)
        }
        row = torch.arange(length)[None]
        self.inputs = {ids: torch.zeros_like(row), positions: row}
        for n in module.graph.nodes:
            of_values = n.target is not aten.sym_size.int and self.varying.intersection(
                n.all_input_nodes
            )
            if n is ids or of_values:
                self.varying.add(n)

    def shape(self, n):
        return [
            int(d.node.expr.subs(self.sizes)) if isinstance(d, torch.SymInt) else d
            for d in n.meta["val"].shape
        ]

    def value(self, target, **given):
        """Of a node, where that of the node given["at"] is given["value"]."""
        values = self.inputs | ({given["at"]: given["value"]} if given else {})
        needed, left = set(), [target]
        while left:
            n = left.pop()
            if n not in needed and n not in values:
                needed.add(n)
                left.extend(n.all_input_nodes)
        for n in self.module.graph.nodes:
            if n in needed:
                if n.op == "get_attr":
                    values[n] = torch.fx.graph_module._get_attr(self.module, n.target)
                else:
                    args, names = torch.fx.map_arg((n.args, n.kwargs), values.__getitem__)
                    values[n] = n.target(*args, **names)
        return values[target]


def product_of(program, softmax):
    """-> the product whose elements the softmax takes and by what they are multiplied, or None."""
    n, scale = softmax.args[0], 1.0
    while n.target not in PRODUCTS:
        sources = [x for x in n.all_input_nodes if x in program.varying]
        if n.op != "call_function" or len(sources) != 1:
            return None
        if n.target in SCALES and n.args[0] is sources[0]:
            by = n.args[1]
            by = program.value(by) if isinstance(by, torch.fx.Node) else by
            number = float(by) if not isinstance(by, torch.Tensor) or by.dim() == 0 else 1.0
            scale *= number if n.target is aten.mul.Tensor else 1 / number
        n = sources[0]
    return n, scale


def weighed_by(n):
    """-> the product of the weights, which only `same` nodes hand on, with the values, or None."""
    while len(n.users) == 1:
        (user,) = n.users
        if user.target in PRODUCTS[:2] and user.args[0] is n:
            return user
        if user.target not in SAME:
            return None
        n = user
    return None


def window_of(program, product, scale, softmax):
    """The mask between a product and its softmax, by their values."""
    length = program.length
    scores = torch.randn(program.shape(product), generator=torch.Generator().manual_seed(0))
    masked = program.value(softmax.args[0], at=product, value=scores)
    weighs = torch.softmax(masked, -1) > 0
    size = int(weighs.reshape(-1, length)[-1].sum())
    i, j = torch.arange(length)[:, None], torch.arange(length)
    sees = (j <= i) & (j > i - size)
    scores = scores.view(masked.shape) * scale
    near = (masked - scores).abs() <= 1e-5 * (1 + scores.abs())
    if not torch.equal(weighs, sees.expand_as(weighs)) or not bool((near | ~sees).all()):
        raise trace.NotTraceable(OTHER)
    return trace.Window(0 if size == length else size)


def written(program, softmax):
    """-> the product with the values and what it is part of; None where keys are weighed by
    none."""
    if program.shape(softmax)[-2:] != [program.length] * 2:
        return None
    found, out = product_of(program, softmax), weighed_by(softmax)
    if found is None or out is None:
        raise trace.NotTraceable(OTHER)
    product, scale = found
    window = window_of(program, product, scale, softmax)
    *added, q, k = product.args
    if added:  # baddbmm
        if bool(program.value(added[0]).any()):
            raise trace.NotTraceable("its attention adds to its products")
        scale *= product.kwargs.get("alpha", 1)
    shape = program.shape(q)
    return out, Written(q, k, out.args[1], shape[len(shape) - 3], float(scale), window)


class Rewritten(torch.nn.Module):
    """The program with attention as single operators."""

    def __init__(self, module, found):
        super().__init__()
        self.module, self.found = module, found

    def forward(self, input_ids, position_ids):
        return Walk(self.module, self.found, input_ids.shape).run(input_ids, position_ids)


class Walk(torch.fx.Interpreter):
    def __init__(self, module, found, sizes):
        super().__init__(module, garbage_collect_values=False)
        self.found, self.sizes = found, sizes

    def run_node(self, n):
        if n not in self.found:
            return super().run_node(n)
        a = self.found[n]
        q, k, v = (self.env[x] for x in (a.q, a.k, a.v))
        rows = [
            x if x.dim() == 4 else x.reshape(self.sizes[0], a.heads, *x.shape[1:])
            for x in (q, k.transpose(-1, -2), v)
        ]
        y = trace.attend(None, *rows, a.window, scaling=a.scale)[0].transpose(1, 2)
        return y if v.dim() == 4 else y.reshape(-1, *y.shape[2:])


def with_rooms(program, config):
    """An exported program with attention written out -> a module with that as single operators."""
    length = getattr(config, "max_position_embeddings", None)
    if not 0 < (length or 0) <= MOST_POSITIONS:
        raise trace.NotTraceable(
            f"its attention is written out, for {length or 'unknown'} positions"
        )
    module = program.module(check_guards=False)
    values = Program(module, length)
    softmaxes = [n for n in module.graph.nodes if n.target in SOFTMAX]
    found = dict(filter(None, (written(values, n) for n in softmaxes)))
    if not found:
        raise trace.NotTraceable("its attention is not that of AttentionInterface")
    return Rewritten(module, found)
