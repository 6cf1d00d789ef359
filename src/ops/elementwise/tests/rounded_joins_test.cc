// Rows that two ranks make together and round (kernels/fusion/join_kernels.h, RoundedJoin): the
// bytes of the whole f32 rows, rounded by the oracle. Two queues of one GPU take the place of two
// GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/attributes.h"
#include "device/device.h"
#include "kernels/fusion/join_kernels.h"
#include "kernels/fusion/rounding_reference.h"
#include "kernels/registry.h"

namespace invar::ops {
namespace {

constexpr int kRanks = 2;
constexpr uint64_t kPatience = 5'000'000'000;    // nanoseconds
using OpsAhead = std::vector<std::string_view>;  // of the join
const Attributes kOfProducts, kLastAxis{{"axis", int64_t{1}}};

View rows_at(void* data, int64_t rows, int64_t k) {
  return {data, DType::f32, 2, false, {rows, k}};
}

// Rows of many magnitudes; of eight rows one is zero, one of subnormals, one has a NaN.
std::vector<float> seeded_rows(int64_t rows, int64_t k, uint32_t seed) {
  std::vector<float> x(static_cast<size_t>(rows * k));
  for (int64_t i = 0; i < rows * k; ++i) {
    seed = seed * 1664525 + 1013904223;
    const int64_t r = i / k;
    const float small = static_cast<float>(static_cast<int32_t>(seed >> 8) - (1 << 23)) * 0x1p-21f;
    float& one = x[static_cast<size_t>(i)] = std::ldexp(small, static_cast<int>(r % 5) * 3 - 6);
    if (r % 8 == 3) one = 0;
    if (r % 8 == 5) one = small * 0x1p-100f * 0x1p-27f;
    if (r % 8 == 6 && i % k == k - 1) one = NAN;
  }
  return x;
}

class RoundedJoins : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto& gpu : gpus_) {
      auto opened = Device::open();
      if (!opened) GTEST_SKIP() << "no GPU here: " << opened.error().message;
      gpu = *std::move(opened);
      gpu->make_current();
    }
  }
  void TearDown() override { forget(); }
  void forget() {
    for (void* p : taken_) gpus_[0]->free(p);
    taken_.clear();
  }
  void* take(size_t bytes, int byte = 0) {
    const auto p = gpus_[0]->allocate(bytes, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    taken_.push_back(*p);
    EXPECT_TRUE(gpus_[0]->fill(*p, byte, bytes));
    EXPECT_TRUE(gpus_[0]->wait());
    return *p;
  }
  // Columns [begin, end) of rows of k elements.
  View put(const std::vector<float>& x, int64_t k, int64_t begin, int64_t end) {
    std::vector<float> part;
    for (size_t at = 0; at < x.size(); at += static_cast<size_t>(k))
      part.insert(part.end(), x.begin() + static_cast<int64_t>(at) + begin,
                  x.begin() + static_cast<int64_t>(at) + end);
    void* const p = take(part.size() * 4 + 4);
    EXPECT_TRUE(gpus_[0]->upload(p, part.data(), part.size() * 4));
    EXPECT_TRUE(gpus_[0]->wait());
    return rows_at(p, static_cast<int64_t>(x.size()) / k, end - begin);
  }

  // The calls of a chain of columns [begin, end), and what they refer to.
  struct Chain {
    View x, up, act, out, mul_in[2];
    std::vector<Call> calls;
  };
  void fill(Chain& c, const OpsAhead& names, const std::vector<float>& x, const std::vector<float>& up,
            int64_t k, int64_t begin, int64_t end) {
    c.x = put(x, k, begin, end), c.up = put(up, k, begin, end);
    c.act = put(x, k, begin, end), c.out = put(x, k, begin, end);
    if (names.size() == 2) c.calls.push_back({{&c.x, 1}, {&c.act, 1}, &kOfProducts});
    c.mul_in[0] = names.size() == 2 ? c.act : c.x, c.mul_in[1] = c.up;
    if (!names.empty()) c.calls.push_back({c.mul_in, {&c.out, 1}, &kOfProducts});
  }
  std::vector<float> whole(const OpsAhead& names, const std::vector<float>& x, const std::vector<float>& up,
                           int64_t k) {
    Chain c;
    fill(c, names, x, up, k, 0, k);
    for (size_t i = 0; i < names.size(); ++i)
      find_gpu_kernel(names[i])->enqueue(c.calls[i], gpus_[0]->stream());
    return read(names.empty() ? c.x : c.out);
  }

  void expect_rounded(const OpsAhead& names, int64_t rows, int64_t k, int64_t cut, int height) {
    SCOPED_TRACE((names.empty() ? "part" : std::string(names[0])) + " " + std::to_string(rows) + " x " +
                 std::to_string(cut) + " + " + std::to_string(k - cut));
    OpsAhead chain = names;
    chain.push_back(kJoin);
    const RoundedJoin* const kernel = find_rounded_join(chain);
    ASSERT_NE(kernel, nullptr);
    const auto x = seeded_rows(rows, k, 1), up = seeded_rows(rows, k, 7);
    reference::RoundedMemory expected(rows, k, height, 0x5a);
    expected.round(whole(names, x, up, k).data());
    Chain chains[kRanks];
    View in[kRanks][kRanks];
    const View out = rows_at(nullptr, rows, k);
    Calls calls[kRanks];
    for (int r = 0; r < kRanks; ++r) {
      fill(chains[r], names, x, up, k, r ? cut : 0, r ? k : cut);
      parts(in[r], r, rows, k, cut, (names.empty() ? chains[r].x : chains[r].out).data);
      chains[r].calls.push_back({in[r], {&out, 1}, &kLastAxis});
      for (const Call& call : chains[r].calls) calls[r].push_back(&call);
    }
    run(*kernel, calls, rows * std::max(cut, k - cut) * 4, expected);
  }

  // A join with its sum and the norm behind it.
  void expect_normalized(int64_t rows, int64_t k, int64_t cut, bool adds) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cut) + " + " + std::to_string(k - cut));
    const RoundedJoin* const kernel =
        find_rounded_join(adds ? OpsAhead{kJoin, kAddition, "rmsnorm"} : OpsAhead{kJoin, "rmsnorm"});
    ASSERT_NE(kernel, nullptr);
    const auto x = seeded_rows(rows, k, 1), more = seeded_rows(rows, k, 9), weight = seeded_rows(1, k, 5);
    const View residual = put(more, k, 0, k), all = put(x, k, 0, k), sums = put(x, k, 0, k);
    const View w{put(weight, k, 0, k).data, DType::f32, 1, false, {k}}, y = put(x, k, 0, k);
    const View terms[] = {residual, all}, of_norm[] = {adds ? sums : all, w};
    const Call add{terms, {&sums, 1}, &kOfProducts}, norm{of_norm, {&y, 1}, &kOfProducts};
    if (adds) find_gpu_kernel("add")->enqueue(add, gpus_[0]->stream());
    find_gpu_kernel("rmsnorm")->enqueue(norm, gpus_[0]->stream());
    const std::vector<float> sum = read(of_norm[0]);
    reference::RoundedMemory expected(rows, k, 16, 0x5a);
    expected.round(read(y).data());
    struct OfRank {
      View in[kRanks], out, terms[2], of_norm[2];
    } of[kRanks];
    std::vector<Call> made[kRanks];
    Calls calls[kRanks];
    for (int r = 0; r < kRanks; ++r) {
      OfRank& o = of[r];
      parts(o.in, r, rows, k, cut, put(x, k, r ? cut : 0, r ? k : cut).data);
      o.out = put(more, k, 0, k), o.terms[0] = residual, o.terms[1] = o.out, o.of_norm[0] = o.out;
      o.of_norm[1] = w;
      made[r].push_back({o.in, {&o.out, 1}, &kLastAxis});
      if (adds) made[r].push_back({o.terms, {&o.out, 1}, &kOfProducts});
      made[r].push_back({o.of_norm, {&y, 1}, &kOfProducts});
      for (const Call& call : made[r]) calls[r].push_back(&call);
    }
    run(*kernel, calls, rows * std::max(cut, k - cut) * 4, expected);
    for (const OfRank& o : of) {
      const std::vector<float> left = read(o.out);
      EXPECT_EQ(std::memcmp(left.data(), sum.data(), sum.size() * 4), 0) << "the sum";
    }
  }

 private:
  using Calls = std::vector<const Call*>;
  std::vector<float> read(const View& v) {
    std::vector<float> x(static_cast<size_t>(v.elements()));
    EXPECT_TRUE(gpus_[0]->download(x.data(), v.data, x.size() * 4));
    EXPECT_TRUE(gpus_[0]->wait());
    return x;
  }
  static void parts(View* in, int rank, int64_t rows, int64_t k, int64_t cut, void* own) {
    for (int i = 0; i < kRanks; ++i) in[i] = rows_at(nullptr, rows, i ? k - cut : cut);
    in[rank].data = own;
  }
  void run(const RoundedJoin& kernel, const Calls (&calls)[kRanks], int64_t part_bytes,
           reference::RoundedMemory& expected) {
    const size_t mailbox = find_join_kernel("concat")->mailbox_bytes(kRanks, part_bytes);
    std::byte* const mailboxes[] = {static_cast<std::byte*>(take(mailbox)),
                                    static_cast<std::byte*>(take(mailbox))};
    static const int makers[] = {0, 1};
    struct Header {
      uint32_t base, stalled;
    } const header{1, 0};
    void *found[kRanks], *headers[kRanks];
    for (int r = 0; r < kRanks; ++r) {
      found[r] = take(expected.size(), 0x5a), headers[r] = take(sizeof header);
      ASSERT_TRUE(gpus_[0]->upload(headers[r], &header, sizeof header));
      ASSERT_TRUE(kernel.can_round(calls[r]));
    }
    ASSERT_TRUE(gpus_[0]->wait());
    for (uint32_t number = 0; number < 3; ++number)  // each half of the mailboxes, and one again
      for (int r = 0; r < kRanks; ++r) {
        GpuJoin join;
        join.ranks = kRanks, join.rank = r, join.makers = makers, join.mailboxes = mailboxes;
        join.part_bytes = part_bytes, join.number = number;
        auto* const words = static_cast<uint32_t*>(headers[r]);
        join.base = words, join.stalled = words + 1, join.patience = kPatience;
        ASSERT_TRUE(kernel.takes(calls[r], join));
        kernel.enqueue(calls[r], join, expected.at(found[r]), gpus_[r]->stream());
      }
    for (int r = 0; r < kRanks; ++r) {
      const Status done = gpus_[r]->wait();
      ASSERT_TRUE(done) << done.error().message;
      std::vector<uint8_t> bytes(expected.size());
      Header after{};
      ASSERT_TRUE(gpus_[r]->download(bytes.data(), found[r], bytes.size()));
      ASSERT_TRUE(gpus_[r]->download(&after, headers[r], sizeof after));
      ASSERT_TRUE(gpus_[r]->wait());
      EXPECT_EQ(after.stalled, 0U) << "rank " << r;
      const auto differs = std::mismatch(bytes.begin(), bytes.end(), expected.data()).first;
      EXPECT_TRUE(differs == bytes.end())
          << "rank " << r << ": byte " << differs - bytes.begin() << " of " << bytes.size();
    }
  }
  std::shared_ptr<Device> gpus_[kRanks];
  std::vector<void*> taken_;
};

