// Loading weights, see weight_loading.h.
#include "run/weights/weight_loading.h"

#include <algorithm>
#include <atomic>

#include "base/hash/hash_groups.h"
#include "base/hash/sha256_blocks.h"
#include "kernels/blocks/block_readers.h"

namespace invar::run {

static bool same_packing(const Weights::Use& a, const Weights::Use& b) {
  return a.weight == b.weight && a.operand == b.operand && a.kernel == b.kernel && *a.attrs == *b.attrs;
}

Jobs hash_jobs(WeightLoader& l, int threads, FirstError& wrong) {
  std::vector<size_t> left;
  std::vector<uint64_t> lengths;
  Jobs jobs;
  for (size_t i = 0; i < l.stored.size(); ++i) {
    if (!l.needs_hash(i)) continue;
    const plan::Weight& w = l.plan->weights[i];
    if (l.stored[i])
      left.push_back(i), lengths.push_back(w.length);
    else
      jobs.emplace_back(w.length, [&, i](int) {
        Result<Digest> digest =
            l.files[static_cast<size_t>(l.file_of[i])].checked_sha256(w.offset, w.length, w.sha256);
        if (digest)
          l.digests[i] = *digest;
        else
          wrong.add(digest.error());
        l.release(i);
      });
  }
  for (const HashGroup& group : hash_groups(lengths, threads)) {
    std::vector<size_t> weights;
    uint64_t bytes = 0;
    for (size_t i : group) weights.push_back(left[i]), bytes += lengths[i];
    jobs.emplace_back(bytes, [&l, weights = std::move(weights)](int) {
      std::vector<std::span<const std::byte>> messages;
      for (size_t i : weights)
        messages.emplace_back(l.stored[i], static_cast<size_t>(l.plan->weights[i].length));
      std::vector<Digest> digests(weights.size());
      sha256_of_many(messages, digests);
      for (size_t i = 0; i < weights.size(); ++i) l.digests[weights[i]] = digests[i], l.release(weights[i]);
    });
  }
  return jobs;
}

void run_jobs(Pool& pool, const ByteProgress& progress, Jobs jobs, Jobs reserved, int reserved_workers) {
  std::atomic<size_t> next[2] = {};
  Jobs* const lists[2] = {&reserved, &jobs};
  for (Jobs* list : lists)
    std::stable_sort(list->begin(), list->end(), [](auto& a, auto& b) { return a.first > b.first; });
  uint64_t total = 0;
  for (const Jobs* list : lists)
    for (const auto& [bytes, job] : *list) total += bytes;
  ByteMeter meter(progress, total);
  pool.run(pool.threads(), [&](int worker, int64_t, int64_t) {
    for (int i = worker < reserved_workers ? 0 : 1; i < 2; ++i)
      for (size_t j; (j = next[i].fetch_add(1)) < lists[i]->size();) {
        const auto& [bytes, job] = (*lists[i])[j];
        job(worker);
        meter.add(bytes, worker == 0);
      }
  });
  if (progress && total) progress(total, total);  // the last jobs, or all, may have been others'
}

Status check_place(const plan::Weight& w, const std::string& path, uint64_t file_bytes) {
  if (w.offset <= file_bytes && w.length <= file_bytes - w.offset) return {};
  return bad_input(path + ": the file has " + std::to_string(file_bytes) + " bytes, but weight " + w.name +
                   " should lie at offset " + std::to_string(w.offset) + " with " + std::to_string(w.length) +
                   " bytes; fetch the file again or compile anew");
}

Result<WeightLoader> WeightLoader::begin(const plan::Plan& plan, const std::string& folder,
                                         std::span<const Weights::Use> uses, const Weights::Check& check) {
  WeightLoader l;
  l.plan = &plan, l.folder = folder;
  const size_t count = plan.weights.size();
  l.stored.resize(count), l.blocks.resize(count), l.unpacked.resize(count), l.used.resize(count),
      l.read_unpacked.resize(count), l.read_in_blocks.resize(count);
  if (check.wanted) l.digests.resize(count), l.must_hash.assign(count, true);
  INVAR_CHECK_OK(l.find_bytes(check));
  for (size_t i = 0; i < count; ++i) {
    const plan::Weight& w = plan.weights[i];
    l.unpacked[i].data = const_cast<std::byte*>(l.stored[i]);  // kernels do not write their inputs
    l.unpacked[i].dtype = w.dtype;
    l.unpacked[i].rank = static_cast<int>(w.shape.size());
    std::copy(w.shape.begin(), w.shape.end(), l.unpacked[i].dim);
  }
  l.plan_packings(uses);
  return l;
}

void WeightLoader::plan_packings(std::span<const Weights::Use> uses) {
  packing_of.assign(uses.size(), -1), reads_blocks.assign(uses.size(), false);
  packings_by_weight.resize(plan->weights.size());
  for (size_t u = 0; u < uses.size(); ++u) {
    const Weights::Use& use = uses[u];
    used[use.weight] = true;
    reads_blocks[u] = blocks[use.weight] != nullptr;  // as view_for() then shows
    const auto reads = [&](const auto& kernel) {
      return ops::reads_blocks(kernel, view_for(u, use), use.operand, *use.attrs);
    };
    reads_blocks[u] = reads_blocks[u] && (use.kernel.cpu ? reads(*use.kernel.cpu) : reads(*use.kernel.gpu));
    const size_t bytes = use.kernel.pack_bytes(view_for(u, use), use.operand, *use.attrs);
    if (bytes == 0) {
      (reads_blocks[u] ? read_in_blocks : read_unpacked)[use.weight] = true;
      continue;
    }
    std::vector<int>& of_weight = packings_by_weight[use.weight];
    const auto same = std::find_if(of_weight.begin(), of_weight.end(),
                                   [&](int p) { return same_packing(packings[p].use, use); });
    if (same != of_weight.end()) {
      packing_of[u] = *same;
      continue;
    }
    packing_of[u] = static_cast<int>(packings.size());
    of_weight.push_back(packing_of[u]);
    packings.push_back({use, packed_bytes, reads_blocks[u]});
    packed_bytes += Allocation::round_up(bytes);
  }
}

ops::View WeightLoader::view_for(size_t use, const Weights::Use& u) const {
  ops::View v = unpacked[u.weight];
  if (reads_blocks[use]) v.data = blocks[u.weight].get(), v.packed = true;
  return v;
}

Status WeightLoader::read(size_t i, const weights::WeightFile::Take& take) const {
  return files[file_of[i]].read(plan->weights[i].offset, plan->weights[i].length, take);
}

void WeightLoader::release(size_t i) const {
  const bool in_place = read_in_blocks[i] || (read_unpacked[i] && stored[i]);
  if (!in_place) files[file_of[i]].release(plan->weights[i].offset, plan->weights[i].length);
}

std::vector<const WeightLoader::Packing*> WeightLoader::packings_of(int weight) const {
  std::vector<const Packing*> mine;
  for (int p : packings_by_weight[weight]) mine.push_back(&packings[p]);
  return mine;
}

Status WeightLoader::check_digests(DigestCache* computed) const {
  int wrong = 0;
  std::string message;
  for (size_t i = 0; i < digests.size(); ++i) {
    const plan::Weight& w = plan->weights[i];
    if (digests[i] == w.sha256 || ++wrong > 1) continue;
    message = "weight " + w.name + " in " + folder + "/" + w.file + ": its bytes have SHA-256 " +
              to_hex(digests[i]) + ", the plan says " + to_hex(w.sha256);
  }
  for (size_t i = 0; i < digests.size() && computed && wrong == 0; ++i)
    if (must_hash[i])
      files[file_of[i]].remember(*computed, plan->weights[i].offset, plan->weights[i].length, digests[i]);
  if (wrong == 0) return {};
  if (wrong > 1) message += " (and " + std::to_string(wrong - 1) + " more weights differ)";
  return Error{Code::failed, message};
}

std::vector<ops::View> WeightLoader::views(std::span<const Weights::Use> uses, std::byte* packed) const {
  std::vector<ops::View> views;
  for (size_t u = 0; u < uses.size(); ++u) {
    ops::View& v = views.emplace_back(view_for(u, uses[u]));
    if (packing_of[u] < 0) continue;
    v.data = packed + packings[packing_of[u]].offset;
    v.packed = true;
  }
  return views;
}

}  // namespace invar::run
