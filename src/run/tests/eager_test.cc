// Eager execution: running the nodes of a plan one by one gives the bytes of the plan.
#include "run/eager.h"

#include "base/file/file.h"
#include "run/function.h"
#include "run/prepare/executable.h"
#include "run/testing.h"
#include "run/thread_setup.h"

namespace invar::run {
namespace {

ops::View view_of(DType dtype, const std::vector<int64_t>& shape) {
  ops::View v;
  v.dtype = dtype, v.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), v.dim);
  return v;
}

class EagerTest : public testing::Test {
 protected:
  // The logits of one sequence, node by node.
  Result<std::vector<std::byte>> walk(const std::string& isa, const std::shared_ptr<Device>& device,
                                      int32_t shift = 0);
  std::vector<std::byte> truth();
  Result<ops::View> place(ops::View v, const void* data, const std::shared_ptr<Device>& device) {
    INVAR_TRY(Allocation block, Allocation::make(std::max<size_t>(bytes_of(v), 1), "a tensor", device));
    if (data && device) {
      INVAR_CHECK_OK(device->upload(block.data(), data, bytes_of(v)));
    } else if (data) {
      std::memcpy(block.data(), data, bytes_of(v));
    }
    v.data = block.data();
    allocations_.push_back(std::move(block));
    return v;
  }
  static constexpr int64_t kLength = 33;
  TinyModel m{/*with_state=*/false};
  std::unique_ptr<Pool> pool = *start_pool(3);
  std::vector<Allocation> allocations_;
};

// input_ids and position_ids; the tokens of the prompt, shifted by `shift`.
std::vector<int64_t> fed(const std::string& name, int64_t length, int32_t shift) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < length; ++i)
    values.push_back(name == "position_ids" ? i : prompt()[static_cast<size_t>(i)] + shift);
  return values;
}

Result<std::vector<std::byte>> EagerTest::walk(const std::string& isa, const std::shared_ptr<Device>& device,
                                               int32_t shift) {
  auto shape_of = [&](int value) {
    std::vector<int64_t> shape;
    for (const plan::DimRef& d : m.plan.values[value].shape)
      shape.push_back(d.symbol < 0 ? d.value : m.plan.symbols[d.symbol].text() == "batch" ? 1 : kLength);
    return shape;
  };
  std::vector<ops::View> values(m.plan.values.size()), weights;
  for (const plan::Port& p : m.plan.inputs) {
    const auto tokens = fed(p.name, kLength, shift);
    INVAR_TRY(values[p.value], place(view_of(DType::i64, shape_of(p.value)), tokens.data(), device));
  }
  for (const plan::Weight& w : m.plan.weights) {
    INVAR_TRY(const std::string file, read_file(m.folder + "/" + w.file));
    INVAR_TRY(weights.emplace_back(), place(view_of(w.dtype, w.shape), file.data() + w.offset, device));
  }
  for (const plan::Node& n : m.plan.nodes) {
    std::vector<ops::View> in;
    for (const plan::Operand& o : n.in)
      in.push_back(o.kind == plan::Operand::weight ? weights[o.index] : values[o.index]);
    const ops::View out = view_of(m.plan.values[n.out[0]].dtype, shape_of(n.out[0]));
    INVAR_TRY(values[n.out[0]], place(out, nullptr, device));
    Attributes attrs = n.attrs;
    attrs.erase(attrs.find("numerics"));
    INVAR_CHECK_OK(run_operation(n.op, attrs, in, values[n.out[0]], isa, *pool, device));
  }
  const ops::View logits = values[m.plan.outputs[0].value];
  std::vector<std::byte> bytes(bytes_of(logits));
  if (device) {
    INVAR_CHECK_OK(device->download(bytes.data(), logits.data, bytes.size()));
    INVAR_CHECK_OK(device->wait());
  } else {
    std::memcpy(bytes.data(), logits.data, bytes.size());
  }
  return bytes;
}

std::vector<std::byte> EagerTest::truth() {
  Function whole = *Function::open(m.plan, m.folder, options());
  Function::NamedTensors inputs;
  for (const plan::Port& p : m.plan.inputs) {
    const auto values = fed(p.name, kLength, 0);
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    inputs.push_back({p.name, {DType::i64, {1, kLength}, {bytes, bytes + 8 * values.size()}}});
  }
  const auto out = whole.run(inputs);
  if (!out) return ADD_FAILURE() << out.error().message, std::vector<std::byte>();
  return (*out)[0].second.bytes;
}

TEST_F(EagerTest, NodesOneByOneAreThePlan) {
  for (std::string_view isa : ops::isas()) {
    const auto got = walk(std::string(isa), {});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(*got == truth()) << isa;
  }
}

TEST_F(EagerTest, OnAGpuToo) {
  std::shared_ptr<Device> device;
  take_gpu(device);
  if (!device) return;
  const auto got = walk("", device);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == truth()) << "cuda";
  const auto beyond = walk("", device, 1 << 20);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::bad_input);
  EXPECT_NE(beyond.error().message.find("index 1048"), std::string::npos) << beyond.error().message;
}

TEST_F(EagerTest, WhatItRefuses) {
  const auto beyond = walk("", {}, 1 << 20);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::bad_input);
  EXPECT_NE(beyond.error().message.find("index 1048"), std::string::npos) << beyond.error().message;
  ASSERT_FALSE(walk("mmx", {}));
  const ops::View nothing;
  const Status unknown = run_operation("no such operation", {}, {}, nothing, "", *pool);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::not_covered);
  const plan::Node& first = m.plan.nodes[0];
  Attributes wrong;
  for (const char* name : {"axis", "epsilon", "scale"}) wrong.emplace(name, std::string("text"));
  EXPECT_FALSE(run_operation(first.op, wrong, {}, nothing, "", *pool));
}

}  // namespace
}  // namespace invar::run
