// A confined process: what it cannot do any more, and what it still can. Each case is a process of
// its own, because a confinement is for good.
#include "base/confinement/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

#include "base/file/file.h"
#include "base/file/temporary_file.h"

namespace invar {
namespace {

// What `body` returns in a process of its own, 0 to 255.
template <class Body>
int in_a_process(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

int error_of_open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0 ? 0 : errno;
}

int error_of_socket(int family) {
  const int fd = ::socket(family, SOCK_STREAM, 0);
  if (fd >= 0) ::close(fd);
  return fd >= 0 ? 0 : errno;
}

class ConfinementTest : public ::testing::Test {
 protected:
  // The part that this kernel lacks is skipped.
  void need(std::string Confined::*part) {
    const int missing = in_a_process([&] { return (confine({}).*part).empty() ? 0 : 1; });
    if (missing) GTEST_SKIP() << "this kernel lacks it";
  }
  TemporaryFolder open_ = *TemporaryFolder::make(), closed_ = *TemporaryFolder::make();
};

TEST_F(ConfinementTest, WritesOnlyWhereItMay) {
  need(&Confined::files);
  if (IsSkipped()) return;
  const std::string inside = open_.path() + "/a", outside = closed_.path() + "/a";
  ASSERT_TRUE(write_file(outside, "kept"));
  const auto confined = [&](const auto& body) {
    return in_a_process([&] {
      return confine({{open_.path(), "/no such folder"}}).files.empty() ? body() : 254;
    });
  };
  EXPECT_EQ(confined([&] { return error_of_open(inside, O_CREAT | O_RDWR); }), 0);
  EXPECT_EQ(confined([&] { return error_of_open(outside, O_WRONLY); }), EACCES);
  EXPECT_EQ(confined([&] { return error_of_open(outside, O_WRONLY | O_TRUNC); }), EACCES);
  EXPECT_EQ(confined([&] { return error_of_open(closed_.path() + "/b", O_CREAT | O_WRONLY); }), EACCES);
  EXPECT_EQ(confined([&] { return ::unlink(outside.c_str()) ? errno : 0; }), EACCES);
  EXPECT_EQ(confined([&] { return ::rename(outside.c_str(), inside.c_str()) ? errno : 0; }), EACCES);
  EXPECT_EQ(confined([&] { return error_of_open(outside, O_RDONLY); }), 0);
  int error = 0;  // of a thread that the confined one starts
  EXPECT_EQ(confined([&] {
              std::thread([&] { error = error_of_open(outside, O_WRONLY); }).join();
              return error;
            }),
            EACCES);
  EXPECT_EQ(*read_file(outside), "kept");
}

TEST_F(ConfinementTest, StartsNoProgram) {
  need(&Confined::files);
  if (IsSkipped()) return;
  char name[] = "/bin/true";
  char* const arguments[] = {name, nullptr};
  EXPECT_EQ(in_a_process([&] {
              if (!confine({}).files.empty()) return 254;
              ::execv(name, arguments);
              return errno;
            }),
            EACCES);
}

TEST_F(ConfinementTest, MakesNoSocket) {
  need(&Confined::network);
  if (IsSkipped()) return;
  for (const int family : {AF_INET, AF_INET6, AF_UNIX})
    EXPECT_EQ(in_a_process([&] { return confine({}).network.empty() ? error_of_socket(family) : 254; }),
              EPERM);
  EXPECT_EQ(in_a_process([&] {
              const Confined made = confine({{}, true});
              return made.network.empty() ? 254 : error_of_socket(AF_UNIX);
            }),
            0);
}

}  // namespace
}  // namespace invar
