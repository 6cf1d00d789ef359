// Chains of elementwise operations on floats: a thread computes an element of all their results.
// Decoders have such chains between products, for each head or each channel of a row, where a
// kernel of its own takes longer to start than to run.
#include "ops/elementwise/cuda/chains.h"

#include <algorithm>

#include "kernels/call.h"
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/launch.h"
#include "ops/elementwise/graphs/activations.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

#define INVAR_CHAINED_UNARY(X) X(neg) X(exp) X(sigmoid) X(silu) X(softplus)
#define INVAR_CHAINED_BINARY(X) X(add) X(sub) X(mul)
#define INVAR_EACH(name) name,
enum class Code : int { INVAR_CHAINED_UNARY(INVAR_EACH) INVAR_CHAINED_BINARY(INVAR_EACH) count };
#undef INVAR_EACH
#define INVAR_EACH(name) #name,
constexpr std::string_view kNames[] = {INVAR_CHAINED_UNARY(INVAR_EACH) INVAR_CHAINED_BINARY(INVAR_EACH)};
#undef INVAR_EACH
static_assert(std::size(kNames) == static_cast<size_t>(Code::count));

// As FloatMap of maps.cuh.
__device__ inline float apply(Code code, F a, F b) {
  switch (code) {
#define INVAR_EACH(name) \
  case Code::name: return canonicalize(graph::name(a)).v;
    INVAR_CHAINED_UNARY(INVAR_EACH)
#undef INVAR_EACH
#define INVAR_EACH(name) \
  case Code::name: return canonicalize(graph::name(a, b)).v;
    INVAR_CHAINED_BINARY(INVAR_EACH)
#undef INVAR_EACH
    default: return 0;
  }
}

// An operand: the result of an earlier link, or elements in memory, of which each, each of a row or
// one is repeated.
enum class Along : int { link, all, row, none };
struct Term {
  Along along;
  int link;
  DType format;
  const void* p;
};
struct Link {
  Code code;
  Term term[2];  // of unary operations both are the operand
  float* out;
};
struct Chain {
  Link link[kLongestChain];
  int count;
  int64_t n;
  FastDivmod by_row;
};

__global__ void __launch_bounds__(kForEachThreads) chain_kernel(const __grid_constant__ Chain chain) {
  trigger_and_wait();
  const int64_t step = int64_t{gridDim.x} * kForEachThreads;
  for (int64_t i = int64_t{blockIdx.x} * kForEachThreads + threadIdx.x; i < chain.n; i += step) {
    int64_t row = i;
    const int64_t column = chain.by_row.remainder(row);
    float made[kLongestChain];
#pragma unroll 1
    for (int k = 0; k < chain.count; ++k) {
      const Link& own = chain.link[k];
      F x[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const Term& of = own.term[j];
        const int64_t at = of.along == Along::all ? i : of.along == Along::row ? column : 0;
        if (of.along == Along::link)
          x[j].v = made[of.link];
        else if (of.format == DType::f32)
          x[j].v = static_cast<const float*>(of.p)[at];
        else if (of.format == DType::bf16)
          x[j].v = Bf16::one(static_cast<const uint16_t*>(of.p)[at]);
        else
          x[j].v = F16::one(static_cast<const uint16_t*>(of.p)[at]);
      }
      own.out[i] = made[k] = apply(own.code, x[0], x[1]);
    }
  }
}

Code code_of(std::string_view op) {
  return static_cast<Code>(std::ranges::find(kNames, op) - std::begin(kNames));
}
bool is_binary(Code code) {
  return code >= Code::add;
}
bool same_shape(const View& a, const View& b) {
  return a.rank == b.rank && std::equal(a.dim, a.dim + a.rank, b.dim);
}
// Along::link: it is none of these.
Along along(const View& in, const View& out) {
  if (in.elements() == 1) return Along::none;
  if (same_shape(in, out)) return Along::all;
  return in.rank > 0 && in.elements() == last_dim(in) && last_dim(in) == last_dim(out) ? Along::row
                                                                                       : Along::link;
}

bool knows(std::string_view op) {
  return code_of(op) != Code::count;
}
bool fits(std::span<const ChainLink> links) {
  constexpr int64_t kMost = int64_t{1} << 18;  // kernels of their own have vectors
  const View& first = links[0].call->out[0];
  if (links.size() > kLongestChain || first.rank == 0 || first.elements() == 0 || first.elements() > kMost)
    return false;
  return std::ranges::all_of(links, [&](const ChainLink& link) {
    const View& out = link.call->out[0];
    const bool binary = is_binary(code_of(link.op));
    if (out.dtype != DType::f32 || !same_shape(out, first) || link.call->in.size() != (binary ? 2 : 1))
      return false;
    return std::ranges::all_of(link.call->in, [&](const View& in) {
      const bool is_float =
          in.dtype == DType::f32 || (binary && (in.dtype == DType::bf16 || in.dtype == DType::f16));
      return is_float && along(in, out) != Along::link;
    });
  });
}
void enqueue(std::span<const ChainLink> links, Stream stream) {
  const View& first = links[0].call->out[0];
  Chain chain{
      .count = static_cast<int>(links.size()), .n = first.elements(), .by_row = FastDivmod(last_dim(first))};
  for (size_t k = 0; k < links.size(); ++k) {
    const Call& call = *links[k].call;
    Link& own = checked(chain.link, static_cast<int64_t>(k));
    own.code = code_of(links[k].op), own.out = call.out[0].as<float>();
    for (size_t j = 0; j < 2; ++j) {
      const View& in = call.in[j < call.in.size() ? j : 0];
      Term& of = own.term[j] = {along(in, call.out[0]), 0, in.dtype, in.data};
      for (size_t earlier = 0; earlier < k; ++earlier)
        if (links[earlier].call->out[0].data == in.data)
          of.along = Along::link, of.link = static_cast<int>(earlier);
    }
  }
  launch_dependent(chain_kernel, dim3(static_cast<unsigned>(ceil_div(chain.n, int64_t{kForEachThreads}))),
                   dim3(kForEachThreads), 0, stream, chain);
}

}  // namespace

const ChainKernel chain_of_floats{knows, fits, enqueue};

}  // namespace invar::ops::INVAR_ISA_NS
