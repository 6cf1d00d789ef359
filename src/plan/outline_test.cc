// An outline covers the plan but for what it says that it leaves out.
#include "plan/outline.h"

#include <fstream>

#include "plan/testing.h"
#include "plan/weight_provenance.h"

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

// "" where it computes with the tensors of its program, else why it does not.
std::string refusal_of(const std::string& text, const std::string& path = "x.plan") {
  const auto p = parse(text, path);
  EXPECT_TRUE(p) << p.error().message;
  const Status good = p ? check_weight_provenance(*p, path) : Status(p.error());
  return good ? "" : good.error().message;
}

TEST(Outline, CheckpointsOfOneProgramHaveOne) {
  const std::string mine = outline_of(kOutlineText);
  EXPECT_EQ(mine.size(), 64u);
  EXPECT_EQ(outline_of(with(kOutlineText, kOnes, std::string(64, '7'))), mine);
  EXPECT_EQ(outline_of(with(kOutlineText, "a.safetensors\" offset 128", "b.safetensors\" offset 64")), mine);
}

TEST(Outline, PartsOfATensorAreComparedInItsFile) {
  const std::string folder = ::testing::TempDir(), content = "....abcdefghijklmnop";
  std::ofstream(folder + "/a.safetensors") << content;
  const std::string whole = to_hex(sha256(content.substr(4))), half = to_hex(sha256(content.substr(12)));
  std::string text = with(kOutlineText, "weight w0 \"embed\" f32 [2] sha256 " + kOnes,
                          "weight w0 \"embed [4] from 8 [2]\" f32 [2] sha256 " + half);
  text = with(text, "offset 128", "offset 12");
  text = with(text, "tensor \"embed\" f32 [2] sha256 " + kOnes, "tensor \"embed\" f32 [4] sha256 " + whole);
  std::string graph = with(with(text, "tensor \"embed\"", "tensor \"v0\""), "toy-1", "onnx-1");
  graph = with(graph, "\"table\"", "\"f32 2 0123456789abcdef\"");
  // The other half is not read, and the constant is as long: it might stand in the place of that.
  for (const std::string& one : {text, graph})
    EXPECT_NE(refusal_of(one, folder + "/x.plan").find("the constant "), std::string::npos);
  text = replaced(replaced(text, "f32 [2] sha256 " + kTwos, "f32 [3] sha256 " + kTwos), "offset 0 length 8",
                  "offset 0 length 12");
  EXPECT_EQ(refusal_of(text, folder + "/x.plan"), "");
  EXPECT_NE(refusal_of(with(text, half, kOnes), folder + "/x.plan").find("other bytes of the tensor embed"),
            std::string::npos);
  EXPECT_NE(refusal_of(with(text, whole, kOnes), folder + "/x.plan").find("the tensor embed"),
            std::string::npos);
  EXPECT_NE(refusal_of(with(text, "from 8", "from 4"), folder + "/x.plan").find("is not in a.safetensors"),
            std::string::npos);
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
  const std::string sevens(64, '7');
  EXPECT_EQ(refusal_of(kOutlineText), "");
  EXPECT_EQ(refusal_of(with(kOutlineText, kOnes, sevens)), "");
  for (const std::string& lie :
       {replaced(kOutlineText, kOnes, sevens),                                           // under its name
        replaced(replaced(kOutlineText, "\"embed\"", "\"other\""), kOnes, sevens),       // under another
        replaced(replaced(kOutlineText, "\"embed\"", "\"embed [2]\""), kOnes, sevens)})  // as a part
    EXPECT_NE(refusal_of(lie).find("tensor embed "), std::string::npos) << refusal_of(lie);
  // The tensors of a graph are numbered, so their bytes alone say which they are.
  const std::string graph = with(with(kOutlineText, "tensor \"embed\"", "tensor \"v3\""), "toy-1", "onnx-1");
  EXPECT_NE(refusal_of(graph).find("the weight table"), std::string::npos);
  const std::string named = with(graph, "\"table\"", "\"f32 2 0123456789abcdef\"");
  EXPECT_EQ(refusal_of(named), "");
  EXPECT_NE(refusal_of(replaced(named, kOnes, sevens)).find("the weight embed"), std::string::npos);
  const size_t program = kOutlineText.find("program ");
  EXPECT_FALSE(outline(*parse(kOutlineText.substr(0, program) + "end\n", "x.plan")));
}

}  // namespace
}  // namespace invar::plan
