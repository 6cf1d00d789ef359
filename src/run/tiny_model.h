// Helper of tests: a small Llama with random weights, as a plan and weight files in a new folder.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace invar::run {

struct TinyModel {
  static constexpr int64_t kVocab = 61, kWidth = 32, kHeads = 4, kKvHeads = 2, kHeadDim = 8, kHidden = 48;
  std::string folder;
  plan::Plan plan;

  explicit TinyModel(bool with_state = true, int layers = 1);
  ~TinyModel();
  TinyModel(const TinyModel&) = delete;
};

}  // namespace invar::run
