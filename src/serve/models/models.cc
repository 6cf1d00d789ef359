#include "serve/models/models.h"

#include <utility>

#include "receipt/receipt.h"

namespace invar::serve {
namespace {

using json::Value;

std::string fingerprint_of(const receipt::Receipt& of) {
  return "fp_" + to_hex(sha256(to_hex(of.program) + to_hex(of.weights) + of.numerics)).substr(0, 32);
}

Value described(const std::string& name, const char* kind, int64_t positions, const receipt::Receipt& of) {
  Value json = {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "invar"}, {"kind", kind}};
  if (positions > 0) json["max_model_len"] = positions;
  return json.update({{"program", to_hex(of.program)},
                      {"weights", to_hex(of.weights)},
                      {"numerics", of.numerics},
                      {"profile", of.profile},
                      {"revision", of.revision}});
}

}  // namespace

LanguageModel::LanguageModel(generate::Engine& with, size_t queue, Worker& text,
                             std::function<void(const Error&)> failed)
    : engine(with),
      model(with.model()),
      name(model.location.name),
      fingerprint(fingerprint_of(model.described)),
      generator(with, queue, text, std::move(failed)) {}

Value LanguageModel::describe() const {
  Value json = described(name, hears() ? "speech" : "language", engine.positions(), model.described);
  if (model.described.adapter != Digest{})
    json.update({{"parent", model.folder.identity.name}, {"adapter", to_hex(model.described.adapter)}});
  return json;
}

TextEncoder::TextEncoder(OpenedEncoder& with)
    : opened(with), fingerprint(fingerprint_of(with.model.described())) {}

Value TextEncoder::describe() const {
  receipt::Receipt of = opened.model.described();
  of.revision = opened.revision;
  return described(opened.name, opened.kind == generate::EncoderKind::scores ? "scores" : "vectors",
                   opened.model.positions(), of);
}

std::vector<std::string> Models::names() const {
  std::vector<std::string> all;
  for (const generate::Engine* engine : engines) all.push_back(engine->model().location.name);
  for (const OpenedEncoder* encoder : encoders) all.push_back(encoder->name);
  return all;
}

}  // namespace invar::serve
