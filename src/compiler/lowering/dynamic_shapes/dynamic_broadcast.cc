// Dimensions of which it cannot be shown that they broadcast: what they broadcast to, which kernels check (spec/onnx.md onnx.24).
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

std::optional<Extent> Node::common(const Extent& x, const Extent& y) {
  const Extent one = Extent::of(1);
  if (x == y || y == one) return x;
  if (x == one) return y;
  const std::optional<Polynomial> a = polynomial_of(x), b = polynomial_of(y);
  if (!a || !b) return std::nullopt;
  if (a->constant() || b->constant()) return a->constant() ? x : y;
  // One that is clamped, where nothing is.
  const std::string names[] = {a->text(), b->text()};
  for (bool second : {false, true})
    for (const Unclamped& mine : ports_.clamped[names[second]]) {
      if (mine.length == (second ? *a : *b)) return second ? x : y;
      for (const Unclamped& other : ports_.clamped[names[!second]])
        if (mine.length == other.length) return Extent::of(mine.length);
    }
  std::set<std::string>& among = ports_.spread[names[0]];
  if (among.contains(names[1])) return x;
  if (ports_.spread[names[1]].contains(names[0])) return y;
  std::optional<Polynomial> size = broadcast(*a, *b);
  if (!size) size = most(*a, *b);
  if (!size) return std::nullopt;
  std::set<std::string> all(std::begin(names), std::end(names));
  for (const std::string& name : names) all.insert(ports_.spread[name].begin(), ports_.spread[name].end());
  all.erase(size->text());
  ports_.spread[size->text()].merge(all);
  return Extent::of(*size);
}

// The wanted one, but what is there where 1 is wanted.
std::optional<Extent> Node::widened(const Extent& from, const Extent& to) {
  const Extent one = Extent::of(1);
  if (to == one || from == to) return from;
  if (from == one || to.constant()) return to;
  const std::optional<Polynomial> a = polynomial_of(from), b = polynomial_of(to);
  if (!a || !b) return std::nullopt;
  for (const Unclamped& otherwise : ports_.clamped[a->text()])
    if (otherwise.length == *b) return to;
  if (ports_.spread[b->text()].contains(a->text())) return to;
  // 1 where 1 is wanted, else 0.
  const std::optional<Polynomial> some = least(*b, 1), more = least(*b, 2), rest = difference(*a, 1);
  const std::optional<Polynomial> twice = some ? product(*some, 2) : some;
  const std::optional<Polynomial> single = twice && more ? difference(*twice, *more) : std::nullopt;
  const std::optional<Polynomial> kept = single && rest ? product(*single, *rest) : std::nullopt;
  const std::optional<Polynomial> size = kept ? sum(*b, *kept) : kept;
  if (!size) return std::nullopt;
  for (const Polynomial& either : {*a, *b})
    if (always_equal(*size, either)) return Extent::of(either);
  ports_.spread[size->text()].merge(std::set<std::string>{a->text(), b->text()});
  return Extent::of(*size);
}

// Operands that broadcast if calls so decide, over their common dimensions, which kernels check. None: they do not.
Result<SmallVector<Value>> Node::spread_at_run_time(ValueRange operands) {
  const Extent one = Extent::of(1);
  Shape all;  // the last dimension first
  bool decided = false;
  for (Value v : operands) {
    Shape shape = shape_of(v.getType());
    std::reverse(shape.begin(), shape.end());
    all.resize(std::max(all.size(), shape.size()), one);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (all[d] == shape[d] || shape[d] == one) continue;
      if (all[d] != one) {
        if (!may_be_equal(all[d], shape[d]) && !is_bound(all[d]) && !is_bound(shape[d]))
          return SmallVector<Value>();
        decided = true;
      }
      const std::optional<Extent> size = common(all[d], shape[d]);
      if (!size) return SmallVector<Value>();
      all[d] = *size;
    }
  }
  SmallVector<Value> spread;
  if (!decided) return spread;
  for (Value v : operands) {
    Shape shape = shape_of(v.getType());
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != one) shape[d] = all[shape.size() - 1 - d];
    if (shape == shape_of(v.getType())) {
      spread.push_back(v);
    } else {
      INVAR_TRY(Value wide, make<ExpandOp>(v, {}, tensor_of(shape, element_of(v))));
      spread.push_back(wide);
    }
  }
  return spread;
}

}  // namespace invar::compiler
