// Prints a module of the torch dialect as Python: a class of invar.modules.emitted.Module.
#include <algorithm>
#include <utility>

#include "compiler/dialects/origin.h"
#include "compiler/dialects/torch/template.h"
#include "compiler/emit/torch/module_names.h"
#include "compiler/emit/torch/torch_module.h"
#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {
namespace {
using namespace mlir;

constexpr size_t kLongestHeading = 100;

class ModulePrinter {
 public:
  ModulePrinter(ModuleOp module, std::string digest) : names_(module), digest_(std::move(digest)) {
    unmet_ = names_.of_control_flow();
    std::set<std::string> late = names_.of_values();
    late.insert(unmet_.begin(), unmet_.end());
    for (const DimExpr& dim : names_.computed_dims()) {
      std::set<std::string> missing;
      dim.all_symbols([&](const std::string& symbol) {
        if (late.contains(symbol)) missing.insert(symbol);
        return true;
      });
      if (dim.text().find('-') != std::string::npos && !missing.empty()) waiting_.emplace_back(dim, missing);
    }
  }
  Result<std::string> run();

 private:
  using Lines = std::vector<std::string>;
  Lines block(func::FuncOp);
  std::string computation(Operation&, int number);
  std::string primitive(TorchPrimitiveOp);
  std::string expression(TorchExpressionOp);
  Lines flow(TorchFlowOp, int number);
  std::string loop(TorchFlowOp, const std::string& body);
  Lines body(const std::string& name, func::FuncOp);
  void name_weights(func::FuncOp);
  std::string freed(Operation&);
  std::string comment(Operation&);
  void add_heading(Operation&, Lines&);
  void add_sizes(ValueRange, Lines&);
  void add_size(const std::string& symbol, const std::string& text, Lines&);
  std::string forward();
  std::string docstring();
  std::string checks();
  std::string tables();

