// matmul_exact16 with columns in integers of 8 bits, for Hopper.
#include "ops/matmul/cuda/exact16/coded/gemv_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

void enqueue_coded_integers8(const ExactTogether& in, const CodedForm& form, const GemvWork& work,
                             Stream stream) {
  using weights::Codes::integers;
  if (form.parts == 1) return enqueue_coded_of<integers, 8, 1>(in, form, work, stream);
  if (form.parts == 4) return enqueue_coded_of<integers, 8, 4>(in, form, work, stream);
  enqueue_coded_of<integers, 8, 8>(in, form, work, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
