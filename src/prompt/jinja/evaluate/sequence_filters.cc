#include <algorithm>

#include "prompt/jinja/evaluate/filters.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {
namespace {

// a.b.0 of an item: each part is a key, digits are an index.
Result<Value> at_path(Interpreter& in, Value v, const Value& path, const Value* otherwise = nullptr) {
  std::vector<Value> keys;
  if (const std::string* s = path.string()) {
    for (const std::string& part : split(*s, ".", -1)) {
      const bool index =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
      keys.push_back(index ? Value{int64_t{std::stoi(part)}} : text(part));
    }
  } else {
    keys.push_back(path);
  }
  for (const Value& key : keys) {
    INVAR_TRY(v, in.item(v, key));
    if (v.undefined() && otherwise && !otherwise->none()) v = *otherwise;
  }
  return v;
}

Result<Value> key_of(Interpreter& in, const Value& v, const Value* attribute, bool case_sensitive) {
  Value key = v;
  if (attribute && !attribute->none()) {
    INVAR_TRY(key, at_path(in, v, *attribute));
  }
  if (case_sensitive || !key.string()) return key;
  INVAR_TRY(std::string lower, in_case(*key.string(), Case::lower));
  return text(std::move(lower));
}

bool is_true(const Value* v) {
  return v && truth(*v);
}

struct Keyed {
  Value key, value;
};
Result<std::vector<Keyed>> keyed(Interpreter& in, const Value& v, const Value* attribute,
                                 bool case_sensitive) {
  INVAR_TRY(std::vector<Value> all, in.iterate(v));
  std::vector<Keyed> items;
  for (Value& one : all) {
    INVAR_TRY(Value key, key_of(in, one, attribute, case_sensitive));
    items.push_back({std::move(key), std::move(one)});
  }
  return items;
}

// Stable, also where it is reversed.
Status order(Interpreter& in, std::vector<Keyed>& items, bool reverse) {
  INVAR_CHECK_OK(in.spend(items.size() * 4));
  const Keyed* wrong = nullptr;
  const Keyed* against = nullptr;
  for (size_t i = 1; i < items.size() && !wrong; ++i)
    if (!less(items[0].key, items[i].key)) wrong = &items[i], against = &items[0];
  if (wrong)
    return unsupported(wrong->key.undefined() ? wrong->key : against->key,
                       "'<' not supported between instances of '" + std::string(type_name(wrong->key)) +
                           "' and '" + std::string(type_name(against->key)) + "'");
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return (reverse ? less(b.key, a.key) : less(a.key, b.key)).value_or(false);
  });
  return {};
}

std::vector<Value> values_of(std::vector<Keyed> items) {
  std::vector<Value> values;
  for (Keyed& item : items) values.push_back(std::move(item.value));
  return values;
}

Result<Value> sorted(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(auto items, keyed(in, v, a[2], is_true(a[1])));
  INVAR_CHECK_OK(order(in, items, is_true(a[0])));
  return list(values_of(std::move(items)));
}

template <bool largest>
Result<Value> extreme(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(auto items, keyed(in, v, a[1], is_true(a[0])));
  if (items.empty()) return undefined("No aggregated item, sequence was empty.");
  INVAR_CHECK_OK(order(in, items, largest));
  return items[0].value;
}

Result<Value> unique(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(auto items, keyed(in, v, a[1], is_true(a[0])));
  std::vector<Keyed> kept;
  for (Keyed& item : items) {
    INVAR_CHECK_OK(in.spend(1 + kept.size() / 4));
    const bool seen =
        std::any_of(kept.begin(), kept.end(), [&](const Keyed& k) { return equal(k.key, item.key); });
    if (!seen) kept.push_back(std::move(item));
  }
  return sequence(Sequence::generator, values_of(std::move(kept)));
}

Result<Value> groupby(Interpreter& in, const Value& v, const BoundArguments& a) {
  if (!a[0] || a[1]) return not_covered("groupby takes one attribute here");
  INVAR_TRY(auto items, keyed(in, v, a[0], is_true(a[2])));
  INVAR_CHECK_OK(order(in, items, false));
  std::vector<Value> groups;
  for (size_t i = 0; i < items.size();) {
    std::vector<Value> members;
    // Where case does not matter, a group has the name of its first member.
    INVAR_TRY(Value name, key_of(in, items[i].value, a[0], true));
    const Value key = items[i].key;
    for (; i < items.size() && equal(items[i].key, key); ++i) members.push_back(items[i].value);
    groups.push_back(sequence(Sequence::tuple, {std::move(name), list(std::move(members))}));
  }
  return list(std::move(groups));
}

