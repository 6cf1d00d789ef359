#include "checkpoint/folder.h"

#include "checkpoint/testing.h"

namespace invar::checkpoint {
namespace {

class CheckpointTest : public FolderTest {
 protected:
  void put_index(const std::string& map) {
    put("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  }
};

TEST_F(CheckpointTest, SingleFile) {
  put("model.safetensors", bf16_file(tiny_tensors()));
  auto c = open_checkpoint(folder_);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->tensors.size(), tiny_tensors().size());
  EXPECT_EQ(c->files, std::vector<std::string>{"model.safetensors"});
}

TEST_F(CheckpointTest, Shards) {
  put("x.safetensors", bf16_file({{"a", {2}}}));
  put("y.safetensors", bf16_file({{"b", {2}}, {"c", {1}}}));
  put_index(R"("a":"x.safetensors","b":"y.safetensors","c":"y.safetensors")");
  auto c = open_checkpoint(folder_);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->tensors.at("c").file, "y.safetensors");
  EXPECT_EQ(c->files, (std::vector<std::string>{"x.safetensors", "y.safetensors"}));

  put_index(R"("a":"x.safetensors","b":"y.safetensors","c":"z.safetensors")");
  expect_error(open_checkpoint(folder_), Code::bad_input, {"'z.safetensors'", "missing"});
  put_index(R"("a":"x.safetensors","b":"y.safetensors","c":"x.safetensors")");
  expect_error(open_checkpoint(folder_), Code::bad_input,
               {"'c' is in 'y.safetensors'", "says 'x.safetensors'"});
  put_index(R"("a":"x.safetensors","b":"y.safetensors","c":"y.safetensors","d":"x.safetensors")");
  expect_error(open_checkpoint(folder_), Code::bad_input, {"'d' is not in 'x.safetensors'"});
  put_index(R"("a":"x.safetensors","b":"y.safetensors")");
  expect_error(open_checkpoint(folder_), Code::bad_input, {"'c' of 'y.safetensors' is not in"});
  for (const char* hostile : {"../x.safetensors", "/etc/passwd", "..", "", "s/x.safetensors", "x\\u0000"}) {
    put_index("\"a\":\"" + std::string(hostile) + "\"");
    expect_error(open_checkpoint(folder_), Code::bad_input, {"'a'", "not a plain file name"});
  }
  put_index(R"("a":7)");
  expect_error(open_checkpoint(folder_), Code::bad_input, {"not a plain file name"});
  put_index("");
  expect_error(open_checkpoint(folder_), Code::bad_input, {"no weight_map"});
  put("z.safetensors", bf16_file({{"a", {2}}}));
  put_index(R"("a":"x.safetensors","e":"z.safetensors")");
  expect_error(open_checkpoint(folder_), Code::bad_input,
               {"'a' is in both 'x.safetensors' and 'z.safetensors'"});
}

TEST_F(CheckpointTest, NothingThere) {
  expect_error(open_checkpoint(folder_), Code::bad_input, {"neither model.safetensors nor"});
  put("pytorch_model.bin", "x");
  expect_error(open_checkpoint(folder_), Code::bad_input, {"converted to safetensors"});
}

}  // namespace
}  // namespace invar::checkpoint
