#include "compiler/lowering/rule_registry.h"

#include "base/hash/sha256.h"
#include "base/opset.h"
#include "compiler/dialects/constant_data.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"
#include "mlir/IR/TypeUtilities.h"
#include "rooms.inc"

namespace invar::compiler {
namespace {

std::string quoted(llvm::StringRef name) {
  return "\"" + name.str() + "\"";
}

template <class T>
Error wrong_kind(llvm::StringRef name, const T& kind) {
  return bad_input("attribute " + quoted(name) + " is not " + kind);
}

}  // namespace

const Rooms& Rooms::all() {
  static const Rooms rooms = [] {
    Rooms r;
#define INVAR_ROOM(name) import_##name(r);
    INVAR_ROOMS
#undef INVAR_ROOM
#define INVAR_DECOMPOSITION(name) decompose_##name(r);
    INVAR_DECOMPOSITIONS
#undef INVAR_DECOMPOSITION
    return r;
  }();
  return rooms;
}

const Rooms::Entry* Rooms::find(llvm::StringRef domain, llvm::StringRef op_type) const {
  bool standard = domain.empty() || domain == "ai.onnx";
  auto it = rules_.find(standard ? op_type.str() : (domain + "." + op_type).str());
  return it == rules_.end() ? nullptr : &it->second;
}

Status Node::expect(unsigned least, unsigned most, std::initializer_list<llvm::StringRef> attributes,
                    unsigned results) {
  if (Status parts = expect_parts(least, most, attributes, results); !parts) {
    looked_ = false;  // whatever the rule did before: this needs no types
    return parts;
  }
  for (Value v : op_.getInputs())
    if (!typeless_ && !isa<RankedTensorType, AbsentType>(v.getType()))
      return not_covered("an operand has no known shape and element type");
  return {};
}

Status Node::expect_parts(unsigned least, unsigned most, std::initializer_list<llvm::StringRef> attributes,
                          unsigned results) const {
  for (unsigned i = 0; i < least; ++i)
    if (!has(i)) return bad_input("operand " + std::to_string(i) + " is missing");
  for (unsigned i = most; i < op_.getInputs().size(); ++i)
    if (has(i)) return not_covered("operand " + std::to_string(i) + " is not covered");
  for (unsigned i = results; i < op_.getOutputs().size(); ++i)
    if (!out(i).use_empty()) return not_covered("result " + std::to_string(i) + " is not covered");
  if (op_.getOutputs().empty()) return bad_input("it has no results");
  for (NamedAttribute a : op_.getParams())
    if (std::find(attributes.begin(), attributes.end(), a.getName().getValue()) == attributes.end())
      return not_covered("attribute " + quoted(a.getName()) + " is not covered");
  if (auto other = op_.getOtherParams())
    for (NamedAttribute a : *other)
      return not_covered("attribute " + quoted(a.getName()) + " of kind " +
                         cast<StringAttr>(a.getValue()).str() + " is not covered");
  return {};
}

Value Node::in(unsigned i) const {
  if (typeless_ && has(i)) {
    looked_ = true;
    // Rules expect tensors; what they make of this one is dropped.
    return OpBuilder(op_)
        .create<UnrealizedConversionCastOp>(
            op_.getLoc(), RankedTensorType::get({}, Float32Type::get(op_.getContext())), ValueRange())
        .getResult(0);
  }
  if (i < op_.getInputs().size()) return op_.getInputs()[i];
  return OpBuilder(op_).create<AbsentOp>(op_.getLoc(), AbsentType::get(op_.getContext()));
}

bool Node::has(unsigned i) const {
  return i < op_.getInputs().size() && !isa<AbsentType>(op_.getInputs()[i].getType());
}

Result<int64_t> Node::i(llvm::StringRef name, int64_t fallback) const {
  Attribute a = attribute(name);
  if (!a) return fallback;
  if (auto v = dyn_cast<IntegerAttr>(a)) return v.getInt();
  return wrong_kind(name, "an integer");
}

Result<float> Node::f(llvm::StringRef name, float fallback) const {
  Attribute a = attribute(name);
  if (!a) return fallback;
  if (auto v = dyn_cast<FloatAttr>(a)) return v.getValue().convertToFloat();
  return wrong_kind(name, "a float");
}

Result<std::vector<int64_t>> Node::ints(llvm::StringRef name) const {
  Attribute a = attribute(name);
  if (!a) return std::vector<int64_t>{};
  if (auto v = dyn_cast<DenseI64ArrayAttr>(a)) return v.asArrayRef().vec();
  return wrong_kind(name, "a list of integers");
}

Status Node::only(llvm::StringRef name, int64_t value) const {
  INVAR_TRY(int64_t v, i(name, value));
  if (v == value) return {};
  return not_covered("attribute " + quoted(name) + " is " + std::to_string(v) + "; covered is " +
                     std::to_string(value));
}

Status Node::only(llvm::StringRef name, float value) const {
  INVAR_TRY(float v, f(name, value));
  if (v == value) return {};
  return not_covered("attribute " + quoted(name) + " is " + std::to_string(v) + "; covered is " +
                     std::to_string(value));
}

Result<std::vector<int64_t>> Node::constants(unsigned i) const {
  auto weight = in(i).getDefiningOp<ReproWeightOp>();
  if (!weight || !weight.getData()) return unknown(i);
  auto type = cast<RankedTensorType>(weight.getType());
  bool wide = type.getElementType().isSignlessInteger(64);
  if (type.getRank() > 1) return bad_input("operand " + std::to_string(i) + " is not a list");
  if (!wide && !type.getElementType().isSignlessInteger(32))
    return not_covered("operand " + std::to_string(i) + " is neither i64 nor i32");
  return integers_from_hex(*weight.getData(), wide ? 8 : 4);
}

Error Node::unknown(unsigned i, llvm::StringRef what) const {
  return unknown(in(i), "operand " + std::to_string(i) + " is not " + what.str() + " in the model file");
}

Error Node::unknown(Value value, std::string message) const {
  auto function = cast<func::FuncOp>(end_->getParentOp());
  llvm::BitVector inputs(function.getNumArguments());
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t at = 0; at < reached.size(); ++at) {
    if (auto argument = dyn_cast<BlockArgument>(reached[at])) inputs.set(argument.getArgNumber());
    if (Operation* op = reached[at].getDefiningOp())
      for (Value v : op->getOperands()) reached.insert(v);
  }
  for (unsigned input : inputs.set_bits())
    if (auto name = function.getArgAttrOfType<StringAttr>(input, "onnx.name"))
      message += (input == static_cast<unsigned>(inputs.find_first())
                      ? "; give what it depends on when compiling: --bind "
                      : " --bind ") +
                 name.str() + "=FILE.npy";
  return not_covered(message);
}

