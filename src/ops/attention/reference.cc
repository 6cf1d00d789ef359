// spec: spec/attention.md attention.1 - attention.24, spec/attention-exact16.md; sums:
// spec/contraction.md, spec/reduction.md. A KV cache slot: a row per position, all key heads first.
#include <algorithm>
#include <cmath>

#include "kernels/check.h"
#include "kernels/reference.h"
#include "num/contract/reference.h"
#include "num/reduce/reference.h"
#include "num/reference.h"
#include "ops/attention/attributes.h"
#include "ops/attention/reference/exact16.h"

namespace invar::ops {
namespace {

constexpr int64_t kBlock = 128;  // attention.4
constexpr float kInf = INFINITY;

struct Sizes {
  bool heads_first;
  int64_t batch, seq, keys, q_heads, kv_heads, d, dv;
};
Sizes sizes(const Call& call) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2];
  const AttentionAttributes a(call);
  const bool first = a.heads_first != 0;
  const int64_t heads = a.q_heads, kv = a.kv_heads;
  if (first) return {first, q.dim[0], q.dim[2], k.dim[2], heads, kv, k.dim[3], v.dim[3]};
  return {first, q.dim[0], q.dim[1], k.dim[1], heads, kv, k.dim[2] / kv, v.dim[2] / kv};
}

int64_t units(const Call& call, int phase) {
  const Sizes n = sizes(call);
  return phase == 0 ? n.batch * n.keys * n.kv_heads : n.batch * n.seq * n.q_heads;
}

size_t scratch_bytes(const Call& call) {
  return static_cast<size_t>(kBlock + sizes(call).dv) * sizeof(float);
}

int64_t positions(const Call& call, int64_t capacity) {
  return std::max(capacity, sizes(call).keys);
}
size_t state_bytes(const Call& call, int64_t capacity) {
  const Sizes n = sizes(call);
  return static_cast<size_t>(positions(call, capacity) * n.kv_heads * (n.d + n.dv)) * sizeof(float);
}

float weight(float difference) {
  return num::canonicalize(num::reference::exp(difference));
}  // attention.6

// The optional operands by purpose.
struct OptionalOperands {
  const View *mask = nullptr, *sinks = nullptr, *lengths = nullptr, *slopes = nullptr;
  int64_t farthest = -1;  // of a table of biases: the largest distance
  const float* slope_of(int64_t h) const {
    return slopes ? slopes->as<const float>() + h + (2 * h + 1) * std::max<int64_t>(farthest, 0) : nullptr;
  }
};
OptionalOperands optional_operands(const Call& call) {
  OptionalOperands m;
  const AttentionAttributes a(call);
  const View* next = call.in.data() + 3;
  if (a.mask) m.mask = next++;
  if (a.sinks) m.sinks = next++;
  if (a.lengths) m.lengths = next++;
  if (a.slopes) m.slopes = next++;
  if (m.slopes && m.slopes->rank == 2) m.farthest = m.slopes->dim[1] / 2;
  return m;
}

// The mask row of a query; beyond its columns keys are hidden; attention.14.
struct Mask {
  const View* view;
  int64_t row = 0;  // of the mask
  Mask(const View* v, int64_t batch, int64_t head, int64_t i) : view(v) {
    const int64_t index[3] = {batch, head, i};
    for (int d = 0; v && d + 1 < v->rank; ++d)
      row = row * v->dim[d] + (v->dim[d] == 1 ? 0 : index[d + 4 - v->rank]);
  }
  bool hides(int64_t j) const {
    if (!view) return false;
    if (j >= last_dim(*view)) return true;
    const int64_t at = row * last_dim(*view) + j;
    return view->dtype == DType::f32 ? value(*view, at) == -kInf : view->as<uint8_t>()[at] == 0;
  }
  float plus(float s, int64_t j) const {
    return view && view->dtype == DType::f32 ? s + value(*view, row * last_dim(*view) + j) : s;
  }
};

// The attributes that define scores and visibility.
struct Rules {
  bool causal;
  int64_t left, right, first;
  float scale, cap;
  explicit Rules(const AttentionAttributes& a)
      : causal(a.causal != 0), left(a.left), right(a.right), first(a.first), scale(a.scale), cap(a.softcap) {}
};

