// Integer convolutions: a copy of x with its padding; then, for blocks of places, panels of the
// words that their results read, which tiles of output channels multiply. The copy has words where
// channels fill them, else bytes. One channel to a group is read in place instead. Compiled once
// per instruction set.
#pragma once
#include "kernels/fusion/row_steps.h"
#include "ops/conv_integer/cpu/copies.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kPlaces = kW == 1 ? 16 : kW == 4 ? 64 : 8 * kW;  // places of a block
constexpr int kPlaceVectors = kW == 4 ? 4 : 2;                     // vectors of a tile
constexpr int64_t kPair = kPlaceVectors * kW;                      // places of a tile

// Call::shared: where a k, or a word of channels, lies in a group of the copy; weights that are not
// packed; the copy.
struct SharedParts {
  int64_t words, weights, copy;
  SharedParts(const Call& call, const Geometry& p) {
    const WordLayout l(p);
    words = l.words * kWordBytes, weights = call.in[1].packed ? 0 : l.all(p);
    copy = copies_of(p) ? p.images * p.groups * group_bytes(p) + kByteSlack : 0;
  }
  size_t bytes() const { return static_cast<size_t>((words + weights) * 4 + copy); }
};
size_t shared_of_bytes(const Call& call) {
  return SharedParts(call, conv_integer::geometry_of(call)).bytes();
}

// Units of the main phase: [image][group][block of places][block of rows].
struct PlacePartition {
  int64_t blocks, row_blocks, rows;
  explicit PlacePartition(const Geometry& p) {
    constexpr int64_t kUnits = 16;  // enough for load balance
    const WordLayout l(p);
    blocks = (p.columns + kPlaces - 1) / kPlaces;
    const int64_t most = p.images * p.groups * blocks;
    int64_t parts = most < 1 || most >= kUnits ? 1 : (kUnits + most - 1) / most;
    const int64_t tiles = (l.tiles + parts - 1) / num::min_i64(parts, l.tiles > 0 ? l.tiles : 1);
    rows = (tiles < 4 ? 4 : tiles) * kWordRows;  // fewer would not pay for the words
    row_blocks = (p.rows + rows - 1) / rows;
  }
};

int64_t units_of_bytes(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  const Geometry p = conv_integer::geometry_of(call);
  // One unit for the places of k; the rows of weights; the channels, or words of them.
  if (phase == 0) return 1 + (call.in[1].packed ? 0 : p.groups * p.rows) + p.images * p.groups * copies_of(p);
  if (is_depthwise(p)) return p.images * p.groups;
  const PlacePartition c(p);
  return p.images * p.groups * c.blocks * c.row_blocks;
}
// Scratch of the main phase: sums that steps on rows take, then the words of a block of places.
struct RowScratch {
  SpareRows spare;
  alignas(64) int32_t sums[kRow > kWordRows* kPlaces ? kRow : kWordRows* kPlaces];
};
size_t scratch_of_bytes(const Call& call) {
  const Geometry p = conv_integer::geometry_of(call);
  if (is_depthwise(p)) return sizeof(RowScratch);
  const int64_t panel = (WordLayout(p).words + 1) * kPlaces * static_cast<int64_t>(sizeof(int32_t)),
                rows = static_cast<int64_t>(sizeof(RowScratch)),
                strip = has_channel_words(p) ? strip_bytes_of(p) : 0;
  return static_cast<size_t>(rows + panel > strip ? rows + panel : strip);
}

// The parts of a call as its phases see them.
struct ByteCall {
  Geometry p;
  WordLayout l;
  WordsOfX as;
  int32_t *place, *own_weights;
  uint8_t* own_copy;
  const int32_t *weights, *sums;
  const uint8_t* x;
  explicit ByteCall(const Call& call) : p(conv_integer::geometry_of(call)), l(p), as(call) {
    const SharedParts s(call, p);
    place = static_cast<int32_t*>(call.shared);
    own_weights = place + s.words;
    own_copy = reinterpret_cast<uint8_t*>(own_weights + s.weights);
    weights = call.in[1].packed ? call.in[1].as<const int32_t>() : own_weights;
    sums = weights + p.groups * l.group();
    x = copies_of(p) ? own_copy : call.in[0].as<const uint8_t>();
  }
  const uint8_t* group(int64_t g) const { return x + g * group_bytes(p); }
};

