// Loading weights on the host: hashes, copies and packs them all in parallel.
#include "run/weights/weights.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/endian.h"
#include "run/weights/weight_loading.h"

namespace invar::run {

// Files hold weights little-endian and at any offset; kernels read them in the host's byte order
// and aligned to their type.
static bool usable_in_place(const std::byte* data, DType t) {
  return native_in_storage(size_of(t)) && reinterpret_cast<uintptr_t>(data) % size_of(t) == 0;
}

// Copies or unpacks a weight into the memory of the view.
static Status copy_numbers(const WeightLoader& l, size_t i, const ops::View& to) {
  auto* at = static_cast<std::byte*>(to.data);
  return l.read(i, [&](std::span<const std::byte> part) -> Status {
    copy_little_endian(at, part.data(), part.size(), size_of(to.dtype));
    at += part.size();
    return {};
  });
}

// Whether the rows are those of a tensor of this type and shape.
static bool are_rows_of(const weights::PackedRows& rows, const plan::Weight& w) {
  const std::string_view element = rows.format ? rows.format->element : rows.matrix->element();
  const DType type = element == "F32" ? DType::f32 : element == "F16" ? DType::f16 : DType::bf16;
  const size_t rank = w.shape.size();
  if (type != w.dtype || rank < (rows.turned ? 2u : 1u)) return false;
  return rows.numbers == w.shape[rank - (rows.turned ? 2 : 1)];
}

namespace {

// What the bytes of a packing follow from.
struct PackingKey {
  Digest sha256;  // of the weight
  DType dtype;
  std::vector<int64_t> shape;
  ops::KernelRef kernel;
  int operand;
  Attributes attrs;
  bool of_blocks;  // else of numbers
  uint64_t bytes;
  bool operator==(const PackingKey&) const = default;
};
struct SharedPacking {
  PackingKey key;
  std::shared_ptr<const Allocation> memory = {};  // in which it lies
  std::byte* at = nullptr;
  bool fresh = true;  // this load writes it
};

// The packings in the memory of this process whose weights are checked, so that a program with the
// same ones, such as that of a model with another adapter, reads them where they are.
struct PackingsInMemory {
  struct Known {
    PackingKey key;
    std::weak_ptr<const Allocation> memory;
    std::byte* at;
  };
  std::mutex mutex;
  std::map<Digest, std::vector<Known>> by_weight;

