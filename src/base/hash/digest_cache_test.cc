// The cache of digests knows files at rest and forgets changed ones.
#include "base/hash/digest_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

namespace invar {
namespace {

TEST(DigestCache, KnowsWhatLayStillAndNotWhatWasChanged) {
  const std::string path = testing::TempDir() + "/hashed." + std::to_string(::getpid());
  const auto write = [&path](const char* text) { std::ofstream(path) << text; };
  const auto open = [&path] { return *MappedFile::open(path); };
  const Digest abc = sha256("abc"), xyz = sha256("xyz");
  write("abc");
  DigestCache fresh;
  fresh.add(open(), 0, 3, abc);
  EXPECT_FALSE(fresh.has(open(), 0, 3, abc));  // written a moment ago

  const timespec moment = {0, 50'000'000};
  while (!open().at_rest()) nanosleep(&moment, nullptr);
  DigestCache known;
  known.add(open(), 0, 3, abc);
  EXPECT_TRUE(known.has(open(), 0, 3, abc));
  EXPECT_FALSE(known.has(open(), 0, 3, xyz));
  EXPECT_FALSE(known.has(open(), 0, 2, abc));

  // Other bytes of the same length, under the old time of change.
  struct stat before;
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  write("xyz");
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_FALSE(known.has(open(), 0, 3, abc));

  // Another file in its place.
  std::filesystem::remove(path);
  write("abc");
  EXPECT_FALSE(known.has(open(), 0, 3, abc));
}

}  // namespace
}  // namespace invar