void prepare_bytes(const Call& call, const ByteCall& b, int64_t begin, int64_t end, uint8_t* scratch) {
  const Geometry& p = b.p;
  const int64_t rows = call.in[1].packed ? 0 : p.groups * p.rows;
  const uint8_t zero = conv_integer::zero_byte(call, 0, 0);
  const int64_t of_group = copies_of(p), step = has_channel_words(p) ? kWordBytes : 1;
  int64_t plane = 1;
  for (const slide::Axis& a : p.axis) plane *= a.in;
  for (int64_t u = begin; u < end; ++u) {
    if (u == 0) {
      for (int64_t tap = 0, k = 0; tap < p.taps; ++tap) {
        const int64_t at = conv_integer::tap_place(p, tap);
        for (int64_t c = 0; c < p.channels; c += step, ++k)
          b.place[k] = static_cast<int32_t>(c / step * p.channel + at);
      }
    } else if (u - 1 < rows) {
      pack_row_of_weights(call.in[1], p, u - 1, b.own_weights);
    } else {
      const int64_t copy = u - 1 - rows, group = copy / of_group, channel = copy % of_group * step;
      const uint8_t* const from = call.in[0].as<const uint8_t>() + (group * p.channels + channel) * plane;
      uint8_t* const to = b.own_copy + group * group_bytes(p);
      if (step == 1)
        copy_channel(p, from, zero, to + channel * p.channel);
      else
        copy_words(p, b.as, from, plane, num::min_i64(step, p.channels - channel), zero, scratch,
                   reinterpret_cast<int32_t*>(to) + channel / step * p.channel);
      if (copy + 1 < p.images * p.groups * of_group) continue;
      for (int64_t i = 0; i < kByteSlack; ++i) b.own_copy[p.images * p.groups * group_bytes(p) + i] = 0;
    }
  }
}

// Adjacent places of a block that are adjacent in the copy.
struct PlaceRun {
  int64_t at, count, from;
};
INVAR_INLINE int place_runs(const Geometry& p, int64_t begin, int64_t n, PlaceRun (&run)[kPlaces]) {
  const slide::Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  if ((wide.length == wide.out || high.out * deep.out == 1) && (high.length == high.out || deep.out == 1)) {
    run[0] = {0, n, begin};
    return 1;
  }
  int count = 0;
  int64_t row = begin / wide.out, j = begin % wide.out;
  for (int64_t done = 0; done < n; ++row, j = 0) {
    const int64_t length = num::min_i64(wide.out - j, n - done);
    run[count++] = {done, length, (row / high.out * high.length + row % high.out) * wide.length + j};
    done += length;
  }
  return count;
}

// The words of `n` places from `begin` on of a group at x, [tile's places][word][place], and after
// them the sums of each column, if `sums`.
void write_words(const ByteCall& b, const uint8_t* x, int64_t begin, int64_t n, bool sums, int32_t* panel) {
  PlaceRun run[kPlaces];
  const int runs = place_runs(b.p, begin, n, run);
  uint8_t strip[kWordBytes][kPlaces + 16];
  int32_t* const total = panel + b.l.words * kPlaces;
  for (int64_t v = 0; v < kPlaces; v += kW) store_i(total + v, set1_i(0));
  for (int64_t k = 0; k < b.p.k; k += kWordBytes, panel += kPair) {
    const int64_t tall = num::min_i64(kWordBytes, b.p.k - k);
    const uint8_t* row[kWordBytes];
    for (int64_t i = 0; i < kWordBytes; ++i) {
      const uint8_t* from = x + b.place[i < tall ? k + i : k];
      row[i] = runs == 1 ? from + run[0].from : strip[i];
      // What a run's last copy writes too much, the next run overwrites.
      for (int r = 0; runs > 1 && i < tall && r < runs; ++r)
        for (int64_t j = 0; j < run[r].count; j += 16)
          __builtin_memcpy(strip[i] + run[r].at + j, from + run[r].from + j, 16);
    }
    auto put = [&](int64_t v, I word) __attribute__((always_inline)) {
      store_i(panel + v / kPair * kPair * b.l.words + v % kPair, word);
      if (sums) store_i(total + v, add_word_products(load_words(total + v), word, set1_i(kWordOfOnes)));
    };
    int64_t v = 0;
#if INVAR_WORD_PERMUTATIONS
    for (const I moved = set1_i(moved_word(b.as)); tall == 4 && v + 4 * kW <= n; v += 4 * kW) {
      const uint8_t* const at[4] = {row[0] + v, row[1] + v, row[2] + v, row[3] + v};
      I word[4];
      words_of_rows(at, word);
      for (int i = 0; i < 4; ++i) put(v + i * kW, bit_xor(word[i], moved));
    }
#endif
    for (; v < n; v += kW) put(v, word_of(row, v, tall, n - v, b.as));
  }
}

