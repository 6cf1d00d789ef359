// Interpolated sampling of an image at computed coordinates, as GridSample, RoiAlign and DeformConv
// need it.
#pragma once
#include "compiler/lowering/builders/expr_builder.h"

namespace invar::compiler {

enum class PaddingMode { zeros, border, reflection };
enum class Interpolation { linear, nearest, cubic };

// One spatial axis: its length and the two coordinates at which reflection padding mirrors.
struct AxisBounds {
  int64_t size;
  float low, high;
};

// [N, C, ...] as rows of pixels [N, S, C]. open: spatial dimensions may be symbolic.
Result<Value> pixel_rows(ExprBuilder&, unsigned operand, bool open = false);

class Sampler {
 public:
  // rows: pixels [N, S, C], where S is the product of the axes' lengths.
  Sampler(ExprBuilder& f, Value rows, std::vector<AxisBounds> sampled, PaddingMode beyond)
      : f_(f), rows_(rows), axes_(std::move(sampled)), padding_(beyond) {}
  // Samples at points [N, P, 1], one coordinate for each axis -> [N, P, C].
  Value at(llvm::ArrayRef<Value> coordinates, Interpolation interpolation);

 private:
  // A pixel on the axes so far: its linear index, and whether it lies inside all of them (null:
  // always).
  struct Pixel {
    Value number, within;
  };
  Value reflect(Value x, const AxisBounds& axis);
  Value clamp_coordinate(Value x, const AxisBounds& axis);  // by the padding mode
  Pixel next(const Pixel& so_far, Value position, const AxisBounds& axis);
  Value pixel(const Pixel& p);
  // The weighted sum over the pixels around a coordinate, for this axis and the ones after it.
  Value interpolate(size_t axis, const Pixel& so_far);

  ExprBuilder& f_;
  Value rows_;
  std::vector<AxisBounds> axes_;
  PaddingMode padding_;
  Interpolation interpolation_ = Interpolation::linear;
  std::vector<Value> first_;                 // per axis: the pixel below the coordinate
  std::vector<std::vector<Value>> weights_;  // per axis: those of the pixels around it
};

}  // namespace invar::compiler
