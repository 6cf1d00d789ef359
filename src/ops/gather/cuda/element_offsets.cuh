// Offsets of the elements that gather_elements reads and scatter_elements writes.
#pragma once
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/launch.h"
#include "ops/gather/index.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// gather.5: the offset of the element of x that index o names, or -1.
class ElementOffsets {
 public:
  ElementOffsets(const View& x, const View& indices, int64_t axis) : index_(indices.as<const int64_t>()) {
    axis_ = x.rank - 1 - static_cast<int>(axis < 0 ? axis + x.rank : axis);
    int64_t stride = 1;
    for (int d = 0; d < x.rank; ++d) {
      const int from = x.rank - 1 - d;
      dim_[d] = FastDivmod(indices.dim[from]), stride_[d] = stride;
      if (d == axis_) n_ = x.dim[from];
      stride *= x.dim[from];
    }
    rank_ = x.rank;
  }
  __device__ int64_t operator()(int64_t o) const {
    const int64_t along = normalize_index(index_[o], n_);
    if (along < 0) return -1;
    int64_t at = 0;
#pragma unroll 1
    for (int d = 0; d < rank_; ++d) {
      const int64_t beside = dim_[d].remainder(o);
      at += (d == axis_ ? along : beside) * stride_[d];
    }
    return at;
  }

 private:
  const int64_t* index_;
  int rank_, axis_;  // of dimensions, innermost first
  FastDivmod dim_[kMaxRank];
  int64_t stride_[kMaxRank], n_ = 0;
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
