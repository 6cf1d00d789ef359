// An add_relu epilogue yields the bytes of the operations that it fuses, on every route of a
// convolution and for NCHW and NHWC tensors.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/testing.h"
#include "num/testing/adversarial.h"

namespace invar::ops {
namespace {

using num::testing::adversarial;
using Floats = std::vector<float>;

struct EpilogueSetting {
  int64_t images, channels, height, width, rows, kernel, stride, pad, groups, dilation = 1;
  int64_t out(int64_t in) const { return (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1; }
};
// Pixel-major within an image, in two groups across images, with many weights, with whole K blocks,
// strided. Rows of weights: whole panels, images in one sequence. Depthwise. The first layer of a
// network. Taps far outside, so that whole K blocks and parts of K blocks are padding.
constexpr EpilogueSetting kEpilogueSettings[] = {
    {1, 40, 9, 14, 64, 3, 1, 1, 1},   {2, 20, 7, 5, 32, 3, 2, 1, 1},    {2, 12, 7, 9, 128, 3, 1, 2, 2},
    {1, 256, 5, 5, 32, 3, 1, 1, 1},   {1, 300, 6, 6, 512, 1, 1, 0, 1},  {1, 21, 9, 8, 30, 1, 2, 1, 1},
    {1, 30, 9, 11, 26, 1, 1, 0, 1},   {3, 30, 5, 5, 7, 3, 1, 1, 1},     {2, 6, 11, 12, 12, 3, 1, 1, 6},
    {1, 5, 20, 19, 5, 5, 2, 2, 5},    {1, 3, 15, 17, 32, 7, 2, 3, 1},   {1, 40, 9, 14, 64, 3, 1, 8, 1, 8},
    {2, 20, 7, 5, 64, 3, 2, 6, 2, 6}, {1, 256, 6, 7, 32, 3, 1, 5, 1, 5}};

// Does what the runtime does for fused operations that a row does not apply in registers.
struct FusedOps {
  std::vector<View> in, out;
  bool sum, relu;
  std::string_view isa;
  static void run(const void* self, const Region& r) {
    const auto& f = *static_cast<const FusedOps*>(self);
    const Attributes none;
    if (f.sum) find_cpu_kernel("add", f.isa)->region(Call{f.in, f.out, &none}, r);
    if (f.relu) find_cpu_kernel("relu", f.isa)->region(Call{{&f.out[0], 1}, f.out, &none}, r);
  }
};

// Says which tensors are NHWC.
struct ChannelsLast {
  bool x = false, y = false, other = false;
  bool any() const { return x || y || other; }
};
// [images, channels, pixels] in the layout that a row takes: gaps hold 1e30, and 64 bytes follow.
constexpr int64_t kGap = 3;
Floats to_channels_last(const Floats& x, int64_t images, int64_t channels, bool last, int64_t pitch) {
  if (!last) return x;
  const int64_t places = static_cast<int64_t>(x.size()) / (images * channels);
  Floats y(images * places * pitch + 16, 1e30f);
  for (int64_t i = 0; i < images * places; ++i)
    for (int64_t c = 0; c < channels; ++c)
      y[i * pitch + c] = x[(i / places * channels + c) * places + i % places];
  return y;
}
Floats channels_first(const Floats& y, int64_t images, int64_t channels, int64_t places, int64_t pitch) {
  Floats x(images * channels * places);
  std::vector<bool> used(y.size());
  for (int64_t i = 0; i < images * places; ++i)
    for (int64_t c = 0; c < channels; ++c) {
      x[(i / places * channels + c) * places + i % places] = y[i * pitch + c];
      used[i * pitch + c] = true;
    }
  for (size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(used[i] || y[i] == 1e30f) << "written between places";
  return x;
}

Floats convolve(const EpilogueSetting& s, std::string_view isa, bool packed, Floats x, Floats w, Floats bias,
                Floats other, bool sum, bool relu, ChannelsLast last = {}) {
  const CpuKernel* row = find_cpu_kernel("conv", isa);
  using List = std::vector<int64_t>;
  const Attributes attrs{{"strides", List{s.stride, s.stride}},
                         {"pads", List{s.pad, s.pad, s.pad, s.pad}},
                         {"dilations", List{s.dilation, s.dilation}},
                         {"groups", s.groups}};
  const int64_t oh = s.out(s.height), ow = s.out(s.width);
  const View weights = testing::view(w, DType::f32, {s.rows, s.channels / s.groups, s.kernel, s.kernel});
  int64_t pitch = 0;
  if (last.any()) {
    row = row->channels_last(weights, attrs, pitch);
    if (!row) return {};
  }
  const CpuKernel& k = *row;
  x = to_channels_last(x, s.images, s.channels, last.x, s.channels + kGap);
  other = to_channels_last(other, s.images, s.rows, last.other, s.rows + 2 * kGap);
  Floats y = to_channels_last(Floats(s.images * s.rows * oh * ow, 1e30f), s.images, s.rows, last.y, pitch);
  std::vector<View> in = {testing::view(x, DType::f32, {s.images, s.channels, s.height, s.width}), weights};
  if (last.x) in[0].pitch = s.channels + kGap;
  if (!bias.empty()) in.push_back(testing::view(bias, DType::f32, {s.rows}));
  View out = testing::view(y, DType::f32, {s.images, s.rows, oh, ow}),
       addend = testing::view(other, DType::f32, {s.images, s.rows, oh, ow});
  if (last.y) out.pitch = pitch;
  if (last.other) addend.pitch = s.rows + 2 * kGap;
  struct alignas(64) CacheLine {
    char bytes[64];
  };
  std::vector<CacheLine> memory(packed && k.pack_bytes ? k.pack_bytes(in[1], 1, attrs) / sizeof(CacheLine) + 1
                                                       : 0);
  if (!memory.empty()) {
    k.pack(in[1], 1, attrs, memory.data());
    in[1].data = memory.data(), in[1].packed = true;
  }
  const FusedOps followers{{out, addend}, {out}, sum, relu, isa};
  const Epilogue e{FusedOps::run, &followers, true, relu, sum ? &addend : nullptr};
  testing::run(k, in, {&out, 1}, attrs, sum || relu ? &e : nullptr);
  return last.y ? channels_first(y, s.images, s.rows, oh * ow, pitch) : y;
}

// The last set before the reference: the scalar one, where this build has it.
std::string_view plainest_isa() {
  return isas()[isas().size() - 2];
}

TEST(Conv, WhatFollowsHasTheBytesOfItself) {
  int ran = 0;
  size_t turn = 0;
  for (const EpilogueSetting& s : kEpilogueSettings)
    for (auto kind : num::testing::kKinds) {
      if (INVAR_EMULATED && ++turn % 4) continue;
      const int64_t n = s.images * s.rows * s.out(s.height) * s.out(s.width);
      const Floats x = adversarial(kind, s.images * s.channels * s.height * s.width, 1);
      const Floats w = adversarial(kind, s.rows * s.channels / s.groups * s.kernel * s.kernel, 2);
      const Floats other = adversarial(kind, n, 3);
      Floats large = adversarial(num::testing::Kind::near_one, s.rows, 4), mixed = large;
      for (float& b : large) b *= 0x1p-98f;  // the smallest bias that does not count as small
      for (int64_t i = 0; i < s.rows; i += 5) mixed[i] = i % 2 ? -0.0f : 0x1p-130f;
      for (const Floats& bias : {Floats(), large, mixed}) {
        const Floats expected = convolve(s, plainest_isa(), false, x, w, bias, other, false, false);
        for (int follow = 0; follow < 4; ++follow) {
          const bool sum = follow & 1, relu = follow & 2;
          Floats then = expected, result(then.size());
          View a[] = {testing::view(then, DType::f32, {n}), {}};
          Floats copy = other;
          a[1] = testing::view(copy, DType::f32, {n});
          const View out = testing::view(result, DType::f32, {n});
          if (sum) testing::run(*find_cpu_kernel("add", "reference"), a, {&out, 1}), then = result;
          if (relu) testing::run(*find_cpu_kernel("relu", "reference"), {a, 1}, {&out, 1}), then = result;
          for (std::string_view isa : isas())
            for (bool packed : {false, true}) {
              if (!find_cpu_kernel("conv", isa)->add_relu_epilogue) continue;  // the reference
              const Floats y = convolve(s, isa, packed, x, w, bias, other, sum, relu);
              EXPECT_EQ(std::memcmp(y.data(), then.data(), n * sizeof(float)), 0)
                  << isa << " channels " << s.channels << " kind " << static_cast<int>(kind) << " bias "
                  << bias.size() << " sum " << sum << " relu " << relu << " packed " << packed;
              for (int mask = 1; packed && mask < 8; ++mask) {
                const ChannelsLast last{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
                if (last.other ? !sum : sum && last.y) continue;
                const Floats z = convolve(s, isa, true, x, w, bias, other, sum, relu, last);
                ran += !z.empty();
                EXPECT_TRUE(z.empty() || std::memcmp(z.data(), then.data(), n * sizeof(float)) == 0)
                    << isa << " channels " << s.channels << " rows " << s.rows << " kind "
                    << static_cast<int>(kind) << " bias " << bias.size() << " sum " << sum << " relu " << relu
                    << " last: x " << last.x << " y " << last.y << " other " << last.other;
              }
            }
        }
      }
    }
  EXPECT_GT(ran, INVAR_EMULATED ? 250 : 1000);
}

TEST(Conv, WhichHaveARowForChannelsLast) {
  const CpuKernel* const row = find_cpu_kernel("conv", "scalar");
  if (!row) GTEST_SKIP() << "this build has no scalar kernels";
  Floats none;
  using List = std::vector<int64_t>;
  auto has = [&](std::initializer_list<int64_t> shape, const Attributes& attrs) {
    int64_t pitch = 0;
    return row->channels_last(testing::view(none, DType::f32, shape), attrs, pitch) != nullptr;
  };
  EXPECT_TRUE(has({64, 64, 3, 3}, {{"pads", List{1, 1, 1, 1}}}));
  EXPECT_TRUE(has({64, 64, 1, 1}, {}));
  EXPECT_FALSE(has({64, 1, 3, 3}, {{"groups", int64_t{64}}}));  // depthwise
  EXPECT_FALSE(has({33, 64, 3, 3}, {}));                        // half of a panel would be empty
  EXPECT_FALSE(has({64, 64, 1, 1}, {{"pads", List{1, 1, 1, 1}}}));
  EXPECT_FALSE(has({64, 64, 3, 3}, {{"pads", List{1, 1}}}));  // check() refuses it
  EXPECT_FALSE(has({64, 64, 3, 3}, {{"strides", List{1 << 20, 1}}}));
  EXPECT_TRUE(has({64, 3, 7, 7}, {{"strides", List{2, 2}}}));
  EXPECT_FALSE(has({64, 64, 9, 9}, {}));  // 81 taps of an indirection buffer
  EXPECT_TRUE(has({64, 64, 3, 3}, {{"dilations", List{36, 36}}, {"pads", List{36, 36, 36, 36}}}));
  EXPECT_FALSE(has({64, 64, 3, 3}, {{"dilations", List{1 << 20, 1}}}));
}

}  // namespace
}  // namespace invar::ops
