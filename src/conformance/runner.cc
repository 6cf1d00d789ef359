// The conformance runner: steps, and one call after another.
#include "conformance/runner.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/attribute_types.h"
#include "base/endian.h"
#include "conformance/fusion_checks.h"
#include "conformance/give_up.h"
#include "conformance/memory/states.h"

namespace invar::conformance {
namespace {

// This thread's arena for a GPU kernel.
Arena* arena_of(ops::KernelRef k) {
  if (!k.gpu) return nullptr;
  thread_local std::unique_ptr<Arena> arena;
  if (!arena) {
    auto device = Device::open();
    if (!device) give_up(device.error());
    arena = std::make_unique<Arena>(*device);
  }
  arena->device().make_current();
  arena->reset();
  return arena.get();
}

ops::View view(const Tensor& t, void* data) {
  ops::View v;
  v.data = data, v.dtype = t.dtype, v.rank = static_cast<int>(t.shape.size());
  std::copy(t.shape.begin(), t.shape.end(), v.dim);
  return v;
}

// The part of the tensors that one call takes: of some elements of the leading axis, `count` rows
// of axis 1 from a position of its own on.
struct Step {
  struct Element {
    int64_t index, from;
  };
  std::vector<Element> elements;
  int64_t count;
  int64_t max_past() const {
    int64_t most = 0;
    for (const Element& e : elements) most = std::max(most, e.from);
    return most;
  }
  // copy(byte offset in t, byte offset in the call's tensor, bytes)
  template <class Copy>
  void each(const Tensor& t, Copy copy) const {
    int64_t inner = static_cast<int64_t>(size_of(t.dtype));
    for (size_t i = 2; i < t.shape.size(); ++i) inner *= t.shape[i];
    int64_t to = 0;
    for (const Element& e : elements) {
      copy((e.index * t.shape[1] + e.from) * inner, to, static_cast<size_t>(count * inner));
      to += count * inner;
    }
  }
};

// Splits all of [batch, length] as the mode says.
std::vector<Step> steps_of(int64_t batch, int64_t length, const RunMode& mode) {
  std::vector<Step> steps;
  std::vector<int64_t> at(static_cast<size_t>(batch));
  const int64_t chunk = mode.chunk ? mode.chunk : length;
  auto take = [&](const std::vector<int64_t>& who, int64_t count) {
    Step step{{}, count};
    for (int64_t b : who) step.elements.push_back({b, at[b]}), at[b] += count;
    if (mode.batching != RunMode::Batching::separate) return steps.push_back(step);
    for (const Step::Element& e : step.elements) steps.push_back({{e}, count});
  };
  if (mode.batching != RunMode::Batching::even)
    for (int64_t b = 0; b < batch; ++b)
      if (const int64_t ahead = (batch - 1 - b) * length / batch) take({b}, ahead);
  for (int64_t turn = 0;; ++turn) {
    std::vector<int64_t> who;
    int64_t count = chunk;
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t b = mode.batching == RunMode::Batching::even ? i : (i + turn) % batch;
      if (at[b] < length) who.push_back(b);
    }
    if (who.empty()) return steps;
    if (mode.batching != RunMode::Batching::even && who.size() > 2 && turn % 3) who.pop_back();
    for (int64_t b : who) count = std::min(count, length - at[b]);
    take(who, count);
  }
}

Status run_parts(ops::KernelRef k, const ops::Call& call, const RunMode& mode, Arena* arena) {
  if (arena) {
    k.gpu->enqueue(call, arena->device().stream());
    return arena->device().wait();
  }
  const ops::CpuKernel& cpu = *k.cpu;
  for (int phase = 0; phase < cpu.phases; ++phase) {
    int64_t units = cpu.units(call, phase);
    if (units < 0) return bad_input("negative number of units");
    int64_t parts = mode.parts ? mode.parts : std::max<int64_t>(units, 1);
    std::atomic<bool> intact = true;
    auto run = [&](int, int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) {
        int64_t part = mode.reversed ? parts - 1 - p : p;
        int64_t begin = part * units / parts, end = (part + 1) * units / parts;
        if (begin == end) continue;
        GuardedBlock scratch(nullptr, cpu.scratch_bytes ? cpu.scratch_bytes(call) : 0);
        cpu.run(call, phase, begin, end, scratch.data());
        if (!scratch.intact()) intact = false;
      }
    };
    if (mode.pool)
      mode.pool->run(parts, run);
    else
      run(0, 0, parts);
    if (!intact) return bad_input("wrote outside its scratch");
  }
  return {};
}

}  // namespace

