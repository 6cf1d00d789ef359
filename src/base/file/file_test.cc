// Files: mapping, state changes, atomic writes and their errors.
#include "base/file/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/file/disk_reservation.h"
#include "base/file/map_registry.h"
#include "base/file/temporary_file.h"

namespace invar {
namespace {

namespace fs = std::filesystem;

bool contains(const Error& error, const std::string& text) {
  return error.message.find(text) != std::string::npos;
}

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "invar file XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string folder_;
};

TEST_F(FileTest, WhatIsWrittenIsReadAndMapped) {
  std::string content(200000, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 2654435761u >> 24);
  ASSERT_TRUE(write_file(path("a"), content));
  EXPECT_EQ(entries(), 1u);  // no temporary file stays
  auto read = read_file(path("a"));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, content);
  auto map = MappedFile::open(path("a"));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->text(), content);
  MappedFile moved = *std::move(map);
  EXPECT_EQ(moved.text(), content);
  EXPECT_EQ(map->bytes().size(), 0u);
}

TEST_F(FileTest, EmptyFileMapsToAnEmptySpan) {
  ASSERT_TRUE(write_file(path("empty"), ""));
  auto map = MappedFile::open(path("empty"));
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->bytes().empty());
  EXPECT_EQ(*read_file(path("empty")), "");
}

TEST_F(FileTest, ReplacesAndKeepsTheMappedOldContent) {
  ASSERT_TRUE(write_file(path("a"), "old"));
  auto map = MappedFile::open(path("a"));
  ASSERT_TRUE(map);
  ASSERT_TRUE(write_file(path("a"), "new and longer"));
  EXPECT_EQ(map->text(), "old");  // the old file was renamed over, not written into
  EXPECT_EQ(*read_file(path("a")), "new and longer");
}

TEST_F(FileTest, ErrorsNameThePathAndTheReason) {
  for (auto error : {read_file(path("none")).error(), MappedFile::open(path("none")).error(),
                     write_file(path("none/below"), "x").error()}) {
    EXPECT_EQ(error.code, Code::bad_input);
    EXPECT_TRUE(contains(error, path("none"))) << error.message;
    EXPECT_TRUE(contains(error, "No such file or directory")) << error.message;
  }
  EXPECT_TRUE(contains(read_file(folder_).error(), "Is a directory")) << read_file(folder_).error().message;
  EXPECT_TRUE(contains(MappedFile::open(folder_).error(), "Is a directory"))
      << MappedFile::open(folder_).error().message;
  EXPECT_TRUE(contains(write_file(folder_, "x").error(), "Is a directory"))
      << write_file(folder_, "x").error().message;
  EXPECT_TRUE(contains(MappedFile::open("/dev/null").error(), "not a regular file"))
      << MappedFile::open("/dev/null").error().message;
}