// The same from a copy that has words: of each vector of places, pieces that are adjacent there.
void gather_words(const ByteCall& b, const int32_t* x, int64_t begin, int64_t n, bool sums, int32_t* panel) {
  struct Piece {
    int64_t from, to;
    int lanes;
    bool whole;  // a whole vector may be written: the next piece overwrites the excess
  } piece[kPlaces];
  PlaceRun run[kPlaces];
  const int runs = place_runs(b.p, begin, n, run);
  int pieces = 0;
  for (int r = 0; r < runs; ++r)
    for (int64_t i = 0, lanes; i < run[r].count; i += lanes) {
      const int64_t at = run[r].at + i;
      lanes = num::min_i64(run[r].count - i, kW - at % kW);
      piece[pieces++] = {run[r].from + i, at / kPair * kPair * b.l.words + at % kPair,
                         static_cast<int>(lanes), at % kW == 0};
    }
  int32_t* const total = panel + b.l.words * kPlaces;
  for (int64_t v = 0; v < kPlaces; v += kW) store_i(total + v, set1_i(0));
  for (int64_t word = 0; word < b.l.words; ++word, panel += kPair) {
    const int32_t* const from = x + b.place[word];
    for (int i = 0; i < pieces; ++i) {
      const I words = load_words(from + piece[i].from);
      if (piece[i].whole)
        store_i(panel + piece[i].to, words);
      else
        store_n(reinterpret_cast<float*>(panel + piece[i].to), from_bits(words), piece[i].lanes);
    }
    for (int64_t v = 0; sums && v < n; v += kW) {
      const I words = load_words(panel + v / kPair * kPair * b.l.words + v % kPair);
      store_i(total + v, add_word_products(load_words(total + v), words, set1_i(kWordOfOnes)));
    }
  }
}

constexpr int64_t kWeightsAhead = 64 * kWordRows;
// Sums of R output channels at V vectors of places.
template <int R, int V>
INVAR_INLINE void word_sums(const int32_t* w, int64_t stride, const int32_t* panel, int64_t words,
                            I (&sum)[R * V]) {
  I acc[R * V];
#pragma GCC unroll 64
  for (int i = 0; i < R * V; ++i) acc[i] = set1_i(0);
  for (int64_t k = 0; k < words; ++k, w += stride, panel += kPair) {
    __builtin_prefetch(w + kWeightsAhead);  // the hardware begins anew at each page
    I x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = bits(in_register(from_bits(load_words(panel + v * kW))));
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
#if !INVAR_BYTE_QUADS
      add_row_products<V>(acc + r * V, w[r], x);
#else
      const I each = set1_i(w[r]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r * V + v] = add_word_products(acc[r * V + v], x[v], each);
#endif
    }
  }
#pragma GCC unroll 64
  for (int i = 0; i < R * V; ++i) sum[i] = acc[i];
}
// Stores a row's results from its sums; `totals`: the sums of the columns, which a zero point of
// the weights needs.
INVAR_INLINE void store_sums(I sum, const RowEnd& end, const int32_t* totals, int lanes, int32_t* to) {
  store_part(reinterpret_cast<float*>(to), from_bits(add(sum, set1_i(end.base))), lanes);
  for (int i = 0; end.zero != 0 && i < lanes; ++i)
    to[i] = static_cast<int32_t>(static_cast<uint32_t>(to[i]) -
                                 static_cast<uint32_t>(end.zero) * static_cast<uint32_t>(totals[i]));
}

// Stores a tile's rows of `vectors` from their sums, of which `left` lanes are places. Out of line:
// it is the same for tiles of all shapes.
INVAR_INTERNAL void store_tile(const I* sum, int rows, int vectors, const RowEnd* end, const int32_t* totals,
                               int64_t left, int32_t* to, int64_t stride) {
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const int64_t place = v * kW, lanes = num::min_i64(left - place, kW);
      if (lanes > 0)
        store_sums(sum[r * vectors + v], end[r], totals + place, static_cast<int>(lanes),
                   to + r * stride + place);
    }
}

