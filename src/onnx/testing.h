// Small files for the tests of this stage.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::onnx {

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "invar onnx XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    // Not write_file, and not over the old file: file systems wait for the disk then, and tests write
    // thousands.
    std::filesystem::remove(path(name));
    std::ofstream(path(name), std::ios::binary) << content;
  }
  std::string folder_;
};

// One line, with this code, that holds every one of the texts.
template <class T>
void expect_error(const Result<T>& result, Code code, const std::vector<std::string>& texts) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  for (const auto& text : texts)
    EXPECT_NE(result.error().message.find(text), std::string::npos)
        << "no \"" << text << "\" in: " << result.error().message;
}

}  // namespace invar::onnx
