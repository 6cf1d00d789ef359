#!/usr/bin/env python3
"""The rooms' tables of operations, src/ops/ROOM/ops.toml, as the files that the build includes.

generate.py ROOT OUT

CMake runs it (cmake/room.cmake). It writes a file of OUT where its text changes: ops.cmake (lists
for CMake), opset/opset.cc (src/base/opset.h, src/base/attribute_types.h), ops/ROOM/op.td (the repro
dialect), ops/ROOM/table.h (a row for each operation of a room with kinds),
ops/ROOM/attributes.h and ops/attributes.cc (the attributes as structs, src/kernels/call.h),
result_rules.inc (the rule of each result's type), torch_formats.inc (how torch says it), and
derivatives.py (derivatives.py beside this file).

An operation is declared here alone: spec/opset.toml and the tables of spec/operations.md are
printed from the entries (tools/docs/generate.py). src/ops/choices.toml has an entry for each
numerics choice (spec/choices.md). An entry of ops.toml has these keys:

version        changes whenever the operation's bits do; 1 without it
numerics       the rule of spec/ that fixes its bits; plans carry it with the version
formula        its value in one line, as spec/operations.md shows it
clauses        the clauses that fix its bits
signature      "(OPERANDS) {ATTRIBUTES}" of that page, where the formula uses other letters
operands       "NAME: TYPE|TYPE", in the order of a plan's node. NAME? may be absent, NAME* is any
               number. `any`: every type. `widens`: kernels widen a bf16 or f16 weight exactly.
attributes     "NAME: TYPE = DEFAULT", f32, i64, string or i64_array. A plan may omit NAME?. An
               attribute with a default, and every list, is a member of the operation's struct. The
               default of a list, else 0, is that of its elements where it is absent.
result         the rule that infers its type (src/compiler/inference/result_type.h): like OPERAND;
               broadcast; reduced: axes become 1 or are dropped; along axis: like operand 0, which
               has elements there; norm, norm backward, norm backward weight; own NAME(ARGUMENTS):
               infer_NAME of import.cc, which takes the call, the attributes of the first operation
               that names it, and the arguments. ", TYPE" at the end: elements have this type.
               Otherwise given: its caller says its type; verified: that, and import.cc has a
               verifier
traits         copies: it moves bits; pointwise: element i depends on elements i of the broadcast
               operands; elementwise: on element i of the only operand
torch          how torch says it, where it is one text (src/compiler/emit/torch/spelling.h); another
               way is in the room's torch.cc
gradient       of an operation of one operand: its derivative (derivatives.py beside this file);
               another one is a rule of the room's vjp.py
split          how ranks divide its results (src/plan/analysis/split_rules.h)
cpu_extension  cpu/extension_rows.h has its kernels for extensions of an instruction set
kind           an entry [kind.NAME] of the file, whose keys are this entry's, too; then `part` is a
               part of table.h, and `onnx` an operator that becomes the operation as it is
"""

import json
import re
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:
    sys.exit("tools/ops/generate.py: needs Python 3.11 or later (the module tomllib)")

TYPES = {name: name.upper() for name in "f64 f32 f16 bf16 i64 i32 i16 i8".split()}
TYPES |= {"u64": "UI64", "u32": "UI32", "u16": "UI16", "u8": "UI8", "bool": "I1"}
ATTRIBUTES = {
    "i64": "I64Attr",
    "f32": "F32Attr",
    "string": "StrAttr",
    "i64_array": "DenseI64ArrayAttr",
}
RESULT = re.compile(r"(?:own (\w+)(?:\((.+)\))?|(like) (\w+)|([a-z ]+))(?:, (\w+))?")
RULES = {  # how the generated text calls the rules; `a` is the struct of attributes
    "broadcast": "infer_broadcast(in)",
    "reduced": "infer_reduced(in, a.axes)",
    "along axis": "infer_along_axis(in, a.axis)",
    "norm": "infer_norm(in)",
    "norm backward": "infer_norm_backward(in)",
    "norm backward weight": "infer_norm_backward_weight(in, a.axis)",
}
TRAITS = ("elementwise", "pointwise", "copies")
LAW = "version numerics formula clauses signature"
KEYS = set(
    f"{LAW} operands attributes result traits gradient split torch cpu_extension kind part onnx".split()
)
OPERAND = re.compile(r"(\w+)([?*]?): ([\w|]+)( widens)?")
ATTRIBUTE = re.compile(r"(\w+)(\??): (f32|i64|string|i64_array)(?: = (\S+))?")
# Types that src/compiler/dialects/repro.td names.
NAMED = {"f32": "Repro_F32", "f32|bf16|f16": "Repro_Wide", "i64": "Repro_I64", "any": "Repro_Any"}


