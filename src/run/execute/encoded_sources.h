// What an encoder gave each sequence of a session: inputs of the decoder's steps (plan.22), as
// constant as weights until the sequence gets another source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/memory.h"
#include "kernels/op_contract.h"

namespace invar::run {

class EncodedSources {
 public:
  // value: of the decoder's plan, f32 [batch, source, ...]; row_bytes: of a position.
  struct Input {
    int value;
    size_t row_bytes;
  };
  EncodedSources(std::vector<Input> inputs, int64_t sequences)
      : inputs_(std::move(inputs)), of_(static_cast<size_t>(sequences)) {}

  const std::vector<Input>& inputs() const { return inputs_; }
  int64_t length(int64_t sequence) const { return of_[static_cast<size_t>(sequence)].length; }  // 0: none
  // Keeps copies, where the device of steps reads them (null: on the host); one for each input.
  Status set(int64_t sequence, int64_t length, const std::vector<std::span<const std::byte>>& results,
             const std::shared_ptr<Device>& device);
  // Makes a step of these sequences ready. Sources that are shorter than the longest have any bytes
  // behind their ends, which lengths hide.
  Status prepare(std::span<const ops::Sequence>);
  int64_t longest() const { return longest_; }  // of the step that is ready
  // What the step reads for an input, [sequences, longest, ...].
  std::span<std::byte> of_step(size_t input) const { return {at_[input], bytes_[input]}; }
  size_t bytes() const;

 private:
  struct Source {
    int64_t length = 0;
    uint64_t version = 0;  // another one for each set()
    std::vector<Allocation> memory;
  };
  Status gather(std::span<const ops::Sequence>);

  std::vector<Input> inputs_;
  std::vector<Source> of_;
  std::shared_ptr<Device> device_;
  uint64_t versions_ = 0;
  int64_t longest_ = 0;
  std::vector<std::byte*> at_;
  std::vector<size_t> bytes_;
  // Of several sequences: their sources side by side, and whose they are.
  std::vector<Allocation> together_;
  std::vector<uint64_t> gathered_;
};

}  // namespace invar::run
