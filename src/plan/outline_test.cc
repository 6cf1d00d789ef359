// What an outline covers, and what it leaves out.
#include "plan/outline.h"

#include "plan/testing.h"

namespace invar::plan {
namespace {

const std::string kOnes(64, '1'), kTwos(64, '2'), kThrees(64, '3');

// "embed" is a tensor of the program, "table" a constant that follows from its parameters.
const std::string kOutlineText = R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol batch
weight w0 "embed" f32 [2] sha256 )" +
                                 kOnes + R"(
weight w1 "table" f32 [2] sha256 )" +
                                 kTwos + R"(
input v0: f32 [batch, 2] "x"
node v1: f32 [batch, 2] = add.1(v0, w0) {numerics="ieee"}
node v2: f32 [batch, 2] = mul.1(v1, w1) {numerics="ieee"}
output v2 "y"
places
place w0 "a.safetensors" offset 128 length 8
place w1 "plan.invar.constants" offset 0 length 8
slots 2
slot v1 0
slot v2 1
program "toy-1" sha256 )" + kThrees +
                                 R"(
tensor "embed" f32 [2] sha256 )" +
                                 kOnes + R"(
end
)";

std::string outline_of(const std::string& text) {
  const auto p = parse(text, "x.plan");
  EXPECT_TRUE(p) << p.error().message;
  const auto d = p ? outline(*p) : Result<Digest>(p.error());
  return d ? to_hex(*d) : d.error().message;
}
std::string with(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(Outline, CheckpointsOfOneProgramHaveOne) {
  const std::string mine = outline_of(kOutlineText);
  EXPECT_EQ(mine.size(), 64u);
  EXPECT_EQ(outline_of(with(kOutlineText, kOnes, std::string(64, '7'))), mine);
  EXPECT_EQ(outline_of(with(kOutlineText, "a.safetensors\" offset 128", "b.safetensors\" offset 64")), mine);
}

TEST(Outline, WhatIsComputedIsInIt) {
  const std::string mine = outline_of(kOutlineText);
  EXPECT_NE(outline_of(with(kOutlineText, kTwos, std::string(64, '7'))), mine);       // a constant
  EXPECT_NE(outline_of(with(kOutlineText, "mul.1(v1, w1)", "mul.1(v0, w1)")), mine);  // an operand
  EXPECT_NE(outline_of(with(kOutlineText, kThrees, std::string(64, '7'))), mine);     // the program
  // Other bytes in the place of a tensor are those of a constant.
  EXPECT_NE(outline_of(replaced(kOutlineText, kOnes, std::string(64, '7'))), mine);
}

TEST(Outline, TensorsAreThoseOfTheProgram) {
  EXPECT_TRUE(check_tensors(*parse(kOutlineText, "x.plan")));
  const Status wrong = check_tensors(*parse(replaced(kOutlineText, kOnes, std::string(64, '7')), "x.plan"));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("the tensor embed"), std::string::npos);
  const size_t program = kOutlineText.find("program ");
  EXPECT_FALSE(outline(*parse(kOutlineText.substr(0, program) + "end\n", "x.plan")));
}

}  // namespace
}  // namespace invar::plan