Result<Value> dictsort(Interpreter& in, const Value& v, const BoundArguments& a) {
  if (!v.dict()) return unsupported(v, "dictsort takes a dict");
  std::string by = "key";
  if (a[1]) {
    INVAR_TRY(by, string_of(*a[1], "the order of dictsort"));
  }
  if (by != "key" && by != "value") return bad_input("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> items;
  for (const auto& [key, value] : v.dict()->members) {
    INVAR_TRY(Value k, key_of(in, by == "key" ? key : value, nullptr, is_true(a[0])));
    items.push_back({std::move(k), sequence(Sequence::tuple, {key, value})});
  }
  INVAR_CHECK_OK(order(in, items, is_true(a[2])));
  return list(values_of(std::move(items)));
}

Result<Value> items(Interpreter& in, const Value& v, const BoundArguments&) {
  if (v.undefined()) return sequence(Sequence::generator, {});
  if (!v.dict()) return bad_input("Can only get item pairs from a mapping.");
  INVAR_TRY(const Value view, call_method(in, v, "items", {}));
  return sequence(Sequence::generator, view.sequence()->elements);
}

Result<Value> length_of(Interpreter&, const Value& v, const BoundArguments&) {
  if (v.undefined()) return Value{int64_t{0}};
  if (const std::string* s = v.string()) return Value{length(*s)};
  if (v.dict()) return Value{static_cast<int64_t>(v.dict()->members.size())};
  const Sequence* s = v.sequence();
  if (s && s->kind != Sequence::generator) return Value{static_cast<int64_t>(s->elements.size())};
  if (const auto* loop = std::get_if<std::shared_ptr<Loop>>(&v.v))
    return Value{static_cast<int64_t>((*loop)->items.size())};
  return bad_input("object of type '" + std::string(type_name(v)) + "' has no len()");
}

Result<Value> first(Interpreter& in, const Value& v, const BoundArguments&) {
  INVAR_TRY(std::vector<Value> all, in.iterate(v));
  return all.empty() ? undefined("No first item, sequence was empty.") : all.front();
}
Result<Value> last(Interpreter& in, const Value& v, const BoundArguments&) {
  const Sequence* s = v.sequence();
  if (s && s->kind == Sequence::generator) return bad_input("'generator' object is not reversible");
  INVAR_TRY(std::vector<Value> all, in.iterate(v));
  return all.empty() ? undefined("No last item, sequence was empty.") : all.back();
}

Result<Value> reversed(Interpreter& in, const Value& v, const BoundArguments&) {
  if (const std::string* s = v.string()) {
    std::u32string characters = code_points(*s);
    std::reverse(characters.begin(), characters.end());
    return text(utf8(characters));
  }
  INVAR_TRY(std::vector<Value> all, in.iterate(v));
  std::reverse(all.begin(), all.end());
  return sequence(Sequence::generator, std::move(all));
}

Result<Value> join(Interpreter& in, const Value& v, const BoundArguments& a) {
  std::string separator, joined;
  if (a[0]) {
    INVAR_TRY(separator, str(*a[0]));
  }
  INVAR_TRY(std::vector<Value> all, in.iterate(v));
  for (size_t i = 0; i < all.size(); ++i) {
    if (a[1] && !a[1]->none()) {
      INVAR_TRY(all[i], at_path(in, all[i], *a[1]));
    }
    INVAR_TRY(const std::string part, str(all[i]));
    joined.append(i ? separator : "").append(part);
    INVAR_CHECK_OK(in.spend((separator.size() + part.size()) / kBytesCopied));
    if (joined.size() > kLongestText) return too_long("join");
  }
  return text(std::move(joined));
}

Result<Value> to_list(Interpreter& in, const Value& v, const BoundArguments&) {
  INVAR_TRY(std::vector<Value> all, in.iterate(v));
  return list(std::move(all));
}

Result<Value> total(Interpreter& in, const Value& v, const BoundArguments& a) {
  Value sum = a[1] ? *a[1] : Value{int64_t{0}};
  INVAR_TRY(const std::vector<Value> all, in.iterate(v));
  for (Value one : all) {
    if (a[0] && !a[0]->none()) {
      INVAR_TRY(one, at_path(in, one, *a[0]));
    }
    if (!sum.integer() || !one.integer()) {
      if (one.undefined()) return unsupported(one, "");
      return not_covered("sum of other values than integers");
    }
    INVAR_TRY(sum, binary(in, "+", sum, one));
  }
  return sum;
}

Result<Value> batch(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const int64_t size, integer_or(a[0], 0, "linecount"));
  if (size < 1) return bad_input("batch needs a size of at least 1");
  INVAR_TRY(const std::vector<Value> all, in.iterate(v));
  INVAR_CHECK_OK(in.spend(kNewValue * (all.size() / static_cast<size_t>(size))));
  std::vector<Value> batches, current;
  for (const Value& one : all) {
    current.push_back(one);
    if (static_cast<int64_t>(current.size()) == size) batches.push_back(list(std::exchange(current, {})));
  }
  if (!current.empty()) {
    if (a[1] && !a[1]->none()) {
      INVAR_CHECK_OK(in.spend(static_cast<size_t>(std::min<int64_t>(size, int64_t{1} << 40))));
      current.resize(static_cast<size_t>(size), *a[1]);
    }
    batches.push_back(list(std::move(current)));
  }
  return sequence(Sequence::generator, std::move(batches));
}

