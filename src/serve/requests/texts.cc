// Texts and tokens, and receipts: what needs no answer.
#include <algorithm>
#include <utility>

#include "base/text/display.h"
#include "receipt/receipt.h"
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

// The prompt of a text or of messages, as a completion or a chat makes it of them, and its tokens.
Outcome<generate::Prompt> Service::prompt_of(const generate::Model& model, const Call& call,
                                             std::vector<int32_t>& ids) const {
  generate::Prompt prompt{"", std::nullopt};
  if (call.messages.is_array() && !call.prompt.is_null())
    return Problem{400, "prompt: messages are given, too: leave one of them out", "prompt"};
  if (call.messages.is_array()) {
    auto chat = chat_of(call, date_of(call));
    if (!chat) return chat.problem();
    prompt = {"", std::nullopt, std::move(*chat), "the body"};
    auto encoded = generate::Request::encode(model, prompt);
    if (!encoded) return problem_of(encoded.error());
    ids = *std::move(encoded);
  } else if (call.prompt.is_string()) {
    prompt.text = call.prompt.text;
    auto encoded = model.folder.tokenizer.encode(prompt.text, call.add_special_tokens);
    if (!encoded) return problem_of(encoded.error());
    ids = *std::move(encoded);
  } else {
    return Problem{400, "prompt: a text is needed, or messages", "prompt"};
  }
  return prompt;
}

void Service::tokenize(Asked& asked) {
  auto call = read_call(asked.request.body, kTokenize);
  if (!call) return refuse(asked, call.problem());
  auto with = language_model(call->model);
  if (!with) return refuse(asked, with.problem());
  std::vector<int32_t> ids;
  if (const auto prompt = prompt_of((*with)->model, *call, ids); !prompt)
    return refuse(asked, prompt.problem());
  Value texts;
  if (call->token_texts) {
    texts = Value::array;
    for (const int32_t& id : ids)
      texts.add((*with)->model.folder.tokenizer.decode(std::span(&id, 1), /*skip_special_tokens=*/false));
  }
  respond(asked, 200,
          {{"count", ids.size()},
           {"max_model_len", (*with)->engine.positions()},
           {"tokens", ids},
           {"token_strs", std::move(texts)}});
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

namespace {

constexpr std::string_view kReceipts = "/v1/receipts/";

Problem no_receipt(const std::string& id) {
  return {404, "no receipt " + excerpt(id) + " here: an id has 64 hexadecimal digits", "",
          "receipt_not_found"};
}

}  // namespace

void Service::receipt(Asked& asked) {
  const std::string id = asked.request.path.substr(kReceipts.size());
  if (!digest_from_hex(id)) return refuse(asked, no_receipt(id));
  const auto kept = archive_->receipt(id);
  if (!kept) return refuse(asked, {503, "the receipt cannot be read now: ask again later"});
  if (!*kept) return refuse(asked, no_receipt(id));
  if ((*kept)->open)
    return refuse(asked, {409,
                          "the receipt is kept without its prompt: POST the prompt, or the messages, to this "
                          "path as JSON, and the answer is the whole receipt",
                          "", "prompt_not_stored"});
  http::Headers headers = asked.headers;
  headers.push_back({"content-type", "application/json"});
  metrics_.count_status(200);
  asked.responder.answer(200, std::move(headers), (*kept)->text);
}

// The receipt of a kept answer and its prompt, which the client has and the store may not have.
void Service::whole_receipt(Asked& asked) {
  const std::string id = asked.request.path.substr(kReceipts.size());
  auto call = read_call(asked.request.body, kTokenize);
  if (!call) return refuse(asked, call.problem());
  if (!digest_from_hex(id)) return refuse(asked, no_receipt(id));
  const auto kept = archive_->receipt(id);
  if (!kept) return refuse(asked, {503, "the receipt cannot be read now: ask again later"});
  if (!*kept) return refuse(asked, no_receipt(id));
  if (!(*kept)->open) return receipt(asked);
  const receipt::Receipt& open = *(*kept)->open;
  const auto with = std::ranges::find_if(models_, [&](const auto& m) {
    return m->model.described.program == open.program && m->model.described.weights == open.weights;
  });
  if (with == models_.end())
    return refuse(asked,
                  {422, "the receipt is of a model that this server has not: its prompt cannot be read"});
  receipt::Receipt question;
  auto prompt = prompt_of((*with)->model, *call, question.prompt_tokens);
  if (!prompt) return refuse(asked, prompt.problem());
  question.prompt = prompt->text, question.chat = prompt->chat;
  const auto whole = Archive::restored(open, id, question);
  if (!whole)
    return refuse(asked, {422,
                          "the receipt has another prompt: send the one of the request, with all that "
                          "the chat template was given"});
  http::Headers headers = asked.headers;
  headers.push_back({"content-type", "application/json"});
  metrics_.count_status(200);
  asked.responder.answer(200, std::move(headers), receipt::print(*whole));
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