// One query row of one head: attention.3, attention.13 - attention.15.
struct Query {
  const Rules& rules;
  int64_t n, p;  // visible keys, own position
  Mask mask;
  const float* slope;  // of its head, or the middle of its biases (attention.19), or null
  int64_t farthest;    // of a distance that has a bias; -1: slopes
  bool sees(int64_t j) const {
    if (j >= n || (rules.causal && j > p)) return false;
    if (rules.right >= 0 && j > p && j - p > rules.right) return false;
    if (rules.left >= 0 && j < p && p - j > rules.left && j >= rules.first) return false;
    return !mask.hides(j);
  }
  // The score of key j from its scaled product.
  float score(float s, int64_t j) const {
    if (rules.cap != 0) s = rules.cap * num::reference::tanh(s / rules.cap);  // attention.16
    if (slope && farthest < 0) s = s + num::canonicalize(*slope * static_cast<float>(j - p));
    if (slope && farthest >= 0) s = s + slope[std::clamp(j - p, -farthest, farthest)];  // attention.19
    return mask.plus(s, j);
  }
};

// attention.9: joins a block's maximum and sum; result() joins its results on the side that is
// rescaled.
struct OnlineSoftmax {
  bool later;
  float f;
  OnlineSoftmax(float mb, float lb, float& m, float& l) : later(mb > m), f(weight(later ? m - mb : mb - m)) {
    // attention.9
    l = later ? std::fma(l, f, lb) : std::fma(lb, f, l);
    m = maximum(m, mb);
  }
  float result(float o, float ob) const { return later ? std::fma(o, f, ob) : std::fma(ob, f, o); }
};

// The arithmetic of a block: attention.3, attention.6 to attention.8.
class FloatBlock {
 public:
  static float product(const float* q, const float* k, int64_t d) {
    return num::reference::contract(
        d, [&](int64_t i) { return q[i]; }, [&](int64_t i) { return k[i]; });
  }
  float weigh(const float* s, const bool* seen, int count, float mb, const float*, int64_t, int64_t) {
    n_ = count, seen_ = seen;
    for (int j = 0; j < count; ++j) p_[j] = seen[j] ? weight(s[j] - mb) : 0.0f;
    return num::reference::block_sum(p_, count);
  }
  float column(const float* v, int64_t stride) const {
    float ob = 0;
    for (int j = 0; j < n_; ++j)
      if (seen_[j]) ob = std::fma(p_[j], v[j * stride], ob);  // attention.8
    return ob;
  }

 private:
  int n_ = 0;
  const bool* seen_ = nullptr;
  float p_[kBlock];
};

// One query of one head. keys_of(first): the keys of the block that begins at position `first`, one
// every `stride` floats; values_of: its values.
template <class Block>
void attend(const Query& query, const float* q, const auto& keys_of, const auto& values_of, int64_t stride,
            const Sizes& n, const float* sink, float* scratch, const View& out, int64_t at) {
  float *s = scratch, *o = scratch + kBlock;
  Block own;
  float m = -kInf, l = 0;
  for (int64_t i = 0; i < n.dv; ++i) o[i] = 0;
  for (int64_t first = 0; first < query.n; first += kBlock) {
    int count = static_cast<int>(std::min(query.n - first, kBlock));
    float mb = -kInf;
    bool seen[kBlock];
    const float* const k = keys_of(first);
    for (int j = 0; j < count; ++j) {
      if (!(seen[j] = query.sees(first + j))) continue;
      s[j] = query.score(Block::product(q, k + j * stride, n.d) * query.rules.scale, first + j);
      mb = maximum(mb, s[j]);  // attention.5
    }
    if (mb == -kInf) continue;
    const float* const v = values_of(first);
    const OnlineSoftmax join(mb, own.weigh(s, seen, count, mb, v, stride, n.dv), m, l);
    for (int64_t i = 0; i < n.dv; ++i) o[i] = join.result(o[i], own.column(v + i, stride));
  }
  if (sink && *sink != -kInf) {  // attention.17
    const OnlineSoftmax join(*sink, 1, m, l);
    for (int64_t i = 0; i < n.dv; ++i) o[i] = join.result(o[i], 0);
  }
  for (int64_t i = 0; i < n.dv; ++i)
    store_canonical(out, at + i, m == -kInf ? 0.0f : o[i] / l);  // attention.10
}

