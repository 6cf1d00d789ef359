// What a generator consists of: the request, the model, the prompts as jobs, the session.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "generate/generate.h"
#include "generate/generation_loop.h"
#include "generate/model/decoding_params.h"
#include "generate/model_folder.h"
#include "generate/output/receipt_file.h"
#include "generate/task_cache.h"
#include "run/session.h"
#include "signature/signature.h"

namespace invar::generate {

struct Job {
  Prompt prompt;
  std::vector<int32_t> tokens;
  int64_t max_new_tokens = 0;
  sample::Params params{};
  uint64_t receipt_bytes = 0;  // about so many, as long as the receipt is not written
  bool skipped() const { return prompt.problem.has_value(); }
};

struct Generator::Impl {
  Impl(Request r, ModelLocation l, ModelFolder m)
      : request(std::move(r)), location(std::move(l)), model(std::move(m)) {}
  Status read_keys();
  Status encode_prompts();
  Status encode_prompt(Job&, const std::string& which);
  void remark_on_prompts(Observer&) const;
  Status reserve_receipts();
  Status size_batch();
  Status load(Observer&);
  GenerationTask task(const Job&) const;
  // Checks that the weights' files have not changed, seals the receipt of what was made, and writes
  // it.
  int64_t bound_limit(const Job&, const Generation& made, Observer&) const;
  Result<Answer> seal(Job&, const Generation& made, Observer&);

  Request request;
  ModelLocation location;
  ModelFolder model;
  DecodingParams decoding;
  std::vector<signature::PrivateKey> keys;
  std::deque<Job> jobs;       // a stream refers to its own
  std::vector<int32_t> held;  // tokens in the session's memory
  int64_t longest = 0;        // positions of the longest job, prompt and answer
  int64_t sequences = 1;      // of the session: those of a batch, at most one for each job
  CompiledModel compiled;
  receipt::Receipt described;
  DiskReservation space;  // of `reserved` bytes, for the receipts that are not written yet
  uint64_t reserved = 0;
  std::optional<run::Session> session;
  Phase* prefilling = nullptr;  // that of the step which computes a prompt
};

}  // namespace invar::generate
