#include "serving/opened.h"

#include <utility>

#include "generate/model/model_folder.h"

namespace invar::cli {

serve::Models Opened::models() const {
  serve::Models all;
  for (const auto& engine : engines) all.engines.push_back(engine.get());
  for (const auto& encoder : encoders) all.encoders.push_back(encoder.get());
  return all;
}

std::string Opened::describe() const {
  std::string text;
  const auto comma = [&] { return text.empty() ? "" : ", "; };
  for (const auto& engine : engines)
    text += comma() + ("model " + engine->model().location.name) + ", " +
            std::to_string(engine->session().sequences()) + " sequences of " +
            std::to_string(engine->positions()) + " tokens";
  for (const auto& encoder : encoders) text += comma() + ("encoder " + encoder->name);
  return text;
}

Status open_model(const generate::ModelOptions& options, const generate::ExecutionOptions& execution,
                  const generate::EngineOptions& sizes, const std::vector<std::string>& lora_modules,
                  Opened& opened, generate::Observer& observer) {
  INVAR_TRY(const auto location,
            generate::obtain({options.model_name, options.revision, options.offline}, observer));
  INVAR_TRY(const auto kind, generate::encoder_kind(location));
  // What receipts call the model, and requests.
  const std::string& name = options.name.empty() ? location.name : options.name;
  if (kind == generate::EncoderKind::none) {
    INVAR_TRY(const auto model, generate::Model::open(options, observer));
    model->location.name = name;
    INVAR_TRY(auto engine, generate::Engine::open(model, execution, sizes, {}, observer));
    opened.engines.push_back(std::make_unique<generate::Engine>(std::move(engine)));
    // A program of its own for each adapter: an answer has the bits that it has alone.
    for (const std::string& module : lora_modules) {
      INVAR_TRY(const auto adapted, generate::Model::open_with_adapter(location, options, module, observer));
      INVAR_TRY(auto with_adapter, generate::Engine::open(adapted, execution, sizes, {}, observer));
      opened.engines.push_back(std::make_unique<generate::Engine>(std::move(with_adapter)));
    }
    return {};
  }
  if (!lora_modules.empty())
    return bad_input("--lora-modules: " + location.name + " is an encoder, which takes no adapter");
  generate::EncoderOptions of_texts;
  of_texts.pairs = kind == generate::EncoderKind::scores;
  INVAR_TRY(auto encoder, generate::EncoderModel::open(options, execution, of_texts, observer));
  opened.encoders.push_back(std::make_unique<serve::OpenedEncoder>(
      serve::OpenedEncoder{name, location.revision, location.folder, kind, std::move(encoder)}));
  return {};
}

}  // namespace invar::cli
