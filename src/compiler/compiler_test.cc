// Tests of compiling small graphs to plans, and of refusals.
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/text/display.h"
#include "compiler/compiler.h"
#include "plan/testing.h"

namespace invar::compiler {
namespace {

constexpr int32_t kF32 = 1, kI64 = 7, kF16 = 10, kBf16 = 16;
const std::vector<onnx::Dimension> kRows{{-1, "batch"}, {-1, "seq"}, {4, ""}};

onnx::Node node(std::string op, std::vector<std::string> in, std::string out,
                std::map<std::string, onnx::AttrValue> attributes = {}) {
  return {out, std::move(op), "", std::move(in), {out}, std::move(attributes), {}};
}

onnx::TensorRef constant(std::string name, int32_t type, std::vector<int64_t> shape, std::string bytes) {
  onnx::TensorRef t;
  t.name = std::move(name);
  t.data_type = type;
  t.shape = std::move(shape);
  t.inline_data = std::move(bytes);
  return t;
}

onnx::TensorRef stored(std::string name, int32_t type, std::vector<int64_t> shape, uint64_t offset,
                       uint64_t length) {
  onnx::TensorRef t;
  t.name = std::move(name);
  t.data_type = type;
  t.shape = std::move(shape);
  t.file = "weights";
  t.offset = offset;
  t.length = length;
  return t;
}

onnx::Graph graph(std::vector<onnx::Node> nodes) {
  onnx::Graph g;
  g.name = "test";
  g.opsets = {{"", 23}, {"com.example", 1}};
  g.inputs = {{"x", kF32, true, kRows}, {"ids", kI64, true, {{-1, "batch"}, {-1, "seq"}}}};
  g.outputs = {{nodes.back().outputs[0], kF32, false, {}}};
  g.nodes = std::move(nodes);
  return g;
}

class Compile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "invar ir XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::string bytes(256, '\0');
    for (int i = 0; i < 256; ++i) bytes[i] = static_cast<char>(i);
    std::ofstream(folder_ + "/weights", std::ios::binary) << bytes;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Result<CompiledProgram> run(const onnx::Graph& g, int threads = 1, int opt = kMaxOptLevel) {
    return compile(g, {folder_, threads, "c.bin", opt, ""});
  }
  Error refusal(const onnx::Graph& g) {
    Result<CompiledProgram> r = run(g);
    EXPECT_FALSE(r);
    return r ? Error{Code::internal, "compiled"} : r.error();
  }
  std::string folder_;
};

onnx::Graph embedding() {
  onnx::Graph g = graph({node("Cast", {"table"}, "wide", {{"to", int64_t{kF32}}}),
                         node("Gather", {"wide", "ids"}, "rows"), node("Mul", {"rows", "two"}, "scaled"),
                         node("Add", {"scaled", "x"}, "y")});
  g.initializers = {stored("table", kBf16, {8, 4}, 10, 64),
                    constant("two", kF32, {1}, std::string("\0\0\0\x40", 4))};
  return g;
}

TEST_F(Compile, MakesAPlan) {
  Result<CompiledProgram> r = run(embedding());
  ASSERT_TRUE(r) << r.error().message;
  const plan::Plan& p = r->plan;
  EXPECT_EQ(p.numerics, plan::kNumerics);
  EXPECT_EQ(plan::symbol_texts(p), (std::vector<std::string>{"batch", "seq"}));
  ASSERT_EQ(p.nodes.size(), 3u);
  EXPECT_EQ(p.nodes[0].op, "gather");
  EXPECT_EQ(p.nodes[0].in,
            (std::vector<plan::Operand>{{plan::Operand::weight, 0}, {plan::Operand::value, 1}}));
  EXPECT_EQ(std::get<std::string>(p.nodes[1].attrs.at("numerics")), "ieee");
  ASSERT_EQ(p.weights.size(), 2u);
  EXPECT_EQ(p.weights[0].name, "table");
  EXPECT_EQ(p.weights[0].dtype, DType::bf16);
  EXPECT_EQ(p.weights[0].offset, 10u);
  std::string bytes(64, '\0');
  for (int i = 0; i < 64; ++i) bytes[i] = static_cast<char>(10 + i);
  EXPECT_EQ(p.weights[0].sha256, sha256(bytes));
  EXPECT_EQ(p.weights[1].file, "c.bin");
  EXPECT_EQ(r->constants, std::string("\0\0\0\x40", 4));
  EXPECT_EQ(p.weights[1].sha256, sha256(r->constants));
  EXPECT_EQ(p.outputs[0].name, "y");
}

TEST_F(Compile, TakesPresumedDigestsOfExternalTensors) {
  const PresumedDigests presumed = {{"table", sha256("claimed")}, {"two", sha256("of no file")}};
  Options options{folder_, 1, "c.bin", kMaxOptLevel, ""};
  DigestCache hashed;
  options.presumed = &presumed, options.hashed = &hashed;
  Result<CompiledProgram> r = compile(embedding(), options);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->plan.weights[0].sha256, sha256("claimed"));
  EXPECT_EQ(r->plan.weights[1].sha256, sha256(r->constants));
  EXPECT_FALSE(hashed.has(*MappedFile::open(folder_ + "/weights"), 10, 64, sha256("claimed")));
  std::filesystem::resize_file(folder_ + "/weights", 20);  // still they have to be there
  EXPECT_FALSE(compile(embedding(), options));
}

