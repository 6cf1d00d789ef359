// The epilogue recorder, and the check of regions.
#include "conformance/fusion_checks.h"

#include <algorithm>
#include <cstring>

#include "kernels/call.h"
#include "kernels/fusion/rounding_reference.h"

namespace invar::conformance {

EpilogueRecorder::EpilogueRecorder(const ops::View& out)
    : out_(out),
      width_(size_of(out.dtype)),
      times_(static_cast<size_t>(out.elements())),
      seen_(times_.size() * width_),
      epilogue_{[](const void* self, const ops::Region& r) {
                  static_cast<EpilogueRecorder*>(const_cast<void*>(self))->record(r);
                },
                this} {}

void EpilogueRecorder::record(const ops::Region& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t from = r.at + row * r.pitch;
    if (from < 0 || r.n < 1 || from + r.n > static_cast<int64_t>(times_.size())) {
      outside_ = true;
      continue;
    }
    for (int64_t i = from; i < from + r.n; ++i) ++times_[static_cast<size_t>(i)];
    std::memcpy(seen_.data() + static_cast<size_t>(from) * width_,
                out_.as<std::byte>() + static_cast<size_t>(from) * width_, static_cast<size_t>(r.n) * width_);
  }
}

std::string EpilogueRecorder::wrong() const {
  if (outside_) return "reported elements outside its result to the epilogue callback";
  for (size_t i = 0; i < times_.size(); ++i)
    if (times_[i] != 1)
      return "reported element " + std::to_string(i) + " to the epilogue callback " +
             std::to_string(times_[i]) + " times";
  for (size_t i = 0; i < seen_.size(); ++i)
    if (seen_[i] != out_.as<std::byte>()[i])
      return "changed element " + std::to_string(i / width_) +
             " after it reported it to the epilogue callback";
  return "";
}

namespace {

// Memory at the same distance from a multiple of 64 as `like`, before and behind it what must stay.
class GuardedBuffer {
 public:
  GuardedBuffer(const ops::View& like, std::byte fill)
      : size_(static_cast<size_t>(like.elements()) * size_of(like.dtype)),
        raw_(size_ + 2 * kMargin + 128, kStays) {
    const auto past = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 64; };
    at_ = raw_.data() + kMargin;
    at_ += (64 + past(like.data) - past(at_)) % 64;
    std::fill(at_, at_ + size_, fill);
  }
  std::byte* at() const { return at_; }
  size_t size() const { return size_; }
  bool intact() const {
    const auto stays = [](const std::byte* p) {
      return std::all_of(p, p + kMargin, [](std::byte b) { return b == kStays; });
    };
    return stays(at_ - kMargin) && stays(at_ + size_);
  }

 private:
  static constexpr size_t kMargin = 64;
  static constexpr std::byte kStays{0x5a};
  size_t size_;
  std::vector<std::byte> raw_;
  std::byte* at_;
};

// The elements as rows of `width`, cut into blocks of at most rows x columns, the last ones first;
// what is left over is one row.
std::vector<ops::Region> regions(int64_t elements, int64_t width, int64_t rows, int64_t columns) {
  std::vector<ops::Region> list;
  const int64_t high = elements / width;
  for (int64_t r = 0; r < high; r += rows)
    for (int64_t c = 0; c < width; c += columns)
      list.push_back({r * width + c, std::min(columns, width - c), std::min(rows, high - r), width});
  if (elements > high * width) list.push_back({high * width, elements - high * width, 1, 0});
  std::reverse(list.begin(), list.end());
  return list;
}

}  // namespace

std::string check_regions(const ops::CpuKernel& k, const ops::Call& call) {
  const ops::View& out = call.out[0];
  const int64_t n = out.elements(), wide = out.rank ? out.dim[out.rank - 1] : 1,
                plane = out.rank > 1 ? wide * out.dim[out.rank - 2] : wide;
  if (n == 0) return "";
  for (int way = -1; way < static_cast<int>(call.in.size());
       ++way) {  // the operand in whose memory it is done
    std::vector<ops::View> in(call.in.begin(), call.in.end());
    if (way >= 0 && (in[static_cast<size_t>(way)].elements() != n || in[static_cast<size_t>(way)].packed ||
                     size_of(in[static_cast<size_t>(way)].dtype) != size_of(out.dtype)))
      continue;
    for (const auto& cut : {regions(n, wide, 3, 37), regions(n, plane, 2, 300), regions(n, n, 1, 2049)}) {
      const GuardedBuffer place(out, std::byte{0xff});
      if (way >= 0) {
        ops::View& operand = in[static_cast<size_t>(way)];
        std::memcpy(place.at(), call.in[static_cast<size_t>(way)].data, place.size());
        operand.data = place.at();
      }
      ops::View result = out;
      result.data = place.at();
      ops::Call part = call;
      part.in = in, part.out = {&result, 1};
      for (const ops::Region& r : cut) k.region(part, r);
      const std::string where = way < 0 ? "" : " in the memory of operand " + std::to_string(way);
      if (!place.intact()) return "a region wrote outside the result" + where;
      if (std::memcmp(place.at(), out.data, place.size()) != 0)
        return "regions computed" + where + " differ from the whole";
    }
  }
  return "";
}