// buffered: `to` is a buffer of whole vectors, and no weight has a zero point.
template <int R, int V>
INVAR_INLINE void word_tile(const ByteCall& b, const int32_t* w, const int32_t* panel, const RowEnd* end,
                            int64_t at, int64_t n, int32_t* to, int64_t stride, bool buffered) {
  I sum[R * V];
  word_sums<R, V>(w, b.l.stride, panel + at * b.l.words, b.l.words, sum);
  if (!buffered) return store_tile(sum, R, V, end, panel + b.l.words * kPlaces + at, n - at, to + at, stride);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      store_i(to + at + r * kPlaces + v * kW, add(sum[r * V + v], set1_i(end[r].base)));
}

// Runs the steps on `rows` rows of n sums, kPlaces apart. Those of whole channels lie together in
// the result and become one row.
INVAR_INTERNAL void store_rows(const Epilogue& steps, int64_t at, int64_t n, int64_t rows, int64_t columns,
                               RowScratch& s) {
  if (n == columns && rows > 1 && rows * n <= kRow) {
    for (int64_t i = 1; i < rows; ++i)
      for (int64_t j = 0; j < n; j += kW)
        store_part(reinterpret_cast<float*>(s.sums + i * n + j),
                   from_bits(load_words(s.sums + i * kPlaces + j)),
                   static_cast<int>(num::min_i64(n - j, kW)));
    n *= rows, rows = 1;
  }
  for (int64_t i = 0; i < rows; ++i) store_row(steps, at + i * columns, n, s.sums + i * kPlaces, s.spare);
}

void run_places(const Call& call, const ByteCall& b, int64_t begin, int64_t end, RowScratch& rows_of) {
  const Geometry& p = b.p;
  const Epilogue* const steps = row_steps_of(call);
  auto* const panel = reinterpret_cast<int32_t*>(&rows_of + 1);
  const PlacePartition c(p);
  int64_t last = -1;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t block = u / c.row_blocks, first = block % c.blocks * kPlaces,
                  n = num::min_i64(kPlaces, p.columns - first), group = block / c.blocks % p.groups,
                  image = block / c.blocks / p.groups, from = u % c.row_blocks * c.rows,
                  to = num::min_i64(from + c.rows, p.rows);
    bool zeros = false;
    for (int64_t r = from; r < to && !zeros; ++r)
      zeros = row_end(call, p, b.as, b.sums, group * p.rows + r).zero != 0;
    const uint8_t* const x = b.group(image * p.groups + group);
    if (block != last || zeros) {
      if (has_channel_words(p))
        gather_words(b, reinterpret_cast<const int32_t*>(x), first, n, zeros, panel);
      else
        write_words(b, x, first, n, zeros, panel);
    }
    last = block;
    for (int64_t r = from, reported = from; r < to; r += kWordRows) {
      const int64_t rows = num::min_i64(kWordRows, to - r), m = group * p.rows + r;
      const int64_t at = (image * p.groups * p.rows + m) * p.columns + first;
      const int32_t* w = b.weights + group * b.l.group() + r / kWordRows * b.l.words * b.l.stride;
      int32_t* const out = steps ? rows_of.sums : call.out[0].as<int32_t>() + at;
      const int64_t stride = steps ? kPlaces : p.columns;
      RowEnd ends[kWordRows];
      for (int64_t i = 0; i < rows; ++i) ends[i] = row_end(call, p, b.as, b.sums, m + i);
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        constexpr int kR = decltype(tall)::value;
        for (int64_t v = 0; v < n; v += kPair) {
          if (n - v <= kW)
            word_tile<kR, 1>(b, w, panel, ends, v, n, out, stride, steps && !zeros);
          else
            word_tile<kR, kPlaceVectors>(b, w, panel, ends, v, n, out, stride, steps && !zeros);
        }
      };
      dispatch_tile_rows<kWordRows>(static_cast<int>(rows), tiles);
      if (steps) store_rows(*steps, at, n, rows, p.columns, rows_of);
      // Callbacks cost less for more rows at once.
      if ((r + rows - reported) * n < kEpilogueChunk && r + rows < to) continue;
      const Region done{at - (r - reported) * p.columns, n, r + rows - reported, p.columns};
      notify_epilogue(call, n == p.columns ? Region{done.at, done.n * done.rows, 1, 0} : done);
      reported = r + rows;
    }
  }
}

