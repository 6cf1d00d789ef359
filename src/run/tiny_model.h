// Helper of tests: a small Llama with random weights, as a plan and weight files in a new folder.
// Where it is hybrid, layers 0, 4, ... have a short causal convolution in the place of attention,
// and layers 2, 6, ... linear attention.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace invar::run {

struct TinyModel {
  static constexpr int64_t kVocab = 61, kWidth = 32, kHeads = 4, kKvHeads = 2, kHeadDim = 8, kHidden = 48;
  std::string folder;
  plan::Plan plan;

  explicit TinyModel(bool with_state = true, int layers = 1, bool hybrid = false);
  ~TinyModel();
  TinyModel(const TinyModel&) = delete;
};

}  // namespace invar::run
