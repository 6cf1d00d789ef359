// Fuzzes the bodies of requests in the protocols of OpenAI and Anthropic. Every body gives a call
// whose parts can be read, or one clear refusal. An input: a byte that chooses the endpoint, the
// body.
#include "serve/protocol/call.h"
#include "fuzz/parsers/parts.h"

namespace invar {
namespace {

void expect_problem(const serve::Problem& p) {
  if (p.status < 400 || p.status > 599 || p.message.empty()) defect("no refusal: " + p.message);
  if (p.message.find('\n') != p.message.npos) defect("a refusal of several lines: " + p.message);
  if (p.message.size() > 4000) defect("a long refusal: " + p.message);
  const auto body = json::dump(serve::json_of(p));
  if (!json::parse(body, "a refusal")) defect("a refusal that is no JSON: " + body);
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  if (size == 0) return 0;
  const serve::Endpoint endpoints[] = {serve::kChat,      serve::kCompletions, serve::kMessages,
                                       serve::kResponses, serve::kEmbeddings,  serve::kTokenize};
  const serve::Endpoint endpoint = endpoints[data[0] % std::size(endpoints)];
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto call = serve::read_call(body, endpoint);
  if (!call) return expect_problem(call.problem()), 0;
  if (call->messages.is_array()) {
    const auto chat = serve::chat_of(*call);
    if (!chat) return expect_problem(chat.problem()), 0;
  }
  if (endpoint == serve::kCompletions) {
    const auto prompts = serve::prompts_of(*call);
    if (!prompts) return expect_problem(prompts.problem()), 0;
  }
  return 0;
}
