#include "kernels/fusion/join_kernels.h"

#include <algorithm>

namespace invar::ops {
namespace {
constinit const RegisteredJoin* join_kernels = nullptr;  // the first of a list
constinit const RegisteredRoundedJoin* rounded_joins = nullptr;
}  // namespace

RegisteredJoin::RegisteredJoin(const GpuJoinKernel& one) : kernel(one), next(join_kernels) {
  join_kernels = this;
}

const GpuJoinKernel* find_join_kernel(std::string_view op) {
  for (const RegisteredJoin* r = join_kernels; r; r = r->next)
    if (r->kernel.op == op) return &r->kernel;
  return nullptr;
}

RegisteredRoundedJoin::RegisteredRoundedJoin(std::span<const std::string_view> all, const RoundedJoin& one)
    : ops(all), kernel(one), next(rounded_joins) {
  rounded_joins = this;
}

const RoundedJoin* find_rounded_join(std::span<const std::string_view> ops) {
  for (const RegisteredRoundedJoin* r = rounded_joins; r; r = r->next)
    if (std::ranges::equal(r->ops, ops)) return &r->kernel;
  return nullptr;
}

void enqueue_producers(const GpuFusion& fusion, const RoundedRows& rows, Stream stream) {
  if (fusion.join) return fusion.joins->enqueue(fusion.producers, *fusion.join, rows, stream);
  fusion.producer->enqueue_rounded(fusion.producers, rows, stream);
}

}  // namespace invar::ops
