// Integer convolutions: a copy of x with its padding, split by strides; then, for blocks of places,
// words of the bytes that their results read, which tiles of output channels multiply. One channel
// to a group is read in place instead. Compiled once per instruction set.
#pragma once
#include "ops/conv_integer/cpu/words.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kPlaces = kW == 1 ? 16 : kW == 4 ? 64 : 8 * kW;  // places of a block
constexpr int kPlaceVectors = kW == 4 ? 4 : 2;                     // vectors of a tile
constexpr int64_t kPair = kPlaceVectors * kW;                      // places of a tile
constexpr int64_t kByteSlack = 128;                                // bytes after the copy that may be read

// Call::shared: where a k lies in a group of the copy; weights that are not packed; the copy.
struct SharedParts {
  int64_t words, weights, copy;
  SharedParts(const Call& call, const Geometry& p) {
    const WordLayout l(p);
    words = l.words * kWordBytes, weights = call.in[1].packed ? 0 : l.all(p);
    copy = p.copies ? p.images * p.groups * p.channels * p.channel + kByteSlack : 0;
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
  // One unit for the places of k; the rows of weights; the channels.
  if (phase == 0)
    return 1 + (call.in[1].packed ? 0 : p.groups * p.rows) +
           (p.copies ? p.images * p.groups * p.channels : 0);
  if (is_depthwise(p)) return p.images * p.groups;
  const PlacePartition c(p);
  return p.images * p.groups * c.blocks * c.row_blocks;
}
size_t scratch_of_bytes(const Call& call) {
  const Geometry p = conv_integer::geometry_of(call);
  if (is_depthwise(p)) return 0;
  return static_cast<size_t>((WordLayout(p).words + 1) * kPlaces) * sizeof(int32_t);
}

// Copies n bytes, 16 at once where as many may be read and written.
INVAR_INLINE void copy_bytes(const uint8_t* from, int64_t n, int64_t may, uint8_t* to) {
  int64_t i = 0;
  for (; i < n && i + 16 <= may; i += 16) __builtin_memcpy(to + i, from + i, 16);
  for (; i < n; ++i) to[i] = from[i];
}
// A channel of x with its padding, the zero point, as planes by strides.
void copy_channel(const Geometry& p, const uint8_t* x, uint8_t fill, uint8_t* to) {
  const slide::Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  const uint8_t *const x_end = x + deep.in * high.in * wide.in, *const end_of_copy = to + p.channel;
  // Position i of a plane is element first + i * stride.
  const auto first_of = [](const slide::Axis& a, int64_t plane) {
    return plane * a.dilation % a.stride + a.low;
  };
  for (int64_t r = 0; r < deep.planes; ++r)
    for (int64_t q = 0; q < high.planes; ++q)
      for (int64_t s = 0; s < wide.planes; ++s) {
        const int64_t top = first_of(deep, r), left = first_of(high, q), first = first_of(wide, s);
        int64_t before = first < 0 ? slide::ceil_div(-first, wide.stride) : 0;
        int64_t inside = first >= wide.in ? 0 : slide::ceil_div(wide.in - first, wide.stride);
        before = num::min_i64(before, wide.length), inside = num::min_i64(inside, wide.length);
        for (int64_t i = 0, d = top; i < deep.length; ++i, d += deep.stride)
          for (int64_t j = 0, h = left; j < high.length; ++j, h += high.stride, to += wide.length) {
            const bool out = d < 0 || d >= deep.in || h < 0 || h >= high.in;
            const int64_t end = out || inside < before ? before : inside, n = end - before;
            const uint8_t* from = x + (out ? 0 : (d * high.in + h) * wide.in) + first + before * wide.stride;
            uint8_t* const at = to + before;
            if (wide.stride == 1)
              copy_bytes(from, n, num::min_i64(x_end - from, end_of_copy - at), at);
            else if (wide.stride == 2)
              for (int64_t k = 0; k < n; ++k) at[k] = from[2 * k];
            else
              for (int64_t k = 0; k < n; ++k) at[k] = from[k * wide.stride];
            for (int64_t k = 0; k < before; ++k) to[k] = fill;
            for (int64_t k = end; k < wide.length; ++k) to[k] = fill;
          }
      }
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
    x = p.copies ? own_copy : call.in[0].as<const uint8_t>();
  }
};