// Index, in heads, of row i of a head in q, k, v or y.
int64_t head_row(const Sizes& n, int64_t batch, int64_t i, int64_t head, int64_t rows, int64_t heads) {
  return n.heads_first ? (batch * heads + head) * rows + i : (batch * rows + i) * heads + head;
}

template <class Block>
void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &out = call.out[0];
  const Sizes n = sizes(call);
  const OptionalOperands m = optional_operands(call);
  const Rules rules{AttentionAttributes(call)};
  const int64_t stride = n.kv_heads * (n.d + n.dv);
  auto memory = [&](const Sequence& s, int64_t position) {
    const int64_t page = s.slot * call.slot_pages + position / kPagePositions;
    if (call.pages)
      return reinterpret_cast<float*>(call.pages[page] + reinterpret_cast<uintptr_t>(call.state)) +
             position % kPagePositions * stride;
    return static_cast<float*>(call.state) + s.slot * static_cast<int64_t>(call.slot_bytes / sizeof(float)) +
           position * stride;
  };
  for (int64_t unit = begin; phase == 0 && unit < end; ++unit) {  // attention.2
    const int64_t head = unit % n.kv_heads, i = unit / n.kv_heads % n.keys,
                  batch = unit / n.kv_heads / n.keys;
    const int64_t from = head_row(n, batch, i, head, n.keys, n.kv_heads);
    const Sequence& sequence = call.sequences[batch];
    float* to = memory(sequence, sequence.past + i);
    for (int64_t j = 0; j < n.d; ++j) to[head * n.d + j] = value(k, from * n.d + j);
    for (int64_t j = 0; j < n.dv; ++j) to[n.kv_heads * n.d + head * n.dv + j] = value(v, from * n.dv + j);
  }
  for (int64_t unit = begin; phase == 1 && unit < end; ++unit) {
    const int64_t h = unit % n.q_heads, i = unit / n.q_heads % n.seq, batch = unit / n.q_heads / n.seq;
    const Sequence& sequence = call.sequences[batch];
    const int64_t kv = h / (n.q_heads / n.kv_heads), total = sequence.past + n.keys;
    Query query{rules, total, sequence.past + i, Mask(m.mask, batch, h, i), m.slope_of(h), m.farthest};
    if (m.lengths) {  // attention.15
      query.n = std::clamp<int64_t>(m.lengths->as<int64_t>()[batch], 0, total);
      query.p = query.n - n.seq + i;
    }
    const int64_t at = head_row(n, batch, i, h, n.seq, n.q_heads);
    attend<Block>(
        query, q.as<const float>() + at * n.d,
        [&](int64_t first) { return memory(sequence, first) + kv * n.d; },
        [&](int64_t first) { return memory(sequence, first) + n.kv_heads * n.d + kv * n.dv; }, stride, n,
        m.sinks ? m.sinks->as<const float>() + h : nullptr, static_cast<float*>(scratch), out, at * n.dv);
  }
}

bool broadcasts(const View& mask, const Sizes& n) {
  const int64_t size[3] = {n.batch, n.q_heads, n.seq};
  if (mask.rank < 2 || mask.rank > 4) return false;
  for (int d = 0; d + 1 < mask.rank; ++d)
    if (mask.dim[d] != 1 && mask.dim[d] != size[d + 4 - mask.rank]) return false;
  return true;
}

// The byte size of keys, values and intermediate data fits int64_t; plans are untrusted files.
bool countable(const Sizes& n, int64_t bytes = 64 * sizeof(float)) {
  for (int64_t x : {n.batch, n.q_heads, std::max(n.seq, n.keys) + 1, n.d + n.dv + 1})
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(x, 1), &bytes)) return false;
  return true;
}

