// plan + tokens -> logits: a decoder with its KV cache, for one or many sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/byte_progress.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "device/device.h"
#include "kernels/op_contract.h"
#include "plan/plan.h"

namespace invar::run {

// The results of one node of the plan in one step. Whatever is written into `out` goes on from
// there.
struct NodeResults {
  size_t node;                     // in the order of the plan
  int64_t past;                    // positions before this step
  std::span<const ops::View> out;  // per result of the node, of all positions of this step
};

// Tuning: none of it reaches the arithmetic.
struct Options {
  int threads = 0;             // 0 = one per available core
  std::string device = "cpu";  // or "cuda", "cuda:1"; of a session also a list: "cuda:0,cuda:1"
  std::string isa;             // "" = the best this CPU has; else exactly this one, or an error
  int64_t capacity = 0;        // positions that the memory of a sequence holds (prompt + answer)
  int64_t sequences = 1;       // each with memory of its own
  // Prefill at most this many tokens per step, of one or several sequences; 0 = 256, on a GPU 2048.
  int64_t chunk = 0;
  bool check_weights = true;  // hash every weight against the plan while loading
  // Digests that this process has computed, which need no check; read by open() only.
  const DigestCache* hashed = nullptr;
  // Receives those that open() computes; may be `hashed`. Null: nobody asks.
  DigestCache* computed = nullptr;
  // The tokens of the first step, and of how many the logits are wanted (step_rows): open() makes
  // ready what it needs. 0: nothing is known.
  int64_t first_rows = 0, first_wanted = 0;
  // States of fixed size are copied as every step ends, so that reset() goes back to the last two
  // of few tokens, too: the verification of drafts needs that.
  bool goes_back = false;
  // A value of the plan that steps hand out, too (Session::hidden); -1: none. For one part on one
  // device, without workers.
  int hidden = -1;
  // False: remember tokens only; each step computes the sequence anew from its start.
  bool use_cache = true;
  // Gets how many of the tokens of one step have been computed, after each of several chunks, on
  // the thread of the step. Empty: nobody asks.
  std::function<void(int64_t done, int64_t total)> progress;
  // Gets how many bytes of weights open() has hashed, copied and packed, on its thread. Empty:
  // nobody asks.
  ByteProgress load_progress;
  // The decoder is split by layers into so many parts, which are spread over the devices in their
  // order; 0 = one for each device.
  int partitions = 0;
  // Each part is divided by whole results among so many ranks, each with its part of the weights
  // and of the memory, on consecutive devices.
  int ranks = 1;
  // Where ranks join what they have computed: within a step, each rank on a GPU of its own that
  // reaches the others' memory, or between stages, by the host. `automatic`: within, where it can.
  // On a host `within_steps` is for tests.
  enum class Joins : uint8_t { automatic, between_stages, within_steps };
  Joins joins = Joins::automatic;
  // The most bytes that weights may take in the memory of the device; 0 = all. What does not fit is
  // loaded anew in every pass.
  uint64_t weights_memory = 0;
  // The most bytes that keys and values of all sequences may take; 0: no bound. A step that needs
  // more is an error, which leaves the session as it was.
  uint64_t state_memory = 0;
  // Gets, as text, what each pass of the preparation leaves (prepare/prepare.h). Empty: nobody
  // asks.
  std::function<void(std::string_view)> explain;
  // Gets the results of every node as soon as it has run, on the host alone. Empty: nobody asks.
  // Otherwise nothing is fused, aliased or kept in another layout. A program that is computed anew
  // over each prefix (plan.10) is refused.
  std::function<void(const NodeResults&)> observe;
};

// What an encoder reads (plan.22): tokens, or the numbers of the input source_features.
struct Source {
  std::span<const int32_t> tokens = {};
  std::span<const float> features = {};
  bool empty() const { return tokens.empty() && features.empty(); }
};

// A token to append to a sequence.
struct NextToken {
  int64_t sequence;
  int32_t token;
};

// Tokens to append to a sequence.
struct NewTokens {
  int64_t sequence;
  std::span<const int32_t> tokens;
};

// A loaded program with the memory of its sequences, numbered from 0. Not thread-safe: one step at
// a time. The logits of a sequence depend neither on other sequences nor on which of them share a
// step (plan.11).
class Session {
 public:
  // Maps the weights, checks them (SHA-256 against the plan; an error names the tensor, code
  // failed) and packs them; plans and allocates buffers.
  static Result<Session> open(plan::Plan plan, const std::string& folder, Options options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  int64_t vocab() const;
  int64_t sequences() const;
  int64_t position(int64_t sequence = 0) const;  // tokens in its memory
  int64_t capacity() const;                      // positions that the memory of a sequence holds
  int threads() const;
  std::string_view isa() const;     // "cuda" on a GPU
  std::string_view device() const;  // "cpu", or "cuda:0 NVIDIA H200"; a list if there are several
  // "layers 0-5 on cuda:0; 6-11 on cpu"; empty: the decoder is in one part.
  std::string_view placement() const;
  const Device::Info* gpu() const;  // null where the host computes, too
  size_t peak_bytes() const;
  // The kernel row of every operation of the plan, e.g. "matmul avx2", for tests. An operation that
  // has only a reference row (nothing to vectorise) shows that one under every instruction set.
  std::vector<std::string> kernels() const;
  // Name and version of the vendors' libraries in use, e.g. "oneDNN 2.6.3"; none in a reproducible
  // program.
  std::vector<std::string> libraries() const;
  int64_t chunk() const;  // the most tokens of a prompt in a step
  // Forgets all sequences and takes memory for so many positions of each; weights stay as they are.
  // Errors: too little memory, with which the session is as it was, but for what it forgot.
  Status resize(int64_t capacity);
  // Forgets a sequence but for its first `keep` tokens, at most position(sequence) of them. Returns
  // how many it still has: position(sequence). They are fewer than `keep` where states of fixed
  // size cannot go back there: a session of one sequence has copies of them from the ends of its
  // last two steps of several tokens (and Options::goes_back), one of several sequences has none.
  // What is missing is to be appended again, which changes no bit.
  int64_t reset(int64_t sequence = 0, int64_t keep = 0);
  // Keys and values lie in pages of kPagePositions positions, which sequences that begin with the
  // same tokens can share. Not shared are those of other processes; and where states of fixed size
  // are next to them, since such a state is that of the last position alone, and a page would need
  // a copy of it. Then this is false, and the members below are not to be called.
  bool shares_pages() const;
  static constexpr int64_t kPagePositions = ops::kPagePositions;
  // Pages that may be in use; INT64_MAX: no bound (Options::state_memory). On a GPU they are at
  // most those of all sequences, and fewer where its memory has no room for them. Those that are in
  // use.
  int64_t most_pages() const;
  int64_t used_pages() const;
  size_t page_bytes() const;
  // Whether steps can take so many more pages. On a GPU their memory is there then.
  bool has_room(int64_t pages);
  // Pages that a sequence has.
  int64_t pages_of(int64_t sequence) const;
  // Keeps the page `index` of a sequence, all of whose positions are computed, whatever becomes of
  // the sequence. Returns its number.
  int64_t keep_page(int64_t sequence, int64_t index);
  // Ends keep_page(): a page that no sequence has is free. To be called before resize().
  void drop_page(int64_t page);
  // Sequences that have the page, and calls of keep_page().
  int64_t page_users(int64_t page) const;
  // Appends the positions of these kept pages to a sequence whose position is a multiple of
  // kPagePositions.
  void append_pages(int64_t sequence, std::span<const int64_t> pages);
  // Whether the program has an encoder (plan.22): each sequence has a source before its first
  // token.
  bool has_encoder() const;
  // The sizes of the features that the encoder reads, without the sequence's axis; empty: it reads
  // tokens, or there is none.
  std::vector<int64_t> source_shape() const;
  // Runs the encoder over a source, whose results are constants of the sequence from now on, and
  // forgets the sequence. Errors: no encoder, the other kind of source, no token or one that the
  // program does not take, another number of features.
  Status encode(const Source&, int64_t sequence = 0);
  // Appends tokens at position(sequence). Returns the logits of the last one, or of each with
  // `all`: rows x vocab() floats, row-major, valid until the next call. Errors: token id out of
  // range, beyond capacity, no such sequence.
  Result<std::span<const float>> step(std::span<const int32_t> tokens, bool all = false,
                                      int64_t sequence = 0);
  // The same for the logits of the last `wanted` tokens, in one or more pieces: the rows of
  // tokens[first] and those behind it, valid until `take` returns. `take` may call parallel_for().
  using TakeRows = std::function<void(int64_t first, std::span<const float> rows)>;
  Status step_rows(std::span<const int32_t> tokens, int64_t wanted, const TakeRows& take,
                   int64_t sequence = 0);
  // Batched prefill: appends at least one token to each of these different sequences, whatever
  // their positions and counts, without logits. Errors are those of step().
  Status append_many(std::span<const NewTokens>);
  // Batched decoding: appends one token to each of these different sequences in one step, whatever
  // their positions. Returns the logits of each, in their order, as step() does.
  Result<std::span<const float>> step_many(std::span<const NextToken>);
  // Of a decoder on several devices or workers: into how many groups so many sequences are divided,
  // whose steps are in flight at once: while somebody chooses the tokens of one group, the devices
  // compute the others. 1: they decode by step_many().
  size_t groups(size_t sequences) const;
  // Begins what step_many() does, for at most groups() groups. While steps are in flight only these
  // may be called: start_many(), take_many(), parallel_for(), what concerns pages, and reset() of
  // another sequence.
  Status start_many(std::span<const NextToken>);
  // The logits of the step that was begun first, valid until the next call. After an error nothing
  // is in flight, and positions are those before.
  Result<std::span<const float>> take_many();
  // The rows of Options::hidden of the tokens of the last step, until the next one: of all, or of
  // at least so many of the last ones.
  static constexpr size_t kHiddenRows = 2048;
  std::span<const float> hidden() const;
  // The rows of the input hidden_states, of a program that has it, for the tokens of the next step.
  void feed_hidden(std::span<const float> rows);
  // Calls f(0) ... f(count - 1) on the session's threads, for work between two steps or in the
  // `take` of one. f must neither throw nor use the session.
  void parallel_for(int count, const std::function<void(int)>& f);
  // The same, overlapped with the next step if a GPU computes that, at once otherwise. It is done
  // when that step or finish_overlapped() returns. f may read the logits that the last step
  // returned, unless these are of `all`.
  void parallel_for_overlapped(int count, std::function<void(int)> f);
  void finish_overlapped();
  // Whether the weight files still hold the bytes that open() checked; else code failed, with the
  // file's name. To be called before anything claims that a result is of these weights.
  Status weights_unchanged();

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::run
