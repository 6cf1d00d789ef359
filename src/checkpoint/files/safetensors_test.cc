#include "checkpoint/files/safetensors.h"

#include "checkpoint/testing.h"

namespace invar::checkpoint {
namespace {

class SafetensorsTest : public FolderTest {
 protected:
  Result<std::map<std::string, StoredTensor>> header_of(const std::string& content) {
    put("f", content);
    return read_safetensors_header(path("f"));
  }
};

TEST_F(SafetensorsTest, ReadsPlacesInTheFile) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},)"
      R"("a":{"dtype":"BF16","shape":[3,1],"data_offsets":[0,6]},"e":{"dtype":"I64","shape":[0,9],"data_offsets":[6,6]}})";
  auto tensors = header_of(safetensors(header, 14));
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ(tensors->at("a").offset, 8 + header.size());
  EXPECT_EQ(tensors->at("a").length, 6u);
  EXPECT_EQ(tensors->at("a").shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(tensors->at("b").offset, 8 + header.size() + 6);
  EXPECT_EQ(tensors->at("b").dtype, "F32");
  EXPECT_EQ(tensors->at("e").length, 0u);
}

TEST_F(SafetensorsTest, RefusesWrongFiles) {
  const std::string huge(8, '\x10');  // a length of about 2^60
  const std::string entry = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  struct {
    std::string content, reason;
  } cases[] = {
      {"", "shorter than the 8"},
      {"1234567", "shorter than the 8"},
      {huge + "{}", "claims 1157442765409226768 bytes"},
      {std::string(8, '\xff') + "{}", "claims 18446744073709551615 bytes"},
      {std::string("\x03\0\0\0\0\0\0\0{}", 10), "claims 3 bytes"},
      {std::string(8, '\0'), "not JSON"},
      {safetensors("[]", 0), "not JSON"},
      {safetensors("{\"a\":", 0), "not well-formed JSON"},
      {safetensors("{\"a\":\xff}", 0), "not well-formed JSON"},
      {safetensors("{\"a\":1}", 0), "not an object"},
      {safetensors("{" + entry + "," + entry + "}", 8), "'a' is given twice"},
      {safetensors("{" + entry + "}", 7), "'a': ends at byte 8 of the data, but the file has only 7"},
      {safetensors("{" + entry + "}", 9), "1 bytes at the end"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,12]}})", 12),
       "span 12 bytes, but F32 [2] has 8"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "backwards"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 8), "not two positions"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})", 8), "not two positions"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", 8), "not two positions"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "not a size"},
      {safetensors(R"({"a":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}})", 8), "unknown dtype 'Q9'"},
      {safetensors(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "no dtype"},
      {safetensors(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "no shape"},
      {safetensors(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
       "larger than any file"},
      {safetensors(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
           6),
       "overlap"},
      {safetensors(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[6,8]}})",
           8),
       "2 bytes before it belong to no tensor"},
      {safetensors("{\"a\":" + std::string(200000, '['), 0), "nested too deeply"},
      {safetensors("{\"a\\u0000\\n\":1}", 0), "'a\\x00\\x0a'"},
  };
  for (const auto& c : cases) expect_error(header_of(c.content), Code::bad_input, {path("f"), c.reason});
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string whole = bf16_file(tiny_tensors());
  ASSERT_TRUE(header_of(whole));
  for (size_t n = 0; n < whole.size(); n += n < 1200 ? 1 : 97)
    EXPECT_FALSE(header_of(whole.substr(0, n))) << n;
}

TEST_F(SafetensorsTest, RefusesWhatIsNoFile) {
  expect_error(read_safetensors_header(path("none")), Code::bad_input, {"none", "No such file"});
  expect_error(read_safetensors_header(folder_), Code::bad_input, {folder_});
}

}  // namespace
}  // namespace invar::checkpoint