void allocate_apart() {
  allocates_apart = true;
}

std::string RunMode::text() const {
  std::string s = parts ? std::to_string(parts) + " parts" : "one unit at a time";
  if (reversed) s += " reversed";
  if (!packed) s += ", constants not packed";
  if (packed && plain) {
    char mask[17];
    std::snprintf(mask, sizeof mask, "%llx", static_cast<unsigned long long>(plain));
    s += std::string(", plain ") + mask;
  }
  if (chunk) s += ", steps of " + std::to_string(chunk);
  if (batching == Batching::ragged) s += ", ragged";
  if (batching == Batching::separate) s += ", alone";
  if (skew) s += ", skewed by " + std::to_string(skew);
  if (fused) s += ", fused";
  if (pages) s += ", pages";
  if (pool) s += ", at once";
  return s;
}

namespace {

// The operands of a case in guarded memory, constants packed as the mode says. plain: none packed,
// for a kernel of batches, whose calls need not be alike.
struct Operands {
  std::vector<GuardedBlock> in, packed, copies;
  std::vector<ops::View> views, plain;
};
size_t skew_of(const Tensor& t, const RunMode& mode) {
  return static_cast<size_t>(mode.skew) * size_of(t.dtype);
}
Status load(ops::KernelRef k, const Case& c, const std::vector<Bytes>& inputs, const RunMode& mode,
            Arena* arena, Operands& o) {
  for (size_t i = 0; i < c.in.size(); ++i) {
    GuardedBlock& b = o.in.emplace_back(arena, inputs[i].size(), skew_of(c.in[i], mode), inputs[i].data());
    ops::View& v = o.views.emplace_back(view(c.in[i], b.seen()));
    o.plain.push_back(v);
    const int operand = static_cast<int>(i);
    const size_t bytes = c.in[i].constant && mode.packs(i) ? k.pack_bytes(v, operand, c.attrs) : 0;
    if (bytes == 0) continue;
    GuardedBlock& p = o.packed.emplace_back(arena, bytes);
    if (arena)
      k.gpu->enqueue_pack(v, operand, c.attrs, p.seen(), arena->device().stream());
    else
      k.cpu->pack(v, operand, c.attrs, p.data());
    p.fetch();
    if (!p.intact()) return bad_input("pack wrote outside its memory");
    v.data = p.seen();
    v.packed = true;
    std::fill(b.data(), b.data() + b.size(), kPoison);  // the row-major copy is gone
    b.send();
    if (k.gpu && k.gpu->enqueue_batch)
      o.plain.back().data =
          o.copies.emplace_back(arena, inputs[i].size(), skew_of(c.in[i], mode), inputs[i].data()).seen();
  }
  return {};
}
Status check_unchanged(Operands& o, const std::vector<Bytes>& inputs) {
  for (GuardedBlock& b : o.in) b.fetch();
  for (size_t i = 0; i < o.in.size(); ++i)
    if (!o.in[i].intact() ||
        (!o.views[i].packed && !std::equal(inputs[i].begin(), inputs[i].end(), o.in[i].data())))
      return bad_input("changed input " + std::to_string(i));
  return {};
}

// The steps of a case: as the mode says, or one for whole tensors, whatever their axes.
std::vector<Step> steps_of(ops::KernelRef k, const Case& c, int64_t batch, const RunMode& mode) {
  const auto& shape = c.out[0].shape;
  if (mode.chunk) return steps_of(batch, shape[1], mode);
  std::vector<Step> steps;
  steps.push_back({{}, shape.size() > 1 ? shape[1] : 1});
  for (int64_t b = 0; ops::contract_of(k.op())->stateful && b < batch; ++b)
    steps[0].elements.push_back({b, 0});
  return steps;
}

DeviceMemory memory_of(Arena& arena) {
  return {arena.device(), [&arena](size_t bytes) { return arena.take(bytes); }};
}

// Runs one call, and tests its epilogue, its regions and its alias_offset.
Status run_call(ops::KernelRef k, ops::Call& call, const RunMode& mode, Arena* arena,
                const Operands& operands) {
  std::unique_ptr<EpilogueRecorder> recorder;
  const std::span other = mode.chunk ? call.in : std::span<const ops::View>(operands.plain);
  const ops::CpuKernel* const fused = mode.fused ? k.cpu : nullptr;
  if (fused && fused->epilogue)
    recorder = std::make_unique<EpilogueRecorder>(call.out[0]), call.cpu.epilogue = recorder->epilogue();
  INVAR_CHECK_OK(run_parts(k, call, mode, arena));
  if (std::string wrong = recorder ? recorder->wrong() : ""; !wrong.empty()) return bad_input(wrong);
  if (std::string wrong = fused && fused->region ? check_regions(*fused, call) : ""; !wrong.empty())
    return bad_input(wrong);
  if (std::string wrong = k.gpu ? check_rounded(*k.gpu, call, memory_of(*arena)) : ""; !wrong.empty())
    return bad_input(wrong);
  if (std::string wrong = k.gpu ? check_together(*k.gpu, call, other, memory_of(*arena)) : ""; !wrong.empty())
    return bad_input(wrong);
  const auto alias_offset = k.cpu ? ops::contract_of(k.op())->alias_offset : nullptr;
  if (const int64_t at = alias_offset ? alias_offset(call) : -1; at >= 0 && call.in[0].data)
    if (std::memcmp(call.in[0].as<char>() + at, call.out[0].data,
                    static_cast<size_t>(call.out[0].elements()) * size_of(call.out[0].dtype)) != 0)
      return bad_input("says that its result lies in its operand where it does not");
  call.cpu.epilogue = nullptr;  // the recorder ends here
  return {};
}

// Adds the outputs of one step to the result.
Status collect(const Case& c, const Step& step, const RunMode& mode, std::vector<GuardedBlock>& outs,
               std::vector<Bytes>& result) {
  for (GuardedBlock& b : outs) b.fetch();
  for (size_t o = 0; o < outs.size(); ++o) {
    if (!outs[o].intact()) return bad_input("wrote outside output " + std::to_string(o));
    if (mode.chunk) {
      step.each(c.out[o], [&](int64_t whole, int64_t part, size_t n) {
        std::memcpy(result[o].data() + whole, outs[o].data() + part, n);
      });
    } else {
      std::copy(outs[o].data(), outs[o].data() + outs[o].size(), result[o].begin());
    }
  }
  return {};
}

Result<std::vector<Bytes>> run_case(ops::KernelRef k, const Case& c, const std::vector<Bytes>& inputs,
                                    const RunMode& mode) {
  Arena* const arena = arena_of(k);
  Operands operands;
  INVAR_CHECK_OK(load(k, c, inputs, mode, arena, operands));
  std::vector<Bytes> result;
  for (const Tensor& t : c.out)
    result.emplace_back(static_cast<size_t>(t.elements()) * size_of(t.dtype), kPoison);

  const int64_t batch = c.out[0].shape.empty() ? 1 : c.out[0].shape[0];
  const int64_t capacity = c.out[0].shape.size() > 1 ? c.out[0].shape[1] + c.spare : 0;
  const bool stateful = ops::contract_of(k.op())->stateful;
  std::optional<States> states;
  for (const Step& step : steps_of(k, c, batch, mode)) {
    const int64_t count = step.count, past = step.max_past();
    std::vector<GuardedBlock> pieces, outs;
    std::vector<ops::View> call_in = operands.views, call_out;
    auto shorten = [&](ops::View& v) {
      if (mode.chunk) v.dim[0] = static_cast<int64_t>(step.elements.size()), v.dim[1] = count;
    };
    for (size_t i = 0; mode.chunk && i < c.in.size(); ++i) {
      if (c.in[i].shape.size() < 3) continue;  // lists and weights are of all steps
      shorten(call_in[i]);
      GuardedBlock& piece = pieces.emplace_back(
          arena, static_cast<size_t>(call_in[i].elements()) * size_of(c.in[i].dtype), skew_of(c.in[i], mode));
      step.each(c.in[i], [&](int64_t whole, int64_t part, size_t n) {
        std::memcpy(piece.data() + part, operands.in[i].data() + whole, n);
      });
      piece.send();
      call_in[i].data = piece.seen();
    }
    for (const Tensor& t : c.out) {
      ops::View v = view(t, nullptr);
      shorten(v);
      v.data =
          outs.emplace_back(arena, static_cast<size_t>(v.elements()) * size_of(t.dtype), skew_of(t, mode))
              .seen();
      call_out.push_back(v);
    }
    ops::Call call{call_in, call_out, &c.attrs};
    // Slots in reverse order of the sequences.
    std::vector<ops::Sequence> places;
    for (const Step::Element& e : step.elements) places.push_back({batch - 1 - e.index, e.from});
    GuardedBlock sequences(arena, places.size() * sizeof(ops::Sequence), 0, places.data());
    if (stateful) {
      call.capacity = capacity, call.past = past;
      if (!states) states.emplace(k, call, batch, mode.pages, arena);
      states->set(call, places, count);
      call.sequences = reinterpret_cast<const ops::Sequence*>(sequences.seen());
    }
    // A GPU kernel reads these from memory: the step's position, for which the call has an upper
    // bound, and the fault flag.
    GuardedBlock now(arena, sizeof past, 0, &past), fault(arena, sizeof *call.gpu.fault);
    call.gpu.past_now = reinterpret_cast<const int64_t*>(now.seen());
    call.gpu.fault = reinterpret_cast<uint32_t*>(fault.seen());
    if (arena && stateful && mode.reversed) call.past = std::max(past, capacity - count);
    GuardedBlock shared(arena, k.shared_bytes(call));
    call.shared = shared.seen();
    INVAR_CHECK_OK(run_call(k, call, mode, arena, operands));
    shared.fetch();
    if (!shared.intact()) return bad_input("wrote outside its shared memory");
    if (states && !states->intact()) return bad_input("wrote outside its state");
    INVAR_CHECK_OK(collect(c, step, mode, outs, result));
  }
  INVAR_CHECK_OK(check_unchanged(operands, inputs));
  return result;
}

}  // namespace

