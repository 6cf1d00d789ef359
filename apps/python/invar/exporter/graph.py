"""An exported program -> model.onnx, in which keys, values and recurrent states are inputs and
outputs of the graph."""

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset23 as op

F32 = ir.TensorType(ir.DataType.FLOAT)
OPSET, WINDOWS, CONVOLUTIONS = 23, 25, 27  # the first ones of ONNX that have them


def _expm1(x):
    """exp(x) - 1 without its cancellation: below 0 it is Elu."""
    return op.Where(op.Less(x, 0.0), op.Elu(x), op.Neg(op.Mul(op.Exp(x), op.Elu(op.Neg(x)))))


def convert(program):
    """A torch.export.ExportedProgram of program.Logits -> torch.onnx.ONNXProgram."""
    keep_numbers(program.graph)
    made = torch.onnx.export(
        program, dynamo=True, opset_version=OPSET, output_names=["logits"], verbose=False,
        custom_translation_table={torch.ops.aten.expm1.default: _expm1},
    )  # fmt: skip
    name_dimensions(made.model.graph)
    spell_scales(made.model.graph)
    drop_positions(made.model.graph)
    return made


def keep_numbers(graph):
    """onnxscript takes x + 1e-8 for x, and x * 1.00001, where the number is a scalar. Such numbers
    become rows of one element."""
    aten = torch.ops.aten
    neutral = {aten.add.Tensor: 0, aten.sub.Tensor: 0, aten.mul.Tensor: 1, aten.div.Tensor: 1}
    for node in list(graph.nodes):
        to, number = neutral.get(node.target), node.args[1] if len(node.args) > 1 else None
        if to is None or not isinstance(number, float) or not 0 < abs(number - to) < 2e-5:
            continue
        with graph.inserting_before(node), node.meta["val"].fake_mode:
            row = graph.call_function(aten.full.default, ([1], number))
            row.meta["val"] = torch.full([1], number)
        node.update_arg(1, row)


def drop_positions(graph):
    """Removes position_ids of a model that has no use for them."""
    for value in [v for v in graph.inputs if v.name == "position_ids" and not v.uses()]:
        graph.inputs.remove(value)


def spell_scales(graph):
    """torch gives a norm without weights a scale of the shape of its operand; ONNX wants one number
    for each element of a row."""
    for node in list(graph.all_nodes()):
        node.metadata_props.clear()  # lines of files on this machine
        scale = node.inputs[1].producer() if node.op_type == "RMSNormalization" else None
        if scale is not None and scale.op_type == "ConstantOfShape":
            ones = np.ones(int(node.inputs[0].shape[-1]), np.float32)
            name = f"{node.name}.ones"
            node.replace_input_with(1, ir.val(name, const_value=ir.tensor(ones, name=name)))
            graph.register_initializer(node.inputs[1])


def name_dimensions(graph):
    """The first two dimensions of input_ids are batch and seq."""
    ids = next(v for v in graph.inputs if v.name == "input_ids")
    if not isinstance(ids.shape[1], ir.SymbolicDim):
        raise ValueError(f"the trace holds for {ids.shape[1]} tokens alone")
    rows = [ids, *(v for v in graph.inputs if v.name == "position_ids")]
    names = {str(d): name for v in rows for d, name in zip(v.shape, ("batch", "seq"), strict=True)}
    values = [*graph.inputs, *(v for node in graph.all_nodes() for v in node.outputs)]
    for value in values:
        sizes = value.shape or ()
        if any(isinstance(d, ir.SymbolicDim) for d in sizes):
            value.shape = ir.Shape(
                [names.get(str(d)) if isinstance(d, ir.SymbolicDim) else d for d in sizes]
            )


def attention(operands, attributes):
    """-> domain, opset, operands, attributes, the place of the states and these: (kind, shape)."""
    q, k, v, sinks = operands
    heads, window = attributes["kv_num_heads"], attributes.pop("window")
    if not attributes["softcap"]:
        del attributes["softcap"]
    if window:
        attributes["left_window_size"] = window - 1
    attributes["is_causal"] = 1
    states = [
        (kind, [heads, "past", int(x.shape[2]) // heads]) for kind, x in (("key", k), ("value", v))
    ]
    tail = [] if sinks is None else [None, sinks]
    domain = "" if sinks is None else "invar"
    return (
        domain,
        WINDOWS if window else OPSET,
        [q, k, v, None, None, None, *tail],
        attributes,
        4,
        states,
    )


def linear_attention(operands, attributes):
    q, k, v, decay, beta = operands
    heads, values = attributes["q_num_heads"], attributes["kv_num_heads"]
    rule = [word for word, x in (("gated", decay), ("delta", beta)) if x is not None]
    attributes["update_rule"] = "_".join(rule) or "linear"
    states = [("recurrent", [values, int(q.shape[2]) // heads, int(v.shape[2]) // values])]
    return "invar", OPSET, [q, k, v, None, decay, beta], attributes, 3, states


def causal_conv(operands, attributes):
    x, weight, bias = operands
    states = [("conv", [int(weight.shape[0]), int(weight.shape[2]) - 1])]
    return "", CONVOLUTIONS, [x, weight, bias, None], attributes, 3, states


ROOMS = {
    "Attention": (attention, 4),
    "LinearAttention": (linear_attention, 5),
    "CausalConvWithState": (causal_conv, 3),
}


def place_states(model, remember):
    """Gives the nodes of the rooms their final operands and attributes, and with `remember` past
    and present states as inputs and outputs of the graph. Returns the number of nodes."""
    graph, opset = model.graph, OPSET
    batch = next(v for v in graph.inputs if v.name == "input_ids").shape[0]
    nodes = [node for node in graph if node.domain == "invar"]
    for number, node in enumerate(nodes):
        room, count = ROOMS[node.op_type]
        given = [*node.inputs, *[None] * (count - len(node.inputs))]
        attributes = {a.name: a.value for a in node.attributes.values()}
        domain, least, operands, attributes, at, states = room(given, attributes)
        opset = max(opset, least)
        presents = []
        for i, (kind, shape) in enumerate(states if remember else ()):

            def value(prefix, total):
                sizes = [batch, *(total if d == "past" else d for d in shape)]
                return ir.Value(name=f"{prefix}.{number}.{kind}", type=F32, shape=ir.Shape(sizes))

            operands[at + i] = value("past_key_values", "past")
            graph.inputs.append(operands[at + i])
            presents.append(value("present", "total"))
        while operands[-1] is None:
            operands.pop()
        old = node.outputs[0]
        y = ir.Value(name=old.name, type=old.type, shape=old.shape)
        made = ir.Node(
            domain, node.op_type, operands, ir.convenience.convert_attributes(attributes),
            outputs=[y, *presents], name=node.name,
        )  # fmt: skip
        ir.convenience.replace_nodes_and_values(graph, node, [node], [made], [old], [y])
        graph.outputs.extend(presents)
    graph.opset_imports[""] = opset
    graph.opset_imports["invar"] = 1
    model.ir_version = 13 if opset > OPSET else 11  # the first ones with these opsets
    return len(nodes)
