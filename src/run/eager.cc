#include "run/eager.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "num/env.h"
#include "run/prepare/kernel_selection.h"
#include "run/execute/memory.h"
#include "run/prepare/program.h"
#include "run/execute/worker_count.h"

namespace invar::run {
namespace {

// A call and the memory that it needs beside its operands.
class Once {
 public:
  Once(const ops::Kernel& kernel, ops::Call call, OnceMemory& memory)
      : kernel_(kernel), call_(call), memory_(memory) {}
  Status reserve(const std::shared_ptr<Device>& device);
  Status run(Pool& pool);
  Status run(const ops::Kernel& reference, const std::shared_ptr<Device>& device);

 private:
  const ops::Kernel& kernel_;
  ops::Call call_;
  OnceMemory& memory_;
  Block state_, sequences_;
};

Status at_least(Block& block, uint64_t bytes, const char* purpose, const std::shared_ptr<Device>& device) {
  if (block.size() >= bytes) return {};
  block = Block();  // its memory first
  INVAR_TRY(block, Block::make(bytes, purpose, device));
  return {};
}

// An operation that could remember positions holds those of this call.
Status Once::reserve(const std::shared_ptr<Device>& device) {
  if (kernel_.state_bytes) {
    std::vector<ops::Sequence> all;
    for (int64_t i = 0; i < (call_.out[0].rank ? call_.out[0].dim[0] : 1); ++i) all.push_back({i, 0});
    call_.capacity = 1;
    for (const ops::View& v : call_.in)
      call_.capacity = std::max(call_.capacity, *std::max_element(v.dim, v.dim + v.rank));
    call_.slot_bytes = Block::round_up(kernel_.state_bytes(call_, call_.capacity));
    INVAR_TRY(state_, Block::make(call_.slot_bytes * all.size(), "keys and values", device));
    const size_t bytes = all.size() * sizeof(ops::Sequence);
    INVAR_TRY(sequences_, Block::make(bytes, "positions", device));
    if (device) {
      INVAR_CHECK_OK(device->upload(sequences_.data(), all.data(), bytes));
    } else {
      std::copy(all.begin(), all.end(), reinterpret_cast<ops::Sequence*>(sequences_.data()));
    }
    call_.state = state_.data();
    call_.sequences = reinterpret_cast<const ops::Sequence*>(sequences_.data());
  }
  INVAR_CHECK_OK(at_least(memory_.shared, kernel_.shared_bytes ? kernel_.shared_bytes(call_) : 0,
                          "memory between phases", device));
  call_.shared = memory_.shared.data();
  return {};
}

Status Once::run(Pool& pool) {
  size_t bytes = bytes_of(call_.out[0]);
  for (const ops::View& v : call_.in) bytes += bytes_of(v);
  const int workers = workers_for(static_cast<int64_t>(bytes), pool.threads());
  const size_t scratch = Block::round_up(kernel_.scratch_bytes ? kernel_.scratch_bytes(call_) : 0);
  INVAR_TRY(const Block scratches, Block::make(scratch * static_cast<size_t>(workers), "scratch"));
  for (int phase = 0; phase < kernel_.phases; ++phase) {
    auto work = [&](int worker, int64_t from, int64_t to) {
      num::mend_arithmetic_env();  // the thread may have slept, in functions that a library can replace
      kernel_.run(call_, phase, from, to, scratches.data() + scratch * static_cast<size_t>(worker));
    };
    if (const int64_t units = kernel_.units(call_, phase); units > 0) pool.run(units, work, workers);
  }
  return {};
}

Status Once::run(const ops::Kernel& reference, const std::shared_ptr<Device>& device) {
  struct Now {
    int64_t past = 0;
    uint32_t fault = 0, unused = 0;
  } now;
  INVAR_CHECK_OK(at_least(memory_.fault, sizeof now, "positions", device));
  device->enter();
  INVAR_CHECK_OK(device->upload(memory_.fault.data(), &now, sizeof now));
  Now* const there = reinterpret_cast<Now*>(memory_.fault.data());
  call_.past_now = &there->past, call_.fault = &there->fault;
  kernel_.enqueue(call_, device->stream());
  INVAR_CHECK_OK(device->download(&now, there, sizeof now));
  INVAR_CHECK_OK(device->wait());
  if (!now.fault) return {};
  INVAR_TRY(const auto stray, stray_of(reference, call_, *device));
  if (!stray) return unfounded_fault();
  return bad_input(text_of(*stray, call_.in[static_cast<size_t>(stray->operand)]));
}

Status compute(const std::string& op, const ops::Call& call, const std::string& isa, Pool& pool,
               const std::shared_ptr<Device>& device, OnceMemory* of_device) {
  INVAR_TRY(const ops::Kernel* kernel, choose(op, device ? std::string(ops::kCuda) : isa));
  const ops::Kernel& reference = *ops::find(op, "reference");
  try {
    if (const char* required = reference.check(call)) return bad_input(std::string("it takes ") + required);
  } catch (const std::bad_variant_access&) {
    return bad_input("an attribute is of another type than the room names");
  }
  const num::ArithmeticEnv env;
  ops::Stray stray;
  if (!device && reference.stray && reference.stray(call, stray))
    return bad_input(text_of(stray, call.in[static_cast<size_t>(stray.operand)]));
  OnceMemory own;
  Once once(*kernel, call, device && of_device ? *of_device : own);
  INVAR_CHECK_OK(once.reserve(device));
  return device ? once.run(reference, device) : once.run(pool);
}

}  // namespace

Status once(const std::string& op, const Attrs& attrs, std::span<const ops::View> in, const ops::View& out,
            const std::string& isa, Pool& pool, const std::shared_ptr<Device>& device,
            OnceMemory* of_device) {
  INVAR_CHECK_OK(check_isa(isa));
  if (!ops::find(op, "reference"))
    return not_covered(op + ": there is no operation of this name (spec/opset.toml has all)");
  const Status done = compute(op, {in, {&out, 1}, &attrs}, isa, pool, device, of_device);
  if (!done) return Error{done.error().code, op + ": " + done.error().message};
  return {};
}

}  // namespace invar::run
