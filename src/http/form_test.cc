#include "http/form.h"

#include <gtest/gtest.h>

namespace invar::http {
namespace {

constexpr const char* kType = "multipart/form-data; boundary=x-1";

std::string part(const std::string& header, const std::string& content) {
  return "--x-1\r\n" + header + "\r\n\r\n" + content + "\r\n";
}
std::string named(const std::string& name, const std::string& content) {
  return part("Content-Disposition: form-data; name=\"" + name + "\"", content);
}

TEST(Form, HasPartsByTheirNames) {
  const std::string bytes("a\r\n--x\0\xff", 8);
  const std::string body =
      named("model", "m") +
      part("content-disposition: form-data; filename=\"a \\\"b.wav\"; name=file\r\nContent-Type: audio/wav",
           bytes) +
      named("empty", "") + "--x-1--\r\n";
  for (const char* type : {kType, "Multipart/Form-Data;boundary=\"x-1\"; charset=utf-8"}) {
    const auto read = read_form(type, body);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->size(), 3u);
    EXPECT_EQ((*read)[0].name, "model");
    EXPECT_EQ((*read)[0].content, "m");
    EXPECT_FALSE((*read)[0].file_name);
    EXPECT_EQ((*read)[1].name, "file");
    EXPECT_EQ((*read)[1].content, bytes);
    EXPECT_EQ((*read)[1].file_name, "a \"b.wav");
    EXPECT_EQ((*read)[2].content, "");
  }
  EXPECT_EQ(read_form(kType, "--x-1--")->size(), 0u);
}

TEST(Form, RefusesWhatTwoReadersCouldReadDifferently) {
  const std::string good = named("a", "1"), end = "--x-1--\r\n";
  ASSERT_TRUE(read_form(kType, good + end));
  std::string many;
  for (int i = 0; i < 65; ++i) many += named("a", "1");
  const std::pair<const char*, std::string> bad[] = {
      {"application/json", good + end},
      {"multipart/form-data", good + end},
      {"multipart/form-data; boundary=", good + end},
      {"multipart/form-data; boundary=x-1; boundary=x-1", good + end},
      {"multipart/form-data; boundary=\"x-1", good + end},
      {"multipart/form-data; boundary=\"x\x01\"", good + end},
      {"multipart/mixed; boundary=x-1", good + end},
      {kType, ""},
      {kType, good},
      {kType, "preamble\r\n" + good + end},
      {kType, good + end + "epilogue"},
      {kType, "--x-1\n" + good + end},
      {kType, "--x-1\r\n" + end},
      {kType, good + "--x-12\r\n" + end},
      {kType, part("Content-Disposition: form-data", "1") + end},
      {kType, part("Content-Disposition: form-data; name=\"\"", "1") + end},
      {kType, part("Content-Disposition: form-data; name=a; name=b", "1") + end},
      {kType, part("Content-Disposition: form-data; name=\"\xff\"", "1") + end},
      {kType, part("Content-Disposition: attachment; name=a", "1") + end},
      {kType,
       part("Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b", "1") + end},
      {kType, part("Content-Disposition: form-data;\r\n name=a", "1") + end},
      {kType,
       part("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64", "MQ==") + end},
      {kType, part("Content-Type: text/plain", "1") + end},
      {kType, part("Content-Disposition: form-data; name=a\r\nx: " + std::string(5000, 'y'), "1") + end},
      {kType, many + end}};
  for (const auto& [type, body] : bad) {
    const auto read = read_form(type, body);
    ASSERT_FALSE(read) << type << "\n" << body;
    EXPECT_TRUE(read.error().message.starts_with("the form: "));
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace invar::http