const char* check(const Call& c) {
  const AttentionAttributes a(c);
  size_t operands = 3;
  for (int64_t more : {a.mask, a.sinks, a.lengths, a.slopes}) operands += more != 0;
  if (!has_operands(c, operands, 1)) return "q, k, v, the operands that its attributes name, and one result";
  const View &q = c.in[0], &k = c.in[1], &v = c.in[2], &out = c.out[0];
  if (!is_f32(q) || !is_f32(k) || !is_f32(v) || !is_f32(out)) return "f32";
  const int64_t heads = a.q_heads, kv = a.kv_heads;
  if (kv < 1 || heads < kv || heads % kv != 0) return "q_heads a multiple of kv_heads";
  if (a.heads_first) {
    if (q.rank != 4 || k.rank != 4 || v.rank != 4 || out.rank != 4 || q.dim[1] != heads || k.dim[1] != kv ||
        v.dim[1] != kv || q.dim[0] != k.dim[0] || k.dim[0] != v.dim[0] || k.dim[2] != v.dim[2] ||
        q.dim[3] != k.dim[3] || k.dim[3] < 1 || v.dim[3] < 1 || !same_leading(q, out, 3) ||
        out.dim[3] != v.dim[3])
      return "q [B, q_heads, S, D], k [B, kv_heads, T, D], v [B, kv_heads, T, Dv], a result [B, q_heads, S, "
             "Dv]";
  } else if (q.rank != 3 || k.rank != 3 || v.rank != 3 || out.rank != 3 || q.dim[0] != k.dim[0] ||
             !same_leading(k, v, 2) || !same_leading(q, out, 2) || k.dim[2] % kv != 0 || v.dim[2] % kv != 0 ||
             k.dim[2] < kv || v.dim[2] < kv || q.dim[2] / heads != k.dim[2] / kv || q.dim[2] % heads != 0 ||
             out.dim[2] / heads != v.dim[2] / kv || out.dim[2] % heads != 0) {
    return "q [B, S, q_heads * D], k [B, T, kv_heads * D], v [B, T, kv_heads * Dv], a result [B, S, q_heads "
           "* Dv]";
  }
  const Sizes n = sizes(c);
  const OptionalOperands m = optional_operands(c);
  if (!countable(n)) return "sizes that some memory holds";
  if (c.capacity && (n.keys != n.seq || m.mask || m.lengths))
    return "with memory, as many keys as queries, no mask and no lengths";
  if (m.mask && (!(is_f32(*m.mask) || m.mask->dtype == DType::boolean) || !broadcasts(*m.mask, n)))
    return "a mask of f32 or bool [B or 1, q_heads or 1, S or 1, keys]";
  const bool table = m.farthest >= 0 && m.slopes->dim[1] % 2 == 1;
  for (const View* each : {m.sinks, m.slopes})
    if (each && (!is_f32(*each) || each->rank != 1 + (table && each == m.slopes) || each->dim[0] != heads))
      return "sinks f32 [q_heads], slopes f32 [q_heads] or [q_heads, an odd number]";
  if (m.lengths && (m.lengths->dtype != DType::i64 || m.lengths->rank != 1 || m.lengths->dim[0] != n.batch))
    return "lengths i64 [B]";
  return nullptr;
}

const char* check_exact16(const Call& c) {
  if (const char* wrong = check(c)) return wrong;
  const Sizes n = sizes(c);
  return n.d > num::kExact16LongestRow || n.dv > num::kExact16LongestRow ? "heads of at most 2^22 elements"
                                                                         : nullptr;
}

bool batch_independent(const Call& c, uint64_t batched) {
  const OptionalOperands m = optional_operands(c);
  uint64_t expected = 7;
  for (size_t i = 3; i < c.in.size(); ++i) {
    const View& v = c.in[i];
    if (&v == m.lengths || (&v == m.mask && v.rank == 4 && v.dim[0] != 1)) expected |= uint64_t{1} << i;
  }
  return batched == expected;
}

