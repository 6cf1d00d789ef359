#include "compiler/lowering/node_expansion.h"

#include <bit>

#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

bool NodeExpansion::has(unsigned i) const {
  return i < op_.getInputs().size() && !isa<AbsentType>(op_.getInputs()[i].getType());
}

Value NodeExpansion::in_or_absent(unsigned i) {
  if (i < op_.getInputs().size()) return in(i);
  return build_.create<AbsentOp>(op_.getLoc(), AbsentType::get(build_.getContext()));
}

std::optional<int64_t> NodeExpansion::rank_of(Value v) {
  const auto type = dyn_cast<RankedTensorType>(v.getType());
  return type ? std::optional(type.getRank()) : std::nullopt;
}

int64_t NodeExpansion::int_attr(llvm::StringRef name, int64_t fallback) const {
  const auto v = dyn_cast_or_null<IntegerAttr>(attribute(name));
  return v ? v.getInt() : fallback;
}
float NodeExpansion::float_attr(llvm::StringRef name, float fallback) const {
  const auto v = dyn_cast_or_null<FloatAttr>(attribute(name));
  return v ? static_cast<float>(v.getValueAsDouble()) : fallback;
}

SmallVector<NamedAttribute> NodeExpansion::attributes(std::initializer_list<llvm::StringRef> without) const {
  SmallVector<NamedAttribute> left;
  for (const NamedAttribute a : op_.getParams())
    if (llvm::find(without, a.getName().getValue()) == without.end()) left.push_back(a);
  return left;
}

Value NodeExpansion::constant(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> 8 * i & 0xff);
  return make_constant(build_, op_.getLoc(), bytes, DType::f32, {});
}
Value NodeExpansion::constant(llvm::ArrayRef<int64_t> list) {
  std::string bytes;
  for (const int64_t v : list)
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<uint64_t>(v) >> 8 * i & 0xff);
  return make_constant(build_, op_.getLoc(), bytes, DType::i64, {static_cast<int64_t>(list.size())});
}

SmallVector<Value> NodeExpansion::nodes(llvm::StringRef op_type, int64_t opset, ValueRange in,
                                        llvm::ArrayRef<NamedAttribute> attrs, unsigned results) {
  const SmallVector<Type> types(results, UnknownType::get(build_.getContext()));
  auto made = build_.create<NodeOp>(op_.getLoc(), types, build_.getStringAttr(op_type), in, op_.getNameAttr(),
                                    build_.getStringAttr(""), build_.getI64IntegerAttr(opset),
                                    build_.getDictionaryAttr(attrs), DictionaryAttr(), ArrayAttr(), 0U);
  return SmallVector<Value>(made.getOutputs());
}

}  // namespace invar::compiler
