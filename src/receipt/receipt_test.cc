// Receipts: their form, and that every change to one is found and named.
#include "receipt/receipt.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "receipt/fields/fields.h"
#include "receipt/testing.h"

namespace invar::receipt {
namespace {

using testing::fields_of;
using testing::toy_receipt;

std::vector<Finding> findings(const std::string& json) {
  auto f = validate(json, "r.json");
  EXPECT_TRUE(f) << f.error().message;
  return f ? *f : std::vector<Finding>{};
}

void replace(std::string& s, const std::string& from, const std::string& to) {
  size_t at = s.find(from);
  ASSERT_NE(at, s.npos) << from;
  s.replace(at, from.size(), to);
}

TEST(Receipt, RoundTrip) {
  Receipt r = toy_receipt(), back{};
  std::string text = print(r);
  auto f = validate(text, "r.json", &back);
  ASSERT_TRUE(f);
  EXPECT_EQ(fields_of(*f), "");
  EXPECT_EQ(print(back), text);
  EXPECT_EQ(back.prompt, r.prompt);
  EXPECT_EQ(back.sampling.seed, r.sampling.seed);
  EXPECT_EQ(receipt_hash(back), receipt_hash(r));
}

// Committed, so that the form cannot change unnoticed; tests/checkpoint/test_receipt.py recomputes
// its digests in Python.
TEST(Receipt, ExampleIsByteForByte) {
  std::ifstream in(INVAR_SOURCE_DIR "/src/receipt/example.json", std::ios::binary);
  std::string committed{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(print(toy_receipt()), committed);
}

// A receipt of format 1, as builds before format 2 wrote it.
TEST(Receipt, Format1IsReadForEver) {
  std::ifstream in(INVAR_SOURCE_DIR "/tests/golden/receipts/toy.format-1.json", std::ios::binary);
  const std::string committed{std::istreambuf_iterator<char>(in), {}};
  Receipt r;
  const auto f = validate(committed, "r.json", &r);
  ASSERT_TRUE(f);
  EXPECT_EQ(fields_of(*f), "");
  EXPECT_EQ(r.format, 1);
  EXPECT_EQ(print(r), committed);
}

TEST(Receipt, ExecutionIsOutsideTheHash) {
  Receipt a = toy_receipt(), b = a;
  b.execution = {{"threads", "8"}};
  EXPECT_EQ(receipt_hash(a), receipt_hash(b));
  b.execution.clear();
  EXPECT_EQ(fields_of(findings(print(b))), "");
}

// Every bound field, changed alone in the text, is named, and nothing else is.
struct Edit {
  std::string field;
  std::function<void(Receipt&)> change;
};

// Edits of the settings that are optional.
std::vector<Edit> edits_of_settings() {
  return {
      {"input.min_p", [](Receipt& r) { r.sampling.min_p = 0.25f; }},
      {"input.epsilon_cutoff", [](Receipt& r) { r.sampling.epsilon_cutoff = 0.25f; }},
      {"input.repetition_penalty", [](Receipt& r) { r.sampling.processors.repetition_penalty = 1.25f; }},
      {"input.stream", [](Receipt& r) { ++r.sampling.stream; }},
      {"input.logit_bias", [](Receipt& r) { ++r.sampling.processors.logit_bias[1].token; }},
      {"input.frequency_penalty", [](Receipt& r) { r.sampling.processors.frequency_penalty = -2; }},
      {"input.presence_penalty", [](Receipt& r) { r.sampling.processors.presence_penalty = 2; }},
      {"input.no_repeat_ngram_size", [](Receipt& r) { ++r.sampling.processors.no_repeat_ngram_size; }},
      {"input.bad_words_ids", [](Receipt& r) { ++r.sampling.processors.bad_words_ids[1][2]; }},
      {"input.bad_words_ids", [](Receipt& r) { r.sampling.processors.bad_words_ids.pop_back(); }},
      {"input.min_new_tokens", [](Receipt& r) { ++r.sampling.processors.min_new_tokens; }},
      {"input.forced_bos_token_id", [](Receipt& r) { ++r.sampling.processors.forced_bos_token_id; }},
      {"input.forced_eos_token_id",
       [](Receipt& r) { r.sampling.processors.forced_eos_token_id.push_back(9); }},
      {"input.suppress_tokens", [](Receipt& r) { ++r.sampling.processors.suppress_tokens[0]; }},
      {"input.begin_suppress_tokens", [](Receipt& r) { ++r.sampling.processors.begin_suppress_tokens[0]; }},
      {"input.short_circuit_length", [](Receipt& r) { ++r.sampling.processors.short_circuit_length; }},
      {"input.short_circuit_token", [](Receipt& r) { ++r.sampling.processors.short_circuit_token; }},
      {"input.allowed_token_ids", [](Receipt& r) { ++r.sampling.processors.allowed_token_ids[1]; }},
      {"input.timestamp_begin", [](Receipt& r) { ++r.sampling.processors.timestamp_begin; }},
      {"input.max_initial_timestamp_index",
       [](Receipt& r) { ++r.sampling.processors.max_initial_timestamp_index; }},
      {"input.structured_outputs",
       [](Receipt& r) { r.sampling.processors.structured_outputs = R"({"grammar":1,"regex":"b"})"; }},
      {"input.stop_token_ids", [](Receipt& r) { ++r.stop_token_ids[0]; }},
      {"input.stop_strings", [](Receipt& r) { r.stop_strings[0] += "x"; }},
  };
}

std::vector<Edit> edits() {
  std::vector<Edit> e{
      {"model.name", [](Receipt& r) { r.model_name += "x"; }},
      {"model.revision", [](Receipt& r) { r.revision = ""; }},
      {"model.tensors", [](Receipt& r) { r.tensors.pop_back(); }},
      {"model.tensors",
       [](Receipt& r) {
         r.tensors.push_back({"z", "f16", {}, sha256("z")});
       }},
      {"model.tensors", [](Receipt& r) { r.tensors[0].name += "x"; }},
      {"model.tensors", [](Receipt& r) { r.tensors[0].dtype = "f16"; }},
      {"model.tensors", [](Receipt& r) { std::swap(r.tensors[0].shape[0], r.tensors[0].shape[1]); }},
      {"model.tensors", [](Receipt& r) { r.tensors[1].shape.push_back(1); }},
      {"program.recipe", [](Receipt& r) { r.recipe = "toy-2"; }},
      {"program.numerics", [](Receipt& r) { r.numerics = "invar-2"; }},
      {"program.profile", [](Receipt& r) { r.profile = "exact16"; }},
      {"program.operation_set", [](Receipt& r) { r.operation_set = "default"; }},
      {"model.text_of", [](Receipt& r) { r.text_of += "_text"; }},
      {"model.adapter_name", [](Receipt& r) { r.adapter_name += "2"; }},
      {"model.adapter", [](Receipt& r) { r.adapter[0] ^= 1; }},
      {"program.unicode", [](Receipt& r) { r.unicode = "15.0.0"; }},
      {"input.prompt", [](Receipt& r) { r.prompt.resize(r.prompt.size() - 4); }},
      {"input.prompt", [](Receipt& r) { r.prompt = ""; }},
      {"input.max_new_tokens", [](Receipt& r) { ++r.max_new_tokens; }},
      {"input.stop_tokens", [](Receipt& r) { r.stop_tokens = {}; }},
      {"input.stop_tokens", [](Receipt& r) { std::swap(r.stop_tokens[0], r.stop_tokens[1]); }},
      {"input.do_sample", [](Receipt& r) { r.sampling.do_sample ^= true; }},
      {"input.temperature",
       [](Receipt& r) { r.sampling.temperature = std::nextafter(r.sampling.temperature, 9.0f); }},
      {"input.top_k", [](Receipt& r) { ++r.sampling.top_k; }},
      {"input.top_p", [](Receipt& r) { r.sampling.top_p = 1; }},
      {"input.seed", [](Receipt& r) { r.sampling.seed ^= 1; }},
      {"input.chat", [](Receipt& r) { r.chat += "x"; }},
      {"input.decoder_tokens", [](Receipt& r) { r.decoder_tokens[0] += 1; }},
      {"input.audio", [](Receipt& r) { r.audio[0] ^= 1; }},
      {"input.audio_start", [](Receipt& r) { ++r.audio_start; }},
      {"input.previous", [](Receipt& r) { r.previous[31] ^= 1; }},
      {"output.text", [](Receipt& r) { r.text[0] ^= 1; }},
      {"output.text", [](Receipt& r) { r.text += " "; }},
      {"output.finish_reason",
       [](Receipt& r) { r.finish_reason = r.finish_reason == "stop" ? "length" : "stop"; }},
  };
  auto every_list = [&](std::string field, auto list) {  // each element changed, removed, doubled, swapped
    size_t n = list(*std::make_unique<Receipt>(toy_receipt())).size();
    for (size_t i = 0; i < n; ++i) {
      e.push_back({field, [=](Receipt& r) { list(r).erase(list(r).begin() + i); }});
      e.push_back({field, [=](Receipt& r) {
                     auto x = list(r)[i];
                     list(r).insert(list(r).begin() + i, x);
                   }});
      for (size_t j = i + 1; j < n; ++j)
        e.push_back({field, [=](Receipt& r) { std::swap(list(r)[i], list(r)[j]); }});
    }
  };
  auto tokens = [&](std::string field, auto list) {
    every_list(field, list);
    for (size_t i = 0; i < list(*std::make_unique<Receipt>(toy_receipt())).size(); ++i)
      e.push_back({field, [=](Receipt& r) { ++list(r)[i]; }});
  };
  tokens(
      "input.tokens", [](Receipt & r) -> auto& { return r.prompt_tokens; });
  tokens(
      "output.tokens", [](Receipt & r) -> auto& { return r.tokens; });
  every_list(
      "output.logits", [](Receipt & r) -> auto& { return r.logits; });
  for (int nibble = 0; nibble < 64; ++nibble) {
    auto flip = [=](Digest& d) { d[nibble / 2] ^= nibble % 2 ? 0x01 : 0x10; };
    e.push_back({"model.weights", [=](Receipt& r) { flip(r.weights); }});
    e.push_back({"model.config", [=](Receipt& r) { flip(r.config); }});
    e.push_back({"model.tokenizer", [=](Receipt& r) { flip(r.tokenizer); }});
    e.push_back({"model.chat_template", [=](Receipt& r) { flip(r.chat_template); }});
    e.push_back({"model.tensors", [=](Receipt& r) { flip(r.tensors[1].sha256); }});
    e.push_back({"program.digest", [=](Receipt& r) { flip(r.program); }});
    for (size_t i = 0; i < toy_receipt().logits.size(); ++i)
      e.push_back({"output.logits", [=](Receipt& r) { flip(r.logits[i]); }});
  }
  for (const Edit& edit : edits_of_settings()) e.push_back(edit);
  return e;
}

// The text of r's fields under the digests and hash of `original`.
std::string with_old_hashes(const Receipt& original, const Receipt& r) {
  std::string a = print(original), b = print(r);
  size_t cut_a = a.find("\n  \"digests\""), cut_b = b.find("\n  \"digests\"");
  return b.substr(0, cut_b) + a.substr(cut_a);
}

// A receipt with a value of every optional field.
Receipt full_receipt() {
  Receipt r = toy_receipt();
  r.sampling.min_p = 0.05f, r.sampling.epsilon_cutoff = 3e-4f;
  r.sampling.stream = 18446744073709551614u;
  r.sampling.processors = {.repetition_penalty = 1.1f,
                           .logit_bias = {{4, -100}, {6, 0.1f}},
                           .frequency_penalty = 0.2f,
                           .presence_penalty = -1.5f,
                           .no_repeat_ngram_size = 3,
                           .bad_words_ids = {{4}, {5, 6, 7}},
                           .min_new_tokens = 2,
                           .forced_bos_token_id = 3,
                           .forced_eos_token_id = {1, 8},
                           .remove_invalid_values = true,
                           .suppress_tokens = {9},
                           .begin_suppress_tokens = {0, 10},
                           .short_circuit_length = 3,
                           .short_circuit_token = 6,
                           .allowed_token_ids = {3, 5},
                           .timestamp_begin = 90,
                           .max_initial_timestamp_index = 50,
                           .structured_outputs = R"({"grammar":1,"regex":"a"})"};
  r.stop_token_ids = {7}, r.ignore_eos = true;
  r.stop_strings = {"\n\n", "ROMEO:"}, r.stop_in_answer = true;
  r.chat = "{\"messages\":[{}]}", r.decoder_tokens = {2};
  r.audio = sha256("samples"), r.audio_start = 480000;
  r.text_of = "gemma3", r.adapter_name = "poet", r.adapter = sha256("adapter");
  r.previous = sha256("the turn before");
  return r;
}

TEST(Receipt, EveryBoundFieldIsNamed) {
  const Receipt r = full_receipt();
  std::set<std::string> covered;
  for (const Edit& e : edits()) {
    Receipt changed = r;
    e.change(changed);
    std::string text = with_old_hashes(r, changed);
    if (print(changed) == print(r)) continue;  // a swap of equals
    EXPECT_EQ(fields_of(findings(text)), e.field);
    EXPECT_NE(receipt_hash(changed), receipt_hash(r));
    covered.insert(e.field);
  }
  covered.insert(
      {"input.remove_invalid_values", "input.stop_in_answer", "input.ignore_eos"});  // they have one value
  // A changed salt changes other leaves, too: redact_test.cc.
  for (const Field& f : fields(r.format))
    EXPECT_TRUE(covered.contains(f.path()) || f.path() == kSaltPath) << f.path();
}

// receipt.24: an optional field stands, with a leaf, only where it has an effect.
TEST(Receipt, OptionalFieldsStandWhereTheyHaveAnEffect) {
  Receipt without = toy_receipt(), full = full_receipt();
  without.prompt_tokens = full.prompt_tokens = {5};  // forced_bos_token_id is of such prompts
  for (const Field& f : fields(full.format)) {
    if (!f.optional || f.path() == kSaltPath) continue;
    const std::string member = "\"" + std::string(f.key) + "\": ", leaf = "\"" + f.path() + "\": ";
    const std::string value = write(f, full, Style::pretty);
    // One of these two without the other is a finding of its own (receipt.21).
    const bool pair = f.path().starts_with("input.short_circuit_");
    const std::string most = "input.max_initial_timestamp_index ", both = "input.short_circuit_token ";
    const std::string changed = "digests." + f.path() + " receipt_hash", lacks = pair ? both : "";
    EXPECT_EQ(print(without).find(member), std::string::npos);
    EXPECT_EQ(print(without).find(leaf), std::string::npos);
    std::string lone = print(without), removed = print(full), neutral = removed;
    const std::string section = "\"" + std::string(f.section) + "\": {";
    replace(lone, section, section + member + value + ",");
    EXPECT_EQ(fields_of(findings(lone)), (f.path() + " " == most ? most : lacks) + changed);
    replace(removed, ",\n    " + member + value, "");
    EXPECT_EQ(fields_of(findings(removed)), (f.key == "timestamp_begin" ? most : lacks) + changed);
    replace(neutral, member + value, member + write(f, without, Style::pretty));
    EXPECT_EQ(findings(neutral).front().field, f.path());
    EXPECT_EQ(findings(neutral).front().expected, "no such member where it has no effect");
  }
  Receipt back;
  ASSERT_EQ(fields_of(*validate(print(full), "r.json", &back)), "");
  EXPECT_EQ(back.previous, full.previous);
  EXPECT_EQ(print(back), print(full));
}

TEST(Receipt, EveryDigestIsNamed) {
  const Receipt r = full_receipt();
  const std::string text = print(r);
  std::vector<std::string> names = leaf_names(r);
  std::vector<Digest> d = leaves(r);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string changed = text, from = "\"" + names[i] + "\": \"" + to_hex(d[i]);
    replace(changed, from, from.substr(0, from.size() - 1) + (from.back() == '0' ? "1" : "0"));
    EXPECT_EQ(fields_of(findings(changed)), "digests." + names[i]);
  }
  std::string changed = text;
  replace(changed, to_hex(receipt_hash(r)), to_hex(sha256("x")));
  EXPECT_EQ(fields_of(findings(changed)), "receipt_hash");
}

TEST(Receipt, EveryExecutionFieldIsNamed) {
  const Receipt r = toy_receipt();
  for (const auto& [key, value] : r.execution) {
    std::string changed = print(r);
    replace(changed, "\"" + key + "\": \"" + value + "\"", "\"" + key + "\": \"other\"");
    EXPECT_EQ(fields_of(findings(changed)), "execution." + key + " (informational)");
  }
  std::string changed = print(r), hash = to_hex(merkle_root(execution_leaves(r.execution)));
  replace(changed, hash, to_hex(sha256("x")));
  EXPECT_EQ(fields_of(findings(changed)), "execution_hash (informational)");
}

// A self-consistent forgery: hashes recomputed after the change. What needs no model is found by
// rule.
TEST(Receipt, RulesHoldUnderRecomputedHashes) {
  auto forged = [](auto change) {
    Receipt r = toy_receipt(5, {});
    change(r);
    return fields_of(findings(print(r)));
  };
  EXPECT_EQ(forged([](Receipt& r) { r.tensors[0].sha256[0] ^= 1; }), "model.weights");
  EXPECT_EQ(forged([](Receipt& r) { std::swap(r.tensors[0], r.tensors[1]); }), "model.tensors[1].name");
  EXPECT_EQ(forged([](Receipt& r) { r.tensors[1].name = "embed"; }), "model.tensors[1].name");
  EXPECT_EQ(forged([](Receipt& r) { r.tensors[1].dtype = "bf17"; }), "model.tensors[1].dtype");
  EXPECT_EQ(forged([](Receipt& r) { r.tensors[0].shape[1] = -2; }), "model.tensors[0].shape[1]");
  EXPECT_EQ(forged([](Receipt& r) { r.prompt_tokens[2] = -1; }), "input.tokens[2]");
  EXPECT_EQ(forged([](Receipt& r) { r.prompt_tokens.clear(); }), "input.tokens");
  EXPECT_EQ(forged([](Receipt& r) { r.operation_set = "fast"; }), "program.operation_set");
  EXPECT_EQ(forged([](Receipt& r) { r.sampling.temperature = 0; }), "input.temperature");
  EXPECT_EQ(forged([](Receipt& r) { r.sampling.top_p = 1.5f; }), "input.top_p");
  EXPECT_EQ(forged([](Receipt& r) { r.sampling.top_k = -3; }), "input.top_k");
  EXPECT_EQ(forged([](Receipt& r) { r.max_new_tokens = 0; }), "input.max_new_tokens");
  EXPECT_EQ(forged([](Receipt& r) { r.max_new_tokens = 4; }), "output.tokens");
  EXPECT_EQ(forged([](Receipt& r) { r.max_new_tokens = 6; }), "output.tokens");
  EXPECT_EQ(forged([](Receipt& r) { r.finish_reason = "stop"; }), "output.finish_reason");
  EXPECT_EQ(forged([](Receipt& r) { r.finish_reason = "end"; }), "output.finish_reason");
  EXPECT_EQ(forged([](Receipt& r) { r.logits.pop_back(); }), "output.logits");
  EXPECT_EQ(forged([](Receipt& r) { r.tokens.clear(), r.logits.clear(); }), "output.tokens");
  EXPECT_EQ(forged([](Receipt& r) { r.stop_tokens = {99, 98}; }), "input.stop_tokens[1]");
  EXPECT_EQ(forged([](Receipt& r) { r.stop_tokens = {99, 99}; }), "input.stop_tokens[1]");
  // Format 1 allowed both.
  EXPECT_EQ(forged([](Receipt& r) { r.format = 1, r.stop_tokens = {99, 98}; }), "");
}

// receipt.21: parameters that decide nothing have one value.
TEST(Receipt, NothingDrawnIsOneSpelling) {
  auto greedy = [](auto change) {
    Receipt r = toy_receipt(5, {});
    r.sampling = {};
    change(r.sampling);
    return fields_of(findings(print(r)));
  };
  using P = sample::Params;
  EXPECT_EQ(greedy([](P&) {}), "");
  EXPECT_EQ(greedy([](P& p) { p.temperature = 0.5f; }), "input.temperature");
  EXPECT_EQ(greedy([](P& p) { p.top_k = 3; }), "input.top_k");
  EXPECT_EQ(greedy([](P& p) { p.top_p = 0.5f; }), "input.top_p");
  EXPECT_EQ(greedy([](P& p) { p.seed = 7; }), "input.seed");
}

// receipt.21: what has no effect is not said, and lists have one order.
TEST(Receipt, SettingsHaveOneSpelling) {
  const auto stated = [](auto change) {
    Receipt r = toy_receipt(5, {98, 99});
    change(r, r.sampling.processors);
    return fields_of(findings(print(r)));
  };
  using S = sample::Processors;
  EXPECT_EQ(stated([](Receipt&, S& s) { s.suppress_tokens = {3, 3}; }), "input.suppress_tokens[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) {
              s.begin_suppress_tokens = {4, 3};
            }),
            "input.begin_suppress_tokens[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.forced_eos_token_id = {4, 3}; }), "input.forced_eos_token_id[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.bad_words_ids = {{4, 1}, {4}}; }), "input.bad_words_ids[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.bad_words_ids = {{4}, {98}}; }), "input.bad_words_ids[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.bad_words_ids = {{4}, {98, 99}}; }), "");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.min_new_tokens = 6; }), "input.min_new_tokens");
  EXPECT_EQ(stated([](Receipt& r, S& s) { r.stop_tokens = {}, s.min_new_tokens = 1; }),
            "input.min_new_tokens");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.forced_bos_token_id = 1; }), "input.forced_bos_token_id");
  const auto short_circuit = [&](int64_t length, int32_t token) {
    return stated([&](Receipt&, S& s) { s.short_circuit_length = length, s.short_circuit_token = token; });
  };
  EXPECT_EQ(short_circuit(4, 1), "");
  EXPECT_EQ(short_circuit(5, 1), "input.short_circuit_length");
  EXPECT_EQ(short_circuit(0, 1), "input.short_circuit_token");
  EXPECT_EQ(short_circuit(4, -1), "input.short_circuit_token");
  EXPECT_EQ(stated([](Receipt& r, S&) { r.stop_strings = {"b", "a"}; }), "input.stop_strings[1]");
  EXPECT_EQ(stated([](Receipt& r, S&) { r.stop_strings = {""}; }), "input.stop_strings[0]");
  EXPECT_EQ(stated([](Receipt& r, S&) { r.stop_in_answer = true; }), "input.stop_in_answer");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.repetition_penalty = 0; }), "input.repetition_penalty");
  EXPECT_EQ(stated([](Receipt& r, S&) { r.sampling.min_p = 2; }), "input.min_p");
  const auto greedy = [&](auto change) {
    return stated([&](Receipt& r, S&) { r.sampling = {}, change(r.sampling); });
  };
  EXPECT_EQ(greedy([](sample::Params& p) { p.min_p = 0.5f; }), "input.min_p");
  EXPECT_EQ(greedy([](sample::Params& p) { p.epsilon_cutoff = 0.5f; }), "input.epsilon_cutoff");
  EXPECT_EQ(greedy([](sample::Params& p) { p.stream = 1; }), "input.stream");
  EXPECT_EQ(greedy([](sample::Params& p) { p.processors.repetition_penalty = 2; }), "");
}

