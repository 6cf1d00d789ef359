// spec: optim.1 - optim.6.
#include "kernels/reference.h"
#include "kernels/check.h"
#include "ops/optim/attributes.h"

namespace invar::ops {
namespace {

int64_t units(const Call& call, int) {
  return call.in[0].dim[0];
}

// The values of one element that a step reads and writes.
class Element {
 public:
  Element(const Call& call, int64_t i) : call_(call), i_(i), n_(call.in[0].dim[0]) {}
  float operand(int k) const { return call_.in[static_cast<size_t>(k)].as<const float>()[i_]; }
  float scalar(int k) const { return call_.in.back().as<const float>()[k]; }
  void result(int row, float x) const { store_canonical(call_.out[0], row * n_ + i_, x); }

 private:
  const Call& call_;
  int64_t i_, n_;
};

void sgd(const Call&, const Element& e) {
  const float p = e.operand(0), g = e.operand(1), eta = e.scalar(0), lambda = e.scalar(1);
  const float d = std::fma(lambda, p, g);
  e.result(0, std::fma(-eta, d, p));
}

void momentum(const Call& call, const Element& e) {
  const float p = e.operand(0), g = e.operand(1), b = e.operand(2);
  const float eta = e.scalar(0), lambda = e.scalar(1), mu = e.scalar(2), kappa = e.scalar(3);
  const float d = std::fma(lambda, p, g);
  const float kept = kappa * d;
  const float next = std::fma(mu, b, kept);
  const float u = MomentumStepAttributes(call).nesterov ? std::fma(mu, next, d) : next;
  e.result(0, std::fma(-eta, u, p));
  e.result(1, next);
}

void adam_of(const Element& e, bool amsgrad) {
  const float p = e.operand(0), g = e.operand(1), m = e.operand(2), v = e.operand(3);
  const float sigma = e.scalar(0), delta = e.scalar(1), lambda = e.scalar(2), alpha = e.scalar(3);
  const float beta = e.scalar(4), gamma = e.scalar(5), rho = e.scalar(6), epsilon = e.scalar(7);
  const float d = std::fma(lambda, p, g);
  const float difference = d - m;
  const float first = std::fma(alpha, difference, m);
  const float square = d * d, old = beta * v;
  const float second = std::fma(gamma, square, old);
  const float most = amsgrad ? maximum(e.operand(4), num::canonicalize(second)) : second;
  const float root = std::sqrt(most);
  const float corrected = root / rho;
  const float s = corrected + epsilon;
  const float ratio = first / s, decayed = delta * p;
  e.result(0, std::fma(-sigma, ratio, decayed));
  e.result(1, first);
  e.result(2, second);
}
void adam(const Call&, const Element& e) {
  adam_of(e, false);
}
void amsgrad(const Call&, const Element& e) {
  adam_of(e, true);
}

void lion(const Call&, const Element& e) {
  const float p = e.operand(0), g = e.operand(1), m = e.operand(2);
  const float eta = e.scalar(0), delta = e.scalar(1), alpha = e.scalar(2), gamma = e.scalar(3);
  const float r = g - m;
  const float c = std::fma(alpha, r, m);
  const float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c;
  const float decayed = delta * p;
  e.result(0, std::fma(-eta, sign, decayed));
  e.result(1, std::fma(gamma, r, m));
}

template <auto step>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  for (int64_t i = begin; i < end; ++i) step(call, Element(call, i));
}

template <size_t operands, int64_t scalars, int64_t results>
const char* check(const Call& c) {
  if (!has_operands(c, operands + 1, 1)) return "the operands of the step and one result";
  for (const View& v : c.in)
    if (!is_f32(v) || v.rank != 1) return "f32 of one dimension";
  for (size_t i = 1; i < operands; ++i)
    if (!same_shape(c.in[0], c.in[i])) return "gradients and state shaped like the parameters";
  if (c.in[operands].dim[0] != scalars) return "as many scalars as the step has";
  const View& out = c.out[0];
  if (!is_f32(out) || out.rank != 2 || out.dim[0] != results || out.dim[1] != c.in[0].dim[0])
    return "a result of f32, a row for the parameters and for each state";
  if (const int64_t nesterov = MomentumStepAttributes(c).nesterov; nesterov != 0 && nesterov != 1)
    return "nesterov of 0 or 1";
  return nullptr;
}

}  // namespace

#define INVAR_STEP(name, function, operands, scalars, results)                                  \
  extern const OpContract contract_##name;                                                      \
  extern const CpuKernel row_##name##_reference;                                                \
  const OpContract contract_##name = {.op = #name, .check = check<operands, scalars, results>}; \
  const CpuKernel row_##name##_reference = {                                                    \
      .op = #name, .isa = "reference", .units = units, .run = run<function>};
INVAR_STEP(sgd_step, sgd, 2, 2, 1)
INVAR_STEP(momentum_step, momentum, 3, 4, 2)
INVAR_STEP(adam_step, adam, 4, 8, 3)
INVAR_STEP(amsgrad_step, amsgrad, 5, 8, 3)
INVAR_STEP(lion_step, lion, 3, 4, 2)

}  // namespace invar::ops
