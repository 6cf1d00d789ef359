// The fuzzer and the doctor find wrong kernels: defects of the kinds that real kernels have,
// planted into a copy of every room's best row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/opset.h"
#include "conformance/doctor.h"
#include "fuzz.h"
#include "num/env.h"

namespace invar::conformance {
namespace {

const ops::CpuKernel* original;  // the row that the planted one copies

std::byte* last_element(const ops::Call& call) {
  const ops::View& out = call.out[0];
  const int64_t n = out.elements();
  return n ? static_cast<std::byte*>(out.data) + static_cast<size_t>(n - 1) * size_of(out.dtype) : nullptr;
}

// Skips everything after this phase of a call.
bool is_last(const ops::Call& call, int phase) {
  for (int later = phase + 1; later < original->phases; ++later)
    if (original->units(call, later) > 0) return false;
  return true;
}

// Flips one bit of the last element if the number of elements is not a multiple of a vector.
void wrong_tail(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  original->run(call, phase, begin, end, scratch);
  if (is_last(call, phase) && end == original->units(call, phase) && call.out[0].elements() % 4 != 0)
    if (std::byte* at = last_element(call)) *at ^= std::byte{1};
}
// Skips the last unit of a range that does not begin at the first.
void wrong_split(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  original->run(call, phase, begin, begin > 0 ? end - 1 : end, scratch);
}
// Writes a whole vector where only part of one is left.
void wrong_end(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  original->run(call, phase, begin, end, scratch);
  if (end == original->units(call, phase))
    if (std::byte* at = last_element(call);
        at && (call.out[0].elements() % 8 > 4 || call.out[0].elements() == 1))
      std::memset(at + size_of(call.out[0].dtype), 0, size_of(call.out[0].dtype));
}

Pool& pool() {
  static Pool p(3, [](const std::function<void()>& work) {
    const num::ArithmeticEnv env;
    work();
  });
  return p;
}

struct Plant {
  const char* name;
  void (*run)(const ops::Call&, int, int64_t, int64_t, void*);
};

class Planted : public testing::TestWithParam<Plant> {};

TEST_P(Planted, FuzzerFindsItInEveryRoom) {
  const num::ArithmeticEnv env;
  for (const OpInfo& info : opset()) {
    auto room = read_room(info);
    ASSERT_TRUE(room);
    original = ops::find_cpu_kernel(info.op);
    ops::CpuKernel wrong = *original;
    wrong.run = GetParam().run;
    const Subject s{room->op, ops::find_cpu_kernel(info.op, "reference"), {&wrong}, room->cases};
    Tally tally;
    std::optional<Failure> found;
    for (uint64_t seed = 0; seed < 1500 && !found; ++seed) found = fuzz(s, seed, 1 << 14, pool(), tally);
    ASSERT_TRUE(found) << GetParam().name << " in " << info.op;
    // The small case fails, too, in the mode that is printed.
    const auto c = accepted(s.op, found->shrunk, 1 << 14);
    const auto manner = run_mode_from(found->manner, pool());
    ASSERT_TRUE(c && manner) << found->shrunk << " " << found->manner;
    EXPECT_NE(compare(s, &wrong, *c, *manner, tally), "") << found->shrunk;
    EXPECT_LE(found->shrunk.size(), found->text.size());
  }
}

// Does not report the last unit of a range to the epilogue callback, or omits the end of a long row
// of a region.
void unreported(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  ops::Call silent = call;
  silent.cpu.epilogue = nullptr;
  original->run(call, phase, begin, end - 1, scratch);
  original->run(silent, phase, end - 1, end, scratch);
}
void short_region(const ops::Call& call, const ops::Region& r) {
  original->region(call, {r.at, r.n > 8 ? r.n - 1 : r.n, r.rows, r.pitch});
}

TEST(Fused, FuzzerFindsWhatIsNotTold) {
  const num::ArithmeticEnv env;
  int reported = 0, by_regions = 0;
  for (const OpInfo& info : opset()) {
    auto room = read_room(info);
    ASSERT_TRUE(room);
    original = ops::find_cpu_kernel(info.op);
    for (const bool region : {false, true}) {
      if (region ? !original->region : !original->epilogue) continue;
      ++(region ? by_regions : reported);
      ops::CpuKernel wrong = *original;
      if (region)
        wrong.region = short_region;
      else
        wrong.run = unreported;
      const Subject s{room->op, ops::find_cpu_kernel(info.op, "reference"), {&wrong}, room->cases};
      Tally tally;
      std::optional<Failure> found;
      for (uint64_t seed = 0; seed < 1500 && !found; ++seed) found = fuzz(s, seed, 1 << 14, pool(), tally);
      EXPECT_TRUE(found) << info.op << (region ? ": regions" : ": reported");
    }
  }
  EXPECT_GT(reported, by_regions);
  EXPECT_GT(by_regions, 0);
}

// Wrong where some constants are packed and others are not.
void wrong_mixture(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  original->run(call, phase, begin, end, scratch);
  bool packed = false, plain = false;
  for (size_t i = 0; i < call.in.size(); ++i) {
    ops::View v = call.in[i];
    packed |= v.packed, v.packed = false;
    plain |= !call.in[i].packed && original->pack_bytes(v, static_cast<int>(i), *call.attrs) > 0;
  }
  if (packed && plain && is_last(call, phase))
    if (std::byte* at = last_element(call)) *at ^= std::byte{1};
}
// Whether two operands or more of a case can be packed.
bool packs_several(const Case& c) {
  int several = 0;
  for (size_t i = 0; i < c.in.size(); ++i) {
    ops::View v;
    v.dtype = c.in[i].dtype, v.rank = static_cast<int>(c.in[i].shape.size());
    std::copy(c.in[i].shape.begin(), c.in[i].shape.end(), v.dim);
    several += c.in[i].constant && original->pack_bytes(v, static_cast<int>(i), c.attrs) > 0;
  }
  return several > 1;
}

TEST(Mixed, FuzzerPacksSomeOperands) {
  const num::ArithmeticEnv env;
  int mixed = 0;
  for (const OpInfo& info : opset()) {
    auto room = read_room(info);
    ASSERT_TRUE(room);
    original = ops::find_cpu_kernel(info.op);
    if (!original->pack_bytes || std::ranges::none_of(room->cases, packs_several)) continue;
    ++mixed;
    ops::CpuKernel wrong = *original;
    wrong.run = wrong_mixture;
    const Subject s{room->op, ops::find_cpu_kernel(info.op, "reference"), {&wrong}, room->cases};
    Tally tally;
    std::optional<Failure> found;
    for (uint64_t seed = 0; seed < 1500 && !found; ++seed) found = fuzz(s, seed, 1 << 14, pool(), tally);
    EXPECT_TRUE(found) << info.op;
  }
  EXPECT_GT(mixed, 1);
}

// `3*` before an operand is three of them.
TEST(Cases, RepeatOperands) {
  const auto c = parse("f32[2,1]:one i64[2]:below(3) 3*@f32[1,2]:one -> f32[2,2] | seed=1", "", "");
  ASSERT_TRUE(c && c->size() == 1);
  EXPECT_EQ(c->front().text,
            "f32[2,1]:one i64[2]:below(3) @f32[1,2]:one @f32[1,2]:one @f32[1,2]:one -> f32[2,2] | seed=1");
  EXPECT_FALSE(parse("f32[2,1]:one 3*4*f32[1]:one -> f32[2,2]", "", ""));
}

INSTANTIATE_TEST_SUITE_P(All, Planted,
                         testing::Values(Plant{"tail", wrong_tail}, Plant{"split", wrong_split},
                                         Plant{"end", wrong_end}),
                         [](const auto& p) { return p.param.name; });

// Every element's lowest bit, every time: a row whose flags or instructions are wrong.
void wrong_everywhere(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  original->run(call, phase, begin, end, scratch);
  if (is_last(call, phase))
    if (std::byte* at = last_element(call)) *at ^= std::byte{1};
}
// The same, but not the same twice: what a failing processor does.
void unstable(const ops::Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  static int count = 0;
  original->run(call, phase, begin, end, scratch);
  if (std::byte* at = last_element(call); at && ++count % 2) *at ^= std::byte{2};
}

TEST(Doctor, NamesAWrongRow) {
  const num::ArithmeticEnv env;
  const auto room = read_room(opset().front());
  ASSERT_TRUE(room);
  original = ops::find_cpu_kernel(room->op);
  ops::CpuKernel wrong = *original;
  wrong.run = wrong_everywhere;
  const ops::KernelRef rows[] = {original, &wrong};
  Pool one(1);
  const Examination e = examine(rows, {&*room, 1}, one);
  EXPECT_EQ(e.wrong(original), 0);
  EXPECT_GT(e.wrong(&wrong), 0);
  EXPECT_EQ(e.checks.at(&wrong), static_cast<int64_t>(room->vectors.size() + room->golden.size()));
  for (const Finding& f : e.findings) EXPECT_TRUE(f.stable) << f.text;
  EXPECT_NE(suspicion(e, &wrong).find("this row alone"), std::string::npos);

  wrong.run = unstable;
  const Examination u = examine(rows, {&*room, 1}, one);
  EXPECT_GT(u.wrong(&wrong), 0);
  EXPECT_NE(suspicion(u, &wrong).find("faulty processor"), std::string::npos);
}

TEST(Doctor, HasVectorsAndDigestsOfEveryOperation) {
  for (const OpInfo& info : opset()) {
    auto room = read_room(info);
    ASSERT_TRUE(room) << room.error().message;
    auto file = read_room(info, INVAR_SOURCE_DIR "/src/ops");
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(room->golden.size(), file->golden.size());
    for (size_t g = 0; g < room->golden.size(); ++g) EXPECT_EQ(room->golden[g].text, file->golden[g].text);
  }
}

// Texts taken apart and joined are the same texts, and what the harness prints is what the fuzzer
// reads.
TEST(Mutate, PiecesJoinToTheText) {
  for (const OpInfo& info : opset()) {
    auto room = read_room(info);
    ASSERT_TRUE(room);
    for (const Case& c : room->cases) EXPECT_EQ(join(pieces_of(c.text)), c.text);
  }
}
TEST(Mutate, MannersReadBack) {
  for (const RunMode& m :
       {RunMode{}, RunMode{.parts = 0, .reversed = true, .chunk = 7, .skew = 3, .pool = &pool()},
        RunMode{.chunk = 1, .batching = RunMode::Batching::ragged},
        RunMode{.chunk = 1, .batching = RunMode::Batching::separate, .pages = true},
        RunMode{.parts = 5, .packed = false, .fused = true},
        RunMode{.parts = 2, .plain = 0x9000000000000005}}) {
    const auto back = run_mode_from(m.text(), pool());
    ASSERT_TRUE(back) << m.text();
    EXPECT_EQ(back->text(), m.text());
  }
  EXPECT_FALSE(run_mode_from("sideways", pool()));
}

}  // namespace
}  // namespace invar::conformance