// attention.20 - attention.24. Row `row` of a key head is query `row % seq` of its head `row /
// seq`.
class Gradients {
 public:
  Gradients(const Call& call, int64_t head, float* scratch)
      : c(call), forward(call), rules(AttentionAttributes(call)), head(head), top(scratch) {
    forward.in = call.in.subspan(2);
    n = sizes(forward), more = optional_operands(forward), group = n.q_heads / n.kv_heads,
    rows = group * n.seq;
    total = top + rows, mean = total + rows, p = mean + rows, ds = p + std::max(rows, n.keys);
  }
  static int64_t floats(const Call& call) {
    Call forward = call;
    forward.in = call.in.subspan(2);
    const Sizes n = sizes(forward);
    const int64_t rows = n.q_heads / n.kv_heads * n.seq;
    return 3 * rows + 2 * std::max(rows, n.keys);
  }
  void run() {
    const View& out = c.out[0];
    const int64_t dq = 0, dk = c.in[2].elements(), dv = dk + c.in[3].elements();
    for (int64_t r = 0; r < rows; ++r) {
      prepare(r);
      for (int64_t j = 0; j < n.keys; ++j) pair(r, j, p[j], ds[j]);
      for (int64_t i = 0; i < n.d; ++i)
        store_canonical(out, dq + query(r) * n.d + i,
                        num::reference::contract(
                            n.keys, [&](int64_t j) { return ds[j]; },
                            [&](int64_t j) { return value(c.in[3], key(j) * n.d + i); }));
    }
    for (int64_t j = 0; j < n.keys; ++j) {
      for (int64_t r = 0; r < rows; ++r) pair(r, j, p[r], ds[r]);
      sum_rows(p, c.in[0], n.dv, dv + key(j) * n.dv);
      sum_rows(ds, c.in[2], n.d, dk + key(j) * n.d);
    }
  }

 private:
  int64_t query(int64_t r) const {
    return head_row(n, head / n.kv_heads, r % n.seq, head % n.kv_heads * group + r / n.seq, n.seq, n.q_heads);
  }
  int64_t key(int64_t j) const {
    return head_row(n, head / n.kv_heads, j, head % n.kv_heads, n.keys, n.kv_heads);
  }
  void sum_rows(const float* by, const View& of, int64_t size, int64_t at) const {
    for (int64_t i = 0; i < size; ++i)
      store_canonical(c.out[0], at + i,
                      num::reference::contract(
                          rows, [&](int64_t r) { return by[r]; },
                          [&](int64_t r) { return value(of, query(r) * size + i); }));
  }
  float product(const View& a, int64_t r, const View& b, int64_t j, int64_t size) const {
    return stored(num::reference::contract(
        size, [&](int64_t i) { return value(a, query(r) * size + i); },
        [&](int64_t i) { return value(b, key(j) * size + i); }));
  }
  static float stored(float x) { return num::canonicalize(x); }
  Query query_of(int64_t batch, int64_t h, int64_t i) const {
    Query query{rules, n.keys, i, Mask(more.mask, batch, h, i), nullptr, -1};
    if (more.lengths) {
      query.n = std::clamp<int64_t>(more.lengths->as<int64_t>()[batch], 0, n.keys);
      query.p = query.n - n.seq + i;
    }
    return query;
  }
  // attention.21: the score, -inf where it is hidden, and the bend.
  float score(int64_t r, int64_t j, float& bend) const {
    const int64_t i = r % n.seq, h = head % n.kv_heads * group + r / n.seq, batch = head / n.kv_heads;
    const Query query = query_of(batch, h, i);
    float s = stored(product(c.in[2], r, c.in[3], j, n.d) * rules.scale);
    if (rules.cap != 0) {
      bend = stored(num::reference::tanh(stored(s / rules.cap)));
      s = stored(bend * rules.cap);
    }
    if (!query.sees(j)) return -kInf;
    if (more.slopes) s = stored(s + stored(value(*more.slopes, h) * static_cast<float>(j - query.p)));
    return stored(query.mask.plus(s, j));
  }
  float sink(int64_t r) const { return value(*more.sinks, head % n.kv_heads * group + r / n.seq); }
  // attention.21 and the mean of attention.23.
  void prepare(int64_t r) {
    float bend = 0, most = -kInf;
    for (int64_t j = 0; j < n.keys; ++j) most = maximum(most, p[j] = score(r, j, bend));
    if (more.sinks) most = maximum(most, sink(r));
    top[r] = most == -kInf ? 0 : stored(most);
    float sum =
        stored(num::reference::row_sum_of(n.keys, [&](int64_t j) { return weight(stored(p[j] - top[r])); }));
    if (more.sinks) sum = stored(sum + weight(stored(sink(r) - top[r])));
    total[r] = sum == 0 ? 1 : sum;
    mean[r] = stored(num::reference::row_sum_of(n.dv, [&](int64_t i) {
      return stored(value(c.in[0], query(r) * n.dv + i) * value(c.in[1], query(r) * n.dv + i));
    }));
  }
  // attention.22 and attention.23: P and dS.
  void pair(int64_t r, int64_t j, float& of_value, float& of_score) const {
    float bend = 0;
    const float s = score(r, j, bend);
    of_value = stored(weight(stored(s - top[r])) / total[r]);
    float d = stored(of_value * stored(product(c.in[0], r, c.in[4], j, n.dv) - mean[r]));
    if (rules.cap != 0) d = stored(d * stored(stored(1 - bend) * stored(1 + bend)));
    of_score = hidden(r, j) ? 0 : stored(d * rules.scale);
  }
  bool hidden(int64_t r, int64_t j) const {
    const int64_t i = r % n.seq, h = head % n.kv_heads * group + r / n.seq, batch = head / n.kv_heads;
    const Query query = query_of(batch, h, i);
    return !query.sees(j);
  }