Result<Value> slices(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const int64_t n, integer_or(a[0], 0, "slices"));
  if (n < 1) return bad_input("slice needs at least 1 slice");
  INVAR_CHECK_OK(in.spend(kNewValue * static_cast<size_t>(std::min<int64_t>(n, int64_t{1} << 40))));
  INVAR_TRY(const std::vector<Value> all, in.iterate(v));
  const auto count = static_cast<int64_t>(all.size());
  std::vector<Value> made;
  auto at = all.begin();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = count / n + (i < count % n);
    std::vector<Value> part(at, at + size);
    if (a[1] && !a[1]->none() && i >= count % n) part.push_back(*a[1]);
    at += size;
    made.push_back(list(std::move(part)));
  }
  return sequence(Sequence::generator, std::move(made));
}

}  // namespace

std::span<const Filter> sequence_filters() {
  static constexpr Filter filters[] = {
      {"length", "", length_of},
      {"count", "", length_of},
      {"first", "", first},
      {"last", "", last},
      {"join", "d,attribute", join},
      {"list", "", to_list},
      {"reverse", "", reversed},
      {"sort", "reverse,case_sensitive,attribute", sorted},
      {"unique", "case_sensitive,attribute", unique},
      {"min", "case_sensitive,attribute", extreme<false>},
      {"max", "case_sensitive,attribute", extreme<true>},
      {"sum", "attribute,start", total},
      {"dictsort", "case_sensitive,by,reverse", dictsort},
      {"items", "", items},
      {"groupby", "attribute,default,case_sensitive", groupby},
      {"batch", "linecount,fill_with", batch},
      {"slice", "slices,fill_with", slices},
  };
  return filters;
}

Result<Value> choosing_filter(Interpreter& in, const std::string& name, const Value& input,
                              const Arguments& given) {
  if (!truth(input)) return sequence(Sequence::generator, {});  // of none, too
  INVAR_TRY(const std::vector<Value> all, in.iterate(input));
  std::vector<Value> out;
  Arguments rest = given;
  const auto take = [&](const char* what) -> Result<Value> {
    if (rest.positional.empty()) return bad_input("the filter '" + name + "' needs " + what);
    Value v = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return v;
  };
  if (name == "map" && given.positional.empty()) {
    INVAR_TRY(const BoundArguments bound, bind_arguments("the filter 'map'", "attribute,default", given));
    if (!bound[0]) return bad_input("map requires a filter argument");
    for (const Value& one : all) {
      INVAR_TRY(Value made, at_path(in, one, *bound[0], bound[1]));
      out.push_back(std::move(made));
    }
    return sequence(Sequence::generator, std::move(out));
  }
  Value path;
  const bool by_attribute = name.ends_with("attr");
  if (by_attribute) {
    INVAR_TRY(path, take("the name of an attribute"));
  }
  std::string function;
  if (name == "map" || !rest.positional.empty()) {
    INVAR_TRY(const Value named, take("the name of a filter"));
    INVAR_TRY(function, string_of(named, "the name of a filter or test"));
  }
  for (const Value& one : all) {
    INVAR_CHECK_OK(in.spend(1));
    if (name == "map") {
      INVAR_TRY(Value made, in.filter(function, one, rest));
      out.push_back(std::move(made));
      continue;
    }
    Value operand = one;
    if (by_attribute) {
      INVAR_TRY(operand, at_path(in, one, path));
    }
    bool holds = truth(operand);
    if (!function.empty()) {
      INVAR_TRY(holds, in.test(function, operand, rest));
    }
    if (holds == name.starts_with("select")) out.push_back(one);
  }
  return sequence(Sequence::generator, std::move(out));
}

}  // namespace invar::prompt::jinja