class Wrong(Exception):
    pass


def matched(pattern, text, where):
    m = pattern.fullmatch(text)
    if not m:
        raise Wrong(f'{where}: not understood: "{text}"')
    return m.groups()


class Operation:
    def __init__(self, name, room, keys, where):
        for key in ("numerics", "formula", "clauses"):
            if key not in keys:
                raise Wrong(f"{where}: there is no {key}")
        self.name, self.version, self.numerics = name, keys.get("version", 1), keys["numerics"]
        self.room, self.keys = room, keys
        self.operands = [matched(OPERAND, text, where) for text in keys.get("operands", [])]
        self.attributes = [matched(ATTRIBUTE, text, where) for text in keys.get("attributes", [])]
        for _, _, types, _ in self.operands:
            for one in types.split("|"):
                if one not in TYPES and types != "any":
                    raise Wrong(f"{where}: {one} is no element type")
        unknown = (set(keys) - KEYS) | (set(keys.get("traits", [])) - set(TRAITS))
        if unknown:
            raise Wrong(f"{where}: unknown: {', '.join(sorted(unknown))}")
        own, arguments, _, like, rule, dtype = matched(RESULT, keys.get("result", ""), where)
        self.inferred = rule not in ("given", "verified")
        self.own, self.rule = own, rule
        if own:
            self.call = f"infer_{own}(in{{struct}}{', ' + arguments if arguments else ''})"
        elif like in (names := [operand[0] for operand in self.operands]):
            self.call = f"infer_like(in, {names.index(like)})"
        elif rule in RULES or not self.inferred:
            self.call = RULES.get(rule)
        else:
            raise Wrong(f'{where}: there is no rule "{keys.get("result", "")}"')
        if dtype is not None and dtype not in TYPES:
            raise Wrong(f"{where}: {dtype} is no element type")
        self.dtype = {None: None, "bool": "boolean"}.get(dtype, dtype)
        if not re.fullmatch(r"([A-Z]\w*-\d+)?", keys.get("onnx", "")):
            raise Wrong(f'{where}: onnx = "{keys["onnx"]}" is not "OPERATOR-OPSET"')

    @property
    def class_name(self):
        return "".join(word[0].upper() + word[1:] for word in self.name.split("_"))

    def arguments(self):
        """The operands and attributes as TableGen writes them."""
        for name, count, types, _ in self.operands:
            listed = ", ".join(TYPES[one] for one in types.split("|")) if types != "any" else ""
            td = NAMED.get(types, f"RankedTensorOf<[{listed}]>")
            td = {"": td, "?": f"Optional<{td}>", "*": f"Variadic<{td}>"}[count]
            yield f"{td}:${name}"
        for name, optional, kind, _ in self.attributes:
            yield (
                f"OptionalAttr<{ATTRIBUTES[kind]}>:${name}"
                if optional
                else f"{ATTRIBUTES[kind]}:${name}"
            )

    def members(self):
        """The attributes that kernels read, as (declaration, reader's statement)."""
        for name, _, kind, default in self.attributes:
            if kind == "i64_array":
                yield f"IntegerList {name};", f'{name} = a.list("{name}", {default or 0});'
            elif default:
                c_type, suffix = {"i64": ("int64_t", ""), "f32": ("float", "f")}[kind]
                read = f'{name} = a.{kind}("{name}", {default}{suffix});'
                yield f"{c_type} {name};", read

    def defaults(self):
        """(name, integer, float) of the attributes that have one of these."""
        for name, _, kind, default in self.attributes:
            if default:
                yield (name, None, default) if kind == "f32" else (name, default, None)

    def declarations(self):
        """The traits as static functions, which the interface ReproOp asks."""
        wide = [i for i, operand in enumerate(self.operands) if operand[3]]
        traits = [t for t in TRAITS if t in self.keys.get("traits", [])]
        if self.rule == "broadcast":
            traits = ["pointwise"]
        made = [f"static bool {trait}() {{ return true; }}" for trait in traits]
        if not wide:
            return made
        if wide != list(range(wide[0], len(self.operands))) and len(wide) > 1:
            raise Wrong(f"{self.name}: one operand widens, or all from one on do")
        if len(wide) == len(self.operands):
            return ["static bool widens(unsigned) { return true; }", *made]
        compared = ">=" if wide[-1] == len(self.operands) - 1 else "=="
        return [
            f"static bool widens(unsigned operand) {{ return operand {compared} {wide[0]}; }}",
            *made,
        ]

    @property
    def signature(self):
        """(OPERANDS) {ATTRIBUTES} as spec/operations.md has them."""
        wrote = {"": "{}", "?": "[{}]", "*": "{}…"}
        operands = ", ".join(wrote[count].format(name) for name, count, _, _ in self.operands)
        names = ", ".join(name for name, _, kind, _ in self.attributes if kind != "string")
        return self.keys.get("signature", f"({operands})" + f" {{{names}}}" * bool(names))

    def td(self):
        made = self.declarations()
        base = "Repro_InferOp" if self.inferred else "Repro_Op"
        body = []
        if len(made) == 1:
            body.append(f'  let extraClassDeclaration = "{made[0]}";\n')
        elif made:
            lines = "".join(f"    {line}\n" for line in made)
            body.append(f"  let extraClassDeclaration = [{{\n{lines}  }}];\n")
        if self.rule == "verified":
            body.append("  let hasVerifier = 1;\n")
        arguments = ", ".join(self.arguments())
        head = f'def Repro_{self.class_name}Op : {base}<"{self.name}",\n    (ins {arguments})>'
        return head + (" {\n" + "".join(body) + "}\n" if body else ";\n")


