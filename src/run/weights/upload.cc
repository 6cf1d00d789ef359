// Loading weights on a GPU. Some workers copy pieces of weights into pinned memory while earlier
// pieces are being sent; the others hash, which takes longer and is one sequential chain per
// weight. A weight that is packed passes through device memory that the next one reuses; weights
// that are large in comparison to all weights pass one at a time. Codes that kernels read become
// tiles on the host.
#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/endian.h"
#include "run/weights/upload_queues.h"
#include "run/weights/weight_loading.h"

namespace invar::run {
namespace {

constexpr uint64_t kUploadPiece = 2 << 20;  // bytes per transfer; the system takes long to pin more
constexpr int kHashing = 4;  // workers that hash per worker that copies, which is five times as fast
constexpr int kCopying = 8;  // workers that copy as fast as any number does

// Calls it on a thread of its own, which the caller waits for; not at all where the system refuses
// another thread.
std::jthread start(const Weights::OnAllocated& allocated, const Weights& weights) {
  try {
    if (allocated) return std::jthread([&] { allocated(weights); });
  } catch (const std::system_error&) {
  }
  return {};
}

// The bytes of a weight, unpacked part by part where the file holds blocks.
Status send_numbers(const WeightLoader& l, size_t i, UploadQueue& queue, std::byte* to) {
  if (l.stored[i]) return queue.send(to, l.stored[i], l.plan->weights[i].length);
  return l.read(i, [&](std::span<const std::byte> part) {
    std::byte* const at = to;
    to += part.size();
    return queue.send(at, part.data(), part.size());
  });
}

// Whether a kernel reads the numbers of a weight, packed or not, and not its codes alone.
bool reads_numbers(const WeightLoader& l, size_t i) {
  return l.read_unpacked[i] || std::ranges::any_of(l.packings_by_weight[i], [&](int p) {
           return !l.packings[static_cast<size_t>(p)].of_blocks;
         });
}

// The same as tiles of codes.
Status send_tiles(const weights::PackedRows& rows, UploadQueue& queue, std::byte* to) {
  const weights::CodeTiles tiles = weights::CodeTiles::of(rows);
  const size_t row_bytes = tiles.row_bytes();
  const auto at_once = std::clamp<int64_t>(static_cast<int64_t>(kUploadPiece / row_bytes), 1, tiles.down());
  std::vector<uint8_t> memory(static_cast<size_t>(at_once) * row_bytes);
  std::vector<int32_t> scales(static_cast<size_t>(tiles.down()) * weights::CodeTiles::kRows);
  const auto send = [&](size_t at, const void* from, size_t bytes) {
    return queue.send(to + at, static_cast<const std::byte*>(from), bytes);
  };
  for (int64_t down = 0, count; down < tiles.down(); down += count) {
    count = std::min(at_once, tiles.down() - down);
    for (int64_t i = 0; i < count; ++i)
      tiles.pack(rows, down + i, memory.data() + static_cast<size_t>(i) * row_bytes,
                 scales.data() + (down + i) * weights::CodeTiles::kRows);
    INVAR_CHECK_OK(
        send(static_cast<size_t>(down) * row_bytes, memory.data(), static_cast<size_t>(count) * row_bytes));
  }
  INVAR_CHECK_OK(send(tiles.scales_at(), scales.data(), scales.size() * sizeof(int32_t)));
  return queue.wait();
}
// The packings of a weight that are such.
Status send_codes(const WeightLoader& l, size_t i, UploadQueue& queue, std::byte* packed) {
  for (const WeightLoader::Packing* p : l.packings_of(static_cast<int>(i))) {
    if (!p->of_blocks) continue;
    INVAR_CHECK_OK(send_tiles(*l.blocks[i], queue, packed + p->offset));
  }
  if (!reads_numbers(l, i)) l.release(i);
  return {};
}
// What their views refer to.
std::vector<std::unique_ptr<weights::CodeTiles>> view_tiles(const WeightLoader& l,
                                                            std::span<const Weights::Use> uses,
                                                            std::vector<ops::View>& views) {
  std::vector<std::unique_ptr<weights::CodeTiles>> all;
  for (size_t u = 0; u < uses.size(); ++u) {
    if (!l.reads_blocks[u]) continue;
    auto& tiles = *all.emplace_back(
        std::make_unique<weights::CodeTiles>(weights::CodeTiles::of(*l.blocks[uses[u].weight])));
    tiles.memory = views[u].as<const uint8_t>();
    views[u].data = &tiles, views[u].dtype = DType::u8;
  }
  return all;
}

// Tiles take longer to make than packed weights to hash.
int copying_workers(const WeightLoader& l, int threads) {
  const bool makes_tiles = std::ranges::any_of(l.packings, &WeightLoader::Packing::of_blocks);
  if (makes_tiles) return std::max(1, threads * 3 / 4);
  return std::min(l.needs_hash() ? (threads + kHashing) / (1 + kHashing) : threads, kCopying);
}

}  // namespace

Result<UploadQueue> UploadQueue::open(int index) {
  UploadQueue queue;
  for (Staging& s : queue.staging) {
    INVAR_TRY(s.device, Device::open(index));
    INVAR_TRY(s.pinned, Allocation::make_pinned(kUploadPiece, "uploads", s.device));
  }
  return queue;
}

Status UploadQueue::send(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kUploadPiece) {
    const uint64_t n = std::min(kUploadPiece, bytes - at);
    Staging& s = staging[next ^= 1];
    INVAR_CHECK_OK(s.device->wait());
    s.device->make_current();
    std::memcpy(s.pinned.data(), from + at, n);
    INVAR_CHECK_OK(s.device->upload(to + at, s.pinned.data(), n));
  }
  return {};
}

