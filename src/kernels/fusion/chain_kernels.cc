#include "kernels/fusion/chain_kernels.h"

namespace invar::ops {
namespace {
constinit const RegisteredChain* chains = nullptr;  // the first of a list
}

RegisteredChain::RegisteredChain(const ChainKernel& one) : kernel(one), next(chains) {
  chains = this;
}

const ChainKernel* find_chain_kernel(std::string_view op) {
  for (const RegisteredChain* r = chains; r; r = r->next)
    if (r->kernel.knows(op)) return &r->kernel;
  return nullptr;
}

}  // namespace invar::ops
