// Weights on a GPU. Some workers copy pieces into pinned memory while those before them are on their way, the others hash, which
// takes longer: a weight is one chain there. A weight that is packed passes through memory that the next one takes; of those that
// are large beside all weights, one at a time.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/endian.h"
#include "run/weights/weight_loading.h"

namespace invar::run {
namespace {

constexpr uint64_t kPiece = 4 << 20;  // bytes that are sent in one go
constexpr int kHashing = 4;           // workers that hash, to one that copies: that is five times as fast

// One worker's way to the device: two queues with a piece of pinned memory each.
struct Lane {
  struct Side {
    std::shared_ptr<Device> device;
    Block pinned;
  } side[2];
  int next = 0;
  Block passing;  // for weights on their way into a packing
  static Result<Lane> open(int index) {
    Lane lane;
    for (Side& s : lane.side) {
      INVAR_TRY(s.device, Device::open(index));
      INVAR_TRY(s.pinned, Block::make_pinned(kPiece, "uploads", s.device));
    }
    return lane;
  }
  Status send(std::byte* to, const std::byte* from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kPiece) {
      const uint64_t n = std::min(kPiece, bytes - at);
      Side& s = side[next ^= 1];
      INVAR_CHECK_OK(s.device->wait());
      s.device->enter();
      std::memcpy(s.pinned.data(), from + at, n);
      INVAR_CHECK_OK(s.device->upload(to + at, s.pinned.data(), n));
    }
    return {};
  }
  Status arrived() {
    for (Side& s : side) INVAR_CHECK_OK(s.device->wait());
    return {};
  }
};

}  // namespace

Result<Weights> Weights::load_on(const std::shared_ptr<Device>& device, Loading& l, std::span<const Use> uses,
                                 Pool& pool) {
  if (!native_in_storage(8)) return not_covered("a big-endian host with a GPU");
  Weights r;
  const size_t count = l.plan->weights.size();
  INVAR_TRY(auto packed_block, Block::make(l.packed_bytes, "packed weights", device));
  std::byte* const packed = packed_block.data();
  r.blocks_.push_back(std::move(packed_block));
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    total += l.plan->weights[i].length;
    l.raw[i].data = nullptr;
    if (!l.read_raw[i]) continue;
    INVAR_TRY(auto block, Block::make(l.plan->weights[i].length, "weights", device));
    l.raw[i].data = block.data();
    r.blocks_.push_back(std::move(block));
  }
  for (const Block& b : r.blocks_) r.bytes_ += b.size();

  const int copying = l.hashes() ? (pool.threads() + kHashing) / (1 + kHashing) : pool.threads();
  std::vector<Lane> lanes;
  for (int w = 0; w < copying; ++w) {
    INVAR_TRY(Lane lane, Lane::open(device->info().index));
    lanes.push_back(std::move(lane));
  }
  // So passing memory is at most a sixteenth of all weights, and one of them.
  const uint64_t large = total / 16 / static_cast<uint64_t>(copying);
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i)
    if (const uint64_t length = l.plan->weights[i].length; l.used[i] && !l.read_raw[i] && length <= large)
      most = std::max(most, length);
  std::mutex one_at_a_time;
  auto copy = [&](Lane& lane, size_t i) -> Status {
    const uint64_t length = l.plan->weights[i].length;
    ops::View view = l.raw[i];
    std::unique_lock alone(one_at_a_time, std::defer_lock);
    Block own;
    if (!l.read_raw[i]) {
      Block& passing = length > large ? own : lane.passing;
      if (length > large) alone.lock();
      if (passing.size() < length) {
        INVAR_TRY(passing, Block::make(length > large ? length : most, "a weight on its way", device));
      }
      view.data = passing.data();
    }
    INVAR_CHECK_OK(lane.send(static_cast<std::byte*>(view.data), l.stored[i], length));
    INVAR_CHECK_OK(lane.arrived());
    lane.side[0].device->enter();
    for (const Loading::Packing* p : l.packings_of(static_cast<int>(i)))
      p->use.kernel->enqueue_pack(view, p->use.operand, *p->use.attrs, packed + p->at,
                                  lane.side[0].device->stream());
    return lane.side[0].device->wait();
  };
  std::mutex mutex;
  Status status;
  Jobs copies, hashes;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t length = l.plan->weights[i].length;
    if (l.hashes(i))
      hashes.emplace_back(length, [&l, i, length](int) { l.found[i] = sha256(l.stored[i], length); });
    if (!l.used[i]) continue;
    copies.emplace_back(length, [&, i](int worker) {
      const Status done = copy(lanes[static_cast<size_t>(worker)], i);
      const std::lock_guard lock(mutex);
      if (!done && status) status = done;
    });
  }
  run_jobs(pool, std::move(hashes), std::move(copies), copying);
  INVAR_CHECK_OK(status);
  INVAR_CHECK_OK(l.verdict());
  r.views_ = l.views(uses, packed);
  // Uploaded from the bytes that were hashed; from here on the files may change.
  r.files_ = std::move(l.files), r.file_of_ = std::move(l.file_of);
  INVAR_CHECK_OK(r.unchanged(*l.plan));
  r.files_.clear();
  return r;
}

}  // namespace invar::run