Result<std::vector<Bytes>> execute(ops::KernelRef k, const Case& c, const std::vector<Bytes>& inputs,
                                   const RunMode& mode) {
  return or_error([&] { return run_case(k, c, inputs, mode); });
}

namespace {

// Element `i` of the leading axis of the batched tensors and of the results.
Case element_of(const Case& c, uint64_t batched) {
  Case one = c;
  for (size_t t = 0; t < one.in.size(); ++t)
    if (batched >> t & 1) one.in[t].shape[0] = 1;
  for (Tensor& t : one.out) t.shape[0] = 1;
  return one;
}
Bytes element_of(const Bytes& whole, int64_t i, int64_t count) {
  const auto size = static_cast<ptrdiff_t>(whole.size()) / count;
  return Bytes(whole.begin() + i * size, whole.begin() + (i + 1) * size);
}

}  // namespace

std::string check_batch_independence(const ops::CpuKernel& reference, const Case& c,
                                     const std::vector<Bytes>& inputs, const std::vector<Bytes>& whole) {
  const int64_t batch = c.out[0].shape.empty() ? 0 : c.out[0].shape[0];
  auto has_batch = [&](const Tensor& t) { return !t.shape.empty() && t.shape[0] == batch; };
  const auto independent = ops::contract_of(reference.op)->batch_independent;
  if (!independent || batch < 2 || c.in.size() > 6 || !std::all_of(c.out.begin(), c.out.end(), has_batch))
    return "";
  std::vector<ops::View> in, out;
  for (const Tensor& t : c.in) in.push_back(view(t, nullptr));
  for (const Tensor& t : c.out) out.push_back(view(t, nullptr));
  for (uint64_t batched = 1; batched < uint64_t{1} << c.in.size(); ++batched) {
    bool possible = true;
    for (size_t i = 0; i < c.in.size(); ++i) possible &= !(batched >> i & 1) || has_batch(c.in[i]);
    if (!possible || !independent({in, out, &c.attrs}, batched)) continue;
    const Case one = element_of(c, batched);
    const std::string name = "kept apart by operands " + std::to_string(batched) + ", element ";
    if (const std::string wrong = refusal(reference.op, one); !wrong.empty())
      return name + "alone requires " + wrong;
    for (int64_t i : {int64_t{0}, batch / 2, batch - 1}) {
      std::vector<Bytes> mine = inputs, expected;
      for (size_t t = 0; t < mine.size(); ++t)
        if (batched >> t & 1) mine[t] = element_of(inputs[t], i, batch);
      for (const Bytes& b : whole) expected.push_back(element_of(b, i, batch));
      const auto found = execute(&reference, one, mine, {});
      const std::string wrong = found ? difference(one, expected, *found) : found.error().message;
      if (!wrong.empty()) return name + std::to_string(i) + ": " + wrong;
    }
  }
  return "";
}