def read(root):
    """The operations by name, the choices, and the operations of each room in the file's order."""
    choices = list(tomllib.loads((root / "src/ops/choices.toml").read_text()))
    entries = {}
    for path in sorted(root.glob("src/ops/*/ops.toml")):
        listed, room = tomllib.loads(path.read_text()), path.parent.name
        kinds = listed.pop("kind", {})
        for name, keys in listed.items():
            where = f"src/ops/{room}/ops.toml: [{name}]"
            if name in entries:
                raise Wrong(f"{where}: src/ops/{entries[name].room}/ops.toml has this name, too")
            if "kind" in keys and keys["kind"] not in kinds:
                raise Wrong(f"{where}: there is no [kind.{keys['kind']}]")
            keys = kinds.get(keys.get("kind"), {}) | keys
            entries[name] = Operation(name, room, keys, where)
    defaults = {}  # functions of several operations of a room read the struct of one
    for op in entries.values():
        for name, _, _, default in op.attributes:
            if default and defaults.setdefault((op.room, name), default) != default:
                raise Wrong(f"{op.name}: {name} has another default than in its room")
    rooms = {}
    for entry in entries.values():
        rooms.setdefault(entry.room, []).append(entry)
    return [entries[name] for name in sorted(entries)], choices, rooms


def opset(operations, choices):
    """base/opset.h and base/attribute_types.h as tables."""
    types = {}
    for op in operations:
        for name, _, kind, _ in op.attributes:
            if types.setdefault(name, kind) != kind:
                raise Wrong(
                    f"{op.name}: attribute {name} has another type than in another operation"
                )
    ops = "".join(
        f'    {{"{o.name}", {o.version}, "{o.numerics}", "{o.room}", "{o.keys.get("kind", "")}"}},\n'
        for o in operations
    )
    splits = "".join(
        f'    {{"{o.name}", "{o.keys["split"]}"}},\n' for o in operations if "split" in o.keys
    )
    named = '", "'.join(choices)
    attributes = "".join(f'    {{"{n}", AttributeType::{types[n]}}},\n' for n in sorted(types))
    defaults = "".join(
        f'    {{"{op.name}", "{name}", {i64 or 0}, {f32 or "0.0"}f}},\n'
        for op in operations
        for name, i64, f32 in op.defaults()
    )
    return f"""#include "base/attribute_types.h"
#include "base/opset.h"

namespace invar {{
static constexpr OpInfo kOps[] = {{
{ops}}};
std::span<const OpInfo> opset() {{ return kOps; }}
const OpInfo* op_info(std::string_view op) {{
  for (const OpInfo& o : kOps)
    if (o.op == op) return &o;
  return nullptr;
}}
static constexpr std::string_view kChoices[] = {{"{named}"}};
std::span<const std::string_view> choices() {{ return kChoices; }}
static constexpr OpSplit kSplits[] = {{
{splits}}};
std::span<const OpSplit> op_splits() {{ return kSplits; }}
static constexpr AttributeInfo kAttributes[] = {{
{attributes}}};
std::span<const AttributeInfo> attribute_infos() {{ return kAttributes; }}
static constexpr AttributeDefault kDefaults[] = {{
{defaults}}};
AttributeDefault attribute_default(std::string_view op, std::string_view name) {{
  for (const AttributeDefault& d : kDefaults)
    if (d.op == op && d.name == name) return d;
  return {{op, name, 0, 0}};
}}
}}  // namespace invar
"""