std::optional<std::string> Node::bytes(unsigned i) const {
  auto weight = in(i).getDefiningOp<ReproWeightOp>();
  return weight && weight.getData() ? bytes_from_hex(*weight.getData()) : std::nullopt;
}

Value make_constant(OpBuilder& build, Location loc, llvm::StringRef bytes, DType dtype,
                    llvm::ArrayRef<int64_t> shape) {
  std::string hex = hex_from_bytes(std::string_view(bytes));
  // Names are unique in a plan, so one says what it names.
  std::string name = std::string(name_of(dtype)) + " ";
  for (size_t d = 0; d < shape.size(); ++d)
    name += std::to_string(shape[d]) + (d + 1 == shape.size() ? " " : "x");
  name += hex.size() <= 32 ? hex : to_hex(sha256(hex));
  return build.create<ReproWeightOp>(
      loc, RankedTensorType::get(shape, type_of(build.getContext(), dtype)), build.getStringAttr(name),
      build.getStringAttr(""), build.getI64IntegerAttr(0),
      build.getI64IntegerAttr(static_cast<int64_t>(bytes.size())), build.getStringAttr(hex), UnitAttr());
}

Value Node::constant(llvm::StringRef bytes, DType dtype, llvm::ArrayRef<int64_t> shape) {
  return make_constant(build_, op_.getLoc(), bytes, dtype, shape);
}

Value Node::constant(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  std::string bytes;
  for (int i = 0; i < 4; ++i, bits >>= 8) bytes += static_cast<char>(bits);
  return constant(bytes, DType::f32);
}

Value Node::constant(llvm::ArrayRef<int64_t> list) {
  return constant(bytes_of(list, 8), DType::i64, static_cast<int64_t>(list.size()));
}

