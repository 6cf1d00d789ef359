// Processors: known answers of the second reading (tools/sampling/vectors.py), and what they must
// not do.
#include "sample/processors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "sample/distribution.h"

namespace invar::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ProcessorCase {
  Params params;
  std::vector<int32_t> prompt, answer, stop;
  int64_t max_new_tokens = 0;
  std::vector<float> logits, processed;
  std::string chosen;
  int32_t token = 0;
  Context context() const { return {prompt, answer, stop, max_new_tokens}; }
};

float f32(const std::string& hex) {
  return std::bit_cast<float>(static_cast<uint32_t>(std::stoul(hex, nullptr, 16)));
}
std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}
std::vector<int32_t> ids(const std::string& text, char by = ' ') {
  std::vector<int32_t> all;
  for (const std::string& t : split(text, by)) all.push_back(std::stoi(t));
  return all;
}
std::vector<float> floats(const std::string& text) {
  std::vector<float> all;
  for (const std::string& t : split(text, ' ')) all.push_back(f32(t));
  return all;
}

Params params_of(const std::string& text) {
  std::map<std::string, std::string> given;
  for (const std::string& setting : split(text, ' '))
    given[setting.substr(0, setting.find('='))] = setting.substr(setting.find('=') + 1);
  Params p;
  for (const auto& [name, value] : given) {
    if (name == "do_sample") p.do_sample = value == "1";
    if (name == "temperature") p.temperature = f32(value);
    if (name == "top_k") p.top_k = std::stoi(value);
    if (name == "top_p") p.top_p = f32(value);
    if (name == "min_p") p.min_p = f32(value);
    if (name == "epsilon_cutoff") p.epsilon_cutoff = f32(value);
    if (name == "seed") p.seed = std::stoull(value);
    Processors& r = p.processors;
    if (name == "repetition_penalty") r.repetition_penalty = f32(value);
    if (name == "no_repeat_ngram_size") r.no_repeat_ngram_size = std::stoi(value);
    if (name == "min_new_tokens") r.min_new_tokens = std::stoll(value);
    if (name == "forced_bos_token_id") r.forced_bos_token_id = std::stoi(value);
    if (name == "forced_eos_token_id") r.forced_eos_token_id = ids(value, ',');
    if (name == "remove_invalid_values") r.remove_invalid_values = value == "1";
    if (name == "suppress_tokens") r.suppress_tokens = ids(value, ',');
    if (name == "begin_suppress_tokens") r.begin_suppress_tokens = ids(value, ',');
    if (name == "timestamp_begin") r.timestamp_begin = std::stoi(value);
    if (name == "max_initial_timestamp_index") r.max_initial_timestamp_index = std::stoi(value);
    if (name == "stream") p.stream = std::stoull(value);
    if (name == "frequency_penalty") r.frequency_penalty = f32(value);
    if (name == "presence_penalty") r.presence_penalty = f32(value);
    if (name == "logit_bias")
      for (const std::string& pair : split(value, ','))
        r.logit_bias.push_back({std::stoi(pair), f32(pair.substr(pair.find(':') + 1))});
    if (name == "bad_words_ids")
      for (const std::string& word : split(value, ';')) r.bad_words_ids.push_back(ids(word, ','));
  }
  return p;
}

std::vector<ProcessorCase> read_processor_vectors() {
  std::vector<ProcessorCase> cases;
  std::ifstream in(INVAR_SOURCE_DIR "/src/sample/processor_vectors.txt");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> part = split(line, '|');
    ProcessorCase& c = cases.emplace_back();
    c.params = params_of(part.at(0));
    c.prompt = ids(part.at(1)), c.answer = ids(part.at(2)), c.stop = ids(part.at(3));
    c.max_new_tokens = std::stoll(part.at(4));
    c.logits = floats(part.at(5)), c.processed = floats(part.at(6));
    c.chosen = part.at(7).substr(1, part.at(7).size() - 2);
    c.token = std::stoi(part.at(8));
  }
  return cases;
}

TEST(Processors, KnownAnswers) {
  const std::vector<ProcessorCase> cases = read_processor_vectors();
  ASSERT_EQ(cases.size(), 800u);
  for (size_t n = 0; n < cases.size(); ++n) {
    SCOPED_TRACE("line " + std::to_string(n + 1));
    const ProcessorCase& c = cases[n];
    std::vector<float> room;
    const auto processed = process(c.logits, c.params.processors, c.context(), room);
    ASSERT_TRUE(processed) << processed.error().message;
    ASSERT_EQ(processed->size(), c.processed.size());
    for (size_t i = 0; i < processed->size(); ++i)
      if (!std::isnan(c.processed[i]) || !std::isnan((*processed)[i])) {
        ASSERT_EQ(std::bit_cast<uint32_t>((*processed)[i]), std::bit_cast<uint32_t>(c.processed[i])) << i;
      }
    const auto token = pick(c.logits, c.params, c.context());
    ASSERT_EQ(bool(token), c.token >= 0);
    if (!token) continue;
    EXPECT_EQ(*token, c.token);
    std::string chosen;
    const auto choices = distribution(*processed, c.params);
    if (c.params.do_sample)
      for (const Choice& choice : *choices)
        chosen +=
            (chosen.empty() ? "" : " ") + std::to_string(choice.token) + ":" + std::to_string(choice.weight);
    EXPECT_EQ(chosen.empty() ? "-" : chosen, c.chosen);
  }
}

