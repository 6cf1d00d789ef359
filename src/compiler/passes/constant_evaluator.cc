// Runs kernels on constants at compile time.
#include "compiler/passes/constant_evaluator.h"

#include "base/endian.h"
#include "kernels/registry.h"
#include "mlir/IR/TypeUtilities.h"
#include "num/env.h"

namespace invar::compiler {
using namespace mlir;

std::optional<ops::View> static_view(Type type, int64_t max_bytes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  const std::optional<DType> dtype = tensor ? dtype_of(tensor.getElementType()) : std::nullopt;
  if (!dtype || tensor.getRank() > ops::kMaxRank || !tensor.hasStaticShape()) return std::nullopt;
  ops::View view;
  view.dtype = *dtype, view.rank = static_cast<int>(tensor.getRank());
  int64_t bytes = static_cast<int64_t>(size_of(*dtype));
  for (int d = 0; d < view.rank; ++d) {
    view.dim[d] = tensor.getDimSize(d);
    // Kernels multiply dimensions even if one is 0, so the product without it must not overflow
    // either.
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(view.dim[d], 1), &bytes) || bytes > max_bytes)
      return std::nullopt;
  }
  return view;
}

Result<Attributes> kernel_attributes(llvm::ArrayRef<NamedAttribute> attributes) {
  Attributes attrs;
  for (NamedAttribute a : attributes) {
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

std::optional<std::string> constant_bytes(Value v) {
  auto weight = v.getDefiningOp<ReproWeightOp>();
  if (!weight || !static_view(v.getType()) || !weight.getData() || weight.getTransposed())
    return std::nullopt;
  return weight.getData()->str();
}

std::optional<std::string> fold_constant(Operation* op) {
  std::vector<std::string> operands;
  for (Value v : op->getOperands()) {
    std::optional<std::string> bytes = constant_bytes(v);
    if (!bytes) return bytes;
    operands.push_back(*std::move(bytes));
  }
  return fold_constant(op, operands);
}

bool run_kernel(Operation* op, const ops::CpuKernel& row, std::span<const ops::View> in, ops::View& out,
                Pool* pool) {
  const ops::OpContract& contract = *ops::contract_of(row.op);
  const Result<Attributes> attrs = kernel_attributes(op->getAttrs());
  if (contract.stateful || !attrs) return false;
  ops::Call call{in, {&out, 1}, &*attrs};
  ops::OutOfBounds out_of_bounds;
  if (contract.check(call) ||
      (contract.find_out_of_bounds && contract.find_out_of_bounds(call, out_of_bounds)))
    return false;
  AlignedBuffer shared = aligned_buffer(row.shared_bytes ? row.shared_bytes(call) : 0);
  call.shared = shared.data();
  const int threads = pool ? pool->threads() : 1;
  const size_t bytes = row.scratch_bytes ? row.scratch_bytes(call) : 0;
  std::vector<AlignedBuffer> scratch;
  for (int i = 0; i < threads; ++i) scratch.push_back(aligned_buffer(bytes));
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

std::optional<std::string> fold_constant(Operation* op, llvm::ArrayRef<std::string> operands) {
  const std::string_view name(op->getName().stripDialect());
  const ops::CpuKernel* kernel = ops::find_cpu_kernel(name, "reference");
  if (!kernel || op->getNumOperands() == 0) return std::nullopt;
  std::vector<ops::View> in;
  std::vector<AlignedBuffer> data;
  for (auto [v, bytes] : llvm::zip(op->getOperands(), operands)) {
    std::optional<ops::View> view = static_view(v.getType());
    if (!view || bytes.size() != byte_size(*view)) return std::nullopt;
    view->data = data.emplace_back(aligned_buffer(bytes.size())).data();
    copy_little_endian(view->data, bytes.data(), bytes.size(), size_of(view->dtype));
    in.push_back(*view);
  }
  std::optional<ops::View> out = static_view(op->getResult(0).getType());
  if (!out) return std::nullopt;
  AlignedBuffer result = aligned_buffer(byte_size(*out));
  out->data = result.data();
  if (!run_kernel(op, *kernel, in, *out, nullptr)) return std::nullopt;
  std::string bytes(byte_size(*out), '\0');
  copy_little_endian(bytes.data(), out->data, bytes.size(), size_of(out->dtype));
  return bytes;
}

}  // namespace invar::compiler