Value Node::sizes(llvm::ArrayRef<Polynomial> list, llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  for (const Polynomial& p : list) {
    if (const std::optional<int64_t> n = p.constant()) numbers.push_back(*n);
    texts.push_back(p.text());
  }
  if (numbers.size() == list.size()) return constant(bytes_of(numbers, 8), DType::i64, shape);
  SmallVector<llvm::StringRef> refs(texts.begin(), texts.end());
  return build_.create<ReproSizesOp>(op_.getLoc(), RankedTensorType::get(shape, build_.getI64Type()),
                                     build_.getStrArrayAttr(refs));
}

Value Node::settled(Operation* made) {
  std::optional<std::string> bytes;
  if (ports_.evaluated < kMostEvaluated) bytes = evaluate(made);
  auto type = cast<RankedTensorType>(made->getResult(0).getType());
  if (!bytes) {
    const std::optional<std::vector<Polynomial>> list = evaluate_sizes(made);
    if (!list) return made->getResult(0);
    if (type.getElementType().isSignlessInteger(64)) {
      Value known = sizes(*list, type.getShape());
      made->erase();
      return known;
    }
    std::vector<int64_t> numbers;
    for (const Polynomial& p : *list) {
      if (!p.constant()) return made->getResult(0);
      numbers.push_back(*p.constant());
    }
    bytes = bytes_of(numbers, size_of(*dtype_of(type.getElementType())));
  }
  ports_.evaluated += static_cast<int64_t>(bytes->size()) + 64;
  Value known = constant(*bytes, *dtype_of(type.getElementType()), type.getShape());
  made->erase();
  return known;
}

Result<int64_t> Node::axis(int64_t axis, size_t rank) {
  int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return bad_input("axis " + std::to_string(axis) + " is outside rank " + std::to_string(r));
  return axis < 0 ? axis + r : axis;
}

Operation* make_op(OpBuilder& build, Location loc, llvm::StringRef op, ValueRange operands,
                   llvm::ArrayRef<NamedAttribute> attrs, Type result) {
  OperationState state(loc, op);
  state.addOperands(operands);
  state.addAttributes(attrs);
  std::string_view room(op);
  room.remove_prefix(ReproDialect::getDialectNamespace().size() + 1);
  if (const OpInfo* info = op_info(room)) {
    state.addAttribute("numerics", build.getStringAttr(llvm::StringRef(info->numerics)));
    state.addAttribute("version", build.getI64IntegerAttr(info->version));
  }
  state.addTypes(result);
  return build.create(state);
}

Result<Operation*> make_checked(OpBuilder& build, Location loc, llvm::StringRef op, ValueRange operands,
                                llvm::ArrayRef<NamedAttribute> attrs, Type type,
                                std::optional<Forced>* forced) {
  MLIRContext* context = build.getContext();
  std::string said;
  ScopedDiagnosticHandler listen(context, [&](Diagnostic& d) {
    if (!said.empty()) return;
    said = d.str();
    if (!forced) return;
    for (Diagnostic& note : d.getNotes()) {
      const llvm::ArrayRef<DiagnosticArgument> words = note.getArguments();
      if (words.size() == 2) *forced = Forced{words[0].getAsString().str(), words[1].getAsString().str()};
    }
  });
  Operation* made = make_op(build, loc, op, operands, attrs, type ? type : operands[0].getType());
  // Element types and other constraints of the operation (after the shapes fit) are a matter of coverage.
  bool fits = true;
  if (!type) {
    auto infer = dyn_cast<InferTypeOpInterface>(made);
    if (!infer) said = kRefusal + std::string("the type of its result does not follow from its operands");
    SmallVector<Type> types;
    fits = infer && succeeded(infer.inferReturnTypes(context, made->getLoc(), made->getOperands(),
                                                     made->getAttrDictionary(), made->getPropertiesStorage(),
                                                     made->getRegions(), types));
    if (fits) made->getResult(0).setType(types[0]);
  }
  bool shapes_fit = fits;
  if (fits) {
    auto registered = made->getName().getRegisteredInfo();
    fits = registered && succeeded(registered->verifyInvariants(made));
  }
  if (fits) return made;
  made->erase();
  llvm::StringRef why = said;
  if (why.consume_front(kRefusal) || shapes_fit) return not_covered(why.str());
  return bad_input(why.str());
}