// receipt.13: whether a stop string ends the answer only the tokenizer knows.
TEST(Receipt, AStopStringMayEndAnAnswerEarly) {
  Receipt r = toy_receipt(5, {98, 99});
  r.max_new_tokens = 9;
  EXPECT_EQ(fields_of(findings(print(r))), "output.tokens");
  r.finish_reason = "stop";
  EXPECT_EQ(fields_of(findings(print(r))), "output.tokens");
  r.stop_strings = {"x"};
  EXPECT_EQ(fields_of(findings(print(r))), "");
  r.finish_reason = "length";
  EXPECT_EQ(fields_of(findings(print(r))), "output.tokens");
}

TEST(Receipt, StructureIsNamed) {
  const std::string text = print(toy_receipt());
  auto edited = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    replace(changed, from, to);
    return fields_of(findings(changed));
  };
  EXPECT_EQ(edited("\"top_k\": 9", "\"top_k\": 9, \"top_j\": 1"), "input.top_j");
  EXPECT_EQ(edited("\"top_k\": 9", "\"top_k\": 9, \"top_k\": 9"), "input.top_k");
  EXPECT_EQ(edited("\"top_k\": 9,", ""), "input.top_k");
  EXPECT_EQ(edited("\"top_k\": 9", "\"top_k\": \"9\""), "input.top_k");
  EXPECT_EQ(edited("\"top_k\": 9", "\"top_k\": 9.0"), "input.top_k");
  EXPECT_EQ(edited("\"top_k\": 9", "\"top_k\": 9000000000"), "input.top_k");
  EXPECT_EQ(edited("\"temperature\": \"0.8\"", "\"temperature\": 0.8"), "input.temperature");
  EXPECT_EQ(edited("\"temperature\": \"0.8\"", "\"temperature\": \"0.80\""), "input.temperature");
  EXPECT_EQ(edited("\"temperature\": \"0.8\"", "\"temperature\": \"inf\""), "input.temperature");
  EXPECT_EQ(edited("\"seed\": \"", "\"seed\": \"0"), "input.seed");
  EXPECT_EQ(edited("\"do_sample\": true", "\"do_sample\": \"true\""), "input.do_sample");
  EXPECT_EQ(edited("\"output\": {", "\"outputs\": {"), "outputs output");
  EXPECT_EQ(
      edited("invar-receipt 2", "invar-receipt 1"),
      "program.recipe program.profile digests.program.recipe digests.program.profile schema receipt_hash");
  EXPECT_EQ(edited("invar-receipt 2", "invar-receipt 3"), "schema");
  EXPECT_EQ(edited("invar-receipt 2", "a receipt"), "schema");
  EXPECT_EQ(edited("\"schema\": \"invar-receipt 2\",", ""), "schema");
  EXPECT_EQ(edited("\"dtype\": \"bf16\"", "\"dtypes\": \"bf16\""),
            "model.tensors[0].dtypes model.tensors[0].dtype");
  EXPECT_EQ(edited("\"receipt_hash\": \"", "\"receipt_hash\": \"f"), "receipt_hash");
  EXPECT_EQ(edited("\"threads\": \"2\"", "\"threads\": 2"), "execution.threads (informational)");
}

