// The models of a command, opened: language models with their engines, and encoders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "generate/engine/engine.h"
#include "generate/observer.h"
#include "serve/service.h"

namespace invar::cli {

// In the order of the command.
struct Opened {
  std::vector<std::unique_ptr<generate::Engine>> engines;
  std::vector<std::unique_ptr<serve::OpenedEncoder>> encoders;

  serve::Models models() const;
  // "model a, 8 sequences of 4096 tokens, encoder b"
  std::string describe() const;
};

// Adds the model that the options name, and one more for each adapter.
Status open_model(const generate::ModelOptions&, const generate::ExecutionOptions&,
                  const generate::EngineOptions&, const std::vector<std::string>& lora_modules, Opened&,
                  generate::Observer&);

}  // namespace invar::cli
