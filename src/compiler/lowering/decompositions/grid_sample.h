// Values of a picture between its pixels, at places that are computed.
#pragma once
#include "compiler/lowering/builders/builder_dsl.h"

namespace invar::compiler {

enum class Beyond { zeros, border, reflection };
enum class Curve { linear, nearest, cubic };

// One spatial dimension: its length, and where reflection turns around.
struct Line {
  int64_t size;
  float low, high;
};

// [N, C, ...] as pixels [N, S, C]; with `open`, of dimensions that need not be constants.
Result<Value> pixels_of(Formula&, unsigned operand, bool open = false);

class Sampler {
 public:
  // rows: pixels [N, S, C]; of S, the product of the lines' lengths.
  Sampler(Formula& f, Value rows, std::vector<Line> lines, Beyond beyond)
      : f_(f), rows_(rows), lines_(std::move(lines)), beyond_(beyond) {}
  // At places [N, P, 1], a coordinate for each line -> [N, P, C].
  Value at(llvm::ArrayRef<Value> coordinates, Curve curve);

 private:
  // A pixel on each line so far: its number among those of these lines, and whether it lies within all (none: all do).
  struct Pixel {
    Value number, within;
  };
  Value reflected(Value x, const Line& line);
  Value within_bounds(Value x, const Line& line);  // as padding moves coordinates
  Pixel next(const Pixel& so_far, Value place, const Line& line);
  Value pixel(const Pixel& p);
  // The sum over the pixels around a coordinate, for this line and all behind it.
  Value around(size_t line, const Pixel& so_far);

  Formula& f_;
  Value rows_;
  std::vector<Line> lines_;
  Beyond beyond_;
  Curve curve_ = Curve::linear;
  std::vector<Value> first_;                 // of each line: the pixel below the coordinate
  std::vector<std::vector<Value>> weights_;  // of each line: those of the pixels around it
};

}  // namespace invar::compiler