TEST(Receipt, NotAReceiptAtAll) {
  auto message = [](std::string_view text) {
    auto f = validate(text, "r.json");
    return f ? "no error" : f.error().message;
  };
  EXPECT_EQ(message("{\"schema\": \n oops"), "r.json:2:2: not JSON: expected a value");
  EXPECT_EQ(message("{\"a\": 1}"), "r.json: not a receipt: it has neither \"schema\" nor \"receipt_hash\"");
  EXPECT_EQ(message("[]"), "r.json: not a receipt: it has neither \"schema\" nor \"receipt_hash\"");
  for (const char* ree :
       {R"({"receipt_hash": "0", "tokens_hash": "1"})", R"({"execution": {"ree_version": "0.4.0"}})"})
    EXPECT_EQ(message(ree).find("r.json: a receipt of Gensyn's REE: "), 0u) << message(ree);
  EXPECT_EQ(message("{\"schema\": 3}"), "no error");
  EXPECT_EQ(message("{\"schema\": \"invar-training-receipt 1\"}"),
            "r.json: a receipt of a training (spec/training.md): its steps are executed by `python -m "
            "invar.training verify r.json`");
  Receipt later = toy_receipt();
  later.format = 3;
  EXPECT_EQ(
      message(print(later)),
      "r.json: the receipt has the format \"invar-receipt 3\", which this build does not know; it knows "
      "\"invar-receipt 1\", \"invar-receipt 2\" and \"invar-tensor-receipt 1\": use a newer invar");
}

