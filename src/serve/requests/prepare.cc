// The body of a request -> requests to the engine.
#include <algorithm>
#include <ctime>
#include <utility>

#include "base/hash/random_bytes.h"
#include "generate/settings/structured.h"
#include "grammar/grammar.h"
#include "serve/requests/reply.h"
#include "serve/service.h"

namespace invar::serve {
namespace {

// OpenAI's protocol says so, and clients count on it.
constexpr int64_t kCompletionTokens = 16;

Problem too_long(int64_t positions, int64_t tokens, const std::string& of_answer) {
  return {400,
          "the context of this server is " + std::to_string(positions) + " tokens; the prompt has " +
              std::to_string(tokens) + of_answer + ": shorten it",
          "", "context_length_exceeded"};
}

Problem too_many_at_least(int64_t least, int64_t most) {
  return {400,
          "min_tokens: " + std::to_string(least) + " are above " + std::to_string(most) +
              ", the most new tokens of this answer",
          "min_tokens"};
}

// The text that has exactly these ids: a receipt binds a text.
Outcome<std::string> text_of(const prompt::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids)
    if (id >= tokenizer.vocab_size())
      return Problem{400,
                     "prompt: id " + std::to_string(id) + " is not in the vocabulary of " +
                         std::to_string(tokenizer.vocab_size()) + " tokens: these ids are of another model",
                     "prompt"};
  // The special tokens at the begin are those that the tokenizer adds to a text, or are written in
  // it.
  for (const size_t left_out : {size_t{0}, size_t{1}}) {
    if (left_out > 0 && (ids.size() < 2 || !tokenizer.is_special(ids[0]))) break;
    std::string text = tokenizer.decode(std::span(ids).subspan(left_out), /*skip_special_tokens=*/false);
    const auto again = tokenizer.encode(text);
    if (again && *again == ids) return text;
  }
  const auto begin = tokenizer.encode("");
  const bool lacks_begin = begin && !begin->empty() && begin->front() != ids[0];
  return Problem{
      400,
      "prompt: no text has exactly these token ids, and a receipt binds a text: send the text, or the "
      "ids that /tokenize makes of it" +
          std::string(lacks_begin ? "; every text begins with the special token " +
                                        std::to_string(begin->front()) + " (lm-eval: add_bos_token=True)"
                                  : ""),
      "prompt", "unsupported_parameter"};
}

}  // namespace

uint64_t Service::random_seed() {  // of 48 bits, which every client's numbers hold
  const auto bytes = random_bytes();
  uint64_t seed = 0;
  for (int i = 0; i < 6 && bytes; ++i) seed = seed << 8 | (*bytes)[static_cast<size_t>(i)];
  return seed;
}

// A day has the same receipts for the same requests.
std::string Service::date_of(const Call& call) const {
  if (!call.date.empty() || !options_.clock) return call.date;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT00:00:00", &local)};
}

Outcome<generate::Request> Service::request_of(
    const LanguageModel& with, const Call& call, generate::Prompt prompt,
    std::optional<std::vector<int32_t>> tokens,
    const std::shared_ptr<const generate::RequestSettings>& settings) const {
  if (!tokens) {
    auto encoded = generate::Request::encode(with.model, prompt, "the prompt");
    if (!encoded) return problem_of(encoded.error());
    tokens = *std::move(encoded);
  }
  const std::vector<int32_t>& start = with.model.folder.decoder_tokens;  // of a model with an encoder
  const int64_t positions = with.engine.positions(),
                n = static_cast<int64_t>(start.empty() ? tokens->size() : start.size());
  if (call.echo && call.sampling.logprobs && !start.empty())
    return Problem{400, "logprobs: this model reads the prompt by an encoder, so an echo has none",
                   "logprobs"};
  if (n >= positions) return too_long(positions, n, "");
  if (const auto most = call.sampling.max_new_tokens; most && *most > positions - n)
    return too_long(positions, n, ", and " + std::to_string(*most) + " new ones are asked for");
  if (with.model.folder.is_long(n))
    return Problem{400,
                   "a prompt of " + std::to_string(n) +
                       " tokens has another program: LongRoPE has other "
                       "factors beyond " +
                       std::to_string(with.model.folder.original_context) +
                       " tokens, and this "
                       "server has one program: shorten it, or use invar run",
                   "", "not_covered"};
  auto made =
      generate::Request::make(with.model, std::move(prompt), *std::move(tokens), settings, "the prompt");
  if (!made) return problem_of(made.error());
  const int64_t least = made->params.processors.min_new_tokens;
  made->limit(positions - n);
  if (call.sampling.min_new_tokens && least > made->max_new_tokens)
    return too_many_at_least(least, made->max_new_tokens);
  return *std::move(made);
}

