// The rules of dividing operations among ranks, see split_rules.h.
#include "plan/analysis/split_rules.h"

#include <algorithm>

#include "base/opset.h"

namespace invar::plan {

std::string_view split_rule(std::string_view op) {
  for (const OpSplit& s : op_splits())
    if (s.op == op) return s.split;
  const OpInfo* const info = op_info(op);
  return info && info->room == "elementwise" ? "elements" : "";
}

namespace {

using Shape = std::vector<DimRef>;

int rank_of(const Shape& shape) {
  return static_cast<int>(shape.size());
}

// The size of a dimension; 0: it is open.
int64_t size_at(const Shape& shape, int axis) {
  const DimRef& d = shape[static_cast<size_t>(axis)];
  return d.symbol < 0 ? d.value : 0;
}

Layout scaled(int axis, std::vector<Range> ranges, int64_t times) {
  for (Range& r : ranges) r.begin *= times, r.end *= times;
  return {axis, std::move(ranges)};
}

// The layout that a reshaped value has: its ranges stay the same elements.
Layout reshaped(const Shape& from, const Layout& layout, const Shape& to) {
  int64_t inner = 1;
  for (int d = layout.axis + 1; d < rank_of(from); ++d) inner *= size_at(from, d);
  const int64_t block = inner * size_at(from, layout.axis);
  int64_t inner_to = 1;
  for (int d = rank_of(to) - 1; d >= 0 && inner_to > 0; --d) {
    const int64_t size = size_at(to, d);
    if (block > 0 && size > 1 && size * inner_to == block &&
        std::all_of(layout.ranges.begin(), layout.ranges.end(), [&](const Range& r) {
          return r.begin * inner % inner_to == 0 && r.end * inner % inner_to == 0;
        })) {
      Layout found = scaled(d, layout.ranges, inner);
      for (Range& r : found.ranges) r.begin /= inner_to, r.end /= inner_to;
      return found;
    }
    inner_to *= size;
  }
  return {};
}

// The dimension of the operand that becomes dimension `axis` of the transposed result, or back.
int permuted(const Node& n, int rank, int axis, bool back) {
  std::vector<int64_t> perm;
  if (const auto at = n.attrs.find("perm"); at != n.attrs.end())
    perm = std::get<std::vector<int64_t>>(at->second);
  for (int d = rank - 1; perm.empty() && d >= 0; --d) perm.push_back(d);
  if (static_cast<int>(perm.size()) != rank) return -1;
  if (!back) return static_cast<int>(perm[static_cast<size_t>(axis)]);
  return static_cast<int>(std::find(perm.begin(), perm.end(), axis) - perm.begin());
}

// The heads of each rank. Ranks beyond the key heads share one.
struct HeadRanges {
  std::vector<Range> q, k;
};
HeadRanges head_ranges(int64_t q_heads, int64_t kv_heads, int64_t ranks) {
  HeadRanges h;
  const int64_t group = q_heads / kv_heads, share = std::max<int64_t>(ranks / kv_heads, 1);
  for (int64_t r = 0; r < ranks; ++r) {
    if (ranks <= kv_heads) {
      const Range k{kv_heads * r / ranks, kv_heads * (r + 1) / ranks};
      h.k.push_back(k), h.q.push_back({k.begin * group, k.end * group});
    } else {
      const int64_t head = r / share, i = r % share;
      h.k.push_back({head, head + 1});
      h.q.push_back({head * group + group * i / share, head * group + group * (i + 1) / share});
    }
  }
  return h;
}

std::vector<int64_t> lengths(const std::vector<Range>& ranges, int64_t unit) {
  std::vector<int64_t> counts;
  for (const Range& r : ranges) counts.push_back((r.end - r.begin) / unit);
  return counts;
}

// Whether a slice takes all of a dimension.
bool keeps_axis(const Node& n, const Shape& from, const Shape& to, int axis) {
  if (split_rule(n.op) != "part" || size_at(from, axis) < 1 || size_at(from, axis) != size_at(to, axis))
    return false;
  const auto steps = n.attrs.find("steps");
  return steps == n.attrs.end() ||
         std::get<std::vector<int64_t>>(steps->second)[static_cast<size_t>(axis)] == 1;
}

bool is_value(const Operand& o) {
  return o.kind == Operand::value;
}

int heads_axis(const Node& n, const Shape& shape) {
  return n.attrs.i("heads_first", 0) ? 1 : rank_of(shape) - 1;
}

// Operands by heads of two numbers: `more` is a multiple of `fewer`. Attention's queries have more
// heads than its keys and values. Linear attention's queries and keys have fewer than the rest.
struct GroupedHeads {
  const char *more_name, *fewer_name;
  int64_t more, fewer;
  size_t operands;  // that have heads, the first ones
  bool queries_have_more;
  bool has_more(size_t operand) const { return queries_have_more ? operand == 0 : operand > 1; }
  int64_t heads(size_t operand) const { return has_more(operand) ? more : fewer; }
};
std::optional<GroupedHeads> grouped_heads(const Node& n) {
  const bool attention = n.attrs.contains("q_heads");
  if (!attention && !n.attrs.contains("key_heads")) return {};
  GroupedHeads g{attention ? "q_heads" : "value_heads",
                 attention ? "kv_heads" : "key_heads",
                 0,
                 0,
                 attention ? 3 : n.in.size(),
                 attention};
  g.more = n.attrs.i(g.more_name, 0), g.fewer = n.attrs.i(g.fewer_name, 0);
  if (g.more < 1 || g.fewer < 1 || n.in.size() < std::max<size_t>(g.operands, 3)) return {};
  return g;
}

}  // namespace

std::string SplitRules::join() {
  for (const OpSplit& s : op_splits())
    if (s.split == "join") return std::string(s.op);
  return "";
}

// Columns in multiples that suit kernels, as even as these allow.
Layout SplitRules::even(int v) const {
  const Shape& shape = p_.values[v].shape;
  const int axis = rank_of(shape) - 1;
  const int64_t columns = axis < 0 ? 0 : size_at(shape, axis);
  if (columns < ranks_) return {};
  int64_t unit = 64;
  while (unit > 1 && (columns % unit != 0 || columns / unit < 16 * ranks_)) unit /= 2;
  Layout l{axis, {}};
  for (int64_t r = 0; r < ranks_; ++r)
    l.ranges.push_back({columns / unit * r / ranks_ * unit, columns / unit * (r + 1) / ranks_ * unit});
  return l;
}

void SplitRules::wish_for(const Operand& o, Layout layout) {
  if (is_value(o) && wished_[o.index].whole()) wished_[o.index] = std::move(layout);
}

Status SplitRules::wish_heads(const Node& n) {
  const std::optional<GroupedHeads> g = grouped_heads(n);
  if (!g) return {};
  if (ranks_ > g->fewer && (ranks_ % g->fewer != 0 || ranks_ > g->more))
    return bad_input("tensor-parallel " + std::to_string(ranks_) + ": attention has " +
                     std::to_string(g->more) + (g->queries_have_more ? " query" : " value") + " heads and " +
                     std::to_string(g->fewer) + " key heads: at most " + std::to_string(g->fewer) +
                     " ranks, or a multiple of it up to " + std::to_string(g->more));
  const HeadRanges h = head_ranges(g->more, g->fewer, ranks_);
  for (size_t i = 0; i < g->operands; ++i) {
    if (!is_value(n.in[i])) return {};
    const Shape& shape = p_.values[n.in[i].index].shape;
    const int axis = heads_axis(n, shape);
    if (axis >= rank_of(shape)) return {};
    const int64_t size = size_at(shape, axis);
    if (size % g->heads(i)) return {};
    wish_for(n.in[i], scaled(axis, g->has_more(i) ? h.q : h.k, size / g->heads(i)));
  }
  return {};
}

Status SplitRules::wish(const Node& n) {
  const std::string_view rule = split_rule(n.op);
  if (rule == "heads" && grouped_heads(n)) return wish_heads(n);
  if (n.out.size() != 1 || wished_[n.out[0]].whole()) return {};
  const Layout& out = wished_[n.out[0]];
  const Shape& shape = p_.values[n.out[0]].shape;
  for (size_t i = 0; i < n.in.size(); ++i) {
    if (!is_value(n.in[i])) continue;
    const Shape& from = p_.values[n.in[i].index].shape;
    if (rule == "shape") {
      wish_for(n.in[i], reshaped(shape, out, from));
    } else if (rule == "order") {
      wish_for(n.in[i], {permuted(n, rank_of(shape), out.axis, false), out.ranges});
    } else if (rule == "elements") {
      const int axis = out.axis - rank_of(shape) + rank_of(from);
      if (axis >= 0 && size_at(from, axis) == size_at(shape, out.axis)) wish_for(n.in[i], {axis, out.ranges});
    } else if ((rule == "heads" || rule == "rows" || rule == "channels" ||
                keeps_axis(n, from, shape, out.axis)) &&
               i == 0) {
      wish_for(n.in[i], out);
    }
  }
  return {};
}

std::optional<NodeSplit> SplitRules::split(const Node& n, const std::vector<Layout>& layouts) const {
  if (n.out.size() != 1 || n.in.empty() || !n.bodies.empty()) return {};
  const std::string_view rule = split_rule(n.op);
  if (rule == "columns") return columns(n);
  if (rule == "elements") return elements(n, layouts);
  if (rule == "heads") return grouped_heads(n) ? attention_heads(n, layouts) : heads(n, layouts);
  if (rule == "channels") return channels(n, layouts);
  if (rule == "shape" || rule == "order" || rule == "rows" || rule == "part") return follow(n, layouts);
  return {};
}

SplitRules::Split SplitRules::columns(const Node& n) const {
  if (n.attrs.i("trans_b", 0) != 1 || n.attrs.i("trans_a", 0) != 0) return {};
  const int v = n.out[0];
  NodeSplit s{wished_[v], std::vector<Layout>(n.in.size())};
  const int last = rank_of(p_.values[v].shape) - 1;
  if (s.out.whole() || s.out.axis != last) s.out = even(v);
  if (s.out.whole()) return {};
  const int64_t columns = size_at(p_.values[v].shape, last);
  bool any = false;
  for (size_t i = 0; i < n.in.size(); ++i) {
    if (is_value(n.in[i])) {
      if (any) return {};  // a factor that is computed
      continue;
    }
    const std::vector<int64_t>& dims = p_.weights[n.in[i].index].shape;
    int64_t elements = 1;
    for (int64_t d : dims) elements *= d;
    const bool stack =
        dims.size() == 3 && n.in.size() == 3 && is_value(n.in[1]);  // one operand for all matrices
    if (i == 0 || (dims.size() > 2 && !stack && !n.attrs.contains("bits"))) return {};
    if (elements == 1 && columns > 1) continue;
    if (dims.empty() || dims[stack] != columns) return {};
    s.in[i] = {stack, s.out.ranges}, any = true;
  }
  return any ? Split(std::move(s)) : std::nullopt;
}

SplitRules::Split SplitRules::elements(const Node& n, const std::vector<Layout>& layouts) const {
  const Shape& shape = p_.values[n.out[0]].shape;
  NodeSplit s{{}, std::vector<Layout>(n.in.size())};
  for (const Operand& o : n.in) {
    if (!is_value(o) || layouts[o.index].whole()) continue;
    const Layout& l = layouts[o.index];
    const Layout out{l.axis + rank_of(shape) - rank_of(p_.values[o.index].shape), l.ranges};
    if (!s.out.whole() && !(s.out == out)) return {};
    s.out = out;
  }
  if (s.out.whole()) return {};
  const int64_t size = size_at(shape, s.out.axis);
  for (size_t i = 0; i < n.in.size(); ++i) {
    const Operand& o = n.in[i];
    if (is_value(o)) {
      s.in[i] = layouts[o.index];
      const Shape& from = p_.values[o.index].shape;
      const int axis = s.out.axis - rank_of(shape) + rank_of(from);
      if (s.in[i].whole() && axis >= 0 && size_at(from, axis) != 1) return {};
      continue;
    }
    const std::vector<int64_t>& dims = p_.weights[o.index].shape;
    const int axis = s.out.axis - rank_of(shape) + static_cast<int>(dims.size());
    if (axis < 0 || dims[static_cast<size_t>(axis)] == 1) continue;
    if (dims[static_cast<size_t>(axis)] != size) return {};
    if (std::any_of(dims.begin(), dims.begin() + axis, [](int64_t d) { return d != 1; })) return {};
    s.in[i] = {axis, s.out.ranges};
  }
  return s;
}

// An operation on each head whose other operands serve all heads.
SplitRules::Split SplitRules::heads(const Node& n, const std::vector<Layout>& layouts) const {
  if (!is_value(n.in[0])) return {};
  const Shape& shape = p_.values[n.in[0].index].shape;
  const Layout& l = layouts[n.in[0].index];
  const int64_t count = n.attrs.i("num_heads", 0);
  if (l.whole() || l.axis != heads_axis(n, shape) || count < 1) return {};
  const int64_t unit = size_at(shape, l.axis) / count;
  for (const Range& r : l.ranges)
    if (r.begin % unit || r.end % unit) return {};
  for (size_t i = 1; i < n.in.size(); ++i)
    if (is_value(n.in[i]) && !layouts[n.in[i].index].whole()) return {};
  NodeSplit s{l, std::vector<Layout>(n.in.size()), {{"num_heads", lengths(l.ranges, unit)}}};
  s.in[0] = l;
  return s;
}

SplitRules::Split SplitRules::attention_heads(const Node& n, const std::vector<Layout>& layouts) const {
  const GroupedHeads g = *grouped_heads(n);
  const HeadRanges h = head_ranges(g.more, g.fewer, ranks_);
  NodeSplit s{{},
              std::vector<Layout>(n.in.size()),
              {{g.more_name, lengths(h.q, 1)}, {g.fewer_name, lengths(h.k, 1)}}};
  for (size_t i = 0; i < g.operands; ++i) {
    if (!is_value(n.in[i])) return {};
    const Shape& shape = p_.values[n.in[i].index].shape;
    const int axis = heads_axis(n, shape);
    if (axis >= rank_of(shape)) return {};
    s.in[i] = scaled(axis, g.has_more(i) ? h.q : h.k, size_at(shape, axis) / g.heads(i));
    if (!(layouts[n.in[i].index] == s.in[i])) return {};
  }
  const Shape& shape = p_.values[n.out[0]].shape;
  const int axis = heads_axis(n, shape);
  s.out = scaled(axis, h.q, size_at(shape, axis) / g.more);
  for (size_t i = g.operands; i < n.in.size();
       ++i) {  // a mask or lengths for all heads, or an element for each
    if (is_value(n.in[i])) {
      const Shape& from = p_.values[n.in[i].index].shape;
      if (!layouts[n.in[i].index].whole()) return {};
      if (rank_of(from) >= 3 && size_at(from, rank_of(from) - 3) != 1) return {};
      if (rank_of(from) == 1 && size_at(from, 0) == g.more) return {};
      continue;
    }
    const std::vector<int64_t>& dims = p_.weights[n.in[i].index].shape;
    if (dims.size() == 1 && dims[0] == g.more) {
      s.in[i] = {0, h.q};
    } else if (dims.size() >= 3 && dims[dims.size() - 3] != 1) {
      return {};
    }
  }
  return s;
}

SplitRules::Split SplitRules::follow(const Node& n, const std::vector<Layout>& layouts) const {
  if (!is_value(n.in[0]) || layouts[n.in[0].index].whole()) return {};
  const Layout& l = layouts[n.in[0].index];
  const Shape& from = p_.values[n.in[0].index].shape;
  const std::string_view rule = split_rule(n.op);
  NodeSplit s{l, std::vector<Layout>(n.in.size())};
  s.in[0] = l;
  if (rule == "shape") s.out = reshaped(from, l, p_.values[n.out[0]].shape);
  if (rule == "order") s.out.axis = permuted(n, rank_of(from), l.axis, true);
  if (rule == "part" && !keeps_axis(n, from, p_.values[n.out[0]].shape, l.axis)) return {};
  if (rule == "rows" && n.in.size() < 2) return {};  // what a row is, its weights say
  for (size_t i = 1; i < n.in.size(); ++i) {
    if (is_value(n.in[i]) || rule != "rows") return {};
    if (l.axis >= rank_of(from) - static_cast<int>(p_.weights[n.in[i].index].shape.size())) return {};
  }
  if (s.out.whole()) return {};
  return s;
}

SplitRules::Split SplitRules::channels(const Node& n, const std::vector<Layout>& layouts) const {
  if (!is_value(n.in[0])) return {};
  const Layout& l = layouts[n.in[0].index];
  if (l.whole() || l.axis != rank_of(p_.values[n.in[0].index].shape) - 1) return {};
  NodeSplit s{l, std::vector<Layout>(n.in.size(), Layout{0, l.ranges})};
  s.in[0] = l;
  if (std::any_of(n.in.begin() + 1, n.in.end(), is_value)) return {};
  return s;
}

}  // namespace invar::plan