// Every position of a printed receipt, with each of several characters, and with the character
// removed or doubled: not JSON, or a finding, or the same content.
TEST(Receipt, EverySingleCharacterEditIsFound) {
  const Receipt r = toy_receipt(2);
  const std::string text = print(r);
  int not_json = 0, found = 0, same = 0;
  auto check = [&](const std::string& changed, size_t at) {
    Receipt back{};
    auto f = validate(changed, "r.json", &back);
    if (!f) {
      ASSERT_EQ(f.error().code, Code::bad_input);
      ++not_json;
    } else if (!f->empty()) {
      ++found;
    } else {
      ASSERT_EQ(print(back), text) << "an edit at " << at
                                   << " was not found: " << changed.substr(at - 20, 60);
      ++same;
    }
  };
  constexpr int kStep = INVAR_EMULATED ? 17 : 1;
  for (size_t at = 0; at < text.size(); at += kStep) {
    for (char c : std::string("0a\",}")) {
      if (c == text[at]) continue;
      std::string changed = text;
      changed[at] = c;
      check(changed, at);
    }
    check(std::string(text).erase(at, 1), at);
    check(std::string(text).insert(at, 1, text[at]), at);
  }
  EXPECT_GT(found, 20000 / kStep);
  EXPECT_GT(not_json, 3000 / kStep);
  EXPECT_GT(same, 500 / kStep);  // white space
}

}  // namespace
}  // namespace invar::receipt