std::string check_rounded(const ops::GpuKernel& kernel, const ops::Call& call, const DeviceMemory& of) {
  Device& device = of.device;
  const ops::Call* const one = &call;
  const std::span calls(&one, 1);
  const ops::View& out = call.out.back();
  if (!kernel.can_round || !kernel.can_round(calls) || out.elements() == 0) return "";
  std::vector<float> rows(static_cast<size_t>(out.elements()));
  for (const int height : {8, 64}) {
    constexpr uint8_t kFill = 0xa5;
    ops::reference::RoundedMemory expected(ops::row_count(out), ops::last_dim(out), height, kFill);
    const size_t size = expected.size(), guarded = size + 256;
    std::vector<uint8_t> found(guarded);
    void* const memory = of.take(guarded);
    Status done = device.fill(memory, kFill, guarded);
    if (done) done = device.download(rows.data(), out.data, rows.size() * sizeof(float));
    if (done) kernel.enqueue_rounded(calls, expected.at(memory), device.stream());
    if (done) done = device.download(found.data(), memory, guarded);
    if (done) done = device.wait();
    if (!done) return done.error().message;
    expected.round(rows.data());
    if (std::memcmp(expected.data(), found.data(), size) != 0)
      return "rounds its rows to others than those of its result, in tiles of " + std::to_string(height);
    if (!std::all_of(found.begin() + static_cast<int64_t>(size), found.end(),
                     [](uint8_t b) { return b == kFill; }))
      return "wrote outside its rounded rows";
  }
  return "";
}

std::string check_together(const ops::GpuKernel& kernel, const ops::Call& call,
                           std::span<const ops::View> plain, const DeviceMemory& of) {
  Device& device = of.device;
  const ops::View& out = call.out[0];
  if ((!kernel.enqueue_batch && !kernel.enqueue_fused) || call.out.size() != 1 || out.elements() == 0)
    return "";
  constexpr size_t kCalls = 3, kGuard = 256;
  const size_t count = static_cast<size_t>(out.elements()), size = count * size_of(out.dtype);
  std::vector<ops::View> outs(kCalls, out);
  std::vector<ops::Call> calls(kCalls, call);
  std::vector<const ops::Call*> all;
  for (size_t i = 0; i < kCalls; ++i) calls[i].out = {&outs[i], 1}, all.push_back(&calls[i]);
  calls[1].in = plain;
  size_t shared = kernel.shared_bytes_batch ? kernel.shared_bytes_batch(all) : 0;
  shared = (shared + kGuard - 1) / kGuard * kGuard;
  const size_t each = (size + 2 * kGuard - 1) / kGuard * kGuard, bytes = (kCalls + 1) * each + shared;
  std::byte* const at = of.take(bytes);
  for (size_t i = 0; i < kCalls; ++i)
    outs[i].data = at + i * each, calls[i].shared = at + (kCalls + 1) * each;
  auto* const zeros = reinterpret_cast<float*>(at + kCalls * each);  // x + -0 is x, for -0 too
  const std::vector<float> negative_zeros(kernel.enqueue_fused ? count : 0, -0.0f);
  std::vector<std::byte> expected(size), found(bytes - shared);
  Status done = device.fill(at, 0xff, bytes);
  if (done) done = device.upload(zeros, negative_zeros.data(), negative_zeros.size() * sizeof(float));
  const float* const addends[kCalls] = {zeros, nullptr, zeros};
  if (done && kernel.enqueue_fused)
    kernel.enqueue_fused(all, {{}, nullptr, addends}, device.stream());
  else if (done)
    kernel.enqueue_batch(all, device.stream());
  if (done) done = device.download(expected.data(), out.data, size);
  if (done) done = device.download(found.data(), at, found.size());
  if (done) done = device.wait();
  if (!done) return done.error().message;
  for (size_t i = 0; i < kCalls; ++i) {
    const std::byte* const result = found.data() + i * each;
    if (std::memcmp(result, expected.data(), size) != 0)
      return "in a batch of calls, call " + std::to_string(i) + " differs from the call alone";
    if (!std::all_of(result + size, result + each, [](std::byte b) { return b == std::byte{0xff}; }))
      return "in a batch of calls, wrote outside its result";
  }
  return "";
}

}  // namespace invar::conformance