void prepare_bytes(const Call& call, const ByteCall& b, int64_t begin, int64_t end) {
  const Geometry& p = b.p;
  const int64_t rows = call.in[1].packed ? 0 : p.groups * p.rows;
  const uint8_t zero = conv_integer::zero_byte(call, 0, 0);
  int64_t plane = 1;
  for (const slide::Axis& a : p.axis) plane *= a.in;
  for (int64_t u = begin; u < end; ++u) {
    if (u == 0) {
      for (int64_t tap = 0, k = 0; tap < p.taps; ++tap) {
        const int64_t at = conv_integer::tap_place(p, tap);
        for (int64_t c = 0; c < p.channels; ++c, ++k) b.place[k] = static_cast<int32_t>(c * p.channel + at);
      }
    } else if (u - 1 < rows) {
      pack_row_of_weights(call.in[1], p, u - 1, b.own_weights);
    } else {
      const int64_t channel = u - 1 - rows, all = p.images * p.groups * p.channels;
      copy_channel(p, call.in[0].as<const uint8_t>() + channel * plane, zero,
                   b.own_copy + channel * p.channel);
      for (int64_t i = 0; channel == all - 1 && i < kByteSlack; ++i) b.own_copy[all * p.channel + i] = 0;
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

// Sums of R output channels at V vectors of places.
template <int R, int V>
INVAR_INLINE void word_sums(const int32_t* w, int64_t stride, const int32_t* panel, int64_t words,
                            I (&sum)[R * V]) {
  I acc[R * V];
#pragma GCC unroll 64
  for (int i = 0; i < R * V; ++i) acc[i] = set1_i(0);
  for (int64_t k = 0; k < words; ++k, w += stride, panel += kPair) {
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

template <int R, int V>
INVAR_INLINE void word_tile(const ByteCall& b, const int32_t* w, const int32_t* panel, const RowEnd* end,
                            int64_t at, int64_t n, int32_t* to) {
  I sum[R * V];
  word_sums<R, V>(w, b.l.stride, panel + at * b.l.words, b.l.words, sum);
  store_tile(sum, R, V, end, panel + b.l.words * kPlaces + at, n - at, to + at, b.p.columns);
}

void run_places(const Call& call, const ByteCall& b, int64_t begin, int64_t end, int32_t* panel) {
  const Geometry& p = b.p;
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
    if (block != last || zeros)
      write_words(b, b.x + (image * p.groups + group) * p.channels * p.channel, first, n, zeros, panel);
    last = block;
    for (int64_t r = from, reported = from; r < to; r += kWordRows) {
      const int64_t rows = num::min_i64(kWordRows, to - r), m = group * p.rows + r;
      const int64_t at = (image * p.groups * p.rows + m) * p.columns + first;
      const int32_t* w = b.weights + group * b.l.group() + r / kWordRows * b.l.words * b.l.stride;
      int32_t* out = call.out[0].as<int32_t>() + at;
      RowEnd ends[kWordRows];
      for (int64_t i = 0; i < rows; ++i) ends[i] = row_end(call, p, b.as, b.sums, m + i);
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        constexpr int kR = decltype(tall)::value;
        for (int64_t v = 0; v < n; v += kPair) {
          if (n - v <= kW)
            word_tile<kR, 1>(b, w, panel, ends, v, n, out);
          else
            word_tile<kR, kPlaceVectors>(b, w, panel, ends, v, n, out);
        }
      };
      dispatch_tile_rows<kWordRows>(static_cast<int>(rows), tiles);
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
void run_channels(const Call& call, const ByteCall& b, int64_t begin, int64_t end) {
  const Geometry& p = b.p;
  const slide::Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  int64_t done = begin * p.columns;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t m = u % p.groups;
    const RowEnd ends = row_end(call, p, b.as, b.sums, m);
    const int32_t* w = b.weights + m * b.l.group();
    const uint8_t* x = b.x + u * p.channel;
    int32_t* out = call.out[0].as<int32_t>() + u * p.columns;
    for (int64_t line = 0; line < deep.out * high.out; ++line) {
      const uint8_t* from = x + (line / high.out * high.length + line % high.out) * wide.length;
      int32_t* to = out + line * wide.out;
      for (int64_t j = 0; j < wide.out; j += kW) {
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
        store_sums(sum, ends, totals, lanes, to + j);
      }
      // Callbacks cost less for several channels at once.
      const int64_t now = u * p.columns + (line + 1) * wide.out;
      if (now - done < kEpilogueChunk && (u + 1 < end || line + 1 < deep.out * high.out)) continue;
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
    prepare_bytes(call, b, begin, end);
  else if (is_depthwise(b.p))
    (has_slid_words(b.p) ? run_channels<INVAR_WORD_PERMUTATIONS> : run_channels<false>)(call, b, begin, end);
  else
    run_places(call, b, begin, end, static_cast<int32_t*>(scratch));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