TEST_F(FileTest, AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(write_file(path("a"), "old"));
  struct rlimit before, small;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status = write_file(path("a"), std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_TRUE(contains(status.error(), "File too large")) << status.error().message;
  EXPECT_EQ(*read_file(path("a")), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, DevicesAreWrittenIntoNeverReplaced) {
  Status status = write_file("/dev/full", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(contains(status.error(), "No space left on device")) << status.error().message;
  struct stat info;
  ASSERT_EQ(::stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
  EXPECT_TRUE(write_file("/dev/null", "x"));
}

TEST_F(FileTest, APipeThatNobodyReadsIsAnError) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const Status status = write_file(path("pipe"), "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(contains(status.error(), "nobody reads")) << status.error().message;
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  std::thread late([&] {
    std::string all;
    char piece[4096];
    while (all.size() < 200000) {
      const ssize_t n = ::read(reader, piece, sizeof piece);
      if (n > 0) all.append(piece, static_cast<size_t>(n));
      if (n < 0) std::this_thread::yield();
    }
    EXPECT_EQ(all, std::string(200000, 'x'));
  });
  EXPECT_TRUE(write_file(path("pipe"), std::string(200000, 'x')));  // more than a pipe holds
  late.join();
  ::close(reader);
}

// A receipt holds a prompt and its salt: a process that is killed leaves nothing that others read.
TEST_F(FileTest, WhatIsNotWholeYetIsPrivate) {
  const mode_t before = ::umask(022);
  const auto mode = [](const fs::path& p) { return static_cast<unsigned>(fs::status(p).permissions()); };
  for (const bool unnamed : {true, false}) {
    const auto seen = [&] {
      for (const auto& entry : fs::directory_iterator(folder_)) EXPECT_EQ(mode(entry.path()), 0600u);
      return entries();
    };
    NewFile file;
    ASSERT_EQ(file.make(path("new"), unnamed), 0);
    ASSERT_EQ(::write(file.descriptor(), "x", 1), 1);
    EXPECT_LE(seen(), 1u);
    ASSERT_EQ(file.replace(), 0);
    EXPECT_EQ(mode(path("new")), 0644u);
    EXPECT_EQ(entries(), 1u);
    EXPECT_EQ(*read_file(path("new")), "x");
    {
      NewFile other;
      ASSERT_EQ(other.make(path("new"), unnamed), 0);
      EXPECT_EQ(other.create(0600), EEXIST);
    }
    EXPECT_EQ(entries(), 1u);
    fs::remove(path("new"));
    {
      NewFile other;
      ASSERT_EQ(other.make(path("new"), unnamed), 0);
      ASSERT_EQ(::write(other.descriptor(), "y", 1), 1);
      EXPECT_EQ(other.create(0640), 0);
    }
    EXPECT_EQ(mode(path("new")), 0640u);
    EXPECT_EQ(*read_file(path("new")), "y");
    EXPECT_EQ(entries(), 1u);
    fs::remove(path("new"));
  }
  ::umask(before);
}

TEST_F(FileTest, AMissingFolderForTemporaryFilesIsNamed) {
  const char* const was = std::getenv("TMPDIR");
  const std::string kept = was ? was : "";
  ::setenv("TMPDIR", path("nowhere").c_str(), 1);
  const auto root = temporary_root();
  const auto made = TemporaryFolder::make();
  was ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  ASSERT_FALSE(root);
  EXPECT_TRUE(contains(root.error(), path("nowhere")) && contains(root.error(), "TMPDIR"))
      << root.error().message;
  EXPECT_FALSE(made);
}

TEST_F(FileTest, AnUnwritableFolderIsAnError) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0500), 0);
  // Root may write anywhere but into the kernel's own folder.
  const std::string there = ::geteuid() == 0 ? "/proc/a" : path("a");
  Status status = write_file(there, "x");
  ::chmod(folder_.c_str(), 0700);
  ASSERT_FALSE(status);
  EXPECT_TRUE(contains(status.error(), "cannot write '" + there + "'")) << status.error().message;
  EXPECT_EQ(entries(), 0u);
}

// Containers that share a folder all have process 1, as the threads of one process have one number.
TEST_F(FileTest, ManyWritersOfOneFileAllSucceedAndLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  std::atomic<int> failures{0};
  for (char letter = 'a'; letter < 'i'; ++letter)
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 50; ++i) failures += !write_file(path("one"), std::string(10000, letter));
    });
  for (std::thread& w : writers) w.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(entries(), 1u);
  const auto text = read_file(path("one"));
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, std::string(10000, text->front()));
}

TEST_F(FileTest, NamesOfTheGreatestLengthAreWritten) {
  const std::string name(255, 'n');
  EXPECT_TRUE(write_file(path(name.c_str()), "x"));
  EXPECT_FALSE(write_file(path((name + "n").c_str()), "x"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AMappedFileKnowsWhetherSomebodyWroteToIt) {
  ASSERT_TRUE(write_file(path("w"), "weights"));
  const auto wait_for_the_clock = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const auto opened = [&] {
    auto map = MappedFile::open(path("w"));
    EXPECT_TRUE(map && !map->changed());
    wait_for_the_clock();
    return map;
  };
  auto map = opened();
  struct stat before;
  ASSERT_EQ(::stat(path("w").c_str(), &before), 0);
  for (const char* content : {"wrong", "weigh"}) {  // written, and then put back with its time
    FILE* f = std::fopen(path("w").c_str(), "r+");
    std::fputs(content, f);
    std::fclose(f);
    EXPECT_TRUE(map->changed()) << content;
  }
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("w").c_str(), times, 0), 0);
  EXPECT_EQ(map->text(), "weights");
  EXPECT_TRUE(map->changed());
  map = opened();
  ASSERT_EQ(::truncate(path("w").c_str(), 3), 0);
  EXPECT_TRUE(map->changed());
  map = opened();
  ASSERT_TRUE(write_file(path("w"), "WEIGHTS"));  // another file under this name
  EXPECT_TRUE(map->changed());                    // the first has no name left
  EXPECT_EQ(map->text(), "wei");
}