Result<Value> Node::make(llvm::StringRef op, ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs,
                         Type type) {
  std::optional<Forced> forced;
  const Result<Operation*> made = make_checked(build_, op_.getLoc(), op, operands, attrs, type, &forced);
  if (made) return settled(*made);
  if (type || made.error().code != Code::not_covered || forced) return refused(made.error(), forced);
  Operation* probe = make_op(build_, op_.getLoc(), op, operands, attrs, operands[0].getType());
  const bool pointwise = cast<ReproOp>(probe).pointwise();
  probe->erase();
  if (!pointwise) return made.error();
  INVAR_TRY(const SmallVector<Value> spread, spread_at_run_time(operands));
  if (spread.empty()) return made.error();
  INVAR_TRY(Operation * wide, make_checked(build_, op_.getLoc(), op, spread, attrs, type));
  return settled(wide);
}

// Noted, for another attempt (settled.cc).
Error Node::refused(const Error& error, const std::optional<Forced>& forced) {
  if (forced) ports_.forced.emplace(forced->name, forced->size);
  return error;
}

Status Node::equal(const Extent& a, const Extent& b, llvm::StringRef what) {
  if (same(a, b)) return {};
  const std::string text = what.str() + ": " + text_of(a) + " and " + text_of(b);
  if (a.constant() && b.constant()) return bad_input(text);
  return refused(not_covered(text + " cannot be shown to be equal"), forced_by(a, b));
}

Status Node::replace(Value value) {
  replace(0, value);
  return {};
}

namespace {

Type wider(Type t, Widens how) {
  Builder build(t.getContext());
  if (t.isBF16() || t.isF16()) return build.getF32Type();
  auto integer = dyn_cast<IntegerType>(t);
  if (!integer || how == Widens::floats) return {};
  const unsigned bits = integer.getWidth();
  if (bits == 8 || bits == 16) return how == Widens::exact ? Type(build.getF32Type()) : build.getI32Type();
  if (!integer.isUnsigned() || how == Widens::exact) return {};
  if (bits == 32 || how == Widens::wrapping || how == Widens::ordered) return build.getI64Type();
  return {};
}

}  // namespace

Status Node::typed(llvm::StringRef variables) {
  auto [types, since] = variables.split('@');
  if (int64_t opset = 0; !since.getAsInteger(10, opset) && version() < opset) types = "";
  const auto [operands, results] = types.split('>');
  std::map<char, unsigned> first;  // operand of each letter
  for (unsigned i = 0; i < op_.getInputs().size(); ++i) {
    auto tensor = dyn_cast<RankedTensorType>(in(i).getType());
    if (!tensor) continue;
    const bool is_float = isa<FloatType>(tensor.getElementType());
    const char letter = types.empty() ? (is_float ? 'T' : '*') : i < operands.size() ? operands[i] : '*';
    if (letter == '*') continue;
    const auto [it, is_new] = first.emplace(letter, i);
    const Type other = element_of(in(it->second));
    if (!is_new && tensor.getElementType() != other)
      return bad_input("operands " + std::to_string(it->second) + " and " + std::to_string(i) +
                       " of different element types: " + text_of_type(other) + " and " +
                       text_of_type(tensor.getElementType()) + "; ONNX asks for one");
  }
  for (unsigned i = 0; i < results_.size(); ++i) {
    const char letter = types.empty() ? 'T' : i < results.size() ? results[i] : '*';
    auto it = first.find(letter);
    if (it == first.end() && letter != '*') it = first.find('T');  // its operand is absent: as the others
    types_.push_back(it == first.end() ? Type() : element_of(in(it->second)));
  }
  return {};
}

Value Node::converted(Value x, Type element) {
  return settled(make_op(build_, op_.getLoc(), CastOp::getOperationName(), x, {},
                         tensor_of(shape_of(x.getType()), element)));
}

Value Node::flipped(Value x) {
  Value top = constant(llvm::StringRef("\0\0\0\0\0\0\0\x80", 8), DType::u64);
  return settled(make_op(build_, op_.getLoc(), BitwiseXorOp::getOperationName(), {x, top}, {}, x.getType()));
}

