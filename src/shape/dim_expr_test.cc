// Tests of symbolic dimension expressions: one text per value, parsing, arithmetic, sign proofs.
#include "shape/dim_expr.h"

#include <gtest/gtest.h>

namespace invar {
namespace {

const DimExpr b = DimExpr::symbol("batch"), s = DimExpr::symbol("seq"), p = DimExpr::symbol("past");

DimExpr operator+(const DimExpr& x, const DimExpr& y) {
  return *sum(x, y);
}
DimExpr operator-(const DimExpr& x, const DimExpr& y) {
  return *difference(x, y);
}
DimExpr operator*(const DimExpr& x, const DimExpr& y) {
  return *product(x, y);
}

TEST(DimExpr, OneText) {
  EXPECT_EQ((s * b).text(), "batch*seq");
  EXPECT_EQ((s * b * 6 - s + p * p - 1).text(), "6*batch*seq+past*past-seq-1");
  EXPECT_EQ((s - s).text(), "0");
  EXPECT_EQ(floor_div_unmerged(s * 2 + b * 4 - 1, 4)->text(), "(2*seq+3)/4+batch-1");
  EXPECT_EQ(floor_div_unmerged(s * 2 + b * 4 + 2, 4)->text(), "(seq+1)/2+batch");
  EXPECT_EQ(*floor_div_unmerged(s * 4 + 3, 4), s);
}

TEST(DimExpr, ParsesItsOwnText) {
  for (const DimExpr& x :
       {b, s * b * 6 - s + p * p - 1, DimExpr(-7),
        *floor_div_unmerged(*floor_div_unmerged(s - 7, 2) * b + 1, 3), *symbolic_min(s, 16),
        *symbolic_min(*floor_div_unmerged(*symbolic_min(s, p), 2) * b, *symbolic_min(b, 3) * 5 + 1),
        DimExpr(INT64_MIN), s - p + INT64_MIN})
    EXPECT_EQ(DimExpr::parse_canonical(x.text()), x) << x.text();
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
    EXPECT_FALSE(DimExpr::parse_canonical(text)) << text;
  EXPECT_FALSE(DimExpr::parse_canonical(std::string(5000, '(')));
  std::string deep = "seq";
  for (int i = 0; i < 30; ++i) deep = "min(" + deep + "," + std::to_string(i + 1) + ")";
  EXPECT_EQ(DimExpr::parse(deep)->text(), deep);
}

TEST(DimExpr, HoldsItsFactors) {
  EXPECT_EQ(*s.as_symbol(), "seq");
  for (const DimExpr& x : {DimExpr(0), DimExpr(3), s * 2, s * b, s + 1, *symbolic_min(s, 16)})
    EXPECT_FALSE(x.as_symbol()) << x.text();
  const DimExpr least = *symbolic_min(s, 16), half = *floor_div_unmerged(s + 1, 2);
  const auto factor = [](const DimExpr& x) { return x.terms().begin()->first[0]; };
  EXPECT_FALSE(factor(s).composite());
  EXPECT_EQ(factor(least).composite()->first, s);
  EXPECT_EQ(factor(least).composite()->second, DimExpr(16));
  EXPECT_EQ(factor(half).composite()->first, s + 1);
  EXPECT_EQ(factor(half).composite()->divisor, 2);
  EXPECT_EQ(DimExpr(factor(half)), half);
  EXPECT_EQ(DimExpr::parse(half.text())->hash(), half.hash());
  EXPECT_TRUE((s < b) != (b < s));
  EXPECT_FALSE(s < s);
}

TEST(DimExpr, MinHasOneText) {
  EXPECT_EQ(symbolic_min(s, 16)->text(), "min(seq,16)");
  EXPECT_EQ(symbolic_min(16, s), symbolic_min(s, 16));
  EXPECT_EQ(symbolic_min(s * 4 - 7, s * 2 + 5)->text(), "2*min(seq,6)+2*seq-7");
  EXPECT_EQ(symbolic_min(p, b)->text(), "min(batch,past)");
  EXPECT_EQ(symbolic_min(s + b, s + 1)->text(), "min(batch,1)+seq");
  EXPECT_EQ(symbolic_min(s - 1, 0)->text(), "min(seq,1)-1");
  EXPECT_EQ(symbolic_min(s + b, s), s);
  EXPECT_EQ(symbolic_min(s, s + b), s);
  EXPECT_EQ(symbolic_min(5, 3), DimExpr(3));
  EXPECT_EQ(symbolic_min(s, s), s);
  EXPECT_EQ(*symbolic_min(s, 16) * 2 - *symbolic_min(16, s), *symbolic_min(s, 16));
  EXPECT_EQ(*floor_div_unmerged(s - 1, 2),
            *symbolic_min(*floor_div_unmerged(s - 1, 2), *floor_div_unmerged(s - 1, 2) + b));
  EXPECT_EQ(symbolic_min(*floor_div_unmerged(s - p, 2), 0)->text(), "min((-past+seq)/2,0)");
  EXPECT_FALSE(product(s, INT64_MIN));
}

TEST(DimExpr, StaysParsable) {
  DimExpr all;
  for (char c = 'a';; ++c) {
    const std::optional<DimExpr> more = sum(all, DimExpr::symbol(std::string(60, c)));
    if (!more) break;
    all = *more;
    ASSERT_LT(c, 'z');
  }
  EXPECT_EQ(all.terms().size(), 16u);
  EXPECT_EQ(DimExpr::parse_canonical(all.text()), all);
}

TEST(DimExpr, ParsesOtherSpellings) {
  EXPECT_EQ(DimExpr::parse("seq * 2 + 1*batch - 0"), s * 2 + b);
  EXPECT_EQ(DimExpr::parse("past + (2*seq + 3) / 2"), p + s + 1);
  EXPECT_FALSE(DimExpr::parse("past.seq"));
}

TEST(DimExpr, Divides) {
  EXPECT_EQ(exact_div(s * b * 6 + s * 3, s * 3), b * 2 + 1);
  EXPECT_EQ(exact_div((s + p) * b * (s - 1), (s + p) * b), s - 1);
  EXPECT_EQ(exact_div(s * b, p), std::nullopt);
  EXPECT_EQ(exact_div(s * 3, 2), std::nullopt);
  EXPECT_EQ(exact_div(s, 0), std::nullopt);
}

// Compares with the same arithmetic on integers.
TEST(DimExpr, Evaluates) {
  const DimExpr x = *floor_div_unmerged(s - 7, 2) * b + p - 1;
  for (int64_t n : {1, 6, 7, 8, 100}) {
    auto lookup = [n](const std::string& name) {
      return std::optional<int64_t>(name == "seq" ? n : name == "batch" ? 3 : 5);
    };
    const int64_t half = (n - 7) / 2 - ((n - 7) % 2 < 0);
    EXPECT_EQ(x.evaluate(lookup), half * 3 + 4);
  }
  const DimExpr y = *symbolic_min(*floor_div_unmerged(s - 7, 2) * b, p * 2 - 20) * 3 + b;
  for (int64_t n : {-9, 0, 1, 6, 7, 8, 9, 100}) {
    auto lookup = [n](const std::string& name) {
      return std::optional<int64_t>(name == "seq" ? n : name == "batch" ? 3 : 5);
    };
    const int64_t half = (n - 7) / 2 - ((n - 7) % 2 < 0);
    EXPECT_EQ(y.evaluate(lookup), std::min<int64_t>(half * 3, -10) * 3 + 3) << n;
    EXPECT_EQ(symbolic_min(p, s)->evaluate(lookup), std::min<int64_t>(5, n));
  }
  EXPECT_EQ(x.evaluate([](const std::string&) { return std::nullopt; }), std::nullopt);
  EXPECT_EQ(symbolic_min(s, p)->evaluate([](const std::string& name) {
    return name == "seq" ? std::optional<int64_t>(1) : std::nullopt;
  }),
            std::nullopt);
  EXPECT_EQ((s * s).evaluate([](const std::string&) { return std::optional<int64_t>(1ll << 40); }),
            std::nullopt);
}

TEST(DimExpr, MergesNestedDivisions) {
  const DimExpr third = *floor_div_unmerged(s * 2 + 1, 3);
  EXPECT_EQ(floor_div(third, 4)->text(), "(2*seq+1)/12");
  EXPECT_EQ(floor_div(third - 5, 4)->text(), "(seq+5)/6-2");
  EXPECT_EQ(floor_div(third + p, 4), floor_div_unmerged(third + p, 4));
  for (int64_t n = 0; n < 40; ++n) {
    auto lookup = [n](const std::string&) { return std::optional<int64_t>(n); };
    EXPECT_EQ(floor_div(third - 5, 4)->evaluate(lookup), floor_div_unmerged(third - 5, 4)->evaluate(lookup))
        << n;
  }
}

TEST(DimExpr, ProvesNonnegative) {
  EXPECT_TRUE((s * b + 1).is_nonnegative());
  EXPECT_FALSE((s - 1).is_nonnegative());
  EXPECT_FALSE(floor_div_unmerged(s - p, 2)->is_nonnegative());
  const DimExpr least = *symbolic_min(s, 16);
  EXPECT_TRUE(least.is_nonnegative());
  EXPECT_TRUE((s - least).is_nonnegative());
  EXPECT_TRUE((DimExpr(16) - least).is_nonnegative());
  EXPECT_TRUE((b * 32 - b * least * 2).is_nonnegative());
  EXPECT_TRUE((s + p - least - *symbolic_min(p, b)).is_nonnegative());
  EXPECT_TRUE((least - *symbolic_min(s, 3)).is_nonnegative());
  EXPECT_FALSE((least - *symbolic_min(s, 17)).is_nonnegative());
  EXPECT_FALSE((*symbolic_min(s, p) - *symbolic_min(s, b)).is_nonnegative());
  EXPECT_FALSE((DimExpr(15) - least).is_nonnegative());
  EXPECT_FALSE((least - 1).is_nonnegative());
  EXPECT_FALSE((p * 16 - *floor_div_unmerged(p - 1, 2) * least).is_nonnegative());
  EXPECT_FALSE(symbolic_min(s, b - 1)->is_nonnegative());
}

TEST(DimExpr, RejectsTooLarge) {
  DimExpr x = s;
  for (int i = 0; i < 15; ++i) x = x * s;
  EXPECT_FALSE(product(x, s));
  EXPECT_FALSE(product(s * INT64_MAX, 2));
}

}  // namespace
}  // namespace invar
