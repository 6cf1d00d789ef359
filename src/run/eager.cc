// Eager execution of one operation, see eager.h.
#include "run/eager.h"

#include <algorithm>
#include <vector>

#include "base/attribute_types.h"
#include "num/env.h"
#include "run/execute/out_of_bounds.h"
#include "run/prepare/executable.h"
#include "run/prepare/kernel_selection.h"

namespace invar::run {
namespace {

// A call and the memory that its kernel needs besides the operands.
class EagerCall {
 public:
  EagerCall(ops::KernelRef kernel, ops::Call call, EagerMemory& memory)
      : kernel_(kernel), call_(call), memory_(memory) {}
  Status reserve(const ops::OpContract& contract, const std::shared_ptr<Device>& device);
  Status run_on_host(Pool& pool);
  Status run_on_device(const ops::OpContract& contract, const std::shared_ptr<Device>& device);

 private:
  ops::KernelRef kernel_;
  ops::Call call_;
  EagerMemory& memory_;
  Allocation state_, sequences_;
};

Status ensure_size(Allocation& memory, uint64_t bytes, const char* purpose,
                   const std::shared_ptr<Device>& device) {
  if (memory.size() >= bytes) return {};
  memory = Allocation();  // frees the old memory before it takes new
  INVAR_TRY(memory, Allocation::make(bytes, purpose, device));
  return {};
}

// A stateful operation remembers the positions of this call only.
Status EagerCall::reserve(const ops::OpContract& contract, const std::shared_ptr<Device>& device) {
  if (contract.stateful) {
    std::vector<ops::Sequence> all;
    for (int64_t i = 0; i < (call_.out[0].rank ? call_.out[0].dim[0] : 1); ++i) all.push_back({i, 0});
    call_.capacity = 1;
    for (const ops::View& v : call_.in)
      call_.capacity = std::max(call_.capacity, *std::max_element(v.dim, v.dim + v.rank));
    call_.slot_bytes = Allocation::round_up(kernel_.state_bytes(call_, call_.capacity));
    INVAR_TRY(state_, Allocation::make(call_.slot_bytes * all.size(), "keys and values", device));
    const size_t bytes = all.size() * sizeof(ops::Sequence);
    INVAR_TRY(sequences_, Allocation::make(bytes, "positions", device));
    if (device) {
      INVAR_CHECK_OK(device->upload(sequences_.data(), all.data(), bytes));
    } else {
      std::copy(all.begin(), all.end(), reinterpret_cast<ops::Sequence*>(sequences_.data()));
    }
    call_.state = state_.data();
    call_.sequences = reinterpret_cast<const ops::Sequence*>(sequences_.data());
  }
  INVAR_CHECK_OK(ensure_size(memory_.shared, kernel_.shared_bytes(call_), "memory between phases", device));
  call_.shared = memory_.shared.data();
  return {};
}

Status EagerCall::run_on_host(Pool& pool) {
  size_t bytes = bytes_of(call_.out[0]);
  for (const ops::View& v : call_.in) bytes += bytes_of(v);
  const int workers = workers_for(static_cast<int64_t>(bytes), pool.threads());
  const ops::CpuKernel& k = *kernel_.cpu;
  const size_t scratch = Allocation::round_up(k.scratch_bytes ? k.scratch_bytes(call_) : 0);
  INVAR_TRY(const Allocation scratches, Allocation::make(scratch * static_cast<size_t>(workers), "scratch"));
  for (int phase = 0; phase < k.phases; ++phase) {
    auto work = [&](int worker, int64_t from, int64_t to) {
      num::mend_arithmetic_env();  // the thread may have slept in functions that a library can replace
      k.run(call_, phase, from, to, scratches.data() + scratch * static_cast<size_t>(worker));
    };
    if (const int64_t units = k.units(call_, phase); units > 0) pool.run(units, work, workers);
  }
  return {};
}

Status EagerCall::run_on_device(const ops::OpContract& contract, const std::shared_ptr<Device>& device) {
  struct Header {
    int64_t past = 0;
    uint32_t fault = 0, unused = 0;
  } header;
  INVAR_CHECK_OK(ensure_size(memory_.fault, sizeof header, "positions", device));
  device->make_current();
  INVAR_CHECK_OK(device->upload(memory_.fault.data(), &header, sizeof header));
  Header* const on_device = reinterpret_cast<Header*>(memory_.fault.data());
  call_.gpu = {&on_device->past, &on_device->fault};
  kernel_.gpu->enqueue(call_, device->stream());
  INVAR_CHECK_OK(device->download(&header, on_device, sizeof header));
  INVAR_CHECK_OK(device->wait());
  if (!header.fault) return {};
  INVAR_TRY(const auto out_of_bounds, find_out_of_bounds(contract, call_, *device));
  if (!out_of_bounds) return unconfirmed_fault_error();
  return bad_input(text_of(*out_of_bounds, call_.in[static_cast<size_t>(out_of_bounds->operand)]));
}

Status compute(const std::string& op, const ops::Call& call, const std::string& isa, Pool& pool,
               const std::shared_ptr<Device>& device, EagerMemory* device_memory) {
  INVAR_TRY(const ops::KernelRef kernel, select_kernel(op, isa, device != nullptr));
  const ops::OpContract& contract = *ops::contract_of(op);
  if (!has_attribute_types(*call.attrs))
    return bad_input("an attribute is of another type than the room names");
  if (const char* required = contract.check(call)) return bad_input(std::string("it takes ") + required);
  const num::ArithmeticEnv env;
  ops::OutOfBounds out_of_bounds;
  const auto find = contract.find_out_of_bounds;
  if (!device && find && find(call, out_of_bounds))
    return bad_input(text_of(out_of_bounds, call.in[static_cast<size_t>(out_of_bounds.operand)]));
  EagerMemory own;
  EagerCall eager(kernel, call, device && device_memory ? *device_memory : own);
  INVAR_CHECK_OK(eager.reserve(contract, device));
  return device ? eager.run_on_device(contract, device) : eager.run_on_host(pool);
}

}  // namespace

Status run_operation(const std::string& op, const Attributes& attrs, std::span<const ops::View> in,
                     const ops::View& out, const std::string& isa, Pool& pool,
                     const std::shared_ptr<Device>& device, EagerMemory* device_memory) {
  INVAR_CHECK_OK(check_isa(isa));
  if (!ops::contract_of(op))
    return not_covered(op + ": there is no operation of this name (spec/opset.toml has all)");
  const Status done = compute(op, {in, {&out, 1}, &attrs}, isa, pool, device, device_memory);
  if (!done) return Error{done.error().code, op + ": " + done.error().message};
  return {};
}

}  // namespace invar::run
