// Prepares one call of one kernel with its operands, packed constants and state.
#include "bench/subject.h"

#include <algorithm>
#include <cstring>

#include "base/attribute_types.h"

namespace invar::bench {
namespace {

ops::View view(const conformance::Tensor& t, void* data) {
  ops::View v;
  v.data = data, v.dtype = t.dtype, v.rank = static_cast<int>(t.shape.size());
  std::copy(t.shape.begin(), t.shape.end(), v.dim);
  return v;
}

size_t bytes_of(const ops::View& v) {
  return static_cast<size_t>(v.elements()) * size_of(v.dtype);
}

// Values made for this many elements and then repeated: times do not depend on them, and making
// them one by one takes longer than measuring. A prime, so that rows do not repeat.
constexpr int64_t kPeriod = 65521;

Status fill(const conformance::Tensor& t, uint64_t seed, int operand, std::byte* to, size_t bytes) {
  conformance::Tensor piece = t;
  if (t.bits.empty()) piece.shape = {std::min(t.elements(), kPeriod)};
  INVAR_TRY(auto values, conformance::materialise(piece, seed, operand));
  for (size_t at = 0; at < bytes; at += values.size())
    std::memcpy(to + at, values.data(), std::min(values.size(), bytes - at));
  return {};
}

}  // namespace

Result<std::string> refusal(const Item& item) {
  const ops::OpContract* contract = ops::contract_of(item.op);
  if (!contract) return bad_input("no operation '" + item.op + "': spec/opset.toml lists them");
  std::vector<ops::View> in, out;
  for (const auto& t : item.call.in) in.push_back(view(t, nullptr));
  for (const auto& t : item.call.out) out.push_back(view(t, nullptr));
  if (!has_attribute_types(item.call.attrs))
    return std::string("attributes of the types that the room names");
  if (const char* wrong = contract->check(ops::Call{in, out, &item.call.attrs})) return std::string(wrong);
  if (item.past && !contract->stateful) return std::string("no past: the operation has no memory");
  const auto& shape = item.call.out[0].shape;
  if (item.past && (shape.size() < 2 || shape[0] != 1 || item.past >= shape[1]))
    return std::string("one sequence, longer than its past");
  return std::string();
}

Result<Subject> Subject::make(const Item& item, ops::KernelRef kernel, int threads,
                              const std::shared_ptr<Device>& device) {
  Subject s;
  s.kernel_ = kernel;
  s.attrs_ = std::make_unique<Attributes>(item.call.attrs);
  uint64_t total = 0;
  for (const auto* side : {&item.call.in, &item.call.out})
    for (const auto& t : *side) total += static_cast<uint64_t>(t.elements()) * size_of(t.dtype);
  if (!device && total > Allocation::physical_memory() / 2)
    return bad_input("more than half of this machine's memory is needed for " + item.call.text);
  auto block = [&](size_t bytes, const char* purpose) -> Result<std::byte*> {
    INVAR_TRY(Allocation b, Allocation::make(std::max<size_t>(bytes, 1), purpose, device));
    s.blocks_.push_back(std::move(b));
    return s.blocks_.back().data();
  };
  std::vector<std::byte> staged;  // of a GPU: an operand's values on their way
  for (size_t i = 0; i < item.call.in.size(); ++i) {
    const conformance::Tensor& t = item.call.in[i];
    const int operand = static_cast<int>(i);
    ops::View v = view(t, nullptr);
    INVAR_TRY(std::byte * data, block(bytes_of(v), "operands"));
    v.data = data;
    if (device) staged.resize(bytes_of(v));
    INVAR_CHECK_OK(fill(t, item.call.seed, operand, device ? staged.data() : data, bytes_of(v)));
    if (device) {
      INVAR_CHECK_OK(device->upload(data, staged.data(), staged.size()));
    }
    s.read_ += static_cast<int64_t>(bytes_of(v));
    const size_t packed = t.constant ? kernel.pack_bytes(v, operand, *s.attrs_) : 0;
    if (packed) {
      INVAR_TRY(std::byte * to, block(packed, "packed weights"));
      if (device)
        kernel.gpu->enqueue_pack(v, operand, *s.attrs_, to, device->stream());
      else
        kernel.cpu->pack(v, operand, *s.attrs_, to);
      v.data = to, v.packed = true;
    }
    s.in_.push_back(v);
  }
  for (const conformance::Tensor& t : item.call.out) {
    ops::View v = view(t, nullptr);
    INVAR_TRY(std::byte * data, block(bytes_of(v), "results"));
    v.data = data;
    if (!device) std::memset(data, 1, bytes_of(v));  // touched, so that no page is new while the clock runs
    s.written_ += static_cast<int64_t>(bytes_of(v));
    s.out_.push_back(v);
  }
  s.call_ = {s.in_, s.out_, s.attrs_.get()};
  if (ops::contract_of(item.op)->stateful) {
    const int64_t capacity = s.out_[0].dim[1];
    s.call_.slot_bytes = Allocation::round_up(kernel.state_bytes(s.call_, capacity));
    const uint64_t bytes = s.call_.slot_bytes * static_cast<uint64_t>(s.out_[0].dim[0]);
    INVAR_TRY(s.state_, Allocation::make(bytes, "memory between steps", device));
    s.call_.state = s.state_.data(), s.call_.capacity = capacity;
  }
  const auto scratch_bytes = kernel.cpu ? kernel.cpu->scratch_bytes : nullptr;
  const size_t scratch = scratch_bytes ? scratch_bytes(s.call_) : 0;
  for (int w = 0; !device && w < threads; ++w) {
    INVAR_TRY(Allocation b, Allocation::make(std::max<size_t>(scratch, 1), "scratch"));
    s.scratch_.push_back(std::move(b));
  }
  INVAR_CHECK_OK(s.set_past(0, device));
  const int64_t state = static_cast<int64_t>(s.state_.size());
  if (item.past) {
    INVAR_CHECK_OK(s.fill_past(item.past, device));
  }
  if (item.bytes) s.read_ = std::max<int64_t>(item.bytes - s.written_, 0);
  s.workers_ = workers_for(s.read_ + s.written_ + (item.past ? 0 : state), threads);
  if (device) {
    INVAR_CHECK_OK(device->wait());
  }
  return s;
}

// Fills the state with all positions in one call, and leaves those after the first `past` to be
// timed.
Status Subject::fill_past(int64_t past, const std::shared_ptr<Device>& device) {
  if (device)
    queue(device->stream());
  else
    for (int phase = 0; phase < kernel_.cpu->phases; ++phase)
      kernel_.cpu->run(call_, phase, 0, kernel_.cpu->units(call_, phase), scratch_[0].data());
  const int64_t whole = out_[0].dim[1];
  for (auto* side : {&in_, &out_})
    for (ops::View& v : *side) {
      if (v.rank < 2 || v.dim[0] != 1 || v.dim[1] != whole) continue;  // it has no positions, as weights
      const size_t row = bytes_of(v) / static_cast<size_t>(whole);
      v.data = v.as<std::byte>() + static_cast<size_t>(past) * row;
      v.dim[1] = whole - past;
    }
  INVAR_CHECK_OK(set_past(past, device));
  read_ = static_cast<int64_t>(state_.size()), written_ = 0;  // the state's bytes include new keys and values
  for (const ops::View& v : in_) read_ += static_cast<int64_t>(bytes_of(v));
  for (const ops::View& v : out_) written_ += static_cast<int64_t>(bytes_of(v));
  return {};
}

// Sets the filled positions, equal for all sequences of a batch, in memory that GPU kernels read.
Status Subject::set_past(int64_t past, const std::shared_ptr<Device>& device) {
  call_.past = past;
  const size_t shared = kernel_.shared_bytes(call_);
  if (shared > shared_.size()) {
    INVAR_TRY(shared_, Allocation::make(shared, "memory between phases", device));
  }
  call_.shared = shared_.data();
  std::vector<int64_t> now{past, 0};  // and the fault flag
  if (call_.state)
    for (int64_t b = 0; b < out_[0].dim[0]; ++b) now.insert(now.end(), {b, past});
  const size_t bytes = now.size() * sizeof(int64_t);
  if (now_.size() == 0) {
    INVAR_TRY(now_, Allocation::make(bytes, "the position", device));
  }
  auto* at = reinterpret_cast<int64_t*>(now_.data());
  call_.gpu = {at, reinterpret_cast<uint32_t*>(at + 1)};
  call_.sequences = reinterpret_cast<const ops::Sequence*>(at + 2);
  if (!device) {
    std::memcpy(at, now.data(), bytes);
    return {};
  }
  INVAR_CHECK_OK(device->upload(at, now.data(), bytes));
  return device->wait();
}

void Subject::queue(Stream stream) const {
  kernel_.gpu->enqueue(call_, stream);
}

void Subject::run(Pool& pool) const {
  for (int phase = 0; phase < kernel_.cpu->phases; ++phase) {
    const int64_t units = kernel_.cpu->units(call_, phase);
    if (units <= 0) continue;
    if (workers_ == 1 || units == 1) {
      kernel_.cpu->run(call_, phase, 0, units, scratch_[0].data());
      continue;
    }
    pool.run(
        units,
        [&](int worker, int64_t begin, int64_t end) {
          kernel_.cpu->run(call_, phase, begin, end, scratch_[static_cast<size_t>(worker)].data());
        },
        workers_);
  }
}

}  // namespace invar::bench
