#include "device/gpu_architectures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace invar {
namespace {

TEST(GpuCode, MachineCodeRunsOnItsGeneration) {
  EXPECT_TRUE(has_code("80-real", 80));
  EXPECT_TRUE(has_code("80-real", 86));
  EXPECT_FALSE(has_code("86-real", 80));
  EXPECT_FALSE(has_code("80-real", 90));
  EXPECT_TRUE(has_code("100-real 120-real", 103));
  EXPECT_FALSE(has_code("100-real 120-real", 110));
}

TEST(GpuCode, PtxRunsOnLaterOnes) {
  EXPECT_TRUE(has_code("75-virtual", 130));
  EXPECT_FALSE(has_code("75-virtual", 70));
  EXPECT_TRUE(has_code("90", 120));
  EXPECT_TRUE(has_code("75-real 80-real 75-virtual", 110));
}

TEST(GpuCode, CodeOfOneProcessorRunsThereAlone) {
  EXPECT_TRUE(has_code("90a-real", 90));
  EXPECT_FALSE(has_code("90a", 100));
}

TEST(GpuCode, OtherWordsAreNotJudged) {
  EXPECT_TRUE(has_code("native", 90));
  EXPECT_TRUE(has_code("80-real all", 90));
  EXPECT_FALSE(has_code("", 90));
}

TEST(GpuCode, CapabilitiesForPeople) {
  EXPECT_EQ(capabilities("75-real 100-real 75-virtual"), "7.5, 10.0 and PTX of 7.5");
  EXPECT_EQ(capabilities("90a-real"), "9.0");
  EXPECT_EQ(capabilities("75-virtual"), "PTX of 7.5");
}

TEST(GpuCode, TheDriverNamesItsGpu) {
  const std::string folder = testing::TempDir() + "/gpus" + std::to_string(::getpid());
  EXPECT_EQ(gpu_of_driver(folder), "");
  for (const char* name : {"0000:01:00.0", "0000:02:00.0"}) {
    std::filesystem::create_directories(folder + "/" + name);
    std::ofstream(folder + "/" + name + "/information")
        << "Model: \t\t NVIDIA " << name[6] << "\nIRQ:   \t\t 7\n";
  }
  EXPECT_EQ(gpu_of_driver(folder), "NVIDIA 1");
  std::ofstream(folder + "/0000:01:00.0/information") << "Model:\nIRQ: 7\n";
  EXPECT_EQ(gpu_of_driver(folder), "NVIDIA 2");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace invar