Outcome<std::vector<generate::Request>> Service::requests_of(const LanguageModel& with, Call& call) const {
  call.sampling.seed = call.seed.value_or(random_seed());
  if (const json::Value tools = call.forced_tools(); !tools.empty()) {  // grammar.14
    const generate::CallSyntax syntax = generate::call_syntax(with.model.folder);
    json::Value asked = {{"tools", tools}};
    if (!syntax.begin.empty()) asked["begin"] = syntax.begin, asked["end"] = syntax.end;
    if (call.parallel_calls.value_or(false) && call.tool_choice.is_string()) asked["several"] = true;
    const auto text = grammar::canonical(asked);
    if (!text) return Problem{400, "tools: " + text.error().message, "tools"};
    call.sampling.structured_outputs = *text;
  }
  generate::RequestOptions options;
  options.sampling = call.sampling;
  options.fill_memory = call.chat;
  options.prompt_logprobs = call.echo && call.sampling.logprobs;
  if (!call.chat && !call.sampling.max_new_tokens) options.sampling.max_new_tokens = kCompletionTokens;
  if (const auto most = options.sampling.max_new_tokens; most && call.sampling.min_new_tokens > *most)
    return too_many_at_least(*call.sampling.min_new_tokens, *most);
  if (call.sampling.logit_bias)
    for (const sample::LogitBias& bias : *call.sampling.logit_bias)
      if (bias.token >= with.model.folder.tokenizer.vocab_size())
        return Problem{400,
                       "logit_bias: id " + std::to_string(bias.token) + " is not in the vocabulary of " +
                           std::to_string(with.model.folder.tokenizer.vocab_size()) + " tokens",
                       "logit_bias"};
  auto settings = generate::RequestSettings::make(with.model, std::move(options));
  if (!settings) return problem_of(settings.error());
  std::vector<generate::Request> requests;
  const auto add = [&](generate::Prompt prompt,
                       std::optional<std::vector<int32_t>> ids) -> std::optional<Problem> {
    auto made = request_of(with, call, std::move(prompt), std::move(ids), *settings);
    if (!made) return made.problem();
    const uint64_t first = made->params.stream;
    for (uint64_t j = 0; j < static_cast<uint64_t>(call.n); ++j) {  // sampling.24
      if (made->params.do_sample) made->params.stream = first + j;
      requests.push_back(*made);
    }
    return std::nullopt;
  };
  // More would never find room, however often a client asks.
  const size_t most = options_.queue + static_cast<size_t>(with.engine.session().sequences());
  if (call.chat) {
    if (static_cast<size_t>(call.n) > most)
      return Problem{400,
                     "n: " + std::to_string(call.n) + " answers, and this server takes " +
                         std::to_string(most) + " at once",
                     "n"};
    auto chat = chat_of(call, date_of(call));
    if (!chat) return chat.problem();
    if (auto problem = add({"", std::nullopt, std::move(*chat), "the body"}, std::nullopt)) return *problem;
    return requests;
  }
  auto prompts = prompts_of(call);
  if (!prompts) return prompts.problem();
  if (prompts->size() * static_cast<size_t>(call.n) > most)
    return Problem{400,
                   "prompt: " + std::to_string(prompts->size()) + " prompts of " + std::to_string(call.n) +
                       " answers each, and this server takes " + std::to_string(most) + " at once",
                   "prompt"};
  for (GivenPrompt& given : *prompts) {
    if (given.ids) {
      auto text = text_of(with.model.folder.tokenizer, *given.ids);
      if (!text) return text.problem();
      given.text = std::move(*text);
    }
    if (auto problem = add({std::move(given.text), std::nullopt}, std::move(given.ids))) return *problem;
  }
  return requests;
}

void Service::prepare(Asked& asked, Endpoint endpoint) {
  if (const auto problem = closed()) return refuse(asked, *problem);
  auto call = read_call(asked.request.body, endpoint);
  if (!call) return refuse(asked, call.problem());
  auto model = language_model(call->model);
  if (!model) return refuse(asked, model.problem());
  auto requests = requests_of(**model, *call);
  if (!requests) return refuse(asked, requests.problem());
  const auto reply =
      std::make_shared<Reply>(*this, **model, std::move(*call), std::move(asked.responder), asked.headers);
  if (const auto problem = reply->start(std::move(*requests), client_of(asked.request))) {
    asked.responder = reply->take_responder();
    refuse(asked, *problem);
  }
}

void Service::count_tokens(Asked& asked) {
  auto call = read_call(asked.request.body, kTokens);
  if (!call) return refuse(asked, call.problem());
  auto model = language_model(call->model);
  if (!model) return refuse(asked, model.problem());
  auto chat = chat_of(*call, date_of(*call));
  if (!chat) return refuse(asked, chat.problem());
  generate::Prompt prompt{"", std::nullopt, std::move(*chat), "the body"};
  const auto ids = generate::Request::encode((*model)->model, prompt);
  if (!ids) return refuse(asked, problem_of(ids.error()));
  respond(asked, 200, {{"input_tokens", ids->size()}});
}

}  // namespace invar::serve
