// plan.13: which programs may run a library's rows, and that these compute what the operation says. The library is planted.cc.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ops/library.h"
#include "ops/testing.h"
#include "run/testing.h"

namespace invar {
namespace {

// Whoever looks for the library by name from now on finds the one that is there already.
[[maybe_unused]] void* const planted = dlopen(PLANTED_LIBRARY, RTLD_NOW | RTLD_LOCAL);

using ops::find;
using ops::find_library;
using ops::library_rows;
using ops::LibraryRow;

constexpr DType kFloats[] = {DType::f32, DType::f32};

TEST(Sets, TheLibraryIsThere) {
  ASSERT_TRUE(planted) << dlerror();
  ASSERT_FALSE(library_rows().empty());
  const LibraryRow* const row = find_library("matmul", kFloats, OperationSet::any, false);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->library->version(), "99.1.0");
  constexpr DType kNarrow[] = {DType::f32, DType::bf16};
  EXPECT_FALSE(find_library("matmul", kNarrow, OperationSet::any, false));
  EXPECT_EQ(row, find_library("matmul", kFloats, OperationSet::deterministic, false));
}

TEST(Sets, NothingOfALibraryIsReproducible) {
  for (const LibraryRow* r : library_rows()) {
    EXPECT_NE(r->keeps, OperationSet::reproducible) << r->kernel->isa;
    EXPECT_FALSE(find(r->kernel->op, r->kernel->isa)) << r->kernel->isa;
    for (const ops::Kernel* k : ops::kernels()) {
      EXPECT_NE(k, r->kernel);
      EXPECT_NE(k->isa, r->kernel->isa) << k->op;
    }
    EXPECT_TRUE(std::ranges::none_of(ops::isas(), [&](auto isa) { return isa == r->kernel->isa; }));
  }
  for (const ops::Kernel* k : ops::kernels())
    for (const bool gpu : {false, true}) {
      EXPECT_FALSE(find_library(k->op, kFloats, OperationSet::reproducible, gpu)) << k->op;
      for (const OperationSet set : {OperationSet::any, OperationSet::deterministic})
        if (const LibraryRow* r = find_library(k->op, kFloats, set, gpu)) {
          EXPECT_GE(r->keeps, set) << k->op;
        }
    }
}

// Small integers, so that every order of every sum is exact.
std::vector<float> integers(int64_t n, int64_t step) {
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(i * step % 17 - 8));
  return v;
}

struct Shape {
  int64_t batches, m, n, k;
};

TEST(Sets, ALibrarysRowComputesTheOperation) {
  const ops::Kernel &row = *find_library("matmul", kFloats, OperationSet::any, false)->kernel,
                    &truth = *find("matmul", "reference");
  for (const Shape& s : {Shape{1, 1, 40, 70},
                         {1, 31, 33, 5},
                         {1, 32, 1, 1},
                         {1, 65, 193, 40},
                         {3, 40, 7, 19},
                         {1, 200, 400, 30},
                         {2, 33, 50, 0}})
    for (const int64_t trans_a : {0, 1})
      for (const int64_t trans_b : {0, 1})
        for (const bool packed : {false, true}) {
          std::vector<float> a = integers(s.batches * s.m * s.k, 7), b = integers(s.batches * s.n * s.k, 5),
                             found(s.batches * s.m * s.n, -1), wanted = found;
          const Attrs attrs{{"trans_a", trans_a}, {"trans_b", trans_b}};
          ops::View in[] = {
              ops::testing::view(a, DType::f32, {s.batches, trans_a ? s.k : s.m, trans_a ? s.m : s.k}),
              ops::testing::view(b, DType::f32, {s.batches, trans_b ? s.n : s.k, trans_b ? s.k : s.n})};
          ops::View to = ops::testing::view(wanted, DType::f32, {s.batches, s.m, s.n}), out = to;
          out.data = found.data();
          ops::testing::run(truth, in, {&to, 1}, attrs);
          std::vector<float> memory;
          if (packed) {
            const size_t bytes = row.pack_bytes(in[1], 1, attrs);
            if (!bytes) continue;
            memory.resize(bytes / sizeof(float) + 32);
            const size_t past = reinterpret_cast<uintptr_t>(memory.data()) % 64;
            void* const at = reinterpret_cast<std::byte*>(memory.data()) + (64 - past);
            row.pack(in[1], 1, attrs, at);
            in[1].data = at, in[1].packed = true;
          }
          ops::testing::run(row, in, {&out, 1}, attrs);
          EXPECT_EQ(0, std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)))
              << s.batches << ' ' << s.m << ' ' << s.n << ' ' << s.k << ' ' << trans_a << trans_b << packed;
        }
}

TEST(Sets, AProgramRunsWhatItsSetAllows) {
  const run::TinyModel model;
  for (const OperationSet set :
       {OperationSet::any, OperationSet::deterministic, OperationSet::reproducible}) {
    plan::Plan p = model.plan;
    p.operation_set = set;
    auto uses = [&](const run::Options& o) {
      auto s = run::Session::open(p, model.folder, o);
      EXPECT_TRUE(s) << s.error().message;
      return std::pair(s->libraries(), s->kernels());
    };
    const auto [libraries, kernels] = uses(run::options());
    const bool library = set != OperationSet::reproducible;
    EXPECT_EQ(libraries, library ? std::vector<std::string>{"oneDNN 99.1.0"} : std::vector<std::string>{});
    EXPECT_EQ(std::ranges::count(kernels, "matmul onednn"), library);
    // Who names an instruction set gets it.
    EXPECT_TRUE(uses(run::options(1, std::string(ops::isas().front()))).first.empty());
  }
}

}  // namespace
}  // namespace invar
