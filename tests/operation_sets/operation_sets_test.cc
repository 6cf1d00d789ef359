// plan.13: which programs may run vendor rows, and that these compute what the operation says. The
// library is planted.cc.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/testing.h"
#include "kernels/vendor/vendor_kernel.h"
#include "run/function.h"

namespace invar {
namespace {

// Whoever looks for the library by name from now on finds the one that is there already.
[[maybe_unused]] void* const planted = dlopen(PLANTED_LIBRARY, RTLD_NOW | RTLD_LOCAL);

using ops::find_vendor;
using ops::vendor_rows;
using ops::VendorRow;

constexpr ops::OperandInfo kFloats[] = {{DType::f32, false}, {DType::f32, false}};

TEST(Sets, TheLibraryIsThere) {
  ASSERT_TRUE(planted) << dlerror();
  ASSERT_FALSE(vendor_rows().empty());
  const VendorRow* const row = find_vendor("matmul", kFloats, OperationSet::any, false);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->library->version(), "99.1.0");
  constexpr ops::OperandInfo kNarrow[] = {{DType::f32, false}, {DType::bf16, false}},
                             kConstant[] = {{DType::f32, false}, {DType::f32, true}};
  EXPECT_FALSE(find_vendor("matmul", kNarrow, OperationSet::any, false));
  EXPECT_FALSE(find_vendor("matmul", kConstant, OperationSet::any, false));
  EXPECT_EQ(row, find_vendor("matmul", kFloats, OperationSet::deterministic, false));
}

TEST(Sets, NothingOfALibraryIsReproducible) {
  for (const VendorRow* r : vendor_rows()) {
    EXPECT_NE(r->keeps, OperationSet::reproducible) << r->kernel.isa();
    EXPECT_FALSE(ops::find_cpu_kernel(r->kernel.op(), r->kernel.isa())) << r->kernel.isa();
    for (const ops::CpuKernel* k : ops::cpu_kernels()) {
      EXPECT_NE(k, r->kernel.cpu);
      EXPECT_NE(k->isa, r->kernel.isa()) << k->op;
    }
    for (const ops::GpuKernel* k : ops::gpu_kernels()) {
      EXPECT_NE(k, r->kernel.gpu);
      EXPECT_NE(k->isa, r->kernel.isa()) << k->op;
    }
    EXPECT_TRUE(std::ranges::none_of(ops::isas(), [&](auto isa) { return isa == r->kernel.isa(); }));
  }
  for (const ops::CpuKernel* k : ops::cpu_kernels())
    for (const bool gpu : {false, true}) {
      EXPECT_FALSE(find_vendor(k->op, kFloats, OperationSet::reproducible, gpu)) << k->op;
      for (const OperationSet set : {OperationSet::any, OperationSet::deterministic})
        if (const VendorRow* r = find_vendor(k->op, kFloats, set, gpu)) {
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
  const ops::CpuKernel &row = *find_vendor("matmul", kFloats, OperationSet::any, false)->kernel.cpu,
                       &truth = *ops::find_cpu_kernel("matmul", "reference");
  for (const Shape& s : {Shape{1, 1, 40, 70},
                         {1, 31, 33, 5},
                         {1, 32, 1, 1},
                         {1, 65, 193, 40},
                         {3, 40, 7, 19},
                         {1, 200, 400, 30},
                         {2, 33, 50, 0}})
    for (const int64_t trans_a : {0, 1})
      for (const int64_t trans_b : {0, 1}) {
        std::vector<float> a = integers(s.batches * s.m * s.k, 7), b = integers(s.batches * s.n * s.k, 5),
                           found(s.batches * s.m * s.n, -1), wanted = found;
        const Attributes attrs{{"trans_a", trans_a}, {"trans_b", trans_b}};
        ops::View in[] = {
            ops::testing::view(a, DType::f32, {s.batches, trans_a ? s.k : s.m, trans_a ? s.m : s.k}),
            ops::testing::view(b, DType::f32, {s.batches, trans_b ? s.n : s.k, trans_b ? s.k : s.n})};
        ops::View to = ops::testing::view(wanted, DType::f32, {s.batches, s.m, s.n}), out = to;
        out.data = found.data();
        ops::testing::run(truth, in, {&to, 1}, attrs);
        ops::testing::run(row, in, {&out, 1}, attrs);
        EXPECT_EQ(0, std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)))
            << s.batches << ' ' << s.m << ' ' << s.n << ' ' << s.k << ' ' << trans_a << trans_b;
      }
}

// y = a b, both of them inputs.
plan::Plan product() {
  plan::Plan p;
  p.symbols = {"m", "k", "n"};
  auto value = [&](int rows, int columns) {
    p.values.push_back({DType::f32, {{0, rows}, {0, columns}}});
    return static_cast<int>(p.values.size()) - 1;
  };
  p.inputs = {{"a", value(0, 1)}, {"b", value(1, 2)}};
  p.outputs = {{"y", value(0, 2)}};
  plan::Node node{"matmul", 1, {{plan::Operand::value, 0}, {plan::Operand::value, 1}}, {2}, -1, {}};
  node.attrs["numerics"] = std::string("fp32-1");
  p.nodes = {node};
  return p;
}

TEST(Sets, AProgramRunsWhatItsSetAllows) {
  constexpr int64_t kM = 70, kK = 300, kN = 200;
  auto random = [](int64_t rows, int64_t columns) {
    run::Tensor t{
        DType::f32, {rows, columns}, std::vector<std::byte>(static_cast<size_t>(rows * columns) * 4)};
    for (int64_t i = 0; i < rows * columns; ++i)
      reinterpret_cast<float*>(t.bytes.data())[i] = static_cast<float>(i * 7919 % 2003 - 1001) / 997;
    return t;
  };
  const run::Function::NamedTensors inputs = {{"a", random(kM, kK)}, {"b", random(kK, kN)}};
  std::vector<std::byte> reproducible, of_library;
  for (const OperationSet set : {OperationSet::reproducible, OperationSet::deterministic, OperationSet::any})
    for (const int threads : {1, 2, 5})
      for (const std::string& isa : {std::string(), std::string(ops::isas().front())}) {
        plan::Plan p = product();
        p.operation_set = set;
        run::Options o;
        o.threads = threads, o.isa = isa;
        auto f = run::Function::open(p, "", o);
        ASSERT_TRUE(f) << f.error().message;
        const auto y = f->run(inputs);
        ASSERT_TRUE(y) << y.error().message;
        if (reproducible.empty()) reproducible = (*y)[0].second.bytes;
        // Who names an instruction set gets it.
        const bool library = set != OperationSet::reproducible && isa.empty();
        EXPECT_EQ(f->libraries(),
                  library ? std::vector<std::string>{"oneDNN 99.1.0"} : std::vector<std::string>{});
        EXPECT_EQ(std::ranges::count(f->kernels(), "matmul onednn"), library);
        EXPECT_EQ((*y)[0].second.bytes == reproducible, !library);
        if (!library) continue;
        if (of_library.empty()) of_library = (*y)[0].second.bytes;
        EXPECT_EQ((*y)[0].second.bytes, of_library) << threads;
      }
}

}  // namespace
}  // namespace invar
