// Fuzzes the bodies of requests in the protocols of OpenAI and Anthropic. Every body gives a call
// whose parts can be read, or one clear refusal. An input: a byte that chooses the endpoint, the
// body; or, behind the last endpoint, a file of a batch.
#include "serve/protocol/call.h"
#include "fuzz/parsers/parts.h"
#include "serve/batch/row.h"

namespace invar {
namespace {

void expect_problem(const serve::Problem& p) {
  if (p.status < 400 || p.status > 599 || p.message.empty()) defect("no refusal: " + p.message);
  const json::Value body = serve::json_of(p);
  const std::string message = body.get("error").get("message").text;
  if (message.find('\n') != message.npos) defect("a refusal of several lines: " + message);
  if (message.size() > 9000) defect("a long refusal: " + message);  // an escape has up to 4 bytes
  if (!json::parse(json::dump(body), "a refusal")) defect("a refusal that is no JSON: " + message);
}

// A line is work with an id, or has a problem. With the body that it gives it is the same work.
void try_batch(std::string_view text) {
  const json::Value identity{{"model", "m"}};
  for (const serve::BatchRow& row : serve::read_batch(text, identity)) {
    if (row.id.empty() == row.problem.empty()) defect("a row that is no request without a problem");
    if (!row.problem.empty()) {
      expect(bad_input(row.problem));
      continue;
    }
    const auto body = json::parse(row.body, "its body");
    if (!body) defect("a body that is no JSON: " + row.body);
    const json::Value line{
        {"custom_id", row.custom_id}, {"method", "POST"}, {"url", row.url}, {"body", *body}};
    const serve::BatchRow again = serve::read_batch_row(json::dump(line), 1, identity);
    if (again.id != row.id || again.body != row.body) defect("a row is another one when it is read again");
  }
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  if (size == 0) return 0;
  const serve::Endpoint endpoints[] = {serve::kChat,      serve::kCompletions, serve::kMessages,
                                       serve::kResponses, serve::kEmbeddings,  serve::kTokenize};
  const size_t kind = data[0] % (std::size(endpoints) + 1);
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (kind == std::size(endpoints)) return try_batch(body), 0;
  const serve::Endpoint endpoint = endpoints[kind];
  auto call = serve::read_call(body, endpoint);
  if (!call) return expect_problem(call.problem()), 0;
  if (call->messages.is_array()) {
    const auto chat = serve::chat_of(*call, call->date);
    if (!chat) return expect_problem(chat.problem()), 0;
  }
  if (endpoint == serve::kCompletions) {
    const auto prompts = serve::prompts_of(*call);
    if (!prompts) return expect_problem(prompts.problem()), 0;
  }
  return 0;
}