  const Call& c;
  Call forward;
  Sizes n;
  OptionalOperands more;
  Rules rules;
  int64_t head, group, rows;
  float *top, *total, *mean, *p, *ds;
};
int64_t backward_units(const Call& call, int) {
  Call forward = call;
  forward.in = call.in.subspan(2);
  const Sizes n = sizes(forward);
  return n.batch * n.kv_heads;
}
size_t backward_scratch(const Call& call) {
  return static_cast<size_t>(Gradients::floats(call)) * sizeof(float);
}
void run_backward(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  for (int64_t head = begin; head < end; ++head) Gradients(call, head, static_cast<float*>(scratch)).run();
}

// The operands of the forward call with y as its result, and a gradient of y.
const char* check_backward(const Call& c) {
  if (c.in.size() < 5 || c.out.size() != 1)
    return "grad, y, q, k, v, the operands that its attributes name, and one result";
  Call forward = c;
  forward.in = c.in.subspan(2), forward.out = c.in.subspan(1, 1);
  if (const char* wrong = check(forward)) return wrong;
  if (c.capacity || optional_operands(forward).farthest >= 0) return "no memory and no table of biases";
  if (!is_f32(c.in[0]) || !same_shape(c.in[0], c.in[1])) return "a gradient shaped like y";
  const Sizes n = sizes(forward);
  if (n.d > 256 || n.dv > 256) return "heads of at most 256 elements";  // attention.20
  if (!countable(n, 1024 * sizeof(float))) return "sizes that some memory holds";
  int64_t elements = 0;
  for (int i = 2; i < 5; ++i)
    if (__builtin_add_overflow(elements, c.in[i].elements(), &elements))
      return "sizes that some memory holds";
  if (!is_f32(c.out[0]) || c.out[0].rank != 1 || c.out[0].dim[0] != elements)
    return "a result f32 [elements of q, k and v]";
  return nullptr;
}

}  // namespace

extern const OpContract contract_attention;
extern const CpuKernel row_attention_reference;
const OpContract contract_attention = {
    .op = "attention", .check = check, .batch_independent = batch_independent, .stateful = true};
const CpuKernel row_attention_reference = {.op = "attention",
                                           .isa = "reference",
                                           .phases = 2,
                                           .units = units,
                                           .run = run<FloatBlock>,
                                           .scratch_bytes = scratch_bytes,
                                           .state_bytes = state_bytes};

extern const OpContract contract_attention_exact16;
extern const CpuKernel row_attention_exact16_reference;
const OpContract contract_attention_exact16 = {.op = "attention_exact16",
                                               .check = check_exact16,
                                               .batch_independent = batch_independent,
                                               .stateful = true};
const CpuKernel row_attention_exact16_reference = {.op = "attention_exact16",
                                                   .isa = "reference",
                                                   .phases = 2,
                                                   .units = units,
                                                   .run = run<ExactBlock>,
                                                   .scratch_bytes = scratch_bytes,
                                                   .state_bytes = state_bytes};

extern const OpContract contract_attention_backward;
extern const CpuKernel row_attention_backward_reference;
const OpContract contract_attention_backward = {.op = "attention_backward", .check = check_backward};
const CpuKernel row_attention_backward_reference = {.op = "attention_backward",
                                                    .isa = "reference",
                                                    .units = backward_units,
                                                    .run = run_backward,
                                                    .scratch_bytes = backward_scratch};

}  // namespace invar::ops
