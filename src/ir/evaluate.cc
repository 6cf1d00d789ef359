#include "ir/evaluate.h"

#include "base/endian.h"
#include "ir/bytes.h"
#include "mlir/IR/TypeUtilities.h"
#include "num/env.h"
#include "ops/kernel.h"

namespace invar::ir {
namespace {
using namespace mlir;

struct alignas(64) Line {
  std::byte bytes[64];
};
using Memory = std::vector<Line>;
Memory memory(size_t bytes) {
  return Memory(bytes / sizeof(Line) + 1);
}

// What a value of this type is to a kernel; nothing where it is none, or large.
std::optional<ops::View> view_of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  const std::optional<DType> dtype = tensor ? dtype_of(tensor.getElementType()) : std::nullopt;
  if (!dtype || tensor.getRank() > ops::kMaxRank || !tensor.hasStaticShape()) return std::nullopt;
  ops::View view;
  view.dtype = *dtype, view.rank = static_cast<int>(tensor.getRank());
  int64_t bytes = static_cast<int64_t>(size_of(*dtype));
  for (int d = 0; d < view.rank; ++d) {
    view.dim[d] = tensor.getDimSize(d);
    // Products of dimensions are formed beside one of 0, too.
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(view.dim[d], 1), &bytes) || bytes > kSmallConstant)
      return std::nullopt;
  }
  return view;
}

}  // namespace

Result<Attrs> attrs_of(llvm::ArrayRef<NamedAttribute> given) {
  Attrs attrs;
  for (NamedAttribute a : given) {
    std::string key = a.getName().str();
    if (auto v = dyn_cast<IntegerAttr>(a.getValue()))
      attrs[key] = v.getInt();
    else if (auto v = dyn_cast<FloatAttr>(a.getValue()); v && v.getType().isF32())
      attrs[key] = F32Bits{static_cast<uint32_t>(v.getValue().bitcastToAPInt().getZExtValue())};
    else if (auto v = dyn_cast<StringAttr>(a.getValue()))
      attrs[key] = v.str();
    else if (auto v = dyn_cast<DenseI64ArrayAttr>(a.getValue()))
      attrs[key] = v.asArrayRef().vec();
    else
      return Error{Code::internal, "attribute \"" + key + "\" of a kind that plans do not have"};
  }
  return attrs;
}

std::optional<std::string> constant_of(Value v) {
  auto weight = v.getDefiningOp<ReproWeightOp>();
  if (!weight || !view_of(v.getType()) || !weight.getData() || weight.getTransposed()) return std::nullopt;
  return bytes_from_hex(*weight.getData());
}

std::optional<std::string> evaluate(Operation* op) {
  std::vector<std::string> operands;
  for (Value v : op->getOperands()) {
    std::optional<std::string> bytes = constant_of(v);
    if (!bytes) return bytes;
    operands.push_back(*std::move(bytes));
  }
  return evaluate(op, operands);
}

std::optional<std::string> evaluate(Operation* op, llvm::ArrayRef<std::string> operands) {
  const std::string_view name(op->getName().stripDialect());
  const ops::Kernel* kernel = ops::find(name, "reference");
  const Result<Attrs> attrs = attrs_of(op->getAttrs());
  if (!kernel || kernel->state_bytes || !attrs || op->getNumOperands() == 0) return std::nullopt;
  std::vector<ops::View> in;
  std::vector<Memory> data;
  for (auto [v, bytes] : llvm::zip(op->getOperands(), operands)) {
    std::optional<ops::View> view = view_of(v.getType());
    if (!view) return std::nullopt;
    const size_t size = static_cast<size_t>(view->elements()) * size_of(view->dtype);
    if (bytes.size() != size) return std::nullopt;
    view->data = data.emplace_back(memory(size)).data();
    copy_little_endian(view->data, bytes.data(), size, size_of(view->dtype));
    in.push_back(*view);
  }
  std::optional<ops::View> out = view_of(op->getResult(0).getType());
  if (!out) return std::nullopt;
  const size_t size = static_cast<size_t>(out->elements()) * size_of(out->dtype);
  Memory result = memory(size);
  out->data = result.data();
  ops::Call call{in, {&*out, 1}, &*attrs};
  ops::Stray stray;
  if (kernel->check(call) || (kernel->stray && kernel->stray(call, stray))) return std::nullopt;
  Memory shared = memory(kernel->shared_bytes ? kernel->shared_bytes(call) : 0);
  Memory scratch = memory(kernel->scratch_bytes ? kernel->scratch_bytes(call) : 0);
  call.shared = shared.data();
  num::mend_arithmetic_env();
  for (int phase = 0; phase < kernel->phases; ++phase)
    if (const int64_t units = kernel->units(call, phase); units > 0)
      kernel->run(call, phase, 0, units, scratch.data());
  std::string bytes(size, '\0');
  copy_little_endian(bytes.data(), out->data, size, size_of(out->dtype));
  return bytes;
}

}  // namespace invar::ir
