// Weights on a GPU. Each worker hashes a piece and copies it into pinned memory while the piece before it is on its way; a
// weight that is packed passes through memory of its own, of which few are held at a time.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "base/endian.h"
#include "run/loading.h"

namespace invar::run {
namespace {

constexpr uint64_t kPiece =
    4 << 20;  // bytes: hashed and copied while they are in the second cache, sent in one go

// One worker's way to the device: two queues with a piece of pinned memory each.
struct Lane {
  struct Side {
    std::shared_ptr<Device> device;
    Block pinned;
  } side[2];
  int next = 0;
  static Result<Lane> open(int index) {
    Lane lane;
    for (Side& s : lane.side) {
      INVAR_TRY(s.device, Device::open(index));
      INVAR_TRY(s.pinned, Block::make_pinned(kPiece, "uploads", s.device));
    }
    return lane;
  }
  Status send(std::byte* to, const std::byte* from, uint64_t bytes, Sha256* hash) {
    for (uint64_t at = 0; at < bytes; at += kPiece) {
      const uint64_t n = std::min(kPiece, bytes - at);
      Side& s = side[next ^= 1];
      INVAR_CHECK_OK(s.device->wait());
      s.device->enter();
      std::memcpy(s.pinned.data(), from + at, n);
      INVAR_CHECK_OK(s.device->upload(to + at, s.pinned.data(), n));
      if (hash) hash->update(s.pinned.data(), n);
    }
    return {};
  }
  Status arrived() {
    for (Side& s : side) INVAR_CHECK_OK(s.device->wait());
    return {};
  }
};

// Memory for weights on their way into a packing: at most `limit` bytes at a time, or one weight.
class Passage {
 public:
  explicit Passage(uint64_t limit) : limit_(limit) {}
  void enter(uint64_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return used_ == 0 || used_ + bytes <= limit_; });
    used_ += bytes;
  }
  void leave(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t limit_, used_ = 0;
};

}  // namespace

Result<Weights> Weights::load_on(const std::shared_ptr<Device>& device, Loading& l, std::span<const Use> uses,
                                 Pool& pool, bool check) {
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

  std::vector<Lane> lanes;
  for (int w = 0; w < pool.threads(); ++w) {
    INVAR_TRY(Lane lane, Lane::open(device->info().index));
    lanes.push_back(std::move(lane));
  }
  Passage passage(total / 20);
  std::mutex mutex;
  Status status;
  if (check) l.found.resize(count);
  auto one = [&](Lane& lane, size_t i) -> Status {
    const uint64_t length = l.plan->weights[i].length;
    ops::View view = l.raw[i];
    const auto mine = l.packings_of(static_cast<int>(i));
    Block passing;
    if (!view.data && !mine.empty()) {
      INVAR_TRY(passing, Block::make(length, "a weight on its way", device));
      view.data = passing.data();
    }
    Sha256 hash;
    if (view.data) {
      INVAR_CHECK_OK(
          lane.send(static_cast<std::byte*>(view.data), l.stored[i], length, check ? &hash : nullptr));
    } else if (check) {
      hash.update(l.stored[i], length);
    }
    if (check) l.found[i] = hash.finish();
    INVAR_CHECK_OK(lane.arrived());
    lane.side[0].device->enter();
    for (const Loading::Packing* p : mine)
      p->use.kernel->enqueue_pack(view, p->use.operand, *p->use.attrs, packed + p->at,
                                  lane.side[0].device->stream());
    return lane.side[0].device->wait();
  };
  std::vector<std::pair<uint64_t, std::function<void(int)>>> jobs;
  for (size_t i = 0; i < count; ++i) {
    if (!l.used[i] && !check) continue;
    const uint64_t length = l.plan->weights[i].length, held = l.read_raw[i] ? 0 : length;
    jobs.emplace_back(length, [&, i, held](int worker) {
      passage.enter(held);
      const Status done = one(lanes[static_cast<size_t>(worker)], i);
      passage.leave(held);
      const std::lock_guard lock(mutex);
      if (!done && status) status = done;
    });
  }
  run_jobs(pool, std::move(jobs));
  INVAR_CHECK_OK(status);
  INVAR_CHECK_OK(l.verdict());
  r.views_ = l.views(uses, packed);
  return r;
}

}  // namespace invar::run
