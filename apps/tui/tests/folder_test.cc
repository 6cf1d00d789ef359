// Folders of receipts, and the list behind a path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file/file.h"
#include "model/browser.h"
#include "model/receipts.h"
#include "model/saved.h"

namespace invar::tui {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;

class Folder : public testing::Test {
 protected:
  Folder() : path_(fs::temp_directory_path() / ("invar-tui-test-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() override { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((path_ / name).parent_path());
    ASSERT_TRUE(write_file((path_ / name).string(), text));
  }
  static std::vector<std::string> names(const Browser& b) {
    std::vector<std::string> out;
    for (const auto& e : b.entries()) out.push_back(e.name);
    return out;
  }
  const fs::path path_;
};

std::string receipt(const std::string& hash, const std::string& prompt) {
  return R"({"schema":"invar-receipt 2","model":{"name":"tiny"},"input":{"prompt":")" + prompt +
         R"(","tokens":[1,2]},"output":{"text":"an answer","tokens":[3]},"receipt_hash":")" + hash + "\"}";
}

TEST_F(Folder, ReceiptsTheLatestFirst) {
  write("a.json", receipt("aa", "first"));
  write("b.json", receipt("bb", "second"));
  write("no.json", "{\"schema\":\"other\"}");
  write("broken.json", "{");
  write("list.json", "[1]");
  write("odd.json", R"({"schema":"invar-receipt 2","receipt_hash":"cc","model":[],"input":{"prompt":7}})");
  write("notes.txt", receipt("dd", "no"));
  for (const auto& [name, age] : {std::pair{"a.json", 3}, {"b.json", 2}, {"odd.json", 4}})
    fs::last_write_time(path_ / name, fs::file_time_type::clock::now() - std::chrono::hours(age));
  ReceiptFolder folder;
  ASSERT_TRUE(folder.open(path_.string()));
  EXPECT_EQ(folder.unread(), 6u);
  while (folder.read_some(1)) {
  }
  ASSERT_EQ(folder.entries().size(), 3u);
  EXPECT_EQ(folder.entries()[0].hash, "bb");
  EXPECT_EQ(folder.entries()[0].prompt, "second");
  EXPECT_EQ(folder.entries()[0].prompt_tokens, 2);
  EXPECT_EQ(folder.entries()[1].hash, "aa");
  EXPECT_EQ(folder.entries()[2].model, "");
  EXPECT_EQ(folder.others(), 3u);
  EXPECT_FALSE(folder.open((path_ / "none").string()));
}

TEST_F(Folder, ModelsFirst) {
  write("zoo/config.json", "{}");
  write("apple/x", "");
  write("file", "");
  Browser b(Browser::Wants::model, path_.string());
  EXPECT_THAT(names(b), ElementsAre("..", "zoo/", "apple/"));
  EXPECT_EQ(b.at(), 1u);
  b.set_hub(hub_models(R"({"models":[{"name":"acme/tiny","bytes":8400000},{"name":"acme/tiny"},{"name":3}]})"));
  EXPECT_THAT(names(b), ElementsAre("acme/tiny  (8.40 MB)", "..", "zoo/", "apple/"));
  EXPECT_EQ(b.choose(), "acme/tiny");
  b.jump("a");
  b.jump("ap");
  EXPECT_EQ(b.choose(), "");  // entered
  EXPECT_EQ(b.folder(), fs::canonical(path_ / "apple").string());
  b.jump("..");
  EXPECT_EQ(b.choose(), "");
  EXPECT_EQ(b.entries()[b.at()].name, "apple/");  // where it came from
  b.jump("zoo");
  EXPECT_EQ(fs::canonical(b.choose()), fs::canonical(path_ / "zoo"));
  EXPECT_TRUE(hub_models("nonsense").empty());
}

TEST_F(Folder, FilesAndFolders) {
  write("a.onnx", "");
  write("b.txt", "");
  write("sub/c.onnx", "");
  Browser files(Browser::Wants::file, (path_ / "a.onnx").string(), ".onnx");
  EXPECT_THAT(names(files), ElementsAre("..", "sub/", "a.onnx"));
  Browser folders(Browser::Wants::folder, path_.string());
  EXPECT_THAT(names(folders), ElementsAre("this folder", "..", "sub/"));
  EXPECT_EQ(folders.at(), 0u);
  EXPECT_EQ(fs::canonical(folders.choose()), fs::canonical(path_));
  Browser elsewhere(Browser::Wants::file, (path_ / "none/x").string());
  EXPECT_FALSE(elsewhere.folder().empty());
}

TEST_F(Folder, TheFormIsTheUsersAlone) {
  const std::string path = (path_ / "new/invar/tui.json").string();
  Form form;
  form[Field::prompt] = "secret";
  ASSERT_TRUE(save_form(path, form));
  EXPECT_EQ(load_form(path), form);
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(save_form("/proc/nowhere/tui.json", form));
  EXPECT_TRUE(save_form("", form));  // no folder for it is no error
}

}  // namespace
}  // namespace invar::tui
