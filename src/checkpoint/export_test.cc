// Tests of the export to ONNX.
#include "onnx/onnx.h"

#include <functional>

#include "base/file/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/testing.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, std::vector<int64_t>>;

class ExportTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    put("in/config.json", kTinyConfig);
    put("in/model.safetensors", bf16_file(tiny_tensors()));
  }
  void config_with(const char* patch) { put("in/config.json", tiny_config_with(patch)); }
  Result<std::string> run(bool colocate = false) {
    return export_checkpoint(path("in"), path("out"), {colocate});
  }
  Result<onnx::Graph> exported() {
    INVAR_TRY(std::string model, run());
    return onnx::read(model);
  }
  const onnx::Node* find(const onnx::Graph& g, const std::string& name) {
    for (const onnx::Node& n : g.nodes)
      if (n.name == name) return &n;
    return nullptr;
  }
};

TEST_F(ExportTest, TheShippedModel) {
  auto model = export_checkpoint(std::string(INVAR_SOURCE_DIR) + "/models/shakespeare-4m", path("out"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(*model, path("out/model.onnx"));
  auto g = onnx::read(*model);
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->inputs.size(), 2u + 2 * 5);
  EXPECT_EQ(g->outputs.size(), 1u + 2 * 5);
  EXPECT_EQ(g->initializers.size(), 47u + 2);  // the tensors, inv_freq, and the axis of Unsqueeze
  EXPECT_EQ(g->metadata.at("invar.max_position_embeddings"), "512");
  EXPECT_TRUE(fs::is_symlink(path("out/model-00001-of-00003.safetensors")));
}

TEST_F(ExportTest, WeightsPointIntoTheFile) {
  auto g = exported();
  ASSERT_TRUE(g) << g.error().message;
  const uint64_t size = fs::file_size(path("in/model.safetensors"));
  uint64_t total = 0;
  for (const onnx::TensorRef& t : g->initializers) {
    if (t.file.empty()) continue;
    EXPECT_EQ(t.file, "model.safetensors");
    EXPECT_EQ(t.data_type, onnx::kBFloat16);
    total += t.length;
    EXPECT_LE(t.offset + t.length, size);
  }
  EXPECT_EQ(total, 2u * (80 + 8 * 3 + 64 + 32 + 32 + 64 + 96 * 3));
}

TEST_F(ExportTest, LinksOrCopies) {
  ASSERT_TRUE(run());
  EXPECT_TRUE(fs::is_symlink(path("out/model.safetensors")));
  const std::string linked = *read_file(path("out/model.onnx"));
  ASSERT_TRUE(run());  // again over the link
  ASSERT_TRUE(run(true));
  EXPECT_FALSE(fs::is_symlink(path("out/model.safetensors")));
  EXPECT_EQ(*read_file(path("out/model.safetensors")), *read_file(path("in/model.safetensors")));
  ASSERT_TRUE(run(true));  // again over the copy
  ASSERT_TRUE(run());      // and back
  EXPECT_TRUE(fs::is_symlink(path("out/model.safetensors")));
  EXPECT_EQ(*read_file(path("out/model.onnx")), linked);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("out")), fs::directory_iterator()), 2);
}

TEST_F(ExportTest, IntoTheCheckpointItself) {
  for (bool colocate : {false, true}) {
    auto model = export_checkpoint(path("in"), path("in"), {colocate});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_FALSE(fs::is_symlink(path("in/model.safetensors")));
    EXPECT_TRUE(onnx::read(*model));
  }
  // A cache whose files are links keeps them.
  fs::create_directory(path("blobs"));
  fs::rename(path("in/model.safetensors"), path("blobs/b"));
  fs::create_symlink("../blobs/b", path("in/model.safetensors"));
  ASSERT_TRUE(export_checkpoint(path("in"), path("in")));
  EXPECT_EQ(fs::read_symlink(path("in/model.safetensors")), "../blobs/b");
}

TEST_F(ExportTest, TakesNothingAway) {
  put("out/model.safetensors", "precious");
  expect_error(run(), Code::bad_input, {"out/model.safetensors", "in the way"});
  put("out/model.onnx", "precious");
  expect_error(run(), Code::bad_input, {"out/model.onnx", "not made by invar export"});
  EXPECT_EQ(*read_file(path("out/model.safetensors")), "precious");
  EXPECT_EQ(*read_file(path("out/model.onnx")), "precious");
}

TEST_F(ExportTest, ARefusalWritesNothing) {
  config_with(R"({"sliding_window":8})");
  expect_error(run(), Code::not_covered, {"sliding_window"});
  EXPECT_FALSE(fs::exists(path("out")));
  expect_error(export_checkpoint(path("nothing"), path("out")), Code::bad_input, {"nothing", "not a folder"});
  config_with("{}");
  put("file", "");
  expect_error(export_checkpoint(path("in"), path("file/out")), Code::bad_input, {"file/out"});
}