TEST(Processors, NothingIsCopiedWhereNothingChanges) {
  const std::vector<float> logits{1, 2, 3};
  const std::vector<int32_t> tokens{0, 1};
  std::vector<float> room;
  const auto same = [&](const Processors& p) {
    const auto processed = process(logits, p, {tokens, tokens, tokens, 9}, room);
    return processed && processed->data() == logits.data() && room.empty();
  };
  EXPECT_TRUE(same({}));
  EXPECT_TRUE(same({.min_new_tokens = 2}));
  EXPECT_TRUE(same({.forced_bos_token_id = 1, .forced_eos_token_id = {1}}));
  EXPECT_TRUE(same({.suppress_tokens = {3}, .begin_suppress_tokens = {1}}));
  EXPECT_FALSE(same({.suppress_tokens = {2}}));
}

TEST(Processors, ATokenThatComesTwiceIsPenalizedOnce) {
  const std::vector<float> logits{1, -1, 3};
  const std::vector<int32_t> prompt{1, 0, 0, 7}, answer{1};
  std::vector<float> room;
  const auto processed = process(logits, {.repetition_penalty = 2}, {prompt, answer, {}, 9}, room);
  ASSERT_TRUE(processed);
  EXPECT_EQ(std::vector<float>(processed->begin(), processed->end()), (std::vector<float>{0.5f, -2, 3}));
}

// sampling.21: at this position alone, unless the token came before, and against every mask.
TEST(Processors, ShortCircuit) {
  const std::vector<float> logits{1, 2, 3};
  const std::vector<int32_t> prompt{1}, answer{2, 0}, with_it{1, 0}, longer{2, 0, 2};
  const Processors p{.suppress_tokens = {1}, .short_circuit_length = 2, .short_circuit_token = 1};
  std::vector<float> room;
  const auto out = [&](const std::vector<int32_t>& before) {
    const auto processed = process(logits, p, {prompt, before, {}, 9}, room);
    return processed ? std::vector<float>(processed->begin(), processed->end()) : std::vector<float>();
  };
  EXPECT_EQ(out(answer), (std::vector<float>{-kInfinity, 0, -kInfinity}));
  for (const auto& other : {with_it, longer, prompt})
    EXPECT_EQ(out(other), (std::vector<float>{1, -kInfinity, 3}));
}

TEST(Processors, TokensWithoutALogit) {
  const std::vector<float> logits{1, 2};
  const std::vector<int32_t> prompt{0}, none;
  std::vector<float> room;
  const auto refused = [&](const Processors& p) {
    const auto processed = process(logits, p, {prompt, none, none, 1}, room);
    return processed ? std::string() : processed.error().message;
  };
  EXPECT_EQ(refused({.bad_words_ids = {{1, 2}}}), "bad_words_ids: the model has no logit of token 2, only 2");
  EXPECT_EQ(refused({.logit_bias = {{2, 1}}}), "logit_bias: the model has no logit of token 2, only 2");
  EXPECT_EQ(refused({.forced_bos_token_id = 2}).find("forced_bos_token_id: "), 0u);
  EXPECT_EQ(refused({.forced_eos_token_id = {0, 2}}).find("forced_eos_token_id: "), 0u);
}

TEST(Processors, NoTokenIsLeft) {
  const std::vector<float> logits{1, 2};
  const auto token = pick(logits, {.processors = {.suppress_tokens = {0, 1}}}, {});
  ASSERT_FALSE(token);
  EXPECT_NE(token.error().message.find("settings that exclude tokens"), std::string::npos);
}

