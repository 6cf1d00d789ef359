// Verification by recomputing, see receipt.h.
#include <algorithm>
#include <map>

#include "base/hash/sha256_blocks.h"
#include "receipt/fields/rules.h"
#include "receipt/receipt.h"

namespace invar::receipt {
namespace {

// `where`: of what has `mine`, such as "in this model".
void compare_tensors(const std::string& list, const std::vector<TensorDigest>& claimed,
                     const std::vector<TensorDigest>& mine, const std::string& where,
                     std::vector<Finding>& f) {
  auto by_name = [](const std::vector<TensorDigest>& all) {
    std::map<std::string_view, const TensorDigest*> m;
    for (const TensorDigest& t : all) m[t.name] = &t;
    return m;
  };
  auto shape = [](const TensorDigest& t) {
    std::string s;
    for (int64_t d : t.shape) s += (s.empty() ? "" : "x") + std::to_string(d);
    return t.dtype + " " + (s.empty() ? "scalar" : s);
  };
  const auto theirs = by_name(claimed), ours = by_name(mine);
  auto field = [&](std::string_view name) { return list + "[" + std::string(name) + "]"; };
  for (const auto& [name, t] : theirs) {
    auto it = ours.find(name);
    if (it == ours.end())
      f.push_back({field(name), "no such tensor " + where, shape(*t), true});
    else if (shape(*it->second) != shape(*t))
      f.push_back({field(name), shape(*it->second), shape(*t), true});
    else if (it->second->sha256 != t->sha256)
      f.push_back({field(name) + ".sha256", to_hex(it->second->sha256), to_hex(t->sha256), true});
  }
  for (const auto& [name, t] : ours)
    if (!theirs.contains(name)) f.push_back({field(name), shape(*t), "nothing of such a tensor", true});
}

}  // namespace

std::string text_of(const Finding& f) {
  return f.field + ": the receipt says " + f.found +
         (f.computed ? ", this machine computes " + f.expected : ", and " + f.expected + " is required");
}

std::vector<std::string> texts_of(std::span<const Finding> all) {
  constexpr size_t kMostOfOneList = 2;  // of which each is shown
  const auto list_of = [](const Finding& f) { return f.field.substr(0, f.field.find('[')); };
  std::vector<std::string> texts;
  for (size_t i = 0, end = 0; i < all.size(); i = end) {
    const std::string list = list_of(all[i]);
    for (end = i + 1; end < all.size() && list_of(all[end]) == list;) ++end;
    const size_t shown = end - i > kMostOfOneList ? 1 : end - i;
    for (const Finding& f : all.subspan(i, shown)) texts.push_back(text_of(f));
    if (i + shown < end)
      texts.push_back(list + ": and " + std::to_string(end - i - shown) +
                      " more, which `verify --json` names");
  }
  return texts;
}

// receipt.23: the steps whose digests with hash and salt are smallest.
Result<std::vector<int64_t>> select_steps(const Receipt& r, const StepSelection& selection) {
  const auto count = static_cast<int64_t>(r.tokens.size());
  std::vector<int64_t> steps;
  if (selection.range) {
    const auto [begin, end] = *selection.range;
    if (begin < 0 || begin >= end || end > count)
      return bad_input("steps " + std::to_string(begin) + ":" + std::to_string(end) +
                       " are not in the answer, which has steps 0:" + std::to_string(count));
    for (int64_t i = begin; i < end; ++i) steps.push_back(i);
    return steps;
  }
  if (selection.spot < 0 || selection.spot > count)
    return bad_input(std::to_string(selection.spot) + " steps cannot be chosen of an answer of " +
                     std::to_string(count));
  std::vector<std::pair<Digest, int64_t>> order;
  const Digest hash = receipt_hash(r);
  for (int64_t i = 0; i < count; ++i)
    order.emplace_back(Sha256()
                           .update("invar-spot ")
                           .update(to_hex(hash))
                           .update(" " + std::to_string(i) + " ")
                           .update(selection.salt)
                           .finish(),
                       i);
  std::sort(order.begin(), order.end());
  order.resize(static_cast<size_t>(selection.spot > 0 ? selection.spot : count));
  for (const auto& [digest, i] : order) steps.push_back(i);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<Finding> compare_model(const Receipt& claimed, const Receipt& mine) {
  std::vector<Finding> f;
  // First, since another adapter has other tensors, too.
  const auto shown = [](const Digest& d) { return d == Digest{} ? "no adapter" : to_hex(d); };
  if (claimed.adapter != mine.adapter)
    f.push_back({"model.adapter", shown(mine.adapter), shown(claimed.adapter), true});
  const bool same_adapter = f.empty();
  compare_tensors("model.tensors", claimed.tensors, mine.tensors, "in this model", f);
  auto digest = [&](std::string field, const Digest& theirs, const Digest& ours) {
    if (theirs != ours) f.push_back({std::move(field), to_hex(ours), to_hex(theirs), true});
  };
  auto text = [&](std::string field, const std::string& theirs, const std::string& ours) {
    if (theirs != ours) f.push_back({std::move(field), ours, theirs, true});
  };
  if (f.empty() || !same_adapter)
    digest("model.weights", claimed.weights, mine.weights);  // else findings name the tensors
  digest("model.config", claimed.config, mine.config);
  digest("model.tokenizer", claimed.tokenizer, mine.tokenizer);
  digest("model.chat_template", claimed.chat_template, mine.chat_template);
  if (!claimed.text_of.empty()) text("model.text_of", claimed.text_of, mine.text_of);  // of today's receipts
  text("program.recipe", claimed.recipe, mine.recipe);
  digest("program.digest", claimed.program, mine.program);
  text("program.numerics", claimed.numerics, mine.numerics);
  text("program.profile", claimed.profile, mine.profile);
  text("program.operation_set", claimed.operation_set, mine.operation_set);
  text("program.unicode", claimed.unicode, mine.unicode);
  return f;
}

std::vector<Finding> compare_inputs(const Receipt& claimed, const Receipt& mine) {
  std::vector<Finding> f;
  compare_tensors("input.tensors", claimed.input_tensors, mine.input_tensors, "among those given", f);
  return f;
}

std::vector<Finding> compare_outputs(const Receipt& claimed, const Receipt& mine) {
  std::vector<Finding> f;
  compare_tensors("output.tensors", claimed.output_tensors, mine.output_tensors, "in this program", f);
  return f;
}

Result<int32_t> pick_token(const Receipt& r, std::span<const float> logits, size_t step) {
  return sample::pick(logits, r.sampling,
                      {r.continued(), std::span(r.tokens).first(step), r.stop_tokens, r.max_new_tokens});
}

namespace {

// The steps of an answer, compared with logits as they come; step k is at positions[k].
struct StepChecks {
  const Receipt& claimed;
  std::span<const int64_t> steps, positions;
  Verdict& v;
  Status status;

  void take(const Rows& rows, const ForEach& for_each);
  void compare(int64_t step, const Digest& logits, const Result<int32_t>& token);
};

void StepChecks::compare(int64_t step, const Digest& logits, const Result<int32_t>& token) {
  const std::string index = "[" + std::to_string(step) + "]";
  if (logits != claimed.logits[step])
    v.findings.push_back({"output.logits" + index, to_hex(logits), to_hex(claimed.logits[step]), true});
  if (!token)  // no run has chosen one here
    v.findings.push_back({"output.tokens" + index, "none: " + token.error().message,
                          std::to_string(claimed.tokens[step]), true});
  else if (*token != claimed.tokens[step])
    v.findings.push_back(
        {"output.tokens" + index, std::to_string(*token), std::to_string(claimed.tokens[step]), true});
  ++v.steps_compared;
}

void StepChecks::take(const Rows& rows, const ForEach& for_each) {
  const auto begin = static_cast<size_t>(v.steps_compared);
  size_t end = begin;
  while (end < steps.size() && positions[end] < rows.first + rows.count) ++end;
  if (begin == end || !v.findings.empty() || !status) return;
  if (positions[begin] < rows.first) {
    status = Error{Code::internal,
                   "verify: logits of position " + std::to_string(rows.first) + " came out of order"};
    return;
  }
  const size_t width = rows.logits.size() / static_cast<size_t>(rows.count);
  const auto row = [&](size_t k) {
    return rows.logits.subspan(static_cast<size_t>(positions[k] - rows.first) * width, width);
  };
  std::vector<Digest> digests(end - begin);
  std::vector<std::optional<Result<int32_t>>> tokens(end - begin);
  // Several are hashed in less time than one after another, unless that leaves threads idle.
  const size_t each_thread = (end - begin) / static_cast<size_t>(std::max(for_each.at_once, 1)),
               each = each_thread >= kSha256Lanes ? kSha256Lanes
                      : each_thread > 1           ? 2
                                                  : 1;
  const auto check = [&](int part) {
    const size_t k = begin + each * static_cast<size_t>(part), last = std::min(k + each, end) - 1;
    std::vector<std::span<const float>> rows_here;
    for (size_t i = k; i <= last; ++i) rows_here.push_back(row(i));
    commit(rows_here, std::span(digests).subspan(k - begin, rows_here.size()));
    for (size_t i = k; i <= last; ++i)
      tokens[i - begin] = pick_token(claimed, row(i), static_cast<size_t>(steps[i]));
  };
  const int parts = static_cast<int>((end - begin + each - 1) / each);
  for (int part = 0; !for_each.run && part < parts; ++part) check(part);
  if (for_each.run) for_each.run(parts, check);
  for (size_t k = begin; k < end && v.findings.empty(); ++k)
    compare(steps[k], digests[k - begin], *tokens[k - begin]);
}

}  // namespace

Result<Verdict> verify(const Receipt& claimed, const Receipt& mine, const Forward& forward, int64_t vocab,
                       const StepSelection& selection, const ForEach& for_each) {
  Verdict v;
  v.findings = compare_model(claimed, mine);
  v.tensors_compared = static_cast<int64_t>(mine.tensors.size());
  if (!v.findings.empty()) return v;
  check_consistency(claimed, v.findings);
  if (vocab > 0) {
    if (claimed.decoder_tokens.empty())
      check_tokens("input.tokens", claimed.prompt_tokens, vocab, v.findings);
    check_tokens("input.decoder_tokens", claimed.decoder_tokens, vocab, v.findings);
    check_tokens("output.tokens", claimed.tokens, vocab, v.findings);
  }
  if (!v.findings.empty()) return v;

  INVAR_TRY(const std::vector<int64_t> steps, select_steps(claimed, selection));
  // The logits of the position before answer token i choose it. So the last token is not fed, nor
  // is one behind the last step.
  std::vector<int32_t> tokens = claimed.continued();
  tokens.insert(tokens.end(), claimed.tokens.begin(), claimed.tokens.begin() + steps.back());
  std::vector<int64_t> positions;
  for (const int64_t i : steps) positions.push_back(static_cast<int64_t>(claimed.continued().size()) - 1 + i);
  StepChecks checks{claimed, steps, positions, v, {}};
  INVAR_CHECK_OK(forward(tokens, positions, [&](const Rows& rows) { checks.take(rows, for_each); }));
  INVAR_CHECK_OK(checks.status);
  if (v.findings.empty() && v.steps_compared != static_cast<int64_t>(steps.size()))
    return Error{Code::internal, "verify: " + std::to_string(v.steps_compared) + " of " +
                                     std::to_string(steps.size()) + " logits rows came"};
  return v;
}

}  // namespace invar::receipt