Status UploadQueue::wait() {
  for (Staging& s : staging) INVAR_CHECK_OK(s.device->wait());
  return {};
}

Status UploadQueues::open(int count, int index) {
  while (queues.size() < static_cast<size_t>(count)) {
    INVAR_TRY(UploadQueue queue, UploadQueue::open(index));
    queues.push_back(std::move(queue));
  }
  return {};
}

Result<Weights> Weights::upload(const std::shared_ptr<Device>& device, WeightLoader& l,
                                std::span<const Use> uses, Pool& pool, const Check& check,
                                UploadQueues* kept) {
  if (!native_in_storage(8)) return not_covered("a big-endian host with a GPU");
  Weights r;
  const size_t count = l.plan->weights.size();
  INVAR_TRY(auto packed_block, Allocation::make(l.packed_bytes, "packed weights", device));
  std::byte* const packed = packed_block.data();
  r.allocations_.push_back(std::move(packed_block));
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    total += l.plan->weights[i].length;
    l.unpacked[i].data = nullptr;
    if (!l.read_unpacked[i]) continue;
    INVAR_TRY(auto block, Allocation::make(l.plan->weights[i].length, "weights", device));
    l.unpacked[i].data = block.data();
    r.allocations_.push_back(std::move(block));
  }
  for (const Allocation& b : r.allocations_) r.bytes_ += b.size();

  const int copying = copying_workers(l, pool.threads());
  UploadQueues own;
  UploadQueues& connections = kept ? *kept : own;
  const std::lock_guard alone(connections.mutex);
  INVAR_CHECK_OK(connections.open(copying, device->info().index));
  // So this memory is at most an eighth of all weights plus one weight.
  const uint64_t large = total / 8 / static_cast<uint64_t>(copying);
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i)
    if (const uint64_t length = l.plan->weights[i].length;
        l.used[i] && reads_numbers(l, i) && !l.read_unpacked[i] && length <= large)
      most = std::max(most, length);
  std::mutex one_at_a_time;
  auto copy = [&](UploadQueue& queue, size_t i) -> Status {
    INVAR_CHECK_OK(send_codes(l, i, queue, packed));
    if (!reads_numbers(l, i)) return {};
    const uint64_t length = l.plan->weights[i].length;
    ops::View view = l.unpacked[i];
    std::unique_lock turn(one_at_a_time, std::defer_lock);
    Allocation large_one;
    if (!l.read_unpacked[i]) {
      Allocation& unpacked = length > large ? large_one : queue.unpacked;
      if (length > large) turn.lock();
      if (unpacked.size() < length) {
        INVAR_TRY(unpacked, Allocation::make(length > large ? length : most, "a weight on its way", device));
      }
      view.data = unpacked.data();
    }
    INVAR_CHECK_OK(send_numbers(l, i, queue, static_cast<std::byte*>(view.data)));
    INVAR_CHECK_OK(queue.wait());
    queue.staging[0].device->make_current();
    for (const WeightLoader::Packing* p : l.packings_of(static_cast<int>(i)))
      if (!p->of_blocks)
        p->use.kernel.gpu->enqueue_pack(view, p->use.operand, *p->use.attrs, packed + p->offset,
                                        queue.staging[0].device->stream());
    return queue.staging[0].device->wait();
  };
  FirstError wrong;
  Jobs copies, hashes = hash_jobs(l, pool.threads(), wrong);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t length = l.plan->weights[i].length;
    if (!l.used[i]) continue;
    copies.emplace_back(
        length, [&, i](int worker) { wrong.add(copy(connections.queues[static_cast<size_t>(worker)], i)); });
  }
  r.views_ = l.views(uses, packed);
  r.tiles_ = view_tiles(l, uses, r.views_);
  {
    const std::jthread beside = start(check.allocated, r);
    run_jobs(pool, check.progress, std::move(hashes), std::move(copies), copying);
  }
  INVAR_CHECK_OK(wrong.take());
  INVAR_CHECK_OK(l.check_digests(check.computed));
  // The uploaded bytes are the hashed ones if the files are unchanged; from here on they may
  // change.
  r.files_ = std::move(l.files), r.file_of_ = std::move(l.file_of);
  INVAR_CHECK_OK(r.unchanged(*l.plan));
  r.files_.clear();
  return r;
}

}  // namespace invar::run
