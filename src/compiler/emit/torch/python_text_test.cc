// Tests of what Python reads: literals, dimensions and names.
#include "compiler/emit/torch/python_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/dialects/torch/template.h"

namespace invar::compiler {
namespace {

std::string dimension(const char* text) {
  return python::expression(*DimExpr::parse_canonical(text), [](const std::string& name) { return name; });
}

TEST(PythonText, Numbers) {
  EXPECT_EQ(python::literal(0.1f), "0.1");
  EXPECT_EQ(python::literal(1e-5f), "1e-05");
  EXPECT_EQ(python::literal(-3.0f), "-3.0");
  EXPECT_EQ(python::literal(16777216.0f), "16777216.0");
  EXPECT_EQ(python::literal(INFINITY), "float(\"inf\")");
  EXPECT_EQ(python::literal(-INFINITY), "float(\"-inf\")");
  EXPECT_EQ(python::literal(std::nanf("")), "float(\"nan\")");
  EXPECT_EQ(python::literal(static_cast<double>(0.1f)), "0.10000000149011612");
}

TEST(PythonText, Strings) {
  EXPECT_EQ(python::literal(std::string_view("a\"b\\c\n")), R"("a\"b\\c\x0a")");
  EXPECT_EQ(python::literal(std::string_view("\xc3\xa9\xf0\x9f\x98\x80\xff")), R"("\u00e9\U0001f600\udcff")");
}

TEST(PythonText, Tuples) {
  EXPECT_EQ(python::tuple_of(std::vector<int64_t>{}), "()");
  EXPECT_EQ(python::tuple_of(std::vector<int64_t>{3}), "(3,)");
  EXPECT_EQ(python::tuple_of(std::vector<int64_t>{3, 4}), "(3, 4)");
  EXPECT_EQ(python::list_of({3}), "[3]");
}

// A quotient binds closer than what stands before it.
TEST(PythonText, Dimensions) {
  EXPECT_EQ(dimension("batch*seq"), "batch * seq");
  EXPECT_EQ(dimension("past+seq-1"), "past + seq - 1");
  EXPECT_EQ(dimension("(n+1)/2"), "(n + 1) // 2");
  EXPECT_EQ(dimension("(n)/2"), "n // 2");
  EXPECT_EQ(dimension("3*(n+1)/2"), "3 * ((n + 1) // 2)");
  EXPECT_EQ(dimension("-(n)/2+n"), "-(n // 2) + n");
  EXPECT_EQ(dimension("min(n,16)+1"), "min(n, 16) + 1");
  EXPECT_EQ(dimension("-n+7"), "-n + 7");
}

TEST(PythonText, Names) {
  python::Names names;
  EXPECT_EQ(names.make("model.layers.0.weight"), "model_layers_0_weight");
  EXPECT_EQ(names.make("model/layers/0/weight"), "model_layers_0_weight_2");
  EXPECT_EQ(names.make("a_.b"), "a__b");
  EXPECT_EQ(names.make("0"), "_0");
  EXPECT_EQ(names.make("class"), "_class");
  EXPECT_EQ(names.make("torch"), "_torch");
  EXPECT_EQ(names.make("forward"), "forward_2");
  EXPECT_EQ(names.make("\n\xe5\x90\x8d"), "x");
  EXPECT_EQ(names.make(""), "x_2");
  EXPECT_FALSE(python::is_identifier("lambda"));
  EXPECT_FALSE(python::is_identifier("a b"));
}

TEST(TorchTemplate, Fields) {
  const auto text = TorchTemplate::parse("{0}.reshape(({k*n}, 8))");
  ASSERT_TRUE(text && text->pieces.size() == 4);
  EXPECT_EQ(text->pieces[0].operand, 0);
  EXPECT_EQ(text->pieces[1].text, ".reshape((");
  EXPECT_TRUE(text->pieces[2].dim.has_value());
  EXPECT_EQ(text->pieces[2].operand, -1);
  EXPECT_EQ(text->pieces[3].text, ", 8))");
  for (const char* wrong : {"{", "}", "{}", "{-1}", "{0:x}", "{x.y}", "{{0}}", "a}b", "{0!r}", "{n//2}"})
    EXPECT_FALSE(TorchTemplate::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace invar::compiler
