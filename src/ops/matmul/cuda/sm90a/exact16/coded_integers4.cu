// matmul_exact16 with columns in integers of 4 bits, for Hopper.
#include "ops/matmul/cuda/exact16/coded/gemv_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

void enqueue_coded_integers4(const ExactTogether& in, const CodedForm& form, const GemvWork& work,
                             Stream stream) {
  using weights::Codes::integers;
  if (form.parts == 1) return enqueue_coded_of<integers, 4, 1>(in, form, work, stream);
  if (form.parts == 4) return enqueue_coded_of<integers, 4, 4>(in, form, work, stream);
  enqueue_coded_of<integers, 4, 8>(in, form, work, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
