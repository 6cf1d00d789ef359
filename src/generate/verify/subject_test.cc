// Disputes about the shipped model and its receipt of 64 tokens: the honest party wins, and the
// judge computes less than a thousandth of the run.
#include <gtest/gtest.h>

#include "dispute/testing.h"
#include "generate/verify/verify.h"

#ifdef INVAR_COMPILER
namespace invar::generate {
namespace {

TEST(Dispute, shipped_model) {
  const std::string root = INVAR_SOURCE_DIR;
  Observer observer;
  const auto text = read_receipt(root + "/tests/golden/romeo.receipt.json");
  ASSERT_TRUE(text) << text.error().message;
  ModelOptions model;
  model.model_name = root + "/models/shakespeare-4m";
  auto run = open_disputed(*text, "romeo", model, {}, observer);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_TRUE(run->other_model.empty());
  const double share = dispute::testing::honest_party_wins(run->subject, 200, 7);
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1e-3);
  RecordProperty("most_of_the_run", std::to_string(share));
}

}  // namespace
}  // namespace invar::generate
#endif
