#include "run/weights/weight_loading.h"

#include <algorithm>
#include <atomic>
#include <map>

namespace invar::run {

static bool packs_alike(const Weights::Use& a, const Weights::Use& b) {
  return a.weight == b.weight && a.operand == b.operand && a.kernel == b.kernel && *a.attrs == *b.attrs;
}

void run_jobs(Pool& pool, Jobs jobs, Jobs apart, int own) {
  std::atomic<size_t> next[2] = {};
  Jobs* const lists[2] = {&apart, &jobs};
  for (Jobs* list : lists)
    std::stable_sort(list->begin(), list->end(), [](auto& a, auto& b) { return a.first > b.first; });
  pool.run(pool.threads(), [&](int worker, int64_t, int64_t) {
    for (int i = worker < own ? 0 : 1; i < 2; ++i)
      for (size_t j; (j = next[i].fetch_add(1)) < lists[i]->size();) (*lists[i])[j].second(worker);
  });
}

Result<Loading> Loading::begin(const plan::Plan& plan, const std::string& folder,
                               std::span<const Weights::Use> uses, const Weights::Check& check) {
  Loading l;
  l.plan = &plan, l.folder = folder;
  const size_t count = plan.weights.size();
  l.stored.resize(count), l.raw.resize(count), l.used.resize(count), l.read_raw.resize(count);
  if (check.wanted) l.found.resize(count), l.unknown.assign(count, true);
  std::map<std::string, size_t> opened;  // file name -> index into files
  for (size_t i = 0; i < count; ++i) {
    const plan::Weight& w = plan.weights[i];
    const std::string path = folder + "/" + w.file;
    auto it = opened.find(w.file);
    if (it == opened.end()) {
      auto file = MappedFile::open(path);
      if (!file) return Error{file.error().code, file.error().message + " (it holds weight " + w.name + ")"};
      l.files.push_back(*std::move(file));
      it = opened.emplace(w.file, l.files.size() - 1).first;
    }
    l.file_of.push_back(static_cast<int>(it->second));
    const auto bytes = l.files[it->second].bytes();
    if (w.offset > bytes.size() || w.length > bytes.size() - w.offset)
      return bad_input(path + ": the file has " + std::to_string(bytes.size()) + " bytes, but weight " +
                       w.name + " should lie at offset " + std::to_string(w.offset) + " with " +
                       std::to_string(w.length) + " bytes; fetch the file again or compile anew");
    if (check.wanted && check.known && check.known->has(l.files[it->second], w.offset, w.length, w.sha256))
      l.found[i] = w.sha256, l.unknown[i] = false;
    l.stored[i] = bytes.data() + w.offset;
    l.raw[i].data = const_cast<std::byte*>(l.stored[i]);  // kernels do not write their inputs
    l.raw[i].dtype = w.dtype;
    l.raw[i].rank = static_cast<int>(w.shape.size());
    std::copy(w.shape.begin(), w.shape.end(), l.raw[i].dim);
  }

  l.packing_of.assign(uses.size(), -1);
  l.packings_by_weight.resize(count);
  for (size_t u = 0; u < uses.size(); ++u) {
    const Weights::Use& use = uses[u];
    l.used[use.weight] = true;
    const size_t bytes =
        use.kernel->pack_bytes ? use.kernel->pack_bytes(l.raw[use.weight], use.operand, *use.attrs) : 0;
    if (bytes == 0) {
      l.read_raw[use.weight] = true;
      continue;
    }
    std::vector<int>& of_weight = l.packings_by_weight[use.weight];
    const auto alike = std::find_if(of_weight.begin(), of_weight.end(),
                                    [&](int p) { return packs_alike(l.packings[p].use, use); });
    if (alike != of_weight.end()) {
      l.packing_of[u] = *alike;
      continue;
    }
    l.packing_of[u] = static_cast<int>(l.packings.size());
    of_weight.push_back(l.packing_of[u]);
    l.packings.push_back({use, l.packed_bytes});
    l.packed_bytes += Block::round_up(bytes);
  }
  return l;
}

std::vector<const Loading::Packing*> Loading::packings_of(int weight) const {
  std::vector<const Packing*> mine;
  for (int p : packings_by_weight[weight]) mine.push_back(&packings[p]);
  return mine;
}

Status Loading::verdict() const {
  int wrong = 0;
  std::string message;
  for (size_t i = 0; i < found.size(); ++i) {
    const plan::Weight& w = plan->weights[i];
    if (found[i] == w.sha256 || ++wrong > 1) continue;
    message = "weight " + w.name + " in " + folder + "/" + w.file + ": its bytes have SHA-256 " +
              to_hex(found[i]) + ", the plan says " + to_hex(w.sha256);
  }
  if (wrong == 0) return {};
  if (wrong > 1) message += " (and " + std::to_string(wrong - 1) + " more weights differ)";
  return Error{Code::failed, message};
}

std::vector<ops::View> Loading::views(std::span<const Weights::Use> uses, std::byte* packed) const {
  std::vector<ops::View> views;
  for (size_t u = 0; u < uses.size(); ++u) {
    ops::View& v = views.emplace_back(raw[uses[u].weight]);
    if (packing_of[u] < 0) continue;
    v.data = packed + packings[packing_of[u]].at;
    v.packed = true;
  }
  return views;
}

}  // namespace invar::run