TEST_F(Compile, ReadsBackWhatItPrints) {
  Result<CompiledProgram> r = run(embedding());
  ASSERT_TRUE(r);
  std::string text = plan::print(r->plan);
  Result<plan::Plan> again = plan::parse(text, "plan");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(plan::print(*again), text);
}

TEST_F(Compile, IsTheSameEachTimeAndForAnyThreads) {
  Result<CompiledProgram> first = run(embedding());
  ASSERT_TRUE(first);
  Result<std::string> text = emit(embedding(), {folder_, 1, "c.bin", kMaxOptLevel, ""}, "plan");
  ASSERT_TRUE(text);
  for (int threads : {0, 1, 2, 5}) {
    Result<CompiledProgram> other = run(embedding(), threads);
    ASSERT_TRUE(other);
    EXPECT_EQ(plan::print(other->plan), plan::print(first->plan));
    Result<std::string> again = emit(embedding(), {folder_, threads, "c.bin", kMaxOptLevel, ""}, "plan");
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *text);
  }
}

TEST_F(Compile, ProgramDigestForgetsWhereWeightsLie) {
  onnx::Graph moved = embedding();
  std::ofstream(folder_ + "/other", std::ios::binary) << std::string(1, 'x') + [&] {
    std::string bytes(64, '\0');
    for (int i = 0; i < 64; ++i) bytes[i] = static_cast<char>(10 + i);
    return bytes;
  }();
  moved.initializers[0].file = "other";
  moved.initializers[0].offset = 1;
  Result<CompiledProgram> a = run(embedding()), b = run(moved);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(plan::digest(a->plan), plan::digest(b->plan));
  moved.initializers[0].offset = 0;
  Result<CompiledProgram> c = run(moved);
  ASSERT_TRUE(c);
  EXPECT_NE(plan::digest(a->plan), plan::digest(c->plan));
}

TEST_F(Compile, ConstantsLieApartAndAligned) {
  onnx::Graph g = graph({node("Add", {"x", "a"}, "u"), node("Add", {"u", "b"}, "y")});
  g.initializers = {constant("a", kF32, {1}, "aaaa"), constant("b", kF32, {1}, "bbbb")};
  Result<CompiledProgram> r = run(g);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->constants, "aaaa" + std::string(60, '\0') + "bbbb");
  EXPECT_EQ(r->plan.weights[1].offset, 64u);
}

TEST_F(Compile, ConstantNodesAreWeights) {
  onnx::Graph g = graph({node("Constant", {}, "c", {{"value", constant("", kF32, {1}, "abcd")}}),
                         node("Add", {"x", "c"}, "y")});
  Result<CompiledProgram> r = run(g);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->plan.weights[0].name, "c");
}

TEST_F(Compile, RefusesWithTheWholeList) {
  onnx::Graph g = graph({node("Bernoulli", {"x"}, "a"), node("Sin", {"a"}, "b"), node("Erf", {"b"}, "c"),
                         node("Bernoulli", {"c"}, "y")});
  g.nodes[2].domain = "com.example";
  Error e = refusal(g);
  EXPECT_EQ(e.code, Code::not_covered);
  EXPECT_EQ(printable(e),
            "test: 3 nodes are outside the guarantee:\n"
            "  Bernoulli (domain ai.onnx opset 23, node \"a\" and 1 more): no reproducible kernel\n"
            "  Erf (domain com.example opset 1, node \"c\"): no reproducible kernel: export the model "
            "with operators of ONNX, or with this one as a function in the file");
}