// Calls f(word, its bytes at places at + 0, 1, ... of a channel at `from`, how many bytes there
// are) for the words of the channel's weights. kSlid: the taps of a line of the kernel follow one
// another in the copy.
template <bool kSlid, class Fn>
INVAR_INLINE void each_channel_word(const ByteCall& b, const uint8_t* from, int64_t at, int64_t left, Fn f) {
  for (int64_t word = 0, line = 0; word < b.l.words; line += b.l.line)
    for (int64_t k = 0; k < b.l.line; k += kWordBytes, ++word) {
      const int32_t* const place = b.place + line + k;
      const int64_t tall = num::min_i64(kWordBytes, b.l.line - k);
#if INVAR_WORD_PERMUTATIONS
      if constexpr (kSlid) {
        f(word, bit_xor(slid_words(from + *place + at), set1_i(moved_word(b.as))), tall);
        continue;
      }
#endif
      const uint8_t* row[kWordBytes];
      for (int64_t i = 0; i < kWordBytes; ++i) row[i] = from + place[i < tall ? i : 0];
      f(word, word_of(row, at, tall, left, b.as), tall);
    }
}

// Depthwise.
template <bool kSlid>
void run_channels(const Call& call, const ByteCall& b, int64_t begin, int64_t end, RowScratch& rows_of) {
  const Geometry& p = b.p;
  const slide::Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  const Epilogue* const steps = row_steps_of(call);
  int64_t done = begin * p.columns, stored = done;  // stored: where the steps' next row begins
  for (int64_t u = begin; u < end; ++u) {
    const int64_t m = u % p.groups;
    const RowEnd ends = row_end(call, p, b.as, b.sums, m);
    const int32_t* w = b.weights + m * b.l.group();
    const uint8_t* x = b.x + u * p.channel;
    for (int64_t line = 0; line < deep.out * high.out; ++line) {
      const uint8_t* from = x + (line / high.out * high.length + line % high.out) * wide.length;
      int64_t at = u * p.columns + line * wide.out;
      for (int64_t j = 0; j < wide.out; j += kW, at += kW) {
        const int64_t left = wide.out - j, readable = p.copies ? kW : left;
        const int lanes = left < kW ? static_cast<int>(left) : kW;
        I sum = set1_i(0), total = set1_i(0);
        each_channel_word<kSlid>(
            b, from, j, readable, [&](int64_t word, I bytes, int64_t tall) __attribute__((always_inline)) {
              sum = add_word_products(sum, bytes, set1_i(w[word]));
              if (ends.zero == 0) return;
              const auto ones = static_cast<int32_t>(static_cast<uint32_t>(kWordOfOnes) >>
                                                     32 / kWordBytes * (kWordBytes - tall));
              total = add_word_products(total, bytes, set1_i(ones));
            });
        int32_t totals[kW];
        if (ends.zero != 0) store_i(totals, total);
        if (steps && at + lanes - stored > kRow) {
          store_row(*steps, stored, at - stored, rows_of.sums, rows_of.spare);
          stored = at;
        }
        store_sums(sum, ends, totals, lanes,
                   steps ? rows_of.sums + (at - stored) : call.out[0].as<int32_t>() + at);
      }
      // Callbacks cost less for several channels at once, steps for several lines of one.
      const int64_t now = u * p.columns + (line + 1) * wide.out;
      const bool ends_channel = line + 1 == deep.out * high.out;
      if (now - done < kEpilogueChunk && (u + 1 < end || !ends_channel)) continue;
      if (steps) store_row(*steps, stored, now - stored, rows_of.sums, rows_of.spare);
      stored = now;
      notify_epilogue(call, {done, now - done, 1, 0});
      done = now;
    }
  }
}
// Whether slid words have the taps of a line, and what is read beyond them is in the copy.
bool has_slid_words(const Geometry& p) {
  return INVAR_WORD_PERMUTATIONS && p.copies && p.axis[2].stride == 1 && p.axis[2].dilation == 1;
}

void run_bytes(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const ByteCall b(call);
  if (phase == 0)
    prepare_bytes(call, b, begin, end, static_cast<uint8_t*>(scratch));
  else if (is_depthwise(b.p))
    (has_slid_words(b.p) ? run_channels<INVAR_WORD_PERMUTATIONS>
                         : run_channels<false>)(call, b, begin, end, *static_cast<RowScratch*>(scratch));
  else
    run_places(call, b, begin, end, *static_cast<RowScratch*>(scratch));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
