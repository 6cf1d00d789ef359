// CPU batchnorm: (x - mean) * scale * weight + bias per channel, over lanes.
#include "ops/batchnorm/batchnorm.h"

#include "kernels/cpu/vector_io.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Parameters of channels: one channel in every lane, or one channel per lane.
struct ChannelParams {
  F mean, scale, weight, bias;
};
INVAR_INLINE F value(const ChannelParams& c, F x) {
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

// Parameters of a block of channels, with the scale computed once.
struct ChannelBlock {
  static constexpr int kBlock = 512;
  alignas(64) float mean[kBlock], scale[kBlock], weight[kBlock], bias[kBlock];
  INVAR_INLINE ChannelParams lanes(const ChannelBlock& k, int64_t c) {
    return {load(k.mean + c), load(k.scale + c), load(k.weight + c), load(k.bias + c)};
  }
  INVAR_INLINE ChannelParams one(const ChannelBlock& k, int64_t c) {
    return {set1(k.mean[c]), set1(k.scale[c]), set1(k.weight[c]), set1(k.bias[c])};
  }
};
INVAR_INLINE void load_channels(const Call& call, int64_t from, int64_t count, ChannelBlock& k) {
  float epsilon = BatchnormAttributes(call).epsilon;
  for (int64_t c = 0; c < count; c += kW) {
    int lanes = count - c < kW ? static_cast<int>(count - c) : kW;
    store(k.mean + c, lanes_of(call.in[3], from + c, lanes));
    store(k.scale + c, inverse_sqrt(lanes_of(call.in[4], from + c, lanes), epsilon));  // batchnorm.2
    store(k.weight + c, lanes_of(call.in[1], from + c, lanes));
    store(k.bias + c, lanes_of(call.in[2], from + c, lanes));
  }
}

// Normalizes n elements from i on: of the loaded channels, or of one channel.
INVAR_INLINE void normalize_channels(const Call& call, const ChannelBlock& known, int64_t i, int64_t n) {
  const float* x = call.in[0].as<const float>() + i;
  strip(
      call.out[0].as<float>() + i, n, [&](int64_t j, int lanes) __attribute__((always_inline)) {
        return value(ChannelBlock::lanes(known, j), load_part(x + j, lanes));
      });
}
INVAR_INLINE void normalize_channel(const Call& call, const ChannelParams& channel, int64_t i, int64_t n) {
  const float* x = call.in[0].as<const float>() + i;
  strip(
      call.out[0].as<float>() + i, n, [&](int64_t j, int lanes) __attribute__((always_inline)) {
        return value(channel, load_part(x + j, lanes));
      });
}

// Samples [begin, end) with one element per channel: blocks of channels for all samples, one lane
// per channel.
void samples(const Call& call, int64_t channels, int64_t begin, int64_t end) {
  ChannelBlock known;
  for (int64_t from = 0; from < channels; from += ChannelBlock::kBlock) {
    int64_t left = channels - from, width = left < ChannelBlock::kBlock ? left : ChannelBlock::kBlock;
    load_channels(call, from, width, known);
    for (int64_t row = begin; row < end; ++row) normalize_channels(call, known, row * channels + from, width);
    notify_epilogue(call, {begin * channels + from, width, end - begin, channels});
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const batchnorm::Geometry g = batchnorm::geometry(call);
  if (g.spatial == 1) return samples(call, g.channels, begin, end);
  ChannelBlock known;
  for (int64_t unit = begin; unit < end;) {
    int64_t from = unit % g.channels, count = ChannelBlock::kBlock;
    if (count > g.channels - from) count = g.channels - from;
    if (count > end - unit) count = end - unit;
    load_channels(call, from, count, known);
    int64_t reported = unit;
    for (int64_t c = 0; c < count; ++c) {
      normalize_channel(call, ChannelBlock::one(known, c), unit++ * g.spatial, g.spatial);
      if (c + 1 < count && (unit - reported) * g.spatial < kEpilogueChunk) continue;
      notify_epilogue(call, {reported * g.spatial, (unit - reported) * g.spatial, 1, 0});
      reported = unit;
    }
  }
}

void region(const Call& call, const Region& r) {
  const batchnorm::Geometry g = batchnorm::geometry(call);
  ChannelBlock known;
  for (int64_t row = 0; row < r.rows; ++row) {
    int64_t i = r.at + row * r.pitch;
    for (const int64_t end = i + r.n; i < end;) {
      const int64_t channel = i / g.spatial % g.channels;
      int64_t n = end - i, count = 1;
      if (g.spatial == 1) {
        if (n > g.channels - channel) n = g.channels - channel;
        if (n > ChannelBlock::kBlock) n = ChannelBlock::kBlock;
        count = n;
      } else if (n > g.spatial - i % g.spatial) {
        n = g.spatial - i % g.spatial;
      }
      load_channels(call, channel, count, known);
      if (g.spatial == 1)
        normalize_channels(call, known, i, n);
      else
        normalize_channel(call, ChannelBlock::one(known, 0), i, n);
      i += n;
    }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "batchnorm",
                             .isa = INVAR_ISA,
                             .units = batchnorm::units,
                             .run = INVAR_ISA_NS::run,
                             .epilogue = true,
                             .region = INVAR_ISA_NS::region};

}  // namespace invar::ops
