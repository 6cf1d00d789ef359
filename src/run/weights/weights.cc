// Loading weights on the host: hashes, copies and packs them all in parallel.
#include "run/weights/weights.h"

#include <algorithm>
#include <map>

#include "base/endian.h"
#include "run/weights/weight_loading.h"

namespace invar::run {

// Files hold weights little-endian and at any offset; kernels read them in the host's byte order
// and aligned to their type.
static bool usable_in_place(const std::byte* data, DType t) {
  return native_in_storage(size_of(t)) && reinterpret_cast<uintptr_t>(data) % size_of(t) == 0;
}

static DType element_of(const weights::Format& f) {
  return f.element == std::string_view("F32")   ? DType::f32
         : f.element == std::string_view("F16") ? DType::f16
                                                : DType::bf16;
}

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
    else if (const auto rows = file.rows(w.offset, w.length); rows && !w.shape.empty() &&
                                                              rows->numbers == w.shape.back() &&
                                                              element_of(*rows->format) == w.dtype)
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
  INVAR_TRY(WeightLoader l, WeightLoader::begin(plan, folder, uses, check));
  if (device) return upload(device, l, uses, pool, check, queues);
  Weights r;
  const size_t count = plan.weights.size();
  INVAR_TRY(auto packed_block, Allocation::make(l.packed_bytes, "packed weights"));
  std::byte* const packed = packed_block.data();
  r.allocations_.push_back(std::move(packed_block));
  std::vector<bool> copied(count);
  for (size_t i = 0; i < count; ++i) {
    if (!l.used[i]) continue;
    if (!l.stored[i] && !l.read_unpacked[i]) {  // blocks, or packed from numbers that are made for it
      if (l.blocks[i]) r.bytes_ += static_cast<size_t>(l.blocks[i]->rows * l.blocks[i]->stride);
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
  for (const Allocation& b : r.allocations_) r.bytes_ += b.size();

  FirstError wrong;
  Jobs jobs = hash_jobs(l, pool.threads(), wrong);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t length = plan.weights[i].length;
    auto mine = l.packings_of(static_cast<int>(i));
    if (!copied[i] && mine.empty()) continue;
    jobs.emplace_back(length, [&, i, length, mine = std::move(mine)](int) {
      ops::View numbers = l.unpacked[i];
      Allocation own;  // numbers that nobody reads after they were packed
      const bool of_numbers = std::ranges::any_of(mine, [](auto* p) { return !p->of_blocks; });
      if (!l.stored[i] && !copied[i] && of_numbers) {
        auto made = Allocation::make(length, "a weight that is packed");
        if (!made) return wrong.add(made.error());
        own = *std::move(made), numbers.data = own.data();
      }
      if (numbers.data && !l.stored[i]) {
        auto* to = static_cast<std::byte*>(numbers.data);
        wrong.add(l.read(i, [&](std::span<const std::byte> part) -> Status {
          copy_little_endian(to, part.data(), part.size(), size_of(numbers.dtype));
          to += part.size();
          return {};
        }));
      } else if (copied[i]) {
        copy_little_endian(numbers.data, l.stored[i], length, size_of(numbers.dtype));
      }
      for (const WeightLoader::Packing* p : mine) {
        ops::View view = numbers;
        if (p->of_blocks) view.data = l.blocks[i].get(), view.packed = true;
        p->use.kernel.cpu->pack(view, p->use.operand, *p->use.attrs, packed + p->offset);
      }
    });
  }
  run_jobs(pool, check.progress, std::move(jobs));
  INVAR_CHECK_OK(wrong.take());
  INVAR_CHECK_OK(l.check_digests(check.computed));
  r.views_ = l.views(uses, packed);
  r.blocks_ = std::move(l.blocks);
  r.files_ = std::move(l.files), r.file_of_ = std::move(l.file_of);
  INVAR_CHECK_OK(r.unchanged(plan));  // else other bytes were packed than hashed
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