TEST_F(FileTest, ReadingWhatWasCutOffEndsWithTheNameOfTheFile) {
  ASSERT_TRUE(write_file(path("w"), std::string(1 << 16, 'w')));
  EXPECT_EXIT(
      {
        report_truncated_maps();
        auto map = MappedFile::open(path("w"));
        if (::truncate(path("w").c_str(), 0) != 0) std::_Exit(1);
        std::_Exit(map->text()[1 << 15]);
      },
      ::testing::ExitedWithCode(2), "w': the file became shorter while it was in use");
}

TEST_F(FileTest, ACutOffFileIsNamedInJsonWhereThatIsAskedFor) {
  ASSERT_TRUE(write_file(path("a\"b\\c\xc3\xa4"), std::string(1 << 16, 'w')));
  EXPECT_EXIT(
      {
        report_truncated_maps();
        say_truncation_as({STDERR_FILENO, "{\"file\":\"", "\"}\n", true}, {STDERR_FILENO, "second '", "'\n"});
        auto map = MappedFile::open(path("a\"b\\c\xc3\xa4"));
        if (::truncate(path("a\"b\\c\xc3\xa4").c_str(), 0) != 0) std::_Exit(1);
        std::_Exit(map->text()[1 << 15]);
      },
      ::testing::ExitedWithCode(2), R"(a\\"b\\\\c[?][?]"[}].*second '.*a"b\\c)");
}

TEST_F(FileTest, ATemporaryFolderIsPrivateAndGoesAway) {
  std::string where;
  {
    auto folder = TemporaryFolder::make(folder_);
    ASSERT_TRUE(folder);
    where = folder->path();
    EXPECT_TRUE(write_file(where + "/f", "x"));
    EXPECT_EQ(fs::status(where).permissions(), fs::perms::owner_all);
    TemporaryFolder moved = *std::move(folder);
    EXPECT_EQ(moved.path(), where);
  }
  EXPECT_FALSE(fs::exists(where));
  EXPECT_FALSE(TemporaryFolder::make(path("nowhere")));
}

TEST_F(FileTest, ReadingIsBounded) {
  ASSERT_TRUE(write_file(path("a"), std::string(1001, 'x')));
  const FileKind small{"a thing", 1000}, stream{"a thing", 1000, true};
  EXPECT_TRUE(read_file(path("a"), {"a thing", 1001}));
  for (const auto& e : {read_file(path("a"), small).error(), read_file("/dev/zero", stream).error()}) {
    EXPECT_EQ(e.code, Code::bad_input);
    EXPECT_TRUE(contains(e, "more than the 1000 bytes that a thing may have")) << e.message;
  }
  EXPECT_TRUE(contains(read_file("/dev/zero", small).error(), "not a regular file, which a thing must be"));
  EXPECT_EQ(*read_file("/dev/null", stream), "");
}

TEST_F(FileTest, APipeIsReadWhereSomebodyWrites) {
  const FileKind stream{"a thing", 1000, true};
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(contains(read_file(path("fifo"), stream).error(), "a pipe that nobody writes to: start"))
      << "or it waited";
  EXPECT_TRUE(contains(read_file(path("fifo")).error(), "not a regular file"));
  EXPECT_TRUE(contains(MappedFile::open(path("fifo")).error(), "not a regular file"));
  // A writer that is late with its text, but there.
  int both = ::open(path("fifo").c_str(), O_RDWR);
  ASSERT_GE(both, 0);
  std::thread writer([&] {
    ::usleep(20000);
    EXPECT_EQ(::write(both, "text", 4), 4);
    ::usleep(20000);
    ::close(both);
  });
  const auto text = read_file(path("fifo"), stream);
  writer.join();
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "text");
  // The text of a writer that is gone.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], "left", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(*read_file("/dev/fd/" + std::to_string(ends[0]), stream), "left");
  ::close(ends[0]);
}

TEST_F(FileTest, SpaceIsReservedOrRefused) {
  struct rlimit before, small;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto fits = DiskReservation::make(path("r.json"), 1000),
             too_large = DiskReservation::make(path("r.json"), 1001);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(fits);
  ASSERT_FALSE(too_large);
  EXPECT_TRUE(contains(too_large.error(), path("r.json"))) << too_large.error().message;
  EXPECT_TRUE(contains(too_large.error(), "File too large (1001 bytes are needed)"))
      << too_large.error().message;
  EXPECT_EQ(entries(), 0u);  // while one is held
  EXPECT_FALSE(DiskReservation::make(path("none/r.json"), 1));
}

}  // namespace
}  // namespace invar
