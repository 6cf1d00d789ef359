#include "runner.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/endian.h"

namespace invar::conformance {
namespace {

constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xff};  // as floats: NaN, which shows wherever it is read

// Memory between two guards, `skew` bytes past a multiple of 64.
class Block {
 public:
  explicit Block(size_t bytes, size_t skew = 0)
      : size_(bytes), raw_(bytes + 2 * kGuard + 64 + skew % 64, kPoison) {
    auto at = reinterpret_cast<uintptr_t>(raw_.data()) + kGuard;
    data_ = raw_.data() + kGuard + (64 - at % 64) % 64 + skew % 64;
    std::fill(data_ - kGuard, data_, std::byte{0xa5});
    std::fill(data_ + size_, data_ + size_ + kGuard, std::byte{0xa5});
  }
  Block(Block&&) = default;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool intact() const {
    auto guard = [](const std::byte* p) {
      return std::all_of(p, p + kGuard, [](std::byte b) { return b == std::byte{0xa5}; });
    };
    return guard(data_ - kGuard) && guard(data_ + size_);
  }

 private:
  size_t size_;
  Bytes raw_;
  std::byte* data_;
};

ops::View view(const Tensor& t, void* data) {
  ops::View v;
  v.data = data, v.dtype = t.dtype, v.rank = static_cast<int>(t.shape.size());
  std::copy(t.shape.begin(), t.shape.end(), v.dim);
  return v;
}

// Rows [from, from + count) of axis 1.
struct Slice {
  int64_t outer, inner, axis, from, count;
  Slice(const Tensor& t, int64_t from, int64_t count)
      : outer(t.shape[0]), axis(t.shape[1]), from(from), count(count) {
    inner = static_cast<int64_t>(size_of(t.dtype));
    for (size_t i = 2; i < t.shape.size(); ++i) inner *= t.shape[i];
  }
  template <class Copy>
  void each(Copy copy) const {
    for (int64_t o = 0; o < outer; ++o)
      copy((o * axis + from) * inner, o * count * inner, static_cast<size_t>(count * inner));
  }
};

Status run_parts(const ops::Kernel& k, const ops::Call& call, const Manner& manner) {
  for (int phase = 0; phase < k.phases; ++phase) {
    int64_t units = k.units(call, phase);
    if (units < 0) return bad_input("negative number of units");
    int64_t parts = manner.parts ? manner.parts : std::max<int64_t>(units, 1);
    std::atomic<bool> intact = true;
    auto run = [&](int, int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) {
        int64_t part = manner.reversed ? parts - 1 - p : p;
        int64_t begin = part * units / parts, end = (part + 1) * units / parts;
        if (begin == end) continue;
        Block scratch(k.scratch_bytes ? k.scratch_bytes(call) : 0);
        k.run(call, phase, begin, end, scratch.data());
        if (!scratch.intact()) intact = false;
      }
    };
    if (manner.pool)
      manner.pool->run(parts, run);
    else
      run(0, 0, parts);
    if (!intact) return bad_input("wrote outside its scratch");
  }
  return {};
}

}  // namespace

std::string Manner::text() const {
  std::string s = parts ? std::to_string(parts) + " parts" : "one unit at a time";
  if (reversed) s += " reversed";
  if (!packed) s += ", constants not packed";
  if (chunk) s += ", steps of " + std::to_string(chunk);
  if (skew) s += ", skewed by " + std::to_string(skew);
  if (pool) s += ", at once";
  return s;
}