Result<std::shared_ptr<Device>> gpu() {
  static const Result<std::shared_ptr<Device>> device = Device::open();
  return device;
}

std::string refusal(std::string_view op, const Case& c) {
  if (!has_attribute_types(c.attrs)) return "attributes of the types that the room names";
  std::vector<ops::View> in, out;
  for (const Tensor& t : c.in) in.push_back(view(t, nullptr));
  for (const Tensor& t : c.out) out.push_back(view(t, nullptr));
  const char* wrong = ops::contract_of(op)->check({in, out, &c.attrs});
  return wrong ? wrong : "";
}

void compute_sizes(const std::vector<ops::KernelRef>& kernels, const Case& c) {
  std::vector<ops::View> in, out;
  for (const Tensor& t : c.in) in.push_back(view(t, nullptr));
  for (const Tensor& t : c.out) out.push_back(view(t, nullptr));
  const ops::Call call{in, out, &c.attrs};
  volatile size_t seen = 0;  // keeps the calls from being optimized away
  for (const ops::KernelRef k : kernels) {
    for (int phase = 0; k.cpu && phase < k.cpu->phases; ++phase)
      seen = seen + static_cast<size_t>(k.cpu->units(call, phase));
    if (k.cpu && k.cpu->scratch_bytes) seen = seen + k.cpu->scratch_bytes(call);
    seen = seen + k.shared_bytes(call) + k.state_bytes(call, 16);
    for (size_t i = 0; i < in.size(); ++i) seen = seen + k.pack_bytes(in[i], static_cast<int>(i), c.attrs);
  }
}

