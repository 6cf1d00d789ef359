"""ONNX Runtime as a peer: a graph of one node for each spelling of a call.

A room spells its call as `call.node(NAME, operand, ...)`: an operand is the index of one of the
call's, an array, which is a constant, or None, which is absent. Operands that are constant in the
call are constant in the graph, so that the library prepares them once. Operands of bf16 are held in
f32, in which the library computes on a CPU."""

import numpy as np
from peer import per_call

CONTRIBUTED = "com.microsoft"
WIDE = {"bf16": "f32"}
TYPES = {"f32": "float32", "f16": "float16", "f64": "float64", "i64": "int64", "i32": "int32",
         "i8": "int8", "u8": "uint8", "bool": "bool"}  # fmt: skip
EMPTY_CALLS = 2000


class OnnxRuntime:
    gpu = False

    def __init__(self, device):
        if device != "cpu":
            raise RuntimeError("ONNX Runtime is a peer on the CPU")
        import onnx
        import onnxruntime

        self.onnx, self.library = onnx, onnxruntime
        self.version = f"ONNX Runtime {onnxruntime.__version__}"
        self.random, self.at_once, self.recorded = np.random.default_rng(0), 1, None
        self.empty = self.made("Neg", [np.zeros(1, np.float32)], [False], [np.zeros(1, np.float32)])

    def tensor(self, t):
        dtype, shape = TYPES[WIDE.get(t["dtype"], t["dtype"])], t["shape"]
        if t["fill"] == "zero" or not dtype.startswith("float"):
            if t["fill"].startswith(("below(", "around(")):
                below = int(t["fill"].split("(")[1].rstrip(")"))
                return np.array(self.random.integers(0, below, shape), dtype)
            return np.zeros(shape, dtype)
        return np.array(0.58 * self.random.standard_normal(shape, np.float32), dtype)

    def threads(self, n):
        self.at_once = n

    def per_call(self, functions, calls):
        """Seconds a call, without those that a session with one small node takes: a network pays
        for that once."""
        start = min(per_call(self.empty, EMPTY_CALLS // 10) for _ in range(3))
        return max(per_call(functions[0], calls) - start, 1e-9)

    def node(self, call, name, *operands, results=None, domain="", **attributes):
        """A function that makes the session when it is called first, and runs it."""
        inputs = [call.inputs[o] if isinstance(o, int) else o for o in operands]
        constant = [call.constant[o] if isinstance(o, int) else True for o in operands]
        made = []

        def run():
            if not made:
                made.append(
                    self.made(name, inputs, constant, results or call.outputs, domain, attributes)
                )
            made[0]()

        return run

    def made(self, name, inputs, constant, results, domain="", attributes=None):
        helper, kinds = self.onnx.helper, self.onnx.helper.np_dtype_to_tensor_dtype
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        outputs = [f"y{i}" for i in range(len(results))]
        given = [i for i, x in enumerate(inputs) if x is not None and not constant[i]]
        graph = helper.make_graph(
            [helper.make_node(name, names, outputs, domain=domain, **attributes or {})],
            name,
            [helper.make_tensor_value_info(names[i], kinds(inputs[i].dtype), inputs[i].shape)
             for i in given],
            [helper.make_tensor_value_info(n, kinds(y.dtype), None)
             for n, y in zip(outputs, results)],
            [self.onnx.numpy_helper.from_array(x, names[i])
             for i, x in enumerate(inputs) if x is not None and constant[i]],
        )  # fmt: skip
        versions = [helper.make_opsetid("", 23), helper.make_opsetid(CONTRIBUTED, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=10)
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.at_once, 4
        options.add_session_config_entry("session.force_spinning_stop", "1")  # our turn comes next
        try:
            session = self.library.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as e:  # its own types have no common one
            raise RuntimeError(str(e)) from e
        bound = session.io_binding()
        values = self.library.OrtValue.ortvalue_from_numpy
        for i in given:
            bound.bind_ortvalue_input(names[i], values(inputs[i]))
        for n, y in zip(outputs, results):
            bound.bind_ortvalue_output(n, values(y))
        return lambda: session.run_with_iobinding(bound)