  void forget_expired() {
    for (auto it = by_weight.begin(); it != by_weight.end();) {
      std::erase_if(it->second, [](const Known& known) { return known.memory.expired(); });
      it = it->second.empty() ? by_weight.erase(it) : std::next(it);
    }
  }
};

PackingsInMemory& packings_in_memory() {
  static PackingsInMemory all;
  return all;
}

PackingKey key_of_packing(const WeightLoader& l, size_t packing) {
  const WeightLoader::Packing& p = l.packings[packing];
  const uint64_t end = packing + 1 < l.packings.size() ? l.packings[packing + 1].offset : l.packed_bytes;
  const auto weight = static_cast<size_t>(p.use.weight);
  const plan::Weight& w = l.plan->weights[weight];
  return {w.sha256, w.dtype, w.shape, p.use.kernel, p.use.operand, *p.use.attrs, p.of_blocks, end - p.offset};
}

// The packings of a program, those that are there with their places.
std::vector<SharedPacking> known_packings_of(const WeightLoader& l, bool checked) {
  std::vector<SharedPacking> found;
  PackingsInMemory& all = packings_in_memory();
  const std::lock_guard lock(all.mutex);
  for (size_t p = 0; p < l.packings.size(); ++p) {
    SharedPacking& one = found.emplace_back(SharedPacking{key_of_packing(l, p)});
    const auto of_weight = all.by_weight.find(one.key.sha256);
    if (!checked || of_weight == all.by_weight.end()) continue;
    for (const PackingsInMemory::Known& known : of_weight->second)
      if (known.key == one.key)
        if (auto memory = known.memory.lock())
          one.memory = std::move(memory), one.at = known.at, one.fresh = false;
  }
  return found;
}

// One block for those that are not there.
Status make_missing(std::vector<SharedPacking>& packed) {
  uint64_t bytes = 0;
  for (const SharedPacking& p : packed) bytes += p.fresh ? p.key.bytes : 0;
  INVAR_TRY(Allocation made, Allocation::make(bytes, "packed weights"));
  std::byte* at = made.data();
  const auto memory = std::make_shared<const Allocation>(std::move(made));
  for (SharedPacking& p : packed)
    if (p.fresh) p.memory = memory, p.at = at, at += p.key.bytes;
  return {};
}

// The bytes of these packings are written, and their weights' digests are checked.
void share(const std::vector<SharedPacking>& packed) {
  PackingsInMemory& all = packings_in_memory();
  const std::lock_guard lock(all.mutex);
  all.forget_expired();
  for (const SharedPacking& p : packed)
    if (p.fresh) all.by_weight[p.key.sha256].push_back({p.key, p.memory, p.at});
}

}  // namespace

Status WeightLoader::find_bytes(const Weights::Check& check) {
  std::map<std::string, size_t> opened;  // file name -> index into files
  for (size_t i = 0; i < plan->weights.size(); ++i) {
    const plan::Weight& w = plan->weights[i];
    const std::string path = folder + "/" + w.file;
    auto it = opened.find(w.file);
    if (it == opened.end()) {
      auto file = weights::WeightFile::open(path);
      if (!file) return Error{file.error().code, file.error().message + " (it holds weight " + w.name + ")"};
      files.push_back(*std::move(file));
      it = opened.emplace(w.file, files.size() - 1).first;
    }
    file_of.push_back(static_cast<int>(it->second));
    const weights::WeightFile& file = files[it->second];
    INVAR_CHECK_OK(check_place(w, path, file.size()));
    if (check.wanted && check.known && file.is_known(*check.known, w.offset, w.length, w.sha256))
      digests[i] = w.sha256, must_hash[i] = false;
    if (!file.is_packed())
      stored[i] = reinterpret_cast<const std::byte*>(file.text().data()) + w.offset;
    else if (const auto rows = file.rows(w.offset, w.length); rows && are_rows_of(*rows, w))
      blocks[i] = std::make_unique<weights::PackedRows>(*rows);
  }
  return {};
}

Result<uint64_t> Weights::needed(const plan::Plan& plan, const std::string& folder, std::span<const Use> uses,
                                 bool on_device) {
  INVAR_TRY(const WeightLoader l, WeightLoader::begin(plan, folder, uses, {false, nullptr}));
  uint64_t bytes = l.packed_bytes;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const bool copied = !on_device && l.stored[i] && !usable_in_place(l.stored[i], l.unpacked[i].dtype);
    if (l.used[i] && (l.read_unpacked[i] || copied)) bytes += Allocation::round_up(plan.weights[i].length);
  }
  return bytes;
}

