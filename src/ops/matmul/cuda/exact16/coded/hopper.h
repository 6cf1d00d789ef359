// The kernel of few rows and columns in codes, for Hopper. It is compiled for compute capability
// 9.0a alone (sm90a/), a file for each kind of codes.
#pragma once
#include "ops/matmul/cuda/exact16/coded/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {

constexpr int64_t kCodedRows = 128;  // the most: codes are read once for each 64

// in.of[].b are tiles of codes of one form; in.of[].first and in.columns are set.
void enqueue_coded_integers4(const ExactTogether& in, const CodedForm& form, const GemvWork& work, Stream);
void enqueue_coded_integers8(const ExactTogether& in, const CodedForm& form, const GemvWork& work, Stream);
void enqueue_coded_floats(const ExactTogether& in, const CodedForm& form, const GemvWork& work, Stream);

inline void enqueue_coded_hopper(ExactTogether in, const CodedForm& form, const GemvWork& work,
                                 Stream stream) {
  in.columns = 0;
  for (int i = 0; i < in.count; ++i) {
    in.of[i].first = in.columns;
    in.columns += static_cast<int>((in.of[i].n + kBlockRows - 1) / kBlockRows);
  }
  if (form.codes != weights::Codes::integers) return enqueue_coded_floats(in, form, work, stream);
  if (form.bits == 4) return enqueue_coded_integers4(in, form, work, stream);
  enqueue_coded_integers8(in, form, work, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