std::string difference(const Case& c, const std::vector<Bytes>& expected, const std::vector<Bytes>& found) {
  for (size_t o = 0; o < expected.size(); ++o) {
    const Tensor& t = c.out[o];
    size_t width = size_of(t.dtype), count = 0, first = 0;
    for (size_t i = 0; i * width < expected[o].size(); ++i)
      if (std::memcmp(expected[o].data() + i * width, found[o].data() + i * width, width) != 0 &&
          count++ == 0)
        first = i;
    if (count == 0) continue;
    std::string at;
    int64_t rest = static_cast<int64_t>(first);
    for (size_t d = t.shape.size(); d-- > 0; rest /= t.shape[d])
      at = std::to_string(rest % t.shape[d]) + (at.empty() ? "" : ",") + at;
    auto bits = [&](const Bytes& b) {
      std::byte little[8];
      copy_little_endian(little, b.data() + first * width, width, width);
      uint64_t value = 0;
      for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint64_t>(little[i]);
      char text[17];
      std::snprintf(text, sizeof text, "%0*llx", static_cast<int>(2 * width),
                    static_cast<unsigned long long>(value));
      return std::string(text);
    };
    return std::to_string(count) + " of " + std::to_string(expected[o].size() / width) +
           " elements differ, the first at [" + at + "] of output " + std::to_string(o) + ": expected " +
           bits(expected[o]) + ", found " + bits(found[o]);
  }
  return "";
}

}  // namespace invar::conformance
