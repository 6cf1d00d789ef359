#include "run/weights.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>

#include "base/endian.h"
#include "base/hash.h"

namespace invar::run {
namespace {

// Weights lie little-endian and at any offset; kernels read them in the host's order and aligned to their
// type.
bool usable_in_place(const std::byte* data, DType t) {
  return native_in_storage(size_of(t)) && reinterpret_cast<uintptr_t>(data) % size_of(t) == 0;
}

struct Packing {
  Weights::Use use;
  uint64_t at;  // in the block of all packed weights
};

bool packs_alike(const Weights::Use& a, const Weights::Use& b) {
  return a.weight == b.weight && a.operand == b.operand && a.kernel == b.kernel && *a.attrs == *b.attrs;
}

// Jobs of very different sizes: the largest first, each taken by the next free worker. Who does which is left
// to chance here, which is why it does nothing but hash and copy.
void run_jobs(Pool& pool, std::vector<std::pair<uint64_t, std::function<void()>>> jobs) {
  std::stable_sort(jobs.begin(), jobs.end(), [](auto& a, auto& b) { return a.first > b.first; });
  std::atomic<size_t> next{0};
  pool.run(pool.threads(), [&](int, int64_t, int64_t) {
    for (size_t i; (i = next.fetch_add(1)) < jobs.size();) jobs[i].second();
  });
}

Error mismatch(const plan::Plan& plan, const std::string& folder, const std::vector<Digest>& found) {
  int wrong = 0;
  std::string message;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const plan::Weight& w = plan.weights[i];
    if (found[i] == w.sha256 || ++wrong > 1) continue;
    message = "weight " + w.name + " in " + folder + "/" + w.file + ": its bytes have SHA-256 " +
              to_hex(found[i]) + ", the plan says " + to_hex(w.sha256);
  }
  if (wrong > 1) message += " (and " + std::to_string(wrong - 1) + " more weights differ)";
  return {Code::failed, message};
}

}  // namespace

Result<Weights> Weights::load(const plan::Plan& plan, const std::string& folder, std::span<const Use> uses,
                              Pool& pool, bool check) {
  Weights r;
  const size_t count = plan.weights.size();

  std::map<std::string, size_t> opened;  // file name -> index into files_
  std::vector<ops::View> raw(count);     // the weight as stored, in the host's byte order
  std::vector<const std::byte*> stored(count);
  for (size_t i = 0; i < count; ++i) {
    const plan::Weight& w = plan.weights[i];
    const std::string path = folder + "/" + w.file;
    auto it = opened.find(w.file);
    if (it == opened.end()) {
      auto file = MappedFile::open(path);
      if (!file) return Error{file.error().code, file.error().message + " (it holds weight " + w.name + ")"};
      r.files_.push_back(*std::move(file));
      it = opened.emplace(w.file, r.files_.size() - 1).first;
    }
    const auto bytes = r.files_[it->second].bytes();
    if (w.offset > bytes.size() || w.length > bytes.size() - w.offset)
      return bad_input(path + ": the file has " + std::to_string(bytes.size()) + " bytes, but weight " +
                       w.name + " should lie at offset " + std::to_string(w.offset) + " with " +
                       std::to_string(w.length) + " bytes; fetch the file again or compile anew");
    stored[i] = bytes.data() + w.offset;
    raw[i].data = const_cast<std::byte*>(stored[i]);  // kernels do not write their inputs
    raw[i].dtype = w.dtype;
    raw[i].rank = static_cast<int>(w.shape.size());
    std::copy(w.shape.begin(), w.shape.end(), raw[i].dim);
  }

  // Decide what is packed and copied, then do it all at once with the hashing.
  std::vector<Packing> packings;
  std::vector<int> packing_of(uses.size(), -1);
  std::vector<bool> read_raw(count), used(count);
  uint64_t packed_bytes = 0;
  for (size_t u = 0; u < uses.size(); ++u) {
    const Use& use = uses[u];
    used[use.weight] = true;
    const size_t bytes =
        use.kernel->pack_bytes ? use.kernel->pack_bytes(raw[use.weight], use.operand, *use.attrs) : 0;
    if (bytes == 0) {
      read_raw[use.weight] = true;
      continue;
    }
    for (size_t p = 0; p < packings.size() && packing_of[u] < 0; ++p)
      if (packs_alike(packings[p].use, use)) packing_of[u] = static_cast<int>(p);
    if (packing_of[u] >= 0) continue;
    packing_of[u] = static_cast<int>(packings.size());
    packings.push_back({use, packed_bytes});
    packed_bytes += Block::round_up(bytes);
  }
  INVAR_TRY(auto packed_block, Block::make(packed_bytes, "packed weights"));
  std::byte* const packed = packed_block.data();
  r.blocks_.push_back(std::move(packed_block));
  std::vector<int> copy_of(count, -1);
  for (size_t i = 0; i < count; ++i) {
    if (!used[i]) continue;
    if (usable_in_place(stored[i], raw[i].dtype)) {
      if (read_raw[i]) r.bytes_ += plan.weights[i].length;
      continue;
    }
    INVAR_TRY(auto block, Block::make(plan.weights[i].length, "weights"));
    copy_of[i] = static_cast<int>(r.blocks_.size());
    raw[i].data = block.data();
    r.blocks_.push_back(std::move(block));
  }
  for (const Block& b : r.blocks_) r.bytes_ += b.size();

  std::vector<std::pair<uint64_t, std::function<void()>>> jobs;
  std::vector<Digest> found(count);
  for (size_t i = 0; i < count; ++i) {
    const plan::Weight& w = plan.weights[i];
    if (check) jobs.emplace_back(w.length, [&, i] { found[i] = sha256(stored[i], plan.weights[i].length); });
    std::vector<const Packing*> mine;
    for (const Packing& p : packings)
      if (p.use.weight == static_cast<int>(i)) mine.push_back(&p);
    if (copy_of[i] < 0 && mine.empty()) continue;
    jobs.emplace_back(w.length, [&, i, mine] {
      if (copy_of[i] >= 0)
        copy_little_endian(raw[i].data, stored[i], plan.weights[i].length, size_of(raw[i].dtype));
      for (const Packing* p : mine)
        p->use.kernel->pack(raw[i], p->use.operand, *p->use.attrs, packed + p->at);
    });
  }
  run_jobs(pool, std::move(jobs));
  for (size_t i = 0; check && i < count; ++i)
    if (found[i] != plan.weights[i].sha256) return mismatch(plan, folder, found);

  for (size_t u = 0; u < uses.size(); ++u) {
    ops::View v = raw[uses[u].weight];
    if (packing_of[u] >= 0) {
      v.data = packed + packings[packing_of[u]].at;
      v.packed = true;
    }
    r.views_.push_back(v);
  }
  return r;
}

}  // namespace invar::run