  ModuleNames names_;
  std::string digest_;
  std::set<std::string> unmet_;  // symbols that a shape will decide
  // Dimensions that may be less than 0, with the symbols whose sizes are not yet known.
  std::vector<std::pair<DimExpr, std::set<std::string>>> waiting_;
  std::string heading_;
  std::set<std::string> used_;  // of torch, functional, primitives, rooms
};

std::string port_name(func::FuncOp f, bool input, unsigned i) {
  auto name = input ? f.getArgAttrOfType<StringAttr>(i, "onnx.name")
                    : f.getResultAttrOfType<StringAttr>(i, "onnx.name");
  return name ? name.str() : (input ? "input" : "output") + std::to_string(i);
}

std::string indented(const std::string& line, int depth) {
  return line.empty() ? line : std::string(static_cast<size_t>(4 * depth), ' ') + line;
}

std::string ModulePrinter::primitive(TorchPrimitiveOp op) {
  used_.insert("primitives");
  std::vector<std::string> all;
  for (Value v : op.getInputs()) all.push_back(names_[v]);
  const Result<Attributes> attributes = kernel_attributes(op.getParams().getValue());
  if (attributes)
    for (const auto& [name, value] : *attributes) all.push_back(name + "=" + python::literal(value));
  if (op.getTyped()) {
    const auto type = cast<RankedTensorType>(op.getOut().getType());
    all.push_back("shape=" + names_.shape(shape_of(type)));
    all.push_back("dtype=\"" + std::string(name_of(*dtype_of(type.getElementType()))) + "\"");
  }
  return "primitives." + op.getOp().str() + "(" + python::join(all) + ")";
}

std::string ModulePrinter::expression(TorchExpressionOp op) {
  std::string text;
  const std::optional<TorchTemplate> parsed = TorchTemplate::parse(op.getText());  // verified
  for (const TorchTemplate::Piece& piece : parsed->pieces) {
    for (const char* module : {"torch", "functional", "rooms"})
      for (size_t at = 0; (at = piece.text.find(std::string(module) + ".", at)) != std::string::npos; ++at)
        if (at == 0 || !(std::isalnum(piece.text[at - 1]) || piece.text[at - 1] == '.')) used_.insert(module);
    text += piece.operand >= 0 ? names_[op.getInputs()[static_cast<unsigned>(piece.operand)]]
            : piece.dim        ? names_.expression(Dim::of(*piece.dim))
                               : piece.text;
  }
  return text;
}

std::string ModulePrinter::computation(Operation& op, int number) {
  auto call = dyn_cast<TorchPrimitiveOp>(op);
  const std::string text = call ? primitive(call) : expression(cast<TorchExpressionOp>(op));
  const std::string name = call ? call.getOp().str() : cast<TorchExpressionOp>(op).getOp().str();
  return names_.add(op.getResult(0), name + "_" + std::to_string(number)) + " = " + text;
}

// Frees values that no later operation reads.
std::string ModulePrinter::freed(Operation& op) {
  std::set<std::string> gone;
  for (Value v : op.getOperands()) {
    const bool last = llvm::all_of(v.getUsers(), [&](Operation* user) {
      return user == &op || (!user->hasTrait<OpTrait::IsTerminator>() &&
                             (user->isBeforeInBlock(&op) || isa<TorchSizeOp>(user)));
    });
    if (last && !isa<BlockArgument>(v) && !v.getDefiningOp<TorchWeightOp>()) gone.insert(names_[v]);
  }
  return gone.empty() ? "" : "; del " + python::join({gone.begin(), gone.end()});
}

std::string ModulePrinter::comment(Operation& op) {
  std::vector<std::string> types;
  for (Type type : op.getResultTypes()) types.push_back(names_.type_text(type));
  return "  # " + python::join(types);
}

// Exporters name nodes by the module that they come from, "/layers.0/mlp/MatMul" or
// "layers.0.mlp.silu": a comment where another begins.
void ModulePrinter::add_heading(Operation& op, Lines& lines) {
  const std::string name = origin_of(op.getLoc()).name;
  const size_t slash = name.find_last_of("/.");
  if (slash == std::string::npos || slash == 0) return;
  const std::string quoted = python::literal(std::string_view(name).substr(0, slash));
  const std::string heading = "# " + quoted.substr(1, quoted.size() - 2);
  if (heading == std::exchange(heading_, heading) || heading.size() > kLongestHeading) return;
  if (!lines.empty() && !lines.back().empty()) lines.emplace_back();
  lines.push_back(heading);
}

void ModulePrinter::add_size(const std::string& symbol, const std::string& text, Lines& lines) {
  lines.push_back(names_.symbol(symbol) + " = " + text);
  for (auto& [dim, missing] : waiting_)
    if (missing.erase(symbol) && missing.empty())
      lines.push_back("self.computed(" + names_.expression(Dim::of(dim)) + ", " +
                      python::literal(std::string_view(dim.text())) + ")");
}

// The sizes that these values decide, by their shapes and by their elements.
void ModulePrinter::add_sizes(ValueRange values, Lines& lines) {
  for (Value v : values)
    for (const auto& [axis, dim] : llvm::enumerate(shape_of(v.getType())))
      if (const std::string* symbol = dim.expr.as_symbol(); symbol && unmet_.erase(*symbol))
        add_size(*symbol, names_[v] + ".shape[" + std::to_string(axis) + "]", lines);
  for (Value v : values) {
    std::vector<TorchSizeOp> sizes;
    for (Operation* user : v.getUsers())
      if (auto size = dyn_cast<TorchSizeOp>(user)) sizes.push_back(size);
    std::sort(sizes.begin(), sizes.end(), [](auto a, auto b) { return a.getElement() < b.getElement(); });
    for (TorchSizeOp size : sizes)
      add_size(size.getName().str(),
               "self.size(" + names_[v] + ", " + std::to_string(size.getElement()) + ", " +
                   python::literal(std::string_view(size.getName())) + ")",
               lines);
  }
}

void ModulePrinter::name_weights(func::FuncOp function) {
  for (auto w : function.front().getOps<TorchWeightOp>()) names_.set(w.getOut(), "self." + names_.weight(w));
}

ModulePrinter::Lines ModulePrinter::block(func::FuncOp function) {
  Lines lines;
  name_weights(function);
  add_sizes(function.getArguments(), lines);
  int number = 0;
  for (Operation& op : function.front()) {
    if (isa<TorchPrimitiveOp, TorchExpressionOp, TorchFlowOp>(op)) add_heading(op, lines);
    if (auto control = dyn_cast<TorchFlowOp>(op))
      llvm::append_range(lines, flow(control, number));
    else if (isa<TorchPrimitiveOp, TorchExpressionOp>(op))
      lines.push_back(computation(op, number));
    else
      continue;
    ++number;
    lines.back() += freed(op) + comment(op);
    add_sizes(op.getResults(), lines);
  }
  return lines;
}

ModulePrinter::Lines ModulePrinter::body(const std::string& name, func::FuncOp function) {
  std::vector<std::string> takes, gives;
  for (BlockArgument a : function.getArguments())
    takes.push_back(names_.add(a, name + "_" + std::to_string(a.getArgNumber())));
  Lines lines = {"", "def " + name + "(" + python::join(takes) + "):"};
  for (const std::string& line : block(function)) lines.push_back(indented(line, 1));
  for (Value v : function.front().getTerminator()->getOperands()) gives.push_back(names_[v]);
  lines.push_back("    return " + (gives.size() == 1 ? python::tuple_of(gives) : python::join(gives)));
  lines.emplace_back();
  return lines;
}

std::string ModulePrinter::loop(TorchFlowOp op, const std::string& body) {
  std::vector<std::string> operands, rows;
  for (Value v : op.getInputs()) operands.push_back(names_[v]);
  const auto carried = static_cast<size_t>(op.getCarried());
  // A dimension of a row that only a step decides is 0 where there is no step.
  for (Value row : op.getOutputs().drop_front(carried)) {
    const Type type = row.getType();
    Shape shape = shape_of(type);
    shape.erase(shape.begin());
    for (Dim& dim : shape)
      if (!dim.expr.all_symbols([&](const std::string& s) { return !unmet_.contains(s); })) dim = Dim::of(0);
    used_.insert("torch");
    rows.push_back("(" +
                   std::string(python::dtype(*dtype_of(cast<RankedTensorType>(type).getElementType()))) +
                   ", " + names_.shape(shape) + ")");
  }
  const auto behind = operands.begin() + 2 + static_cast<std::ptrdiff_t>(carried);
  return "self.loop(" + body + ", " + operands[0] + ", " + operands[1] + ", " +
         python::tuple_of(std::vector(operands.begin() + 2, behind)) + ", " +
         python::tuple_of(std::vector(behind, operands.end())) + ", [" + python::join(rows) + "])";
}

// A loop or an if: its bodies as functions, and what runs them.
ModulePrinter::Lines ModulePrinter::flow(TorchFlowOp op, int number) {
  const bool loops = op.getOp() == "loop";
  const std::string like = op.getOp().str() + "_" + std::to_string(number);
  Lines lines;
  std::vector<std::string> bodies, results, operands;
  for (const auto [i, symbol] : llvm::enumerate(op.getBodies())) {
    bodies.push_back(names_.make(like + (loops ? "_body" : i == 0 ? "_then" : "_else")));
    llvm::append_range(lines, body(bodies.back(), names_.body(symbol)));
    if (lines[lines.size() - 1].empty() && i + 1 < op.getBodies().size()) lines.pop_back();
  }
  for (Value v : op.getInputs()) operands.push_back(names_[v]);
  const std::string text = loops ? loop(op, bodies[0])
                                 : "(" + bodies[0] + " if self.holds(" + operands[0] + ") else " + bodies[1] +
                                       ")(" + python::join({operands.begin() + 1, operands.end()}) + ")";
  for (Value v : op.getOutputs()) results.push_back(names_.add(v, like));
  lines.push_back((results.size() == 1 ? python::tuple_of(results) : python::join(results)) + " = " + text);
  return lines;
}

std::string ModulePrinter::docstring() {
  func::FuncOp main = names_.main();
  const auto shown = [&](bool input, unsigned i, Type type) {
    const std::string name = port_name(main, input, i);
    return indented((python::is_identifier(name) ? name : python::literal(std::string_view(name))) + ": " +
                        names_.type_text(type) + "\n",
                    3);
  };
  std::string text = indented("\"\"\"Args:\n", 2);
  for (const auto [i, type] : llvm::enumerate(main.getArgumentTypes())) text += shown(true, i, type);
  text += "\n" + indented("Returns:\n", 2);
  for (const auto [i, type] : llvm::enumerate(main.getResultTypes())) text += shown(false, i, type);
  return text + indented("\"\"\"\n", 2);
}

// The checks of the inputs, which also give the named dimensions their sizes.
std::string ModulePrinter::checks() {
  func::FuncOp main = names_.main();
  std::vector<std::string> inputs, sizes;
  std::string computed;
  for (BlockArgument a : main.getArguments()) {
    inputs.push_back(names_[a]);
    bool plain = true;
    const Shape shape = shape_of(a.getType());
    for (const Dim& dim : shape) {
      const std::string* symbol = dim.expr.as_symbol();
      plain = plain && (dim.constant() || symbol);
      if (symbol && !llvm::is_contained(sizes, names_.symbol(*symbol)))
        sizes.push_back(names_.symbol(*symbol));
    }
    if (!plain)
      computed += indented("self.expect(" +
                               python::literal(std::string_view(port_name(main, true, a.getArgNumber()))) +
                               ", " + inputs.back() + ", " + names_.shape(shape) + ")\n",
                           2);
  }
  const std::string left = sizes.empty() ? "" : python::join(sizes) + (sizes.size() == 1 ? ", = " : " = ");
  return indented(left + "self.sizes(" + python::join(inputs) + ")\n", 2) + computed;
}

std::string ModulePrinter::tables() {
  func::FuncOp main = names_.main();
  std::string text = "    INPUTS = {\n";
  const auto typed = [](Type type) {
    std::vector<std::string> dims;
    for (const Dim& dim : shape_of(type))
      dims.push_back(dim.constant() ? std::to_string(dim.value)
                                    : python::literal(std::string_view(dim.expr.text())));
    const DType dtype = *dtype_of(cast<RankedTensorType>(type).getElementType());
    return "(\"" + std::string(name_of(dtype)) + "\", " + python::tuple_of(dims);
  };
  for (BlockArgument a : main.getArguments())
    text += "        " + python::literal(std::string_view(port_name(main, true, a.getArgNumber()))) + ": " +
            typed(a.getType()) + "),\n";
  text += "    }\n    WEIGHTS = {\n";
  for (Operation* op : names_.weights()) {
    auto w = cast<TorchWeightOp>(op);
    text += "        \"" + names_.weight(w) + "\": " + typed(w.getType()) + ", " +
            python::literal(std::string_view(w.getFile())) + ", " + std::to_string(w.getOffset()) + "),\n";
  }
  return text + "    }\n";
}

std::string ModulePrinter::forward() {
  func::FuncOp main = names_.main();
  std::string text = "    def forward(self";
  for (BlockArgument a : main.getArguments())
    text += ", " + names_.add(a, port_name(main, true, a.getArgNumber()));
  text += "):\n" + docstring() + checks();
  for (const std::string& line : block(main)) text += indented(line, 2) + "\n";
  std::vector<std::string> outputs;
  for (Value v : main.front().getTerminator()->getOperands()) outputs.push_back(names_[v]);
  return text + indented("return " + python::join(outputs) + "\n", 2);
}

Result<std::string> ModulePrinter::run() {
  if (!names_.main()) return Error{Code::internal, "torch dialect: no function"};
  const auto operations = names_.main()->getAttrOfType<StringAttr>(kTorchOperations);
  if (!operations) return Error{Code::internal, "torch dialect: the function does not say its operations"};
  const std::string function = forward();
  std::string imports = used_.contains("torch") ? "import torch\n" : "";
  if (used_.contains("functional")) imports += "import torch.nn.functional as functional\n";
  if (!imports.empty()) imports += "\n";
  std::vector<std::string> of_invar;
  for (const char* name : {"primitives", "rooms"})
    if (used_.contains(name)) of_invar.emplace_back(name);
  if (!of_invar.empty()) imports += "from invar import " + python::join(of_invar) + "\n";
  const bool plain = operations.getValue() == "plain";
  return "\"\"\"Made by invar " INVAR_VERSION " of program " + digest_ + ": " +
         (plain ? "plain operations of torch" : "Invar's reproducible operations") + ".\"\"\"\n\n" + imports +
         "from invar.modules.emitted import Module\n\n\nclass Model(Module):\n" + tables() + "\n" + function;
}

}  // namespace

Result<std::string> print_torch_module(ModuleOp module, const std::string& digest) {
  return ModulePrinter(module, digest).run();
}

}  // namespace invar::compiler