Result<Weights> Weights::load(const plan::Plan& plan, const std::string& folder, std::span<const Use> uses,
                              Pool& pool, const Check& check, const std::shared_ptr<Device>& device,
                              UploadQueues* queues) {
  if (device) device->make_current();  // kernels say what they read there
  INVAR_TRY(WeightLoader l, WeightLoader::begin(plan, folder, uses, check));
  if (device) return upload(device, l, uses, pool, check, queues);
  Weights r;
  const size_t count = plan.weights.size();
  std::vector<SharedPacking> packed = known_packings_of(l, check.wanted);
  INVAR_CHECK_OK(make_missing(packed));
  std::vector<bool> copied(count);
  for (size_t i = 0; i < count; ++i) {
    if (!l.used[i]) continue;
    if (!l.stored[i] && !l.read_unpacked[i]) {  // blocks, or packed from numbers that are made for it
      continue;
    }
    if (l.stored[i] && usable_in_place(l.stored[i], l.unpacked[i].dtype)) {
      if (l.read_unpacked[i]) r.bytes_ += plan.weights[i].length;
      continue;
    }
    INVAR_TRY(auto block, Allocation::make(plan.weights[i].length, "weights"));
    copied[i] = true;
    l.unpacked[i].data = block.data();
    r.allocations_.push_back(std::move(block));
  }
  for (size_t u = 0; u < uses.size(); ++u)
    if (l.reads_blocks[u] && l.packing_of[u] < 0) r.bytes_ += l.blocks[uses[u].weight]->bytes_of_rows();
  for (const Allocation& b : r.allocations_) r.bytes_ += b.size();
  for (const SharedPacking& p : packed) r.bytes_ += p.fresh ? p.key.bytes : 0;

  FirstError wrong;
  Jobs jobs = hash_jobs(l, pool.threads(), wrong);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t length = plan.weights[i].length;
    std::vector<int> mine;
    for (const int p : l.packings_by_weight[i])
      if (packed[static_cast<size_t>(p)].fresh) mine.push_back(p);
    if (!copied[i] && mine.empty()) continue;
    jobs.emplace_back(length, [&, i, length, mine = std::move(mine)](int) {
      ops::View numbers = l.unpacked[i];
      Allocation own;  // numbers that nobody reads after they were packed
      const bool of_numbers =
          std::ranges::any_of(mine, [&](int p) { return !l.packings[static_cast<size_t>(p)].of_blocks; });
      if (!l.stored[i] && !copied[i] && of_numbers) {
        auto made = Allocation::make(length, "a weight that is packed");
        if (!made) return wrong.add(made.error());
        own = *std::move(made), numbers.data = own.data();
      }
      if (numbers.data && (copied[i] || !l.stored[i])) wrong.add(copy_numbers(l, i, numbers));
      for (const int p : mine) {
        const WeightLoader::Packing& packing = l.packings[static_cast<size_t>(p)];
        const Weights::Use& use = packing.use;
        ops::View view = numbers;
        if (packing.of_blocks) view.data = l.blocks[i].get(), view.packed = true;
        use.kernel.cpu->pack(view, use.operand, *use.attrs, packed[static_cast<size_t>(p)].at);
      }
      l.release(i);
    });
  }
  run_jobs(pool, check.progress, std::move(jobs));
  INVAR_CHECK_OK(wrong.take());
  INVAR_CHECK_OK(l.check_digests(check.computed));
  r.views_ = l.views(uses, packed.empty() ? nullptr : packed[0].at);
  for (size_t u = 0; u < uses.size(); ++u)
    if (l.packing_of[u] >= 0) r.views_[u].data = packed[static_cast<size_t>(l.packing_of[u])].at;
  r.blocks_ = std::move(l.blocks);
  r.files_ = std::move(l.files), r.file_of_ = std::move(l.file_of);
  INVAR_CHECK_OK(r.unchanged(plan));  // else other bytes were packed than hashed
  if (check.wanted) share(packed);
  for (const SharedPacking& p : packed)
    if (r.packed_.empty() || r.packed_.back() != p.memory) r.packed_.push_back(p.memory);
  return r;
}

Status Weights::unchanged(const plan::Plan& plan) {
  for (size_t f = 0; f < files_.size(); ++f) {
    if (!files_[f].changed()) continue;
    const auto weight = std::find(file_of_.begin(), file_of_.end(), static_cast<int>(f)) - file_of_.begin();
    return Error{Code::failed, "weight file " + plan.weights[static_cast<size_t>(weight)].file +
                                   ": it was changed while it was in use, so the answer may be of neither "
                                   "version: run again"};
  }
  return {};
}

}  // namespace invar::run
