// Eager execution of one operation, see eager.h.
#include "run/eager.h"

#include <algorithm>
#include <atomic>

#include "base/attribute_types.h"
#include "base/opset.h"
#include "device/calling_thread.h"
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
int64_t sequences_of(const ops::Call& call) {
  return call.out[0].rank ? call.out[0].dim[0] : 1;
}
void size_state(ops::KernelRef kernel, ops::Call& call) {
  call.capacity = 1;
  for (const ops::View& v : call.in)
    call.capacity = std::max(call.capacity, *std::max_element(v.dim, v.dim + v.rank));
  call.slot_bytes = Allocation::round_up(kernel.state_bytes(call, call.capacity));
}
std::vector<ops::Sequence> new_sequences(int64_t count) {
  std::vector<ops::Sequence> all;
  for (int64_t i = 0; i < count; ++i) all.push_back({i, 0});
  return all;
}

Status EagerCall::reserve(const ops::OpContract& contract, const std::shared_ptr<Device>& device) {
  if (contract.stateful) {
    const std::vector<ops::Sequence> all = new_sequences(sequences_of(call_));
    size_state(kernel_, call_);
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
  INVAR_CHECK_OK(ensure_size(memory_.scratch, scratch * static_cast<size_t>(workers), "scratch", {}));
  for (int phase = 0; phase < k.phases; ++phase) {
    auto work = [&](int worker, int64_t from, int64_t to) {
      num::mend_arithmetic_env();  // the thread may have slept in functions that a library can replace
      k.run(call_, phase, from, to, memory_.scratch.data() + scratch * static_cast<size_t>(worker));
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
  return error_of(*out_of_bounds, call_.in);
}

// Only their kernels report faults; the words of EagerDevice are in this order, and those of all
// other operations share one more.
const std::vector<std::string_view>& operations_with_indices() {
  static const auto* const all = [] {
    auto* names = new std::vector<std::string_view>;
    for (const OpInfo& o : opset())
      if (ops::contract_of(o.op)->find_out_of_bounds) names->push_back(o.op);
    return names;
  }();
  return *all;
}

Error named(const std::string& op, const Error& error) {
  return error.around(op + ": ");
}

}  // namespace

Result<EagerOperation> EagerOperation::make(std::string op, Attributes attrs, std::string isa) {
  INVAR_CHECK_OK(check_isa(isa));
  EagerOperation made;
  made.contract_ = ops::contract_of(op);
  if (!made.contract_)
    return not_covered(op + ": there is no operation of this name (spec/opset.toml has all)");
  const std::vector<std::string_view>& with_indices = operations_with_indices();
  while (made.fault_word_ < with_indices.size() && with_indices[made.fault_word_] != op) ++made.fault_word_;
  if (const auto kernel = select_kernel(op, isa, false)) made.host_kernel_ = *kernel;
  if (const auto kernel = select_kernel(op, isa, true)) made.gpu_kernel_ = *kernel;
  made.group_ = ops::find_group(op);
  if (!has_attribute_types(attrs))
    return bad_input(op + ": an attribute is of another type than the room names");
  made.op_ = std::move(op), made.attrs_ = std::move(attrs), made.isa_ = std::move(isa);
  return made;
}

Status EagerOperation::check(std::span<const ops::View> in, const ops::View& out, bool gpu) const {
  if (!(gpu ? gpu_kernel_ : host_kernel_)) return named(op_, select_kernel(op_, isa_, gpu).error());
  if (const char* required = contract_->check({in, {&out, 1}, &attrs_}))
    return bad_input(op_ + ": it takes " + required);
  return {};
}

Status EagerOperation::compute(const ops::Call& call, Pool& pool, EagerMemory& memory) const {
  const num::ArithmeticEnv env;
  ops::OutOfBounds out_of_bounds;
  if (contract_->find_out_of_bounds && contract_->find_out_of_bounds(call, out_of_bounds))
    return error_of(out_of_bounds, call.in);
  EagerCall eager(host_kernel_, call, memory);
  INVAR_CHECK_OK(eager.reserve(*contract_, {}));
  return eager.run_on_host(pool);
}

// Memory that the host keeps between calls.
constexpr size_t kKeptBytes = size_t{64} << 20;

Status EagerOperation::run(std::span<const ops::View> in, const ops::View& out, Pool& pool,
                           EagerMemory& memory) const {
  const Status done = compute({in, {&out, 1}, &attrs_}, pool, memory);
  if (memory.shared.size() + memory.scratch.size() > kKeptBytes) memory = {};
  return done ? done : named(op_, done.error());
}

Status EagerOperation::enqueue(std::span<const ops::View> in, const ops::View& out, EagerDevice& gpu,
                               Stream stream, const Scratch& scratch) const {
  const ops::GpuKernel* const kernel = gpu_kernel_.gpu;
  ops::Call call{in, {&out, 1}, &attrs_};
  if (contract_->stateful) {
    const int64_t count = sequences_of(call);
    INVAR_TRY(call.sequences, gpu.sequences(count));
    size_state(kernel, call);
    INVAR_TRY(call.state, scratch(call.slot_bytes * static_cast<size_t>(count)));
  }
  if (const size_t bytes = kernel->shared_bytes ? kernel->shared_bytes(call) : 0) {
    INVAR_TRY(call.shared, scratch(bytes));
  }
  call.gpu.past_now = reinterpret_cast<const int64_t*>(gpu.no_past_.data());
  call.gpu.fault = reinterpret_cast<uint32_t*>(gpu.faults_.data()) + fault_word_;
  kernel->enqueue(call, stream);
  if (const Status started = launch_status(); !started) return named(op_, started.error());
  return {};
}

Status EagerOperation::enqueue_group(std::span<const Member> members, EagerDevice& gpu, Stream stream,
                                     const Scratch& scratch) {
  std::vector<ops::Call> calls;
  std::vector<const ops::Call*> all;
  for (const Member& m : members) calls.push_back({m.in, {&m.out, 1}, &m.operation->attrs_});
  for (const ops::Call& c : calls) all.push_back(&c);
  const ops::GpuGroup* const group = members[0].operation->group_;
  bool fits = group && members.size() <= group->ops.size();
  for (size_t i = 0; fits && i < members.size(); ++i) fits = group->ops[i] == members[i].operation->op_;
  if (!fits || !group->fits(all)) {
    for (const Member& m : members) INVAR_CHECK_OK(m.operation->enqueue(m.in, m.out, gpu, stream, scratch));
    return {};
  }
  if (const size_t bytes = group->shared_bytes(all)) {
    INVAR_TRY(calls[0].shared, scratch(bytes));
  }
  group->enqueue(all, stream);
  if (const Status started = launch_status(); !started)
    return named(members[0].operation->op_, started.error());
  return {};
}

Result<std::unique_ptr<EagerDevice>> EagerDevice::open(int index) {
  INVAR_TRY(std::shared_ptr<Device> device, Device::open(index));
  std::unique_ptr<EagerDevice> made(new EagerDevice(std::move(device)));
  const std::shared_ptr<Device>& d = made->device_;
  INVAR_TRY(made->faults_,
            Allocation::make_pinned((operations_with_indices().size() + 1) * sizeof(uint32_t), "faults", d));
  std::fill_n(made->faults_.data(), made->faults_.size(), std::byte{});
  INVAR_TRY(made->no_past_, Allocation::make(sizeof(int64_t), "positions", d));
  INVAR_CHECK_OK(d->fill(made->no_past_.data(), 0, sizeof(int64_t)));
  INVAR_CHECK_OK(made->sequences(1024));
  return made;
}

Result<const ops::Sequence*> EagerDevice::sequences(int64_t count) {
  const std::lock_guard one(mutex_);
  const size_t bytes = static_cast<size_t>(count) * sizeof(ops::Sequence);
  if (sequences_.empty() || sequences_.back().size() < bytes) {
    const std::vector<ops::Sequence> all = new_sequences(count);
    INVAR_TRY(Allocation longer, Allocation::make(bytes, "positions", device_));
    INVAR_CHECK_OK(device_->upload(longer.data(), all.data(), bytes));
    INVAR_CHECK_OK(device_->wait());
    sequences_.push_back(std::move(longer));  // queued calls still read the shorter ones
  }
  return reinterpret_cast<const ops::Sequence*>(sequences_.back().data());
}

std::string EagerDevice::take_faults() {
  auto* const words = reinterpret_cast<uint32_t*>(faults_.data());
  const std::vector<std::string_view>& operations = operations_with_indices();
  std::string names;
  for (size_t i = 0; i < operations.size(); ++i)
    if (std::atomic_ref word(words[i]); word.load(std::memory_order_relaxed) && word.exchange(0))
      names += (names.empty() ? "" : ", ") + std::string(operations[i]);
  return names;
}

Status run_operation(const std::string& op, const Attributes& attrs, std::span<const ops::View> in,
                     const ops::View& out, const std::string& isa, Pool& pool,
                     const std::shared_ptr<Device>& device, EagerMemory* memory) {
  INVAR_TRY(const EagerOperation operation, EagerOperation::make(op, attrs, isa));
  INVAR_CHECK_OK(operation.check(in, out, device != nullptr));
  EagerMemory own;
  if (!memory) memory = &own;
  if (!device) return operation.run(in, out, pool, *memory);
  const ops::OpContract& contract = *ops::contract_of(op);
  EagerCall eager(ops::find_gpu_kernel(op), {in, {&out, 1}, &attrs}, *memory);
  Status done = eager.reserve(contract, device);
  if (done) done = eager.run_on_device(contract, device);
  return done ? done : named(op, done.error());
}

}  // namespace invar::run
