// Texts and tokens, and receipts: what needs no answer.
#include <filesystem>
#include <utility>

#include "base/file/file.h"
#include "serve/requests/replay.h"
#include "serve/service.h"

namespace invar::serve {

using json::Value;

namespace {

Value info_of(const generate::Model& model) {
  Value info = {{"vocab_size", model.folder.tokenizer.vocab_size()},
                {"model_max_length", model.folder.context},
                {"add_bos_token", false}};
  for (const auto& [name, token] : model.folder.chat_templates.special_tokens) info[name] = token;
  const auto with = model.folder.tokenizer.encode("a"), without = model.folder.tokenizer.encode("a", false);
  if (with && without && with->size() > without->size())
    info["add_bos_token"] = with->front() != without->front();
  if (!info.contains("eos_token") && !model.folder.stop_tokens.empty())
    info["eos_token"] = model.folder.tokenizer.decode(std::span(model.folder.stop_tokens).first(1),
                                                      /*skip_special_tokens=*/false);
  const auto& templates = model.folder.chat_templates.texts;
  if (const auto found = templates.find("default"); found != templates.end())
    info["chat_template"] = found->second;
  return info;
}

}  // namespace

void Service::tokenize(Asked& asked) {
  auto call = read_call(asked.request.body, kTokenize);
  if (!call) return refuse(asked, call.problem());
  auto with = language_model(call->model);
  if (!with) return refuse(asked, with.problem());
  const generate::Model& model = (*with)->model;
  std::vector<int32_t> ids;
  if (call->messages.is_array()) {
    auto chat = chat_of(*call);
    if (!chat) return refuse(asked, chat.problem());
    generate::Prompt prompt{"", std::nullopt, std::move(*chat), "messages"};
    auto encoded = generate::Request::encode(model, prompt);
    if (!encoded) return refuse(asked, problem_of(encoded.error()));
    ids = *std::move(encoded);
  } else if (call->prompt.is_string()) {
    auto encoded = model.folder.tokenizer.encode(call->prompt.text, call->add_special_tokens);
    if (!encoded) return refuse(asked, problem_of(encoded.error()));
    ids = *std::move(encoded);
  } else {
    return refuse(asked, {400, "prompt: a text is needed, or messages", "prompt"});
  }
  respond(asked, 200,
          {{"count", ids.size()},
           {"max_model_len", (*with)->engine.positions()},
           {"tokens", ids},
           {"token_strs", nullptr}});
}

void Service::detokenize(Asked& asked) {
  auto call = read_call(asked.request.body, kDetokenize);
  if (!call) return refuse(asked, call.problem());
  auto with = language_model(call->model);
  if (!with) return refuse(asked, with.problem());
  const prompt::Tokenizer& tokenizer = (*with)->model.folder.tokenizer;
  auto ids = ids_of(call->tokens, "tokens");
  if (!ids) return refuse(asked, ids.problem());
  for (const int32_t id : *ids)
    if (id >= tokenizer.vocab_size())
      return refuse(asked, {400, "tokens: id " + std::to_string(id) + " is not in the vocabulary", "tokens"});
  respond(asked, 200, {{"prompt", tokenizer.decode(*ids, /*skip_special_tokens=*/false)}});
}

void Service::tokenizer_info(Asked& asked) {
  auto with = language_model("");
  if (!with) return refuse(asked, with.problem());
  respond(asked, 200, info_of((*with)->model));
}

std::string Service::receipt_path(const std::string& hash) const {
  return options_.receipts + "/" + hash + ".json";
}

Status Service::save(const receipt::Receipt& receipt, const std::string& hash) {
  ++metrics_.receipts;
  const std::string path = receipt_path(hash);
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) return {};  // the same answer, given before
  return write_file(path, receipt::print(receipt));
}

void Service::receipt(Asked& asked) {
  const std::string hash = asked.request.path.substr(std::string_view("/v1/receipts/").size());
  const auto text = digest_from_hex(hash) ? read_file(receipt_path(hash)) : bad_input("");
  if (!text)
    return refuse(
        asked,
        {404, "no receipt " + std::string(json::brief(hash)) + " here: an id has 64 hexadecimal digits", "",
         "receipt_not_found"});
  http::Headers headers = asked.headers;
  headers.push_back({"content-type", "application/json"});
  metrics_.count_status(200);
  asked.responder.answer(200, std::move(headers), *text);
}

void Service::replay(Asked& asked) {
  if (const auto problem = closed()) return refuse(asked, *problem);
  const auto replay = std::make_shared<Replay>(*this, std::move(asked.responder), asked.headers);
  if (const auto problem = replay->start(asked.request.body)) {
    asked.responder = replay->take_responder();
    refuse(asked, *problem);
  }
}

}  // namespace invar::serve
