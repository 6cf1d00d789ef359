// Tests of GGUF files: what is read, and what is refused.
#include <bit>
#include <random>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf/gguf_model.h"
#include "checkpoint/testing.h"

namespace invar::checkpoint {
namespace {

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

std::string little(uint64_t value, size_t width) {
  std::string out;
  for (size_t i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i);
  return out;
}
std::string gguf_text(const std::string& text) {
  return little(text.size(), 8) + text;
}
std::string text_pair(const std::string& key, const std::string& value) {
  return gguf_text(key) + little(8, 4) + gguf_text(value);
}
std::string size_pair(const std::string& key, uint32_t value) {
  return gguf_text(key) + little(4, 4) + little(value, 4);
}
std::string texts_pair(const std::string& key, const std::vector<std::string>& values) {
  std::string out = gguf_text(key) + little(9, 4) + little(8, 4) + little(values.size(), 8);
  for (const std::string& v : values) out += gguf_text(v);
  return out;
}
std::string tensor_info(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                        uint64_t offset) {
  std::string out = gguf_text(name) + little(dims.size(), 4);
  for (const uint64_t d : dims) out += little(d, 8);
  return out + little(type, 4) + little(offset, 8);
}

// A file with these pairs and tensors, each of them whole entries.
std::string gguf(const std::vector<std::string>& pairs, const std::vector<std::string>& tensors, size_t data,
                 uint32_t version = 3, size_t alignment = 32) {
  std::string out = "GGUF" + little(version, 4) + little(tensors.size(), 8) + little(pairs.size(), 8);
  for (const std::string& p : pairs) out += p;
  for (const std::string& t : tensors) out += t;
  out.resize((out.size() + alignment - 1) / alignment * alignment);
  return out + std::string(data, '\1');
}

std::vector<std::string> tiny_pairs() {
  return {
      text_pair("general.architecture", "llama"),    size_pair("llama.context_length", 64),
      size_pair("llama.embedding_length", 8),        size_pair("llama.block_count", 1),
      size_pair("llama.feed_forward_length", 12),    size_pair("llama.attention.head_count", 2),
      size_pair("llama.attention.head_count_kv", 1), text_pair("tokenizer.ggml.model", "gpt2"),
      text_pair("tokenizer.ggml.pre", "llama-bpe"),  texts_pair("tokenizer.ggml.tokens", {"a", "b", "ab"}),
      texts_pair("tokenizer.ggml.merges", {"a b"})};
}

class GgufTest : public FolderTest {
 protected:
  std::string error_of(const std::string& content) {
    put("m.gguf", content);
    const auto opened = open_gguf(path("m.gguf"));
    return opened ? "" : opened.error().message;
  }
};

TEST_F(GgufTest, ReadsPlacesAndValues) {
  put("m.gguf", gguf({size_pair("general.alignment", 64), texts_pair("t", {"x", "", "yz"})},
                     {tensor_info("a", {4, 3}, 1, 0), tensor_info("b", {64}, 8, 64)}, 64 + 68, 3, 64));
  const auto g = open_gguf(path("m.gguf"));
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->find("t")->strings(), (std::vector<std::string_view>{"x", "", "yz"}));
  EXPECT_EQ(g->find("general.alignment")->size(), 64u);
  const GgufTensor &a = g->tensors.at("a"), &b = g->tensors.at("b");
  EXPECT_EQ(a.shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(a.length, 24u);
  EXPECT_EQ(b.length, 68u);
  EXPECT_EQ(b.offset - a.offset, 64u);
  EXPECT_EQ(a.offset % 64, 0u);
}

TEST_F(GgufTest, RefusesWrongFiles) {
  const std::string one = tensor_info("a", {4}, 0, 0);
  const std::string endless = gguf_text("k") + little(9, 4) + little(8, 4) + little(UINT64_MAX, 8);
  const std::string wide = gguf_text("k") + little(9, 4) + little(10, 4) + little(UINT64_MAX / 4, 8);
  struct {
    std::string content, reason;
  } cases[] = {
      {"", "does not begin with \"GGUF\""},
      {"GGU", "does not begin with \"GGUF\""},
      {"GGUF", "ends within the version"},
      {gguf({}, {}, 0, 1), "version 1 of GGUF is not covered"},
      {gguf({}, {}, 0, 0x03000000), "big-endian"},
      {gguf({size_pair("k", 1), size_pair("k", 1)}, {}, 0), "'k' is given twice"},
      {gguf({endless}, {}, 0), "ends within the key 'k'"},
      {gguf({wide}, {}, 0), "the key 'k'"},
      {gguf({gguf_text("k") + little(77, 4)}, {}, 0), "the type 77"},
      {gguf({gguf_text("k") + little(9, 4) + little(9, 4) + little(1, 8)}, {}, 0), "in lists"},
      {gguf({gguf_text("")}, {}, 0), "is empty"},
      {gguf({size_pair("general.alignment", 33)}, {}, 0), "power of two"},
      {gguf({}, {one, one}, 16), "overlap"},
      {gguf({}, {one, tensor_info("a", {4}, 0, 32)}, 48), "tensor 'a' is given twice"},
      {gguf({}, {one}, 8), "it is truncated"},
      {gguf({}, {one}, 80), "64 bytes at the end belong to no tensor"},
      {gguf({}, {tensor_info("a", {4}, 0, 64)}, 80), "64 bytes before it belong to no tensor"},
      {gguf({}, {tensor_info("a", {4}, 0, 8)}, 24), "no multiple of the alignment"},
      {gguf({}, {tensor_info("a", {4}, 0, UINT64_MAX - 31)}, 16), "beyond"},
      {gguf({}, {tensor_info("a", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0)}, 16),
       "larger than any file"},
      {gguf({}, {tensor_info("a", {UINT64_MAX}, 0, 0)}, 16), "not a size"},
      {gguf({}, {tensor_info("a", {0}, 0, 0)}, 16), "not a size"},
      {gguf({}, {tensor_info("a", {1, 1, 1, 1, 1}, 0, 0)}, 16), "5 dimensions"},
      {gguf({}, {tensor_info("a", {33}, 2, 0)}, 36), "no blocks of 32"},
      {gguf({size_pair("split.count", 2), size_pair("split.no", 0)}, {}, 0), "its name does not end so"},
  };
  for (const auto& c : cases) expect_contains(error_of(c.content), c.reason);
}

TEST_F(GgufTest, RefusesWhatOtherArchitecturesHave) {
  const auto error = [&](std::vector<std::string> pairs, const std::string& more) {
    pairs.push_back(more);
    put("m.gguf", gguf(pairs, {tensor_info("token_embd.weight", {8, 3}, 0, 0)}, 96));
    const auto folder = read_gguf(path("m.gguf"));
    return folder ? "" : folder.error().message;
  };
  EXPECT_EQ(error(tiny_pairs(), size_pair("general.file_type", 0)), "");
  expect_contains(error(tiny_pairs(), size_pair("llama.something_new", 1)),
                  "the key 'llama.something_new' is not covered for this architecture");
  expect_contains(error(tiny_pairs(), text_pair("llama.rope.scaling.type", "new")), "'new' is not covered");
  expect_contains(error({}, text_pair("general.architecture", "rwkv7")), "'rwkv7' is not covered in GGUF");
  expect_contains(error({text_pair("general.type", "adapter")}, text_pair("general.architecture", "llama")),
                  "a whole model is");
  std::vector<std::string> other = tiny_pairs();
  other[8] = text_pair("tokenizer.ggml.pre", "unknown");
  expect_contains(error(other, size_pair("a", 1)), "tokenizer.ggml.pre = 'unknown' is not covered");
}

// Whatever bytes a file has, it is read or refused with one line.
TEST_F(GgufTest, AnyBytesAreReadOrRefused) {
  const std::string whole = gguf(tiny_pairs(), {tensor_info("token_embd.weight", {8, 3}, 0, 0)}, 96);
  std::mt19937_64 random(20261129);
  size_t refused = 0;
  const int rounds = 1500;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = whole;
    if (round % 3 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      for (uint64_t i = 0; i <= random() % 3; ++i)
        bytes[random() % bytes.size()] = static_cast<char>(round % 3 == 1 ? random() : 0xff * (random() & 1));
    }
    put("m.gguf", bytes);
    const auto folder = read_gguf(path("m.gguf"));
    if (folder) continue;
    ++refused;
    const Error& e = folder.error();
    EXPECT_TRUE(e.code == Code::bad_input || e.code == Code::not_covered) << e.message;
    EXPECT_EQ(e.message.find('\n'), std::string::npos) << e.message;
    expect_contains(e.message, "m.gguf");
  }
  EXPECT_GT(refused, rounds / 2u);
}

}  // namespace
}  // namespace invar::checkpoint
