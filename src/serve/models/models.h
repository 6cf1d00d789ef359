// What a server answers with: language models, each with the thread of its engine, and encoders of
// texts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate/encoder/encoder.h"
#include "generate/engine/engine.h"
#include "serve/threads/generator.h"
#include "serve/threads/worker.h"

namespace invar::serve {

struct LanguageModel {
  LanguageModel(generate::Engine&, size_t queue, Worker& text, std::function<void(const Error&)> failed);
  json::Value describe() const;  // a model of /v1/models
  bool hears() const { return model.folder.speech.has_value(); }

  generate::Engine& engine;
  const generate::Model& model;
  const std::string name, fingerprint;  // program and weights, equal on every machine
  Generator generator;
};

// An encoder that is opened, by the name that requests have for it.
struct OpenedEncoder {
  std::string name, revision, folder;
  generate::EncoderKind kind;
  generate::EncoderModel model;
};

struct TextEncoder {
  explicit TextEncoder(OpenedEncoder& opened);
  json::Value describe() const;

  OpenedEncoder& opened;
  const std::string fingerprint;
  std::atomic<size_t> waiting{0};  // requests that it has yet to answer
  Worker thread;
};

// The models of a server, which outlive it.
struct Models {
  std::vector<generate::Engine*> engines;
  std::vector<OpenedEncoder*> encoders;
  // The names of all of them.
  std::vector<std::string> names() const;
};

}  // namespace invar::serve
