#include "run/execute/encoded_sources.h"

#include <algorithm>
#include <cstring>

namespace invar::run {

constexpr char kPurpose[] = "what the encoder gives";

Status EncodedSources::set(int64_t sequence, int64_t length,
                           const std::vector<std::span<const std::byte>>& results,
                           const std::shared_ptr<Device>& device) {
  Source& source = of_[static_cast<size_t>(sequence)];
  device_ = device;
  source.length = 0, source.version = ++versions_;
  source.memory.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Allocation& memory = source.memory[i];
    if (memory.size() < results[i].size()) {
      INVAR_TRY(memory, Allocation::make(results[i].size(), kPurpose, device));
    }
    if (device) {
      INVAR_CHECK_OK(device->upload(memory.data(), results[i].data(), results[i].size()));
    } else {
      std::memcpy(memory.data(), results[i].data(), results[i].size());
    }
  }
  source.length = length;
  return {};
}

Status EncodedSources::prepare(std::span<const ops::Sequence> sequences) {
  longest_ = 0;
  for (const ops::Sequence& s : sequences) longest_ = std::max(longest_, length(s.slot));
  if (sequences.size() > 1) return gather(sequences);
  const Source& one = of_[static_cast<size_t>(sequences[0].slot)];
  at_.clear(), bytes_.clear();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    at_.push_back(one.memory[i].data());
    bytes_.push_back(static_cast<size_t>(longest_) * inputs_[i].row_bytes);
  }
  return {};
}

// Copies the sources of a step side by side. Steps of the same sequences find them so.
Status EncodedSources::gather(std::span<const ops::Sequence> sequences) {
  std::vector<uint64_t> versions;
  for (const ops::Sequence& s : sequences) versions.push_back(of_[static_cast<size_t>(s.slot)].version);
  const bool same = versions == gathered_;
  at_.clear(), bytes_.clear(), gathered_.clear();
  together_.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const size_t each = static_cast<size_t>(longest_) * inputs_[i].row_bytes, all = sequences.size() * each;
    Allocation& memory = together_[i];
    if (memory.size() < all) {
      INVAR_TRY(memory, Allocation::make(all, kPurpose, device_));
    }
    at_.push_back(memory.data()), bytes_.push_back(all);
    for (size_t s = 0; s < sequences.size() && !same; ++s) {
      const Source& source = of_[static_cast<size_t>(sequences[s].slot)];
      std::byte* const to = memory.data() + s * each;
      const size_t n = static_cast<size_t>(source.length) * inputs_[i].row_bytes;
      if (!device_) {
        std::memcpy(to, source.memory[i].data(), n);
      } else {
        INVAR_CHECK_OK(device_->copy(to, source.memory[i].data(), n));
      }
    }
  }
  gathered_ = std::move(versions);
  return {};
}

size_t EncodedSources::bytes() const {
  size_t bytes = 0;
  const auto add = [&](const std::vector<Allocation>& all) {
    for (const Allocation& a : all) bytes += a.size();
  };
  for (const Source& source : of_) add(source.memory);
  add(together_);
  return bytes;
}

}  // namespace invar::run
