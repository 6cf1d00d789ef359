// The parts of an engine: the model, the session, what its memory holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "generate/engine/engine.h"
#include "generate/engine/generation_loop.h"
#include "generate/scheduling/page_pool.h"

namespace invar::generate {

struct Engine::Impl {
  Status load(const EngineOptions&, int64_t sequences, int64_t positions, Observer&);
  // Loads the program that this request has, if it is another one.
  Status take_program_of(const Request&, Observer&);
  GenerationTask task(const Request&) const;
  // Whether a position has the same bits in every step.
  bool is_reproducible() const { return model->compiled.plan.operation_set == OperationSet::reproducible; }
  // The session's memory holds nothing any more.
  void forget_all();
  // That of the session as it is now.
  void open_pool();
  // Checks that the weights' files have not changed, seals the receipt of what was made, and writes
  // it.
  Result<Answer> seal(Request&, const Generation& made, Observer&);

  // The drafter that the options name; null: none.
  Status open_drafter(const EngineOptions&, int64_t positions, Observer&);

  std::shared_ptr<Model> model;
  ExecutionOptions execution;
  std::unique_ptr<Drafter> drafter = {};
  std::vector<int32_t> held = {};     // tokens in the memory of sequence 0
  const void* memory_user = nullptr;  // the stream that writes there; the one before has lost it
  std::optional<run::Session> session = {};
  std::optional<PagePool> pool = {};  // of the session
  Digest plan_digest = {};            // of its plan
  Phase* prefilling = nullptr;        // that of the step which computes a prompt
};

}  // namespace invar::generate
