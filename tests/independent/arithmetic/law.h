// The arithmetic of spec/, written from its pages alone. One file for each page; a name of a clause
// stands where it is obeyed. Nothing here is fast: the order of the text is the order of the code.
#pragma once
#include <stddef.h>
#include <stdint.h>

// A mutation breaks one clause, to show that a receipt or an example notices. None is active unless
// a test names one (mutations.py).
#define MUTATIONS(X)              \
  X(store_keeps_subnormals)       \
  X(store_loses_sign_of_zero)     \
  X(store_keeps_nan)              \
  X(widening_flushes)             \
  X(exp_one_ulp)                  \
  X(exp_by_polynomial)            \
  X(exp_flushes)                  \
  X(cos_one_ulp)                  \
  X(pow_truncates)                \
  X(row_segments_of_2048)         \
  X(row_one_segment)              \
  X(row_lanes_128)                \
  X(row_lanes_descend)            \
  X(row_squares_round)            \
  X(row_joins_linearly)           \
  X(row_joins_neighbours)         \
  X(chain_blocks_of_128)          \
  X(chain_multiplies_and_adds)    \
  X(chain_descends)               \
  X(chain_in_binary64)            \
  X(chain_squashes)               \
  X(product_keeps_subnormals)     \
  X(segments_4)                   \
  X(segments_interleave)          \
  X(segment_starts_with_chain)    \
  X(segments_add_linearly)        \
  X(segments_tree_by_stride)      \
  X(exact16_one_scale)            \
  X(exact16_truncates)            \
  X(exact16_three_products)       \
  X(exact16_exp_degree_3)         \
  X(exact16_weights_of_16_bits)   \
  X(exact16_largest_scale)        \
  X(norm_epsilon_outside_root)    \
  X(norm_root_rounds_once)        \
  X(norm_divides_by_root)         \
  X(norm_weight_first)            \
  X(norm_multiplies_by_inverse)   \
  X(silu_divides)                 \
  X(silu_keeps_subnormal_sigmoid) \
  X(rope_fuses)                   \
  X(rope_interleaves)             \
  X(rope_turns_back)              \
  X(scale_before_contraction)     \
  X(score_is_stored)              \
  X(key_blocks_of_64)             \
  X(weights_keep_subnormals)      \
  X(block_maximum_runs)           \
  X(block_sum_linear)             \
  X(block_value_rounds_product)   \
  X(block_skips_zero_weights)     \
  X(fold_rounds_product)          \
  X(fold_keeps_subnormal_factor)  \
  X(fold_rescales_old_only)       \
  X(result_by_reciprocal)         \
  X(decay_in_binary64)            \
  X(decay_keeps_subnormals)       \
  X(decays_add_in_binary32)       \
  X(past_is_stored)               \
  X(chunk_multiplies_and_adds)    \
  X(chunks_of_32)                 \
  X(scale_is_left_out)            \
  X(value_heads_interleave)       \
  X(taps_turn_back)               \
  X(heads_interleave)             \
  X(frames_without_window)        \
  X(window_ends_are_silent)       \
  X(bands_are_linear)             \
  X(bands_are_not_scaled)         \
  X(quiet_bands_stay)             \
  X(gelu_by_erf)                  \
  X(moments_in_one_pass)          \
  X(sees_no_self)

#define ENUMERATE(name) MUTATION_##name,
enum { MUTATION_none, MUTATIONS(ENUMERATE) };
extern int law_mutation;
#define MUTATED(name) (law_mutation == MUTATION_##name)

// formats.md
uint32_t bits_of(float x);
float float_of(uint32_t bits);
float store(float x);
float widen_bf16(uint16_t bits);
float widen_f16(uint16_t bits);
float maximum(float a, float b);

// functions.md
float law_exp(float x);
float law_sin(float x);
float law_cos(float x);
float law_pow(float x, float y);
int law_function(const char* name, float x, float* y);

// reduction.md
float sum_of_row(const float* x, size_t n);
float sum_of_squares(const float* x, size_t n);
float sum_of_squares_about(const float* x, size_t n, float c);
float sum_of_block(const float* p, size_t m);

// exact16.md
int exact16_row(const float* x, size_t n, int64_t* q, int* e);
float exact16_result(int64_t v, int e);

// contraction.md
float contract(const float* a, const float* b, size_t n);
