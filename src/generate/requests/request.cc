// Requests: everything about a prompt that is found and checked before an answer.
#include "generate/requests/request.h"

#include <algorithm>
#include <utility>

#include "generate/requests/bound_input.h"
#include "generate/requests/receipt_file.h"
#include "generate/settings/structured.h"
#include "generate/speech/windows.h"
#include "num/env.h"
#include "signature/key_file.h"

namespace invar::generate {

Result<std::shared_ptr<const RequestSettings>> RequestSettings::make(const Model& model,
                                                                     RequestOptions options) {
  auto made = std::make_shared<RequestSettings>(RequestSettings{std::move(options), {}, {}});
  for (const std::string& path : made->options.sign) {
    INVAR_TRY(made->keys.emplace_back(), signature::read_private_key(path));
  }
  INVAR_TRY(made->decoding, decoding_params(model.folder, made->options.sampling));
  if (made->options.fill_memory) made->decoding.standard = model.folder.context;
  return std::shared_ptr<const RequestSettings>(std::move(made));
}

Result<std::vector<int32_t>> Request::encode(const Model& model, Prompt& prompt, const std::string& which) {
  const num::ArithmeticEnv env;
  const std::string& name = prompt.name.empty() ? which : prompt.name;
  if (prompt.recording) return std::vector<int32_t>();
  if (model.folder.speech)
    return bad_input(name + ": " + model.folder.identity.name +
                     " hears, and reads no text: give a recording with --audio-path");
  const bool chat = !prompt.chat.empty();
  if (chat) {
    INVAR_TRY(prompt::RenderedChat rendered,
              prompt::render_chat(model.folder.chat_templates, prompt.chat, name));
    prompt.text = std::move(rendered.text);
    prompt.chat = std::move(rendered.input);
  }
  // A template writes the special tokens itself (receipt.35).
  auto tokens = model.folder.tokenizer.encode(prompt.text, /*add_special_tokens=*/!chat);
  if (!tokens) return Error{tokens.error().code, name + ": " + tokens.error().message};
  if (tokens->empty()) return bad_input(name + ": no tokens in it: give some text");
  return tokens;
}

Result<Request> Request::make(const Model& model, Prompt given, std::vector<int32_t> tokens,
                              std::shared_ptr<const RequestSettings> settings, const std::string& which) {
  const num::ArithmeticEnv env;
  Request made{std::move(given), std::move(settings), std::move(tokens)};
  const std::string& name = made.prompt.name.empty() ? which : made.prompt.name;
  made.decoder_tokens = model.folder.decoder_tokens;
  INVAR_CHECK_OK(made.take_recording(model));
  const auto length = static_cast<int64_t>(made.source().tokens.size());
  if (const int64_t most = model.folder.source_context; length > most)
    return bad_input(name + ": " + std::to_string(length) + " tokens, and the encoder of " +
                     model.folder.identity.name + " takes at most " + std::to_string(most) + ": shorten it");
  const auto n = static_cast<int64_t>(made.continued().size());
  const DecodingParams& decoding = made.settings->decoding;
  const auto most = new_tokens(model.folder, decoding, n);
  if (!most) return Error{most.error().code, name + ": " + most.error().message};
  made.max_new_tokens = *most;
  INVAR_TRY(made.params, params_for(model.folder, decoding, n, *most));
  if (made.settings->options.timestamps) {
    made.params.processors.timestamp_begin = model.folder.speech->timestamp_begin();
    made.params.processors.max_initial_timestamp_index = model.folder.speech->max_initial_timestamp;
  }
  if (made.params.do_sample) made.params.stream += made.prompt.stream;  // receipt.21
  if (!made.prompt.chat.empty()) {
    INVAR_CHECK_OK(bind_behind_reasoning(model.folder, made.prompt.text, made.params.processors));
  }
  if (const auto budget = made.settings->options.sampling.thinking_token_budget) {
    INVAR_CHECK_OK(bound_reasoning(model.folder, made.prompt.text, made.prompt.chat, *budget, *most,
                                   made.params.processors));
  }
  if (made.prompt.receipt_path) {
    INVAR_TRY(const DiskReservation possible, reserve_receipt(*made.prompt.receipt_path, 1));
  }
  return made;
}

Result<Request> Request::make(const Model& model, Prompt prompt,
                              std::shared_ptr<const RequestSettings> settings, const std::string& which) {
  INVAR_TRY(std::vector<int32_t> tokens, encode(model, prompt, which));
  return make(model, std::move(prompt), std::move(tokens), std::move(settings), which);
}

void Request::limit(int64_t most) {
  max_new_tokens = std::min(max_new_tokens, most);
  fit_length(params.processors, max_new_tokens);
}

// What the encoder hears, and what the answer continues (speech.6, speech.7).
Status Request::take_recording(const Model& model) {
  const RequestOptions& o = settings->options;
  if (!prompt.recording) {
    if (o.language.empty() && o.task.empty() && !o.timestamps) return {};
    return bad_input(
        "--language, --task and --timestamps are for a recording (--audio-path): leave them out");
  }
  INVAR_TRY(const SpeechModel* const speech, speech_of(model));
  const auto size = static_cast<int64_t>(prompt.recording->samples.size());
  if (prompt.first_sample < 0 || prompt.first_sample >= size)
    return bad_input("the recording has " + std::to_string(size) + " samples, and none with the number " +
                     std::to_string(prompt.first_sample));
  features = features_of(*speech, *prompt.recording, prompt.first_sample);
  lacks_language = o.language.empty() && speech->language.empty() && !speech->languages.empty();
  INVAR_TRY(decoder_tokens, speech->answer_start(o.language, o.task, o.timestamps));
  return {};
}

namespace {

// The model never sees what the chat template leaves out. One line, whatever the number of prompts.
void remark_on_prompts(const prompt::ChatTemplates& templates, const std::vector<Request>& requests,
                       Observer& observer) {
  const auto raw = [](const Request& r) { return r.prompt.chat.empty() && !r.prompt.recording; };
  if (!templates.texts.empty() && std::ranges::any_of(requests, raw))
    observer.note("template", "the model has a chat template, which --prompt-text skips; use --messages");
  std::string first;
  size_t others = 0;
  for (const Request& request : requests) {
    const Prompt& p = request.prompt;
    if (p.chat.empty() || request.skipped()) continue;
    const std::string out = prompt::texts_left_out(templates, {p.text, p.chat});
    if (!out.empty() && !first.empty()) ++others;
    if (!out.empty() && first.empty()) first = (p.name.empty() ? "prompt" : p.name) + ": " + out;
  }
  if (others > 0) first += "; the same of " + std::to_string(others) + " more prompts";
  if (!first.empty()) observer.note("template", first);
}

}  // namespace

Result<std::vector<Request>> make_requests(const Model& model, std::vector<Prompt> prompts,
                                           const std::shared_ptr<const RequestSettings>& settings,
                                           Observer& observer) {
  std::vector<Request> requests;
  for (Prompt& prompt : prompts) {
    const std::string number =
        prompts.size() > 1 ? "prompt " + std::to_string(requests.size() + 1) : "prompt";
    if (!prompt.problem) {
      if (auto made = Request::make(model, prompt, settings, number)) {
        requests.push_back(std::move(*made));
        continue;
      } else {
        prompt.problem = made.error();
      }
    }
    requests.push_back({std::move(prompt), settings});
  }
  if (requests.empty() || !std::ranges::all_of(requests, &Request::skipped)) {
    remark_on_prompts(model.folder.chat_templates, requests, observer);
    return requests;
  }
  Error all = *requests[0].prompt.problem;
  const size_t shown = std::min<size_t>(requests.size(), 3);
  for (size_t i = 1; i < shown; ++i) all.message += "; " + requests[i].prompt.problem->message;
  if (const size_t rest = requests.size() - shown; rest > 0)
    all.message += "; and " + std::to_string(rest) + " more prompts, all of them wrong";
  return all;
}

Status reserve_receipts(const Model& model, std::span<Request> requests) {
  const auto space = std::make_shared<ReceiptSpace>();
  const std::string* path = nullptr;  // the first that there is: all lie in one folder
  for (Request& r : requests) {
    if (!r.prompt.receipt_path || r.skipped()) continue;
    if (!path) path = &*r.prompt.receipt_path;
    receipt::Receipt stated = model.described;
    stated.sampling = r.settings->decoding.params, stated.stop_strings = r.settings->decoding.stop_strings,
    stated.stop_in_answer = r.settings->decoding.stop_in_answer,
    stated.stop_token_ids = r.settings->decoding.stop_token_ids;
    r.receipt_bytes =
        receipt_size(stated, r.prompt.text.size() + r.prompt.chat.size(), r.tokens.size(), r.max_new_tokens) +
        256 * r.settings->keys.size();
    r.space = space, space->bytes += r.receipt_bytes;
  }
  if (!path) return {};
  INVAR_TRY(space->space, reserve_receipt(*path, space->bytes));
  return {};
}

receipt::Input bound_input(const Request& r, int64_t max_new_tokens) {
  const DecodingParams& decoding = r.settings->decoding;
  return {.prompt = r.prompt.text,
          .tokens = r.tokens,
          .max_new_tokens = max_new_tokens,
          .stop_tokens = decoding.stop_tokens,
          .sampling = r.params,
          .stop_strings = decoding.stop_strings,
          .chat = r.prompt.chat,
          .decoder_tokens = r.decoder_tokens,
          .audio = r.prompt.recording ? r.prompt.recording->digest : Digest{},
          .audio_start = r.prompt.first_sample,
          .stop_in_answer = decoding.stop_in_answer,
          .stop_token_ids = decoding.stop_token_ids,
          .ignore_eos = decoding.ignore_eos};
}

}  // namespace invar::generate
