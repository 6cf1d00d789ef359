"""FileCheck tests of the compiler. Parameters: invar_opt, tools (LLVM's bin folder), out
(scratch)."""

import os

import lit.formats

config.name = "invar-compiler"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = __file__.rsplit("/", 1)[0]
config.test_exec_root = lit_config.params["out"]
quoted = lambda path: '"' + path + '"'
opt, tools = lit_config.params["invar_opt"], lit_config.params["tools"]
pipeline = lambda passes: quoted(opt) + f" --pass-pipeline='builtin.module({passes})'"
stored = "onnx-to-repro,func.func(repro-fuse,repro-prepare-plan,repro-store-weights)"
to_torch = (
    "onnx-to-repro,func.func(repro-fuse,repro-prepare-plan,repro-store-weights,repro-to-torch)"
)
config.substitutions += [
    ("%lower", pipeline("onnx-to-repro")),
    ("%recognize", pipeline("onnx-to-repro,func.func(repro-recognize-idioms)")),
    ("%exact16", pipeline("func.func(repro-choose-exact16)")),
    ("%fold", pipeline("onnx-to-repro,func.func(repro-fuse,repro-prepare-plan)")),
    ("%canonicalize", pipeline("func.func(repro-canonicalize)")),
    ("%sink", pipeline("func.func(repro-sink-transposes)")),
    ("%earlier_sink", pipeline("func.func(repro-turn)")),
    ("%store", pipeline(stored)),
    ("%plan", pipeline(stored + ",print-plan") + f" -o '{os.devnull}'"),
    ("%torch", pipeline(to_torch)),
    ("%plain", pipeline(to_torch.replace("repro-to-torch", "repro-to-torch{plain=true}"))),
    ("%opt", quoted(opt)),
    ("%check", quoted(tools + "/FileCheck") + ' "%s"'),
    ("%not", quoted(tools + "/not")),
]