TEST_F(Compile, NamesCannotForgeLines) {
  onnx::Graph g = graph({node("Softplus\n  Fine (x): ok", {"x"}, "a\r\n"), node("Bernoulli", {"x"}, "y\0"),
                         node("Add", {"a\r\n", "y\0"}, "z")});
  g.name = "two\nlines";
  Error e = refusal(g);
  const std::string said = printable(e);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
  EXPECT_NE(said.find("two\\x0alines: 2 nodes"), std::string::npos) << said;
}

TEST_F(Compile, AGraphInAnAttributeIsNamed) {
  onnx::Graph g = graph({node("Sin", {"x"}, "y")});
  g.nodes[0].other_attributes = {{"body", "graph"}};
  Error e = refusal(g);
  EXPECT_EQ(e.code, Code::not_covered);
  EXPECT_NE(e.message.find("attribute \"body\" of kind graph"), std::string::npos) << e.message;
}

TEST_F(Compile, MistakesOfTheModelAreBadInput) {
  onnx::Graph g = graph({node("Add", {"x", "w"}, "y")});
  g.initializers = {constant("w", kF32, {3}, std::string(12, '\0'))};
  EXPECT_EQ(refusal(g).code, Code::bad_input);
}

TEST_F(Compile, WeightsMustLieInTheirFiles) {
  onnx::Graph g = embedding();
  g.initializers[0].offset = 250;
  Error e = refusal(g);
  EXPECT_EQ(e.code, Code::bad_input);
  EXPECT_NE(e.message.find("weights: has 256 bytes"), std::string::npos) << e.message;
  g.initializers[0].offset = ~uint64_t{0} - 3;
  EXPECT_EQ(refusal(g).code, Code::bad_input);
  g.initializers[0].offset = 0;
  g.initializers[0].length = 63;
  EXPECT_EQ(refusal(g).code, Code::bad_input);
  g.initializers[0].length = 64;
  g.initializers[0].file = "missing";
  EXPECT_EQ(refusal(g).code, Code::bad_input);
}

TEST_F(Compile, DimensionsGetNamesThatAPlanCanHold) {
  onnx::Graph g = graph({node("Sin", {"x"}, "y")});
  g.inputs[0].shape[0].name = "Batch-Size";
  g.inputs[0].shape[1].name = "";
  g.inputs[1].shape[0].name = "size";
  g.inputs[1].shape[1].name = "2 * size";
  auto program = compile(g, {folder_, 1, "c.bin", kMaxOptLevel, ""});
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(plan::symbol_texts(program->plan),
            (std::vector<std::string>{"batch_size", "size_2", "size", "2*size"}));
}

TEST_F(Compile, AnOutputMustBeWhatTheModelDeclares) {
  onnx::Graph g = graph({node("Sin", {"x"}, "y")});
  g.outputs[0] = {"y", kF32, true, {{-1, "batch"}, {-1, "seq"}, {5, ""}}};
  std::vector<std::string> remarks;
  Options options;
  options.remark = [&](const std::string& text) { remarks.push_back(text); };
  Result<CompiledProgram> r = compile(g, options);
  ASSERT_TRUE(r) << r.error().message;
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("output \"y\""), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[0].find("[batch, seq, 5]"), std::string::npos) << remarks[0];
  g.outputs[0] = {"y", kF16, true, {{-1, "batch"}, {-1, "seq"}, {4, ""}}};
  Error e = refusal(g);
  EXPECT_EQ(e.code, Code::bad_input);
  EXPECT_NE(e.message.find("output \"y\""), std::string::npos) << e.message;
}

double cpu_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

TEST_F(Compile, TimeIsLinearInTheNodes) {
  auto seconds = [&](int nodes) {
    std::vector<onnx::Node> chain;
    for (int i = 0; i < nodes; ++i)
      chain.push_back(node("Add", {i ? "v" + std::to_string(i - 1) : "x", "x"}, "v" + std::to_string(i)));
    onnx::Graph g = graph(std::move(chain));
    double start = cpu_seconds();
    Result<CompiledProgram> r = run(g);
    double end = cpu_seconds();
    EXPECT_TRUE(r && static_cast<int>(r->plan.nodes.size()) == nodes);
    return end - start;
  };
  seconds(100);
  double small = seconds(2500), large = seconds(10000);
  EXPECT_LT(large, 10 * small);  // 4 if linear, 16 if quadratic
  RecordProperty("milliseconds_for_10000_nodes", static_cast<int>(1000 * large));
}

