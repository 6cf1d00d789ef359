#include "shape/dim_expr.h"

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
       {b, s * b * 6 - s + p * p - 1, Polynomial(-7), *floor_quotient(*floor_quotient(s - 7, 2) * b + 1, 3),
        *smaller(s, 16), *smaller(*floor_quotient(*smaller(s, p), 2) * b, *smaller(b, 3) * 5 + 1),
        Polynomial(INT64_MIN), s - p + INT64_MIN})
    EXPECT_EQ(Polynomial::parse(x.text()), x) << x.text();
  for (const char* text : {"",
                           "seq*batch",
                           "1*seq",
                           "seq+0",
                           "2*3",
                           "seq+seq",
                           "(seq)/1",
                           "(seq)/0",
                           "(seq)/-2",
                           "((seq)/2",
                           "-",
                           "a b",
                           "99999999999999999999",
                           "+seq",
                           "seq-",
                           "(2*seq)/2",
                           "*",
                           "(seq/2)/3",
                           "min(seq,seq)",
                           "min(16,seq)",
                           "min(seq,0)",
                           "min(2*seq,4)",
                           "min(seq+1,2)",
                           "min(seq-1,0)",
                           "min(seq,16",
                           "min(seq)",
                           "min(seq,16,3)",
                           "min(,16)",
                           "max(seq,16)"})
    EXPECT_FALSE(Polynomial::parse(text)) << text;
  EXPECT_FALSE(Polynomial::parse(std::string(5000, '(')));
  std::string deep = "seq";
  for (int i = 0; i < 30; ++i) deep = "min(" + deep + "," + std::to_string(i + 1) + ")";
  EXPECT_EQ(Polynomial::read(deep)->text(), deep);
}

TEST(Polynomial, OneTextOfTheSmaller) {
  EXPECT_EQ(smaller(s, 16)->text(), "min(seq,16)");
  EXPECT_EQ(smaller(16, s), smaller(s, 16));
  EXPECT_EQ(smaller(s * 4 - 7, s * 2 + 5)->text(), "2*min(seq,6)+2*seq-7");
  EXPECT_EQ(smaller(p, b)->text(), "min(batch,past)");
  EXPECT_EQ(smaller(s + b, s + 1)->text(), "min(batch,1)+seq");
  EXPECT_EQ(smaller(s - 1, 0)->text(), "min(seq,1)-1");
  EXPECT_EQ(smaller(s + b, s), s);
  EXPECT_EQ(smaller(s, s + b), s);
  EXPECT_EQ(smaller(5, 3), Polynomial(3));
  EXPECT_EQ(smaller(s, s), s);
  EXPECT_EQ(*smaller(s, 16) * 2 - *smaller(16, s), *smaller(s, 16));
  EXPECT_EQ(*floor_quotient(s - 1, 2), *smaller(*floor_quotient(s - 1, 2), *floor_quotient(s - 1, 2) + b));
  EXPECT_EQ(smaller(*floor_quotient(s - p, 2), 0)->text(), "min((-past+seq)/2,0)");
  EXPECT_FALSE(product(s, INT64_MIN));
}

TEST(Polynomial, IsNoLongerThanWhatCanBeRead) {
  Polynomial all;
  for (char c = 'a';; ++c) {
    const std::optional<Polynomial> more = sum(all, Polynomial::of(std::string(60, c)));
    if (!more) break;
    all = *more;
    ASSERT_LT(c, 'z');
  }
  EXPECT_EQ(all.terms().size(), 16u);
  EXPECT_EQ(Polynomial::parse(all.text()), all);
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
  const Polynomial y = *smaller(*floor_quotient(s - 7, 2) * b, p * 2 - 20) * 3 + b;
  for (int64_t n : {-9, 0, 1, 6, 7, 8, 9, 100}) {
    auto lookup = [n](const std::string& name) {
      return std::optional<int64_t>(name == "seq" ? n : name == "batch" ? 3 : 5);
    };
    const int64_t half = (n - 7) / 2 - ((n - 7) % 2 < 0);
    EXPECT_EQ(y.value(lookup), std::min<int64_t>(half * 3, -10) * 3 + 3) << n;
    EXPECT_EQ(smaller(p, s)->value(lookup), std::min<int64_t>(5, n));
  }
  EXPECT_EQ(x.value([](const std::string&) { return std::nullopt; }), std::nullopt);
  EXPECT_EQ(smaller(s, p)->value([](const std::string& name) {
    return name == "seq" ? std::optional<int64_t>(1) : std::nullopt;
  }),
            std::nullopt);
  EXPECT_EQ((s * s).value([](const std::string&) { return std::optional<int64_t>(1ll << 40); }),
            std::nullopt);
}

TEST(Polynomial, QuotientsOfQuotientsAreOne) {
  const Polynomial third = *floor_quotient(s * 2 + 1, 3);
  EXPECT_EQ(quotient(third, 4)->text(), "(2*seq+1)/12");
  EXPECT_EQ(quotient(third - 5, 4)->text(), "(seq+5)/6-2");
  EXPECT_EQ(quotient(third + p, 4), floor_quotient(third + p, 4));
  for (int64_t n = 0; n < 40; ++n) {
    auto lookup = [n](const std::string&) { return std::optional<int64_t>(n); };
    EXPECT_EQ(quotient(third - 5, 4)->value(lookup), floor_quotient(third - 5, 4)->value(lookup)) << n;
  }
}

TEST(Polynomial, NeverNegative) {
  EXPECT_TRUE((s * b + 1).never_negative());
  EXPECT_FALSE((s - 1).never_negative());
  EXPECT_FALSE(floor_quotient(s - p, 2)->never_negative());
  const Polynomial least = *smaller(s, 16);
  EXPECT_TRUE(least.never_negative());
  EXPECT_TRUE((s - least).never_negative());
  EXPECT_TRUE((Polynomial(16) - least).never_negative());
  EXPECT_TRUE((b * 32 - b * least * 2).never_negative());
  EXPECT_TRUE((s + p - least - *smaller(p, b)).never_negative());
  EXPECT_TRUE((least - *smaller(s, 3)).never_negative());
  EXPECT_FALSE((least - *smaller(s, 17)).never_negative());
  EXPECT_FALSE((*smaller(s, p) - *smaller(s, b)).never_negative());
  EXPECT_FALSE((Polynomial(15) - least).never_negative());
  EXPECT_FALSE((least - 1).never_negative());
  EXPECT_FALSE((p * 16 - *floor_quotient(p - 1, 2) * least).never_negative());
  EXPECT_FALSE(smaller(s, b - 1)->never_negative());
}

TEST(Polynomial, TooLargeIsNothing) {
  Polynomial x = s;
  for (int i = 0; i < 15; ++i) x = x * s;
  EXPECT_FALSE(product(x, s));
  EXPECT_FALSE(product(s * INT64_MAX, 2));
}

}  // namespace
}  // namespace invar
