// GPU kernels of operations whose operands ranks on several GPUs make, one each: a kernel gives its
// rank's operand to the others by stores into their memory, waits for theirs, and makes the whole
// result. The host has no part in it. The bits are those of the operation with all operands.
#pragma once

#include "kernels/gpu_kernel.h"

namespace invar::ops {

constexpr int kMaxJoinedRanks = 8;

// A join of a step. All ranks run the same joins in the same order. No rank starts a step before
// the others have ended the one before, and the joins of a step use the halves of the mailboxes in
// turn: a rank writes into a half again only after its owner has read it.
struct GpuJoin {
  int ranks = 0, rank = 0;           // how many, and which this is
  std::span<const int> makers;       // per operand: the rank that makes it; no rank makes two
  std::byte* const* mailboxes = {};  // per rank, in the memory of its GPU: at first all 0
  int64_t part_bytes = 0;            // the most of any operand of these mailboxes
  uint32_t number = 0;               // of the join within the step
  // Device memory of the running step: the marks of its joins are *base + number, and no mark
  // comes twice. *stalled is set to 1 + a rank whose part did not come for `patience`; then joins
  // wait no more and results are undefined.
  const uint32_t* base = nullptr;
  uint32_t* stalled = nullptr;
  uint64_t patience = 0;  // nanoseconds
  // Memory of the host: not 0 once another rank failed, and joins wait no more. Null: none does.
  const uint32_t* given_up = nullptr;
  // f32 elements like those of the result, which are added to it as it is stored. Null: none.
  const float* addend = nullptr;
};

struct GpuJoinKernel {
  std::string_view op;  // the name in spec/opset.toml
  // The bytes of the mailbox of a rank.
  size_t (*mailbox_bytes)(int ranks, int64_t part_bytes);
  // Operands that other ranks make have no data.
  void (*enqueue)(const Call&, const GpuJoin&, Stream);
};

// Null: none in this build.
const GpuJoinKernel* find_join_kernel(std::string_view op);

// Makes a kernel known: a static beside a row of the operation, or no program would contain it.
class RegisteredJoin {
 public:
  explicit RegisteredJoin(const GpuJoinKernel& kernel);
  const GpuJoinKernel& kernel;
  const RegisteredJoin* const next;
};

// Kernels that run a chain of operations, of which each uses the result of the one before and one
// is a join, and round the rows that the last one makes (compare rounding_kernels.h). The sum that
// is added behind a join stays in memory, as others read it.
struct RoundedJoin {
  // As GpuKernel::can_round. Calls with more rows than it takes run each by its own kernel.
  bool (*can_round)(std::span<const Call* const>);
  bool (*takes)(std::span<const Call* const>, const GpuJoin&);
  void (*enqueue)(std::span<const Call* const>, const GpuJoin&, const RoundedRows&, Stream);
};

// ops: the operations, with these in the place of the join and of an addition to it. Null: none in
// this build.
constexpr std::string_view kJoin = "join", kAddition = "addition";
const RoundedJoin* find_rounded_join(std::span<const std::string_view> ops);

class RegisteredRoundedJoin {
 public:
  RegisteredRoundedJoin(std::span<const std::string_view> ops, const RoundedJoin& kernel);
  const std::span<const std::string_view> ops;
  const RoundedJoin& kernel;
  const RegisteredRoundedJoin* const next;
};

// Queues what makes in[0] of a batch (GpuFusion::producers).
void enqueue_producers(const GpuFusion& fusion, const RoundedRows& rows, Stream stream);

}  // namespace invar::ops
