// matmul_exact16 with columns in small floats, for Hopper.
#include "ops/matmul/cuda/exact16/coded/gemv_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

// CodeTiles::covers() says which kinds there are.
void enqueue_coded_floats(const ExactTogether& in, const CodedForm& form, const GemvWork& work,
                          Stream stream) {
  using enum weights::Codes;
  if (form.codes == e5m2) return enqueue_coded_of<e5m2, 8, 1>(in, form, work, stream);
  if (form.codes == e4m3 && form.parts == 1) return enqueue_coded_of<e4m3, 8, 1>(in, form, work, stream);
  if (form.codes == e4m3) return enqueue_coded_of<e4m3, 8, 4>(in, form, work, stream);
  if (form.parts == 4) return enqueue_coded_of<e2m1, 4, 4>(in, form, work, stream);
  enqueue_coded_of<e2m1, 4, 8>(in, form, work, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
