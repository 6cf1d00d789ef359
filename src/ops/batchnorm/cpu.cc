#include "ops/batchnorm/batchnorm.h"

#include "ops/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// What is known of channels: one in every lane, or a lane for each.
struct Channel {
  F mean, scale, weight, bias;
};
INVAR_INLINE F value(const Channel& c, F x) {
  return add(mul(mul(sub(x, c.mean), c.scale), c.weight), c.bias);  // batchnorm.3
}

INVAR_INLINE F lanes_of(const View& v, int64_t i, int lanes) {
  F x = zero();
  with_format(v.dtype, [&](auto format) {
    using W = decltype(format);
    x = get_part<W>(v.as<const typename W::T>() + i, lanes);
  });
  return x;
}

// A lane for each of the channels from `at` on, of which `left` count.
INVAR_INLINE Channel channels_at(const Call& call, float epsilon, int64_t at, int64_t left) {
  int lanes = left < kW ? static_cast<int>(left) : kW;
  return {lanes_of(call.in[3], at, lanes),
          inverse_root(lanes_of(call.in[4], at, lanes), epsilon),  // batchnorm.2

          lanes_of(call.in[1], at, lanes), lanes_of(call.in[2], at, lanes)};
}

// Samples [begin, end) of C channels of one element: down the samples by blocks of channels, whose factors are made once.
void samples(const Call& call, int64_t channels, float epsilon, int64_t begin, int64_t end) {
  constexpr int kVectors = 8;
  for (int64_t from = 0; from < channels; from += kVectors * kW) {
    int64_t left = channels - from, width = left < kVectors * kW ? left : kVectors * kW;
    Channel known[kVectors];
    for (int64_t i = 0; i < width; i += kW) known[i / kW] = channels_at(call, epsilon, from + i, width - i);
    for (int64_t row = begin; row < end; ++row) {
      const float* x = call.in[0].as<const float>() + row * channels + from;
      strip(
          call.out[0].as<float>() + row * channels + from,
          width, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            return value(known[i / kW], load_part(x + i, lanes));
          });
    }
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const batchnorm::Geometry g = batchnorm::geometry(call);
  float epsilon = attr_f(call, "epsilon", 1e-5f);
  if (g.spatial == 1) return samples(call, g.channels, epsilon, begin, end);
  // What is known, by blocks of channels.
  constexpr int kBlock = 64;
  alignas(64) float mean[kBlock], scale[kBlock], weight[kBlock], bias[kBlock];
  for (int64_t unit = begin; unit < end;) {
    int64_t from = unit % g.channels, count = kBlock;
    if (count > g.channels - from) count = g.channels - from;
    if (count > end - unit) count = end - unit;
    for (int64_t c = 0; c < count; c += kW) {
      const Channel known = channels_at(call, epsilon, from + c, count - c);
      store(mean + c, known.mean), store(scale + c, known.scale);
      store(weight + c, known.weight), store(bias + c, known.bias);
    }
    for (int64_t c = 0; c < count; ++c, ++unit) {
      const Channel known = {set1(mean[c]), set1(scale[c]), set1(weight[c]), set1(bias[c])};
      const float* x = call.in[0].as<const float>() + unit * g.spatial;
      strip(
          call.out[0].as<float>() + unit * g.spatial,
          g.spatial, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            return value(known, load_part(x + i, lanes));
          });
    }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {
    .op = "batchnorm", .isa = INVAR_ISA, .units = batchnorm::units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