TEST(Processors, Refusals) {
  const auto message = [](const Params& p) -> std::string {
    const auto found = out_of_range(p);
    return found ? found->parameter : "";
  };
  EXPECT_EQ(message({}), "");
  for (const float x : {0.0f, -1.0f, kInfinity, std::nanf(""), 0x1p-130f})
    EXPECT_EQ(message({.processors = {.repetition_penalty = x}}), "repetition_penalty") << x;
  for (const float x : {-0.0f, 2.0000002f, -2.5f, kInfinity, std::nanf(""), 0x1p-130f}) {
    EXPECT_EQ(message({.processors = {.frequency_penalty = x}}), "frequency_penalty") << x;
    EXPECT_EQ(message({.processors = {.presence_penalty = x}}), "presence_penalty") << x;
  }
  for (const float x : {0.0f, -0.0f, 100.00001f, -kInfinity, std::nanf(""), 0x1p-130f})
    EXPECT_EQ(message({.processors = {.logit_bias = {{3, x}}}}), "logit_bias") << x;
  EXPECT_EQ(message({.processors = {.logit_bias = {{-1, 1}}}}), "logit_bias");
  EXPECT_EQ(message({.processors = {.logit_bias = {{1, 1}, {1, 2}}}}), "logit_bias");
  EXPECT_EQ(message({.processors = {.logit_bias = {{1, -100}, {2, 100}},
                                    .frequency_penalty = -2,
                                    .presence_penalty = 2}}),
            "");
  for (const float x : {-0.5f, 1.0000001f, std::nanf(""), 0x1p-130f})
    EXPECT_EQ(message({.min_p = x}), "min_p") << x;
  EXPECT_EQ(message({.min_p = 1}), "");
  for (const float x : {-0.5f, 1.0f, std::nanf("")})
    EXPECT_EQ(message({.epsilon_cutoff = x}), "epsilon_cutoff") << x;
  EXPECT_EQ(message({.processors = {.no_repeat_ngram_size = -1}}), "no_repeat_ngram_size");
  EXPECT_EQ(message({.processors = {.bad_words_ids = {{}}}}), "bad_words_ids");
  EXPECT_EQ(message({.processors = {.bad_words_ids = {{1, -1}}}}), "bad_words_ids");
  EXPECT_EQ(message({.processors = {.min_new_tokens = -1}}), "min_new_tokens");
  EXPECT_EQ(message({.processors = {.forced_bos_token_id = -2}}), "forced_bos_token_id");
  EXPECT_EQ(message({.processors = {.forced_eos_token_id = {-1}}}), "forced_eos_token_id");
  EXPECT_EQ(message({.processors = {.suppress_tokens = {-1}}}), "suppress_tokens");
  EXPECT_EQ(message({.processors = {.begin_suppress_tokens = {3, -1}}}), "begin_suppress_tokens");
  EXPECT_EQ(message({.processors = {.short_circuit_length = -1}}), "short_circuit_length");
  EXPECT_EQ(message({.processors = {.short_circuit_length = 1}}), "short_circuit_token");
  EXPECT_EQ(message({.processors = {.short_circuit_token = 1}}), "short_circuit_token");
}

TEST(Processors, SaysWhatIsSet) {
  EXPECT_EQ(describe(Params{.processors = {.repetition_penalty = 1.1f,
                                           .no_repeat_ngram_size = 3,
                                           .min_new_tokens = 4,
                                           .suppress_tokens = {1}}}),
            "greedy, repetition penalty 1.1, no repeated 3-gram, at least 4 new tokens, without 1 token");
  EXPECT_EQ(describe(Params{
                .do_sample = true,
                .stream = 2,
                .processors = {.logit_bias = {{1, 2}}, .frequency_penalty = 0.5f, .presence_penalty = -1}}),
            "temperature 1, top-k all, top-p 1, seed 0, stream 2, 1 biased logit, frequency penalty 0.5, "
            "presence penalty -1");
  EXPECT_EQ(describe(Params{.do_sample = true, .min_p = 0.05f, .epsilon_cutoff = 0.5f}),
            "temperature 1, top-k all, top-p 1, min-p 0.05, epsilon cutoff 0.5, seed 0");
}

// sampling.28, sampling.29: masks come last, and nothing is taken where all is masked.
TEST(ProcessorsTest, MasksComeLast) {
  const std::vector<float> logits{1, 5, 3, 2, 4};
  const std::vector<int32_t> prompt{0}, stop{4};
  Params p;
  const auto token = [&](std::vector<int32_t> answer) { return pick(logits, p, {prompt, answer, stop, 9}); };
  p.processors.allowed_token_ids = {3, 0, 99};
  EXPECT_EQ(*token({}), 3);
  p.processors.remove_invalid_values = true;
  EXPECT_EQ(*token({}), 3);
  p.processors = {.structured_outputs = R"({"grammar":1,"choice":["ab"]})"};
  EXPECT_EQ(token({}).error().code, Code::internal);  // nobody gave a vocabulary
  p.processors.constraint = *grammar::Constraint::make(
      p.processors.structured_outputs,
      std::make_shared<const grammar::Vocabulary>(
          std::vector<std::optional<std::string>>{"a", "c", "b", "ab", std::nullopt}));
  EXPECT_EQ(*token({}), 3);
  EXPECT_EQ(*token({0}), 2);
  EXPECT_EQ(*token({0, 2}), 4);
  p.processors.allowed_token_ids = {0, 1};
  EXPECT_EQ(*token({}), 0);
  EXPECT_EQ(token({0}).error().code, Code::bad_input);
  p.processors.allowed_token_ids = {};
  p.processors.min_new_tokens = 3;
  EXPECT_EQ(token({0, 2}).error().code, Code::bad_input);
}

}  // namespace
}  // namespace invar::sample
