#include "base/polynomial.h"

#include <gtest/gtest.h>

namespace invar {
namespace {

const Polynomial b = Polynomial::of("batch"), s = Polynomial::of("seq"), p = Polynomial::of("past");

Polynomial operator+(const Polynomial& x, const Polynomial& y) {
  return *sum(x, y);
}
Polynomial operator-(const Polynomial& x, const Polynomial& y) {
  return *difference(x, y);
}
Polynomial operator*(const Polynomial& x, const Polynomial& y) {
  return *product(x, y);
}

TEST(Polynomial, OneText) {
  EXPECT_EQ((s * b).text(), "batch*seq");
  EXPECT_EQ((s * b * 6 - s + p * p - 1).text(), "6*batch*seq+past*past-seq-1");
  EXPECT_EQ((s - s).text(), "0");
  EXPECT_EQ(floor_quotient(s * 2 + b * 4 - 1, 4)->text(), "(2*seq+3)/4+batch-1");
  EXPECT_EQ(floor_quotient(s * 2 + b * 4 + 2, 4)->text(), "(seq+1)/2+batch");
  EXPECT_EQ(*floor_quotient(s * 4 + 3, 4), s);
}

TEST(Polynomial, ReadsWhatItWrites) {
  for (const Polynomial& x :
       {b, s * b * 6 - s + p * p - 1, Polynomial(-7), *floor_quotient(*floor_quotient(s - 7, 2) * b + 1, 3)})
    EXPECT_EQ(Polynomial::parse(x.text()), x) << x.text();
  for (const char* text :
       {"", "seq*batch", "1*seq", "seq+0", "2*3", "seq+seq", "(seq)/1", "(seq)/0", "(seq)/-2", "((seq)/2",
        "-", "a b", "99999999999999999999", "+seq", "seq-", "(2*seq)/2", "*", "(seq/2)/3"})
    EXPECT_FALSE(Polynomial::parse(text)) << text;
  EXPECT_FALSE(Polynomial::parse(std::string(5000, '(')));
}

TEST(Polynomial, ReadsOtherSpellings) {
  EXPECT_EQ(Polynomial::read("seq * 2 + 1*batch - 0"), s * 2 + b);
  EXPECT_EQ(Polynomial::read("past + (2*seq + 3) / 2"), p + s + 1);
  EXPECT_FALSE(Polynomial::read("past.seq"));
}

TEST(Polynomial, Divides) {
  EXPECT_EQ(exact_quotient(s * b * 6 + s * 3, s * 3), b * 2 + 1);
  EXPECT_EQ(exact_quotient((s + p) * b * (s - 1), (s + p) * b), s - 1);
  EXPECT_EQ(exact_quotient(s * b, p), std::nullopt);
  EXPECT_EQ(exact_quotient(s * 3, 2), std::nullopt);
  EXPECT_EQ(exact_quotient(s, 0), std::nullopt);
}

// A sum of products and quotients, computed at once and by its text.
TEST(Polynomial, HasAValue) {
  const Polynomial x = *floor_quotient(s - 7, 2) * b + p - 1;
  for (int64_t n : {1, 6, 7, 8, 100}) {
    auto lookup = [n](const std::string& name) {
      return std::optional<int64_t>(name == "seq" ? n : name == "batch" ? 3 : 5);
    };
    const int64_t half = (n - 7) / 2 - ((n - 7) % 2 < 0);
    EXPECT_EQ(x.value(lookup), half * 3 + 4);
  }
  EXPECT_EQ(x.value([](const std::string&) { return std::nullopt; }), std::nullopt);
  EXPECT_EQ((s * s).value([](const std::string&) { return std::optional<int64_t>(1ll << 40); }),
            std::nullopt);
}

TEST(Polynomial, NeverNegative) {
  EXPECT_TRUE((s * b + 1).never_negative());
  EXPECT_FALSE((s - 1).never_negative());
  EXPECT_FALSE(floor_quotient(s - p, 2)->never_negative());
}

TEST(Polynomial, TooLargeIsNothing) {
  Polynomial x = s;
  for (int i = 0; i < 15; ++i) x = x * s;
  EXPECT_FALSE(product(x, s));
  EXPECT_FALSE(product(s * INT64_MAX, 2));
}

}  // namespace
}  // namespace invar
