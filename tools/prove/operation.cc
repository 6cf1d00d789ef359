#include "operation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <sstream>

#include "base/opset.h"
#include "kernels/registry.h"

namespace invar::prove {
namespace {

template <class T>
T checked(Result<T> r) {
  if (!r) std::fprintf(stderr, "invar_prove: %s\n", r.error().message.c_str()), std::exit(70);
  return *std::move(r);
}
void checked(const Status& s) {
  if (!s) std::fprintf(stderr, "invar_prove: %s\n", s.error().message.c_str()), std::exit(70);
}

// A queue on a GPU, with the operand and the result of a call there and, for copies at full speed,
// here.
class Lane {
 public:
  explicit Lane(size_t elements) : device_(checked(Device::open())), elements_(elements) {
    for (int i = 0; i < 2; ++i) {
      there_[i] = checked(device_->allocate(elements * sizeof(float), "numbers"));
      here_[i] = checked(device_->allocate_pinned(elements * sizeof(float), "numbers"));
    }
  }
  ~Lane() {
    for (int i = 0; i < 2; ++i) device_->free(there_[i]), device_->free_pinned(here_[i]);
  }
  size_t elements() const { return elements_; }
  void run(const ops::GpuKernel& kernel, const Attributes& attrs, const float* x, float* y, int n) {
    const size_t bytes = static_cast<size_t>(n) * sizeof(float);
    ops::View in, out;
    in.rank = out.rank = 1, in.dim[0] = out.dim[0] = n, in.data = there_[0], out.data = there_[1];
    std::memcpy(here_[0], x, bytes);
    device_->make_current();
    checked(device_->upload(there_[0], here_[0], bytes));
    kernel.enqueue({{&in, 1}, {&out, 1}, &attrs}, device_->stream());
    checked(device_->download(here_[1], there_[1], bytes));
    checked(device_->wait());
    std::memcpy(y, here_[1], bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  size_t elements_;
  void *there_[2], *here_[2];
};

// As many lanes as threads call at once: while one hashes, the others' calls go on.
void run_on_device(const ops::GpuKernel& kernel, const Attributes& attrs, const float* x, float* y, int n) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Lane>> idle;
  std::unique_ptr<Lane> lane;
  {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) lane = std::move(idle.back()), idle.pop_back();
  }
  if (!lane || lane->elements() < static_cast<size_t>(n)) lane = std::make_unique<Lane>(n);
  lane->run(kernel, attrs, x, y, n);
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(lane));
}

std::vector<std::string> split(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

}  // namespace

std::optional<Function1> find_operation(const std::string& text, const std::string& isa,
                                        std::string& problem) {
  std::istringstream words(text.substr(3));
  std::string name, word;
  std::getline(words, name, ',');
  Attributes attrs;
  while (std::getline(words, word, ',')) {
    size_t equal = word.find('=');
    std::string value = equal == word.npos ? "" : word.substr(equal + 1);
    if (value.empty() || value.find_first_not_of("0123456789abcdef") != value.npos || value.size() > 8)
      return problem = "not an attribute: " + word, std::nullopt;
    if (value.size() == 8)
      attrs[word.substr(0, equal)] = F32Bits{static_cast<uint32_t>(std::stoul(value, nullptr, 16))};
    else
      attrs[word.substr(0, equal)] = static_cast<int64_t>(std::stol(value));
  }
  const ops::GpuKernel* on_gpu = isa == ops::kCuda ? ops::find_gpu_kernel(name) : nullptr;
  const ops::CpuKernel* kernel = on_gpu ? nullptr : ops::find_cpu_kernel(name, isa);
  if (!on_gpu && !kernel) return problem = "no operation " + name + " for " + isa + " here", std::nullopt;
  auto view = [](const float* data, int n) {
    ops::View v;
    v.data = const_cast<float*>(data), v.rank = 1, v.dim[0] = n;
    return v;
  };
  ops::View one = view(nullptr, 1);
  if (const char* wrong = ops::contract_of(name)->check({{&one, 1}, {&one, 1}, &attrs}))
    return problem = name + " of one f32 requires " + wrong, std::nullopt;
  if (on_gpu && on_gpu->shared_bytes)
    return problem = name + " needs memory of its own on a GPU", std::nullopt;
  if (on_gpu) return [=](const float* x, float* y, int n) { run_on_device(*on_gpu, attrs, x, y, n); };
  return [=](const float* x, float* y, int n) {
    ops::View in = view(x, n), out = view(y, n);
    ops::Call call{{&in, 1}, {&out, 1}, &attrs};
    kernel->run(call, 0, 0, kernel->units(call, 0), nullptr);
  };
}

// An empty line for each operation that the file has not, though it has one of its kind without
// attributes.
void add_new_operations(std::vector<std::string>& lines) {
  std::vector<std::string_view> listed;
  std::vector<const OpInfo*> like;
  for (const std::string& line : lines) {
    std::string_view name = std::string_view(line).substr(0, line.find_first_of(" ,"));
    if (!name.starts_with("op:")) continue;
    listed.push_back(name.substr(3));
    const OpInfo* info = op_info(listed.back());
    if (info && !info->kind.empty() && line[name.size()] == ' ') like.push_back(info);
  }
  for (const OpInfo& info : opset()) {
    auto same = [&](const OpInfo* other) { return other->room == info.room && other->kind == info.kind; };
    if (std::ranges::any_of(like, same) && std::ranges::find(listed, info.op) == listed.end())
      lines.push_back("op:" + std::string(info.op) + " - 3f - c0 -");
  }
}

// Lines of the file: OPERATION ROOT CHUNK DIGEST [CHUNK DIGEST ...]; ROOT is - where it is not
// known yet.
int operations(const std::string& path, const std::string& mode, const std::vector<const Probe*>& isas,
               int threads) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (mode == "fill") add_new_operations(lines);
  std::vector<int> all(kChunks);
  std::iota(all.begin(), all.end(), 0);
  int count = 0, wrong = 0;
  for (std::string& line : lines) {
    std::vector<std::string> words = split(line);
    if (words.empty() || words[0][0] == '#') continue;
    if (words.size() < 4 || words.size() % 2)
      return std::printf("%s: not understood: %s\n", path.c_str(), line.c_str()), 2;
    if (mode == "fill" && words[1] != "-") continue;
    bool whole = mode != "sample";
    std::vector<int> chunks = all;
    if (!whole) {
      chunks.clear();
      for (size_t i = 2; i < words.size(); i += 2)
        chunks.push_back(static_cast<int>(std::stol(words[i], nullptr, 16)));
    }
    for (const Probe* probe : isas) {
      std::string problem;
      auto map = find_operation(words[0], probe->isa, problem);
      if (!map) return std::printf("%s: %s\n", words[0].c_str(), problem.c_str()), 2;
      auto results = run_chunks(*map, words[0], probe->isa, chunks, false, threads, "");
      auto compare = [&](const std::string& what, std::string& expected, const Digest& digest) {
        if (mode == "fill") expected = to_hex(digest);
        ++count;
        if (expected == to_hex(digest)) return;
        ++wrong;
        std::printf("%s %s %s: digest %s, committed %s\n", words[0].c_str(), probe->isa, what.c_str(),
                    to_hex(digest).c_str(), expected.c_str());
      };
      for (size_t i = 2; i < words.size(); i += 2)
        compare("chunk " + words[i], words[i + 1],
                results[static_cast<int>(std::stol(words[i], nullptr, 16))].digest);
      if (whole) {
        std::vector<Digest> leaves;
        for (auto& [chunk, r] : results) leaves.push_back(r.digest);
        compare("all", words[1], merkle_root(leaves));
      }
    }
    if (mode != "fill") continue;
    line.clear();
    for (const std::string& w : words) line += (line.empty() ? "" : " ") + w;
    std::ofstream out(path);
    for (const std::string& l : lines) out << l << '\n';
  }
  std::printf("%d digests, %d differ\n", count, wrong);
  return wrong || (!count && mode != "fill") ? 1 : 0;
}

}  // namespace invar::prove