// Every graph imports, and compiling it yields a plan or an error.
// Long because it lists the operators and attributes of the random graphs.
TEST_F(Compile, ImportIsTotal) {
  std::mt19937 random(7);
  int compiled = 0;
  const char* ops[] = {"Add",
                       "Mul",
                       "Sin",
                       "Cos",
                       "Sigmoid",
                       "Add",
                       "Mul",
                       "MatMul",
                       "Gather",
                       "Cast",
                       "Reshape",
                       "Unsqueeze",
                       "Squeeze",
                       "Transpose",
                       "Softmax",
                       "ArgMax",
                       "Attention",
                       "If",
                       "Loop",
                       "Scan",
                       "GridSample",
                       "AffineGrid",
                       "RoiAlign",
                       "DeformConv",
                       "Col2Im",
                       "MaxUnpool",
                       "Det",
                       "DFT",
                       "STFT",
                       "MelWeightMatrix",
                       "NonZero",
                       "Unique",
                       "NonMaxSuppression",
                       "TfIdfVectorizer",
                       "RotaryEmbedding",
                       "RMSNormalization",
                       "Gemm",
                       "Swish",
                       "Identity",
                       "Slice",
                       "Split",
                       "Concat",
                       "Expand",
                       "Tile",
                       "Pad",
                       "DepthToSpace",
                       "Trilu",
                       "ReverseSequence",
                       "OneHot",
                       "Range",
                       "ConstantOfShape",
                       "EyeLike",
                       "Loop"};
  const char* names[] = {"axis",         "to",        "perm",  "alpha",  "num_heads", "q_num_heads",
                         "kv_num_heads", "is_causal", "scale", "starts", "ends",      "axes",
                         "pads",         "blocksize", "mode",  "value"};
  for (int round = 0; round < 2000; ++round) {
    auto pick = [&](int n) { return static_cast<int>(random() % n); };
    std::vector<std::string> values{"x", "x", "x", "x", "w", "ids", "c", "", "absurd"};
    std::vector<onnx::Node> nodes;
    for (int n = 1 + pick(5); n > 0; --n) {
      onnx::Node made = node(ops[pick(std::size(ops))], {}, "v" + std::to_string(values.size()));
      for (int i = pick(4) ? 1 + pick(2) : pick(8); i > 0; --i)
        made.inputs.push_back(values[pick(values.size())]);
      for (int i = pick(4) ? 0 : pick(4); i > 0; --i) {
        onnx::AttrValue v = int64_t{pick(20) - 3};
        if (pick(5) == 0) v = 0.5f;
        if (pick(5) == 0) v = std::vector<int64_t>{pick(3) - 1, 0};
        if (pick(9) == 0) v = std::vector<std::string>{"a\"\n\0"};
        made.attributes[names[pick(std::size(names))]] = v;
      }
      if (pick(3) == 0) made.outputs.push_back(made.outputs[0] + "b");
      for (const std::string& out : made.outputs) values.push_back(out);
      nodes.push_back(std::move(made));
    }
    onnx::Graph g = graph(std::move(nodes));
    g.opsets[""] = pick(4) ? 23 : 11 + pick(20);
    g.inputs[0].data_type = pick(4) ? kF32 : pick(24);
    g.inputs[0].has_shape = pick(4) > 0;
    g.initializers = {stored("w", pick(3) ? kBf16 : pick(24), {8, 4}, 0, 64),
                      constant("c", pick(2) ? kI64 : 6, {2}, std::string(16, pick(3) ? '\xff' : '\0'))};
    Options options{folder_, 1, "c.bin", kMaxOptLevel, ""};
    const auto module = emit(g, options, "onnx");  // strings alone are refused before
    EXPECT_TRUE(module || module.error().code == Code::not_covered);
    Result<CompiledProgram> r = run(g);
    // A graph that compiles does so at every level.
    for (int level = 0; level < kMaxOptLevel; ++level) EXPECT_EQ(bool(run(g, 1, level)), bool(r));
    if (!r) {
      EXPECT_NE(r.error().code, Code::internal) << r.error().message;
    } else {
      ++compiled;
      std::string text = plan::print(r->plan);
      Result<plan::Plan> again = plan::parse(text, "plan");
      EXPECT_TRUE(again) << again.error().message << "\n" << text;
    }
  }
  EXPECT_GT(compiled, 20);
}

}  // namespace
}  // namespace invar::compiler