TEST_F(RoundedJoins, HaveTheBytesOfOneRank) {
  const OpsAhead chains[] = {{}, {"mul"}, {"silu", "mul"}, {"gelu", "mul"}, {"relu", "mul"}};
  for (const OpsAhead& names : chains)
    for (const auto& [k, cut] : {std::pair<int64_t, int64_t>{8, 4},
                                 {132, 64},
                                 {260, 4},
                                 {4096, 2048},
                                 {14336, 7168},
                                 {32768, 20000}})
      for (const int64_t rows : {1, 9})
        if (rows == 1 || k < 32768) expect_rounded(names, rows, k, cut, rows == 1 ? 8 : 16), forget();
}

TEST_F(RoundedJoins, NormalizeTheSumThatTheyLeave) {
  for (const auto& [k, cut] : {std::pair<int64_t, int64_t>{260, 4}, {2048, 1024}, {4096, 2048}, {8192, 4096}})
    for (const int64_t rows : {1, 9})
      for (const bool adds : {true, false}) expect_normalized(rows, k, cut, adds), forget();
}

TEST(RoundedJoinKernels, RefuseWhatTheyDoNotHold) {
  if (gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  const RoundedJoin* const kernel = find_rounded_join(OpsAhead{kJoin});
  ASSERT_NE(kernel, nullptr);
  const auto rounds = [&](const std::vector<int64_t>& parts, DType dtype = DType::f32) {
    std::vector<View> in;
    int64_t k = 0;
    for (const int64_t part : parts) in.push_back(rows_at(nullptr, 3, part)), k += part;
    View out = rows_at(nullptr, 3, k);
    for (View& v : in) v.dtype = dtype;
    out.dtype = dtype;
    const Call call{in, {&out, 1}, &kLastAxis}, *const one = &call;
    return kernel->can_round({&one, 1});
  };
  EXPECT_TRUE(rounds({64, 32}));
  EXPECT_FALSE(rounds({96}));            // of one rank
  EXPECT_FALSE(rounds({62, 34}));        // no whole quads
  EXPECT_FALSE(rounds({20000, 20000}));  // longer than the kernel holds
  EXPECT_FALSE(rounds({64, 32}, DType::i32));
  EXPECT_EQ(find_rounded_join(OpsAhead{"tanh", "mul", kJoin}), nullptr);
}

}  // namespace
}  // namespace invar::ops