TEST_F(ExportTest, TensorsMustFitTheConfig) {
  auto with = [&](const std::function<void(Tensors&)>& change, const std::string& dtype = "BF16") {
    Tensors tensors = tiny_tensors();
    change(tensors);
    put("in/model.safetensors", bf16_file(tensors, dtype));
    return run();
  };
  expect_error(with([](Tensors& t) { t.erase("model.norm.weight"); }), Code::bad_input,
               {"'model.norm.weight'", "missing"});
  expect_error(with([](Tensors& t) { t["model.norm.weight"] = {9}; }), Code::bad_input,
               {"'model.norm.weight'", "[9]", "[8]"});
  expect_error(with([](Tensors& t) { t["model.layers.1.mlp.up_proj.weight"] = {9}; }), Code::not_covered,
               {"'model.layers.1.mlp.up_proj.weight' has no place"});
  expect_error(with([](Tensors& t) { t["model.layers.0.self_attn.q_proj.bias"] = {8}; }), Code::not_covered,
               {"q_proj.bias"});
  expect_error(with([](Tensors&) {}, "I16"), Code::not_covered, {"stored as I16"});
  EXPECT_TRUE(with([](Tensors& t) { t["model.layers.0.self_attn.rotary_emb.inv_freq"] = {2}; }));
  EXPECT_TRUE(with([](Tensors&) {}, "F16"));
}

TEST_F(ExportTest, WhichTableTheHeadReads) {
  auto head_of = [&](bool tied, bool embed, bool head) -> std::string {
    config_with(tied ? "{}" : R"({"tie_word_embeddings":false})");
    Tensors tensors = tiny_tensors();
    if (!embed) tensors.erase("model.embed_tokens.weight");
    if (head) tensors["lm_head.weight"] = {10, 8};
    put("in/model.safetensors", bf16_file(tensors));
    auto g = exported();
    return g ? find(*g, "lm_head.weight.transposed")->inputs[0] : g.error().message;
  };
  EXPECT_EQ(head_of(true, true, false), "model.embed_tokens.weight.fp32");
  EXPECT_EQ(head_of(true, true, true), "lm_head.weight.fp32");  // equal or not: what is stored counts
  EXPECT_EQ(head_of(true, false, true), "lm_head.weight.fp32");
  EXPECT_EQ(head_of(false, true, true), "lm_head.weight.fp32");
  EXPECT_NE(head_of(false, true, false).find("'lm_head.weight', which config.json asks for, is missing"),
            std::string::npos);
  EXPECT_NE(head_of(false, false, true).find("'model.embed_tokens.weight', which"), std::string::npos);
}

TEST_F(ExportTest, Biases) {
  config_with(R"({"attention_bias":true,"mlp_bias":true})");
  Tensors tensors = tiny_tensors();
  for (const auto& [name, shape] : tiny_tensors())
    if (name.ends_with("_proj.weight")) tensors[name.substr(0, name.size() - 6) + "bias"] = {shape[0]};
  put("in/model.safetensors", bf16_file(tensors));
  auto g = exported();
  ASSERT_TRUE(g) << g.error().message;
  for (const char* name : {"q", "k", "v", "o"})
    EXPECT_NE(find(*g, std::string("model.layers.0.self_attn.") + name + "_proj.biased"), nullptr);
  for (const char* name : {"gate", "up", "down"})
    EXPECT_NE(find(*g, std::string("model.layers.0.mlp.") + name + "_proj.biased"), nullptr);
}

TEST_F(ExportTest, Float32NeedsNoCast) {
  put("in/model.safetensors", [] {
    std::string two = bf16_file(tiny_tensors());  // the same places with elements of four bytes
    json::Value header = json::read_or_null(
        two.substr(8, static_cast<unsigned char>(two[0]) | static_cast<unsigned char>(two[1]) << 8));
    size_t bytes = 0;
    for (auto& [name, t] : header.members) {
      if (name == "__metadata__") continue;
      t["dtype"] = "F32";
      for (json::Value& o : t["data_offsets"].items) o = o.to_uint64() * 2;
      bytes = std::max(bytes, t["data_offsets"].items[1].to_uint64());
    }
    return safetensors(json::dump(header), bytes);
  }());
  auto g = exported();
  ASSERT_TRUE(g) << g.error().message;
  for (const onnx::Node& n : g->nodes) EXPECT_TRUE(n.op_type != "Cast" || n.name == "positions") << n.name;
}

}  // namespace
}  // namespace invar::checkpoint