bool Node::widen(Widens how) {
  Type
      first;  // of the operands that are floats, or, where none of these is narrow, of those that become wider
  bool any = false;
  for (Value v : op_->getOperands())
    if (auto t = dyn_cast<RankedTensorType>(v.getType()); t && isa<FloatType>(t.getElementType())) {
      if (!first) first = t.getElementType();
      any |= t.getElementType().isBF16() || t.getElementType().isF16();
    }
  if (!any) first = {};
  for (OpOperand& operand : op_->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    const Type wide = type ? wider(type.getElementType(), any ? Widens::floats : how) : Type();
    if (!wide) continue;
    if (!any && first && first != type.getElementType()) return false;
    if (!any) first = type.getElementType();
  }
  if (!first) return false;
  std::fill(results_.begin(), results_.end(), Replacement{});
  if (any)
    how = Widens::floats;
  else
    narrow_ = first, wide_ = wider(first, how);
  flips_ = first.isUnsignedInteger(64) && how == Widens::ordered;
  for (OpOperand& operand : op_->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (Type wide = type ? wider(type.getElementType(), how) : Type())
      operand.set(converted(flips_ ? flipped(operand.get()) : operand.get(), wide));
  }
  return true;
}

void Node::commit() {
  for (size_t i = 0; i < results_.size(); ++i) {
    auto [value, stays_wide] = results_[i];
    if (!value) continue;
    const Type declared = i < types_.size() ? types_[i] : Type();
    if (declared && !stays_wide && element_of(value).isF32() && (declared.isF16() || declared.isBF16())) {
      value = converted(value, declared);
    } else if (narrow_ && !stays_wide && element_of(value) == wide_) {
      value = converted(value, narrow_);
      if (flips_) value = flipped(value);
    }
    out(static_cast<unsigned>(i)).replaceAllUsesWith(value);
  }
}

bool Node::remembers(unsigned in_index, unsigned out_index) const {
  auto past = dyn_cast_or_null<BlockArgument>(in(in_index));
  func::ReturnOp end = end_;  // MLIR handles are never const
  return !ports_.stateless && past && past.getOwner()->getParentOp() == end->getParentOp() &&
         past.hasOneUse() && out_index < results() && out(out_index).hasOneUse() &&
         *out(out_index).user_begin() == end.getOperation();
}

std::string Node::memory(unsigned in_index, unsigned out_index) {
  const unsigned past = cast<BlockArgument>(in(in_index)).getArgNumber();
  ports_.arguments.set(past);
  ports_.results.set(out(out_index).use_begin()->getOperandNumber());
  return cast<func::FuncOp>(end_->getParentOp()).getArgAttrOfType<StringAttr>(past, "onnx.name").str();
}

namespace {

LogicalResult add_shape(std::optional<Location> loc, Shape& x, const Shape& y) {
  if (std::optional<Shape> shape = broadcast(x, y)) {
    x = *shape;
    return success();
  }
  Extent one = Extent::of(1);
  bool provable = false;
  for (size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
    const Extent &p = x[x.size() - i], &q = y[y.size() - i];
    provable |= p.constant() && q.constant() && p != q && p != one && q != one;
  }
  std::string shapes = "shapes " + text_of(x) + " and " + text_of(y);
  return provable ? mismatch(loc, shapes + " do not broadcast")
                  : refuse(loc, shapes + " cannot be shown to broadcast");
}

Type widened(Value v) {
  Type t = getElementTypeOrSelf(v.getType());
  return t.isBF16() || t.isF16() ? Float32Type::get(t.getContext()) : t;
}

}  // namespace

LogicalResult infer_elementwise(std::optional<Location> loc, ValueRange operands, bool truth,
                                SmallVectorImpl<Type>& out) {
  Shape shape;
  for (Value v : operands)
    if (failed(add_shape(loc, shape, shape_of(v.getType())))) return failure();
  Value last = operands.back();
  Type element = widened(last);
  // A first operand of three is a condition.
  for (Value v : operands.drop_front(operands.size() == 3)) {
    if (widened(v) == element) continue;
    const std::string types = "operands of different element types: " + text_of_type(element_of(v)) +
                              " and " + text_of_type(element_of(last));
    // Rules compose with constants of f32.
    return element.isF64() || widened(v).isF64() ? refuse(loc, types) : mismatch(loc, types);
  }
  out.push_back(tensor_of(shape, truth ? IntegerType::get(element.getContext(), 1) : element));
  return success();
}

}  // namespace invar::compiler
