// Loading weights where no file can be mapped: each weight is read from its file into the place
// where kernels read it. One that is packed is read into memory of its own first, which the next
// one takes over, so that weights are in memory once. Compiled for WebAssembly alone, in the place
// of weights.cc.
#ifdef __wasi__
#include "run/weights/weights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include "run/prepare/prepare.h"
#include "run/weights/weight_loading.h"
#include "run/weights_needed.h"

namespace invar::run {
namespace {

constexpr uint64_t kPiece = uint64_t{4} << 20;  // hashed while it is in the processor's cache
// The C library gives no memory of 2 GiB or more at once.
constexpr uint64_t kBlock = uint64_t{1} << 30;

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY)) {}
  Reader(const Reader&) = delete;
  ~Reader() {
    if (fd_ >= 0) ::close(fd_);
  }
  // Reads all bytes of a weight; `hash`: null, or what gets them, too.
  Status read(const plan::Weight& w, std::byte* to, Sha256* hash) const {
    for (uint64_t done = 0; done < w.length;) {
      const size_t most = static_cast<size_t>(std::min(kPiece, w.length - done));
      const ssize_t n = fd_ < 0 ? -1 : ::pread(fd_, to + done, most, static_cast<off_t>(w.offset + done));
      if (n <= 0)
        return bad_input("cannot read '" + path_ + "' (it holds weight " + w.name +
                         "): " + (n < 0 ? std::strerror(errno) : "it is shorter than it was"));
      if (hash) hash->update(to + done, static_cast<size_t>(n));
      done += static_cast<uint64_t>(n);
    }
    return {};
  }

 private:
  const std::string path_;
  const int fd_;
};

// Places for weights in as few blocks as possible, none of which is too large to be had.
Result<std::vector<std::byte*>> places_for(const std::vector<uint64_t>& sizes,
                                           std::vector<Allocation>& blocks) {
  std::vector<std::byte*> places;
  for (size_t begin = 0; begin < sizes.size();) {
    uint64_t bytes = 0;
    size_t end = begin;
    while (end < sizes.size() && (end == begin || bytes + sizes[end] <= kBlock))
      bytes += Allocation::round_up(sizes[end++]);
    INVAR_TRY(Allocation block, Allocation::make(bytes, "weights"));
    std::byte* at = block.data();
    for (; begin < end; ++begin) places.push_back(at), at += Allocation::round_up(sizes[begin]);
    blocks.push_back(std::move(block));
  }
  return places;
}

bool is_read_for_packing_alone(const WeightLoader& l, size_t weight) {
  return l.used[weight] && !l.read_unpacked[weight];
}

uint64_t largest_read_for_packing(const WeightLoader& l) {
  uint64_t most = 0;
  for (size_t i = 0; i < l.used.size(); ++i)
    if (is_read_for_packing_alone(l, i)) most = std::max(most, l.plan->weights[i].length);
  return most;
}

}  // namespace

Status WeightLoader::find_bytes(const Weights::Check&) {
  std::map<std::string, uint64_t> sizes;
  for (const plan::Weight& w : plan->weights) {
    const std::string path = folder + "/" + w.file;
    if (weights::is_index(w.file)) return not_covered(path + ": packed weights where no file can be mapped");
    if (!sizes.contains(w.file)) {
      struct stat info;
      if (::stat(path.c_str(), &info) != 0)
        return bad_input("cannot open '" + path + "': " + std::strerror(errno) + " (it holds weight " +
                         w.name + ")");
      sizes[w.file] = static_cast<uint64_t>(info.st_size);
    }
    INVAR_CHECK_OK(check_place(w, path, sizes[w.file]));
  }
  return {};
}

Result<uint64_t> Weights::needed(const plan::Plan& plan, const std::string& folder, std::span<const Use> uses,
                                 bool) {
  INVAR_TRY(const WeightLoader l, WeightLoader::begin(plan, folder, uses, {false, nullptr}));
  uint64_t bytes = l.packed_bytes + largest_read_for_packing(l);
  for (size_t i = 0; i < plan.weights.size(); ++i)
    if (l.read_unpacked[i]) bytes += Allocation::round_up(plan.weights[i].length);
  return bytes;
}

Result<Weights> Weights::load(const plan::Plan& plan, const std::string& folder, std::span<const Use> uses,
                              Pool&, const Check& check, const std::shared_ptr<Device>&, UploadQueues*) {
  INVAR_TRY(WeightLoader l, WeightLoader::begin(plan, folder, uses, check));
  const size_t count = plan.weights.size(), packings = l.packings.size();
  std::vector<uint64_t> sizes;
  uint64_t total = 0;
  for (size_t p = 0; p < packings; ++p)
    sizes.push_back((p + 1 < packings ? l.packings[p + 1].offset : l.packed_bytes) - l.packings[p].offset);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t length = plan.weights[i].length;
    sizes.push_back(l.read_unpacked[i] ? length : 0);
    if (l.used[i] || l.needs_hash(i)) total += length;
  }
  Weights r;
  INVAR_TRY(const std::vector<std::byte*> places, places_for(sizes, r.allocations_));
  for (const Allocation& b : r.allocations_) r.bytes_ += b.size();
  // A weight that nothing uses is read for its digest.
  uint64_t most = largest_read_for_packing(l);
  for (size_t i = 0; i < count; ++i)
    if (!l.used[i] && l.needs_hash(i)) most = std::max(most, plan.weights[i].length);
  INVAR_TRY(const Allocation shared, Allocation::make(most, "a weight that is packed"));

  ByteMeter meter(check.progress, total);
  std::unique_ptr<Reader> file;
  for (size_t i = 0; i < count; ++i) {
    const plan::Weight& w = plan.weights[i];
    if (!l.used[i] && !l.needs_hash(i)) continue;
    if (i == 0 || !file || plan.weights[i - 1].file != w.file)
      file = std::make_unique<Reader>(folder + "/" + w.file);
    std::byte* const to = l.read_unpacked[i] ? places[packings + i] : shared.data();
    Sha256 hash;
    INVAR_CHECK_OK(file->read(w, to, l.needs_hash(i) ? &hash : nullptr));
    if (l.needs_hash(i)) l.digests[i] = hash.finish();
    l.unpacked[i].data = to;
    for (int p : l.packings_by_weight[i]) {
      const Use& use = l.packings[static_cast<size_t>(p)].use;
      use.kernel.cpu->pack(l.unpacked[i], use.operand, *use.attrs, places[static_cast<size_t>(p)]);
    }
    meter.add(w.length, true);
  }
  INVAR_CHECK_OK(l.check_digests(nullptr));
  for (size_t u = 0; u < uses.size(); ++u) {
    ops::View& v = r.views_.emplace_back(l.unpacked[static_cast<size_t>(uses[u].weight)]);
    const int packing = l.packing_of[u];
    if (packing >= 0) v.data = places[static_cast<size_t>(packing)], v.packed = true;
  }
  return r;
}

// The bytes that were hashed are those in memory: nothing is read from a file again.
Status Weights::unchanged(const plan::Plan&) {
  return {};
}

Result<uint64_t> weights_needed(const plan::Plan& plan, const std::string& folder) {
  INVAR_TRY(const auto executable, prepare(plan, {}));
  return Weights::needed(plan, folder, executable->weight_uses(), false);
}

}  // namespace invar::run
#endif