def table(room, operations):
    """X(kind, name, "Operator-opset", "attribute"...) for each operation, by parts."""
    macro, parts = f"INVAR_{room.upper()}", {}
    for op in operations:
        cells = [op.keys["kind"], op.name, f'"{op.keys.get("onnx", "")}"']
        cells += [f'"{attribute[0]}"' for attribute in op.attributes]
        parts.setdefault(op.keys["part"].upper(), []).append(f"  X({', '.join(cells)})")
    text = (
        f"// The operations of src/ops/{room}/ops.toml: X(kind, name, operator, attributes...).\n"
    )
    text += "#pragma once\n\n"
    for part, lines in parts.items():
        text += f"#define {macro}_{part}(X) \\\n" + " \\\n".join(lines) + "\n\n"
    return (
        text + f"#define {macro}(X) \\\n" + " \\\n".join(f"  {macro}_{p}(X)" for p in parts) + "\n"
    )


def attributes(rooms):
    """A header of structs for each room, and the file that reads them."""
    headers, included, readers = {}, "", ""
    for room, operations in rooms.items():
        structs, text = {}, ""
        for op in operations:
            name, members = f"{op.class_name}Attributes", tuple(op.members())
            if members in structs:
                text += f"using {name} = {structs[members]};\n"
            elif members:
                structs[members] = name
                text += f"struct {name} {{\n  explicit {name}(const AttributeReader&);\n"
                text += "".join(f"  {member}\n" for member, _ in members) + "};\n"
                readers += f"{name}::{name}(const AttributeReader& a) {{\n"
                readers += "".join(f"  {read}\n" for _, read in members) + "}\n"
        if structs and "kind" not in operations[0].keys:
            included += f'#include "ops/{room}/attributes.h"\n'
            headers[f"ops/{room}/attributes.h"] = (
                f"// The attributes of the operations of src/ops/{room}/ops.toml.\n#pragma once\n\n"
                f'#include "kernels/call.h"\n\nnamespace invar::ops {{\n{text}}}\n'
            )
    source = '#include "kernels/shapes/read_attributes.h"\n'
    source += f"{included}\nnamespace invar::ops {{\n{readers}}}\n"
    return headers | {"ops/attributes.cc": source}


