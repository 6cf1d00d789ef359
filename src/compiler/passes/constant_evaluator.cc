#include "compiler/passes/constant_evaluator.h"

#include "base/endian.h"
#include "compiler/dialects/constant_data.h"
#include "mlir/IR/TypeUtilities.h"
#include "num/env.h"
#include "kernels/kernel.h"

namespace invar::compiler {
using namespace mlir;

std::optional<ops::View> view_of(Type type, int64_t most) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  const std::optional<DType> dtype = tensor ? dtype_of(tensor.getElementType()) : std::nullopt;
  if (!dtype || tensor.getRank() > ops::kMaxRank || !tensor.hasStaticShape()) return std::nullopt;
  ops::View view;
  view.dtype = *dtype, view.rank = static_cast<int>(tensor.getRank());
  int64_t bytes = static_cast<int64_t>(size_of(*dtype));
  for (int d = 0; d < view.rank; ++d) {
    view.dim[d] = tensor.getDimSize(d);
    // Products of dimensions are formed beside one of 0, too.
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(view.dim[d], 1), &bytes) || bytes > most)
      return std::nullopt;
  }
  return view;
}

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

bool compute(Operation* op, const ops::Kernel& row, std::span<const ops::View> in, ops::View& out,
             Pool* pool) {
  const ops::Kernel* reference = ops::find(row.op, "reference");
  const Result<Attrs> attrs = attrs_of(op->getAttrs());
  if (!reference || reference->state_bytes || !attrs) return false;
  ops::Call call{in, {&out, 1}, &*attrs};
  ops::Stray stray;
  if (reference->check(call) || (reference->stray && reference->stray(call, stray))) return false;
  Memory shared = memory(row.shared_bytes ? row.shared_bytes(call) : 0);
  call.shared = shared.data();
  const int threads = pool ? pool->threads() : 1;
  const size_t bytes = row.scratch_bytes ? row.scratch_bytes(call) : 0;
  std::vector<Memory> scratch;
  for (int i = 0; i < threads; ++i) scratch.push_back(memory(bytes));
  for (int phase = 0; phase < row.phases; ++phase) {
    const auto run = [&](int worker, int64_t begin, int64_t end) {
      num::mend_arithmetic_env();
      row.run(call, phase, begin, end, scratch[static_cast<size_t>(worker)].data());
    };
    const int64_t units = row.units(call, phase);
    if (units > 0 && pool)
      pool->run(units, run);
    else if (units > 0)
      run(0, 0, units);
  }
  return true;
}

std::optional<std::string> evaluate(Operation* op, llvm::ArrayRef<std::string> operands) {
  const std::string_view name(op->getName().stripDialect());
  const ops::Kernel* kernel = ops::find(name, "reference");
  if (!kernel || op->getNumOperands() == 0) return std::nullopt;
  std::vector<ops::View> in;
  std::vector<Memory> data;
  for (auto [v, bytes] : llvm::zip(op->getOperands(), operands)) {
    std::optional<ops::View> view = view_of(v.getType());
    if (!view || bytes.size() != bytes_of(*view)) return std::nullopt;
    view->data = data.emplace_back(memory(bytes.size())).data();
    copy_little_endian(view->data, bytes.data(), bytes.size(), size_of(view->dtype));
    in.push_back(*view);
  }
  std::optional<ops::View> out = view_of(op->getResult(0).getType());
  if (!out) return std::nullopt;
  Memory result = memory(bytes_of(*out));
  out->data = result.data();
  if (!compute(op, *kernel, in, *out, nullptr)) return std::nullopt;
  std::string bytes(bytes_of(*out), '\0');
  copy_little_endian(bytes.data(), out->data, bytes.size(), size_of(out->dtype));
  return bytes;
}

}  // namespace invar::compiler
