// CPU causal convolution: lanes are adjacent channels, a unit is a block of channels of a sequence
// with all its positions. Weights are taken tap by tap, [width, channels], widened once.
#include "kernels/cpu/vector_io.h"
#include "num/contract/schedule.h"
#include "ops/causal_conv/causal_conv.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using causal_conv::Geometry;

constexpr int64_t kBlockChannels = 128;  // of a unit: a multiple of every vector width
constexpr int64_t kNotifiedRows = 16;    // per epilogue callback: with 128 channels 8 KB

int64_t blocks_of(const Geometry& g) {
  return (g.channels + kBlockChannels - 1) / kBlockChannels;
}

int64_t units(const Call& call, int) {
  const Geometry g = causal_conv::geometry(call);
  return g.batch * blocks_of(g);
}

size_t scratch_bytes(const Call&) {
  return static_cast<size_t>(causal_conv::kWidest * kBlockChannels) * sizeof(float);
}

// Channels [begin, begin + count) of weights [channels, width] as [width] rows of `pitch` floats.
void by_taps(const View& w, int64_t width, int64_t begin, int64_t count, float* to, int64_t pitch) {
  with_format(w.dtype, [&](auto format) {
    const auto* from = w.as<const typename decltype(format)::T>() + begin * width;
    for (int64_t c = 0; c < count; ++c)
      for (int64_t r = 0; r < width; ++r) to[r * pitch + c] = format.one(from[c * width + r]);
  });
}

size_t pack_bytes(const View& constant, int i, const Attributes&) {
  return i == 1 ? static_cast<size_t>(constant.elements()) * sizeof(float) : 0;
}
void pack(const View& constant, int, const Attributes&, void* packed) {
  by_taps(constant, constant.dim[1], 0, constant.dim[0], static_cast<float*>(packed), constant.dim[0]);
}

// Points to the taps of a block of channels: x[r] is the input of tap r.
struct Taps {
  const float *x[causal_conv::kWidest], *w;
  int64_t w_pitch, first, width;
  const View* bias;  // or null
  int64_t channel;   // the block's first
};

INVAR_INLINE F bias_of(const Taps& t, int64_t i, int lanes) {
  F b = zero();
  with_format(
      t.bias->dtype, [&](auto format) __attribute__((always_inline)) {
        b = get_part<decltype(format)>(t.bias->as<const typename decltype(format)::T>() + t.channel + i,
                                       lanes);
      });
  return b;
}

// A position of a block of channels (causal_conv.2, causal_conv.3).
void position(const Taps& t, int64_t count, float* y) {
  strip(
      y, count, [&](int64_t i, int lanes) __attribute__((always_inline)) {
        F sum = zero();  // contraction.2: one chain
        for (int64_t r = t.first; r < t.width; ++r)
          sum = fma(load_part(t.x[r] + i, lanes), load_part(t.w + r * t.w_pitch + i, lanes), sum);
        sum = add(zero(), sum);  // contraction.3
        return t.bias ? add(canonicalize(sum), bias_of(t, i, lanes)) : sum;
      });
}

void keep_inputs(const Call& call, const Geometry& g, int64_t slot, int64_t past, const float* x,
                 int64_t channel, int64_t count) {
  if (!call.state || g.width == 1) return;
  for (int64_t i = g.seq < g.width ? 0 : g.seq - g.width; i < g.seq; ++i) {
    float* const to = causal_conv::state_row(call, g, slot, past + i) + channel;
    for (int64_t c = 0; c < count; ++c) to[c] = x[i * g.channels + c];
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Geometry g = causal_conv::geometry(call);
  const int64_t blocks = blocks_of(g);
  const View& w = call.in[1];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t b = unit / blocks, channel = unit % blocks * kBlockChannels,
                  count = num::min_i64(kBlockChannels, g.channels - channel),
                  past = causal_conv::past_of(call, b), slot = call.sequences ? call.sequences[b].slot : 0,
                  at = b * g.seq * g.channels + channel;
    const float* const x = call.in[0].as<const float>() + at;
    float* const y = call.out[0].as<float>() + at;
    Taps t{{}, nullptr, g.channels, 0, g.width, call.in.size() == 3 ? &call.in[2] : nullptr, channel};
    if (w.packed) {
      t.w = w.as<const float>() + channel;
    } else {
      t.w = static_cast<const float*>(scratch), t.w_pitch = kBlockChannels;
      by_taps(w, g.width, channel, count, static_cast<float*>(scratch), kBlockChannels);
    }
    for (int64_t i = 0, told = 0; i < g.seq; ++i) {
      t.first = past + i < g.width - 1 ? g.width - 1 - past - i : 0;
      for (int64_t r = t.first; r < g.width; ++r) {
        const int64_t from = i - (g.width - 1) + r;  // of this call, or before it
        t.x[r] =
            from >= 0 ? x + from * g.channels : causal_conv::state_row(call, g, slot, past + from) + channel;
      }
      position(t, count, y + i * g.channels);
      if (i + 1 < g.seq && i + 1 - told < kNotifiedRows) continue;
      notify_epilogue(call, {at + told * g.channels, count, i + 1 - told, g.channels});
      told = i + 1;
    }
    keep_inputs(call, g, slot, past, x, channel, count);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "causal_conv",
                             .isa = INVAR_ISA,
                             .units = INVAR_ISA_NS::units,
                             .run = INVAR_ISA_NS::run,
                             .scratch_bytes = INVAR_ISA_NS::scratch_bytes,
                             .epilogue = true,
                             .pack_bytes = INVAR_ISA_NS::pack_bytes,
                             .pack = INVAR_ISA_NS::pack,
                             .state_bytes = causal_conv::state_bytes};

}  // namespace invar::ops