def result_rules(rooms):
    """The rule of each operation, by ascending names."""
    included, declared, rows = "", "", []
    for room, operations in rooms.items():
        structs = {}  # of each rule of the room's own
        for op in operations:
            struct = f"ops::{op.class_name}Attributes" if tuple(op.members()) else ""
            if op.own and op.own not in structs:
                structs[op.own] = struct
                parameters = ", ".join(
                    ["InferredCall&"]
                    + [f"const {struct}&"] * bool(struct)
                    + ["int64_t"] * op.call.count(", ")
                )
                declared += f"Result<ValueType> infer_{op.own}({parameters});\n"
            struct = structs.get(op.own, struct)
            if not op.inferred:
                continue
            call = op.call.format(struct=", a" * bool(struct))
            made = f"const {struct} a(in.attributes); " * ("a" in re.findall(r"\w+", call))
            if op.dtype:
                call = f"with_elements({call}, DType::{op.dtype})"
            rows.append((op.name, f"[](InferredCall& in) {{ {made}return {call}; }}"))
        if "kind" not in operations[0].keys and any(list(op.members()) for op in operations):
            included += f'#include "ops/{room}/attributes.h"\n'
    table = "".join(f'    {{"{name}", {function}}},\n' for name, function in sorted(rows))
    return (
        f"// The rules of results' types that ops.toml names.\n{included}\n"
        f"namespace invar::compiler {{\n{declared}"
        "static constexpr std::pair<std::string_view, ResultRule> kResultRules[] = {\n"
        f"{table}}};\n}}\n"
    )


def torch_formats(operations):
    """The texts by which torch says operations."""
    rows = "".join(
        f'    {{"{op.name}", {json.dumps(op.keys["torch"])}}},\n'
        for op in operations
        if "torch" in op.keys
    )
    return (
        "// The texts that ops.toml has for torch.\n"
        "static constexpr std::pair<const char*, const char*> kTorchFormats[] = {\n"
        f"{rows}}};\n"
    )


def cmake(operations, choices):
    rooms = list(dict.fromkeys(o.room for o in operations))
    lines = [
        f"set(INVAR_OPS {' '.join(o.name for o in operations)})",
        f"set(INVAR_ROOMS {' '.join(rooms)})",
        f"set(INVAR_CHOICES {' '.join(choices)})",
    ]
    lines += [f"set(INVAR_ROOM_{o.name} {o.room})" for o in operations]
    for room in rooms:
        extended = [o.name for o in operations if o.room == room and o.keys.get("cpu_extension")]
        lines += [f"set(INVAR_EXTENDED_{room} {' '.join(extended)})"] if extended else []
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    import derivatives  # beside this file; who only reads the tables needs none

    root, out = map(Path, sys.argv[1:])
    try:
        operations, choices, rooms = read(root)
        made = {
            "ops.cmake": cmake(operations, choices),
            "opset/opset.cc": opset(operations, choices),
        }
        for room, entries in rooms.items():
            made[f"ops/{room}/op.td"] = "".join(op.td() for op in entries)
            if all("kind" in op.keys for op in entries):
                made[f"ops/{room}/table.h"] = table(room, entries)
        made |= attributes(rooms)
        made["result_rules.inc"] = result_rules(rooms)
        made["torch_formats.inc"] = torch_formats(operations)
        made["derivatives.py"] = derivatives.module(operations)
    except (Wrong, ValueError, KeyError) as wrong:
        print(f"tools/ops/generate.py: {wrong}", file=sys.stderr)
        return 1
    for name, text in made.items():
        file = out / name
        if not file.is_file() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