Result<std::vector<Bytes>> execute(const ops::Kernel& k, const Case& c, const std::vector<Bytes>& inputs,
                                   const Manner& manner) {
  auto skew = [&](const Tensor& t) { return static_cast<size_t>(manner.skew) * size_of(t.dtype); };
  std::vector<Block> in, packed;
  std::vector<ops::View> views;
  for (size_t i = 0; i < c.in.size(); ++i) {
    Block& b = in.emplace_back(inputs[i].size(), skew(c.in[i]));
    std::copy(inputs[i].begin(), inputs[i].end(), b.data());
    views.push_back(view(c.in[i], b.data()));
    int operand = static_cast<int>(i);
    size_t bytes =
        c.in[i].constant && manner.packed && k.pack_bytes ? k.pack_bytes(views[i], operand, c.attrs) : 0;
    if (bytes == 0) continue;
    packed.emplace_back(bytes);
    k.pack(views[i], operand, c.attrs, packed.back().data());
    if (!packed.back().intact()) return bad_input("pack wrote outside its memory");
    views[i].data = packed.back().data();
    views[i].packed = true;
    std::fill(b.data(), b.data() + b.size(), kPoison);  // the row-major copy is gone
  }
  std::vector<Bytes> result;
  for (const Tensor& t : c.out)
    result.emplace_back(static_cast<size_t>(t.elements()) * size_of(t.dtype), kPoison);

  int64_t length = manner.chunk ? c.out[0].shape[1] : 1, step = manner.chunk ? manner.chunk : 1;
  int64_t capacity = c.out[0].shape.size() > 1 ? c.out[0].shape[1] + c.spare : 0;
  std::unique_ptr<Block> state;
  for (int64_t at = 0; at < length; at += step) {
    int64_t count = std::min(step, length - at);
    std::vector<Block> pieces, outs;
    std::vector<ops::View> call_in = views, call_out;
    for (size_t i = 0; manner.chunk && i < c.in.size(); ++i) {
      Slice slice(c.in[i], at, count);
      Block& piece =
          pieces.emplace_back(static_cast<size_t>(slice.outer * count * slice.inner), skew(c.in[i]));
      slice.each([&](int64_t whole, int64_t part, size_t n) {
        std::memcpy(piece.data() + part, in[i].data() + whole, n);
      });
      call_in[i].data = piece.data();
      call_in[i].dim[1] = count;
    }
    for (const Tensor& t : c.out) {
      ops::View v = view(t, nullptr);
      if (manner.chunk) v.dim[1] = count;
      v.data = outs.emplace_back(static_cast<size_t>(v.elements()) * size_of(t.dtype), skew(t)).data();
      call_out.push_back(v);
    }
    ops::Call call{call_in, call_out, &c.attrs};
    if (k.state_bytes) {
      if (!state) state = std::make_unique<Block>(k.state_bytes(call, capacity));
      call.state = state->data(), call.past = at, call.capacity = capacity;
    }
    Block shared(k.shared_bytes ? k.shared_bytes(call) : 0);
    call.shared = shared.data();
    INVAR_CHECK_OK(run_parts(k, call, manner));
    if (!shared.intact()) return bad_input("wrote outside its shared memory");
    if (state && !state->intact()) return bad_input("wrote outside its state");
    for (size_t o = 0; o < outs.size(); ++o) {
      if (!outs[o].intact()) return bad_input("wrote outside output " + std::to_string(o));
      if (manner.chunk) {
        Slice(c.out[o], at, count).each([&](int64_t whole, int64_t part, size_t n) {
          std::memcpy(result[o].data() + whole, outs[o].data() + part, n);
        });
      } else {
        std::copy(outs[o].data(), outs[o].data() + outs[o].size(), result[o].begin());
      }
    }
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (!in[i].intact() ||
        (!views[i].packed && !std::equal(inputs[i].begin(), inputs[i].end(), in[i].data())))
      return bad_input("changed input " + std::to_string(i));
  return result;
}

std::string refusal(const ops::Kernel& k, const Case& c) {
  std::vector<ops::View> in, out;
  for (const Tensor& t : c.in) in.push_back(view(t, nullptr));
  for (const Tensor& t : c.out) out.push_back(view(t, nullptr));
  const char* wrong = k.check ? k.check({in, out, &c.attrs}) : "a check of its operands";
  return wrong ? wrong : "";
}

void ask_for_sizes(const std::vector<const ops::Kernel*>& rows, const Case& c) {
  std::vector<ops::View> in, out;
  for (const Tensor& t : c.in) in.push_back(view(t, nullptr));
  for (const Tensor& t : c.out) out.push_back(view(t, nullptr));
  const ops::Call call{in, out, &c.attrs};
  volatile size_t seen = 0;  // so that nothing is left out
  for (const ops::Kernel* k : rows) {
    for (int phase = 0; phase < k->phases; ++phase) seen = seen + static_cast<size_t>(k->units(call, phase));
    if (k->scratch_bytes) seen = seen + k->scratch_bytes(call);
    if (k->shared_bytes) seen = seen + k->shared_bytes(call);
    if (k->state_bytes) seen = seen + k->state_bytes(call, 16);
    for (size_t i = 0; k->pack_bytes && i < in.size(); ++i)
      seen = seen + k->pack_bytes(in[i], static_cast<int>(i), c.attrs);
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
