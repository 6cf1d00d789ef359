#include "generate/onnx/check_export.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "generate/onnx/compile_onnx.h"
#include "num/env.h"
#include "run/session.h"

namespace invar::generate {
namespace {

// The logits of all tokens, which come in calls of these sizes, the last one for all that is left.
Result<std::vector<float>> logits_of(run::Session& session, std::span<const int32_t> tokens,
                                     std::span<const size_t> calls) {
  session.reset();
  std::vector<float> all;
  for (size_t at = 0, call = 0; at < tokens.size(); ++call) {
    const size_t left = tokens.size() - at, n = call < calls.size() ? std::min(calls[call], left) : left;
    const auto rows = session.step(tokens.subspan(at, n), /*all=*/true);
    // Sizes that do not fit are no fault of the tokens: the graph is none for all lengths.
    if (!rows && rows.error().code == Code::bad_input) return not_covered(rows.error().message);
    INVAR_CHECK_OK(rows);
    all.insert(all.end(), rows->begin(), rows->end());
    at += n;
  }
  return all;
}

std::string scientific(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", x);
  return text;
}

}  // namespace

Result<ExportCheck> check_export(const std::string& folder, const std::vector<int32_t>& tokens,
                                 std::span<const float> expected, double bound, Observer& observer) {
  const num::ArithmeticEnv env;
  TensorProgram program;
  program.model = folder + "/model.onnx";
  INVAR_TRY(CompiledModel compiled,
            compile_onnx(program, OperationSet::reproducible, /*keeps_memory=*/true, observer));
  const auto checking = observer.phase("check");
  ExportCheck check;
  check.keeps = !compiled.plan.states.empty();
  run::Options options;
  options.capacity = static_cast<int64_t>(tokens.size());
  INVAR_TRY(run::Session session, run::Session::open(std::move(compiled.plan), compiled.folder, options));
  INVAR_TRY(const std::vector<float> whole, logits_of(session, tokens, {}));
  if (whole.size() != expected.size())
    return not_covered("the graph gives " + std::to_string(whole.size()) + " logits, the model " +
                       std::to_string(expected.size()));
  double largest = 0, difference = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    const double x = expected[i], d = std::abs(whole[i] - x);
    largest = std::max(largest, std::abs(x)), difference = d <= difference ? difference : d;  // NaN stays
  }
  check.error = difference / largest;
  if (!(check.error <= bound))
    return not_covered("the graph's logits differ from the model's by " + scientific(check.error) +
                       " of the largest one, more than " + scientific(bound));
  // A past that is lost or taken twice shows where a call begins.
  for (const std::vector<size_t>& calls : {std::vector<size_t>{tokens.size() / 2}, {1, 7, 1}}) {
    INVAR_TRY(const std::vector<float> parts, logits_of(session, tokens, calls));
    if (std::memcmp(parts.data(), whole.data(), whole.size() * sizeof(float)) != 0)
      return not_covered("the graph's logits are other bits where the prompt comes in " +
                         std::to_string(calls.size() + 1) + " calls: something of the past is no state");
  }
  checking->done("error " + scientific(check.error) + " of the largest logit, " +
                 std::to_string(tokens.size()) + " positions" +
                 (check.keeps ? "; the same bits in one call and in several" : ""));
  return check;
}

}  // namespace invar::generate
