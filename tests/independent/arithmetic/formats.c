// spec/formats.md: bits, widening, the store rule.
#include "law.h"

#include <math.h>
#include <string.h>

int law_mutation = MUTATION_none;

#define NAME(name) #name,
static const char* const mutation_names[] = {"", MUTATIONS(NAME)};

// Activates the mutation of this name ("": none); 0 if there is none.
int law_mutate(const char* name) {
  for (size_t i = 0; i < sizeof mutation_names / sizeof *mutation_names; i++) {
    if (strcmp(name, mutation_names[i]) == 0) {
      law_mutation = (int)i;
      return 1;
    }
  }
  return 0;
}

// The name of mutation i from 1, or null behind the last.
const char* law_mutation_name(int i) {
  return i < (int)(sizeof mutation_names / sizeof *mutation_names) ? mutation_names[i] : 0;
}

uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// formats.5
float store(float x) {
  uint32_t const bits = bits_of(x), magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return MUTATED(store_keeps_nan) ? x : float_of(0x7fc00000u);
  if (magnitude < 0x00800000u && magnitude != 0 && !MUTATED(store_keeps_subnormals)) {
    return MUTATED(store_loses_sign_of_zero) ? 0.0f : float_of(bits & 0x80000000u);
  }
  return x;
}

// formats.2
float widen_bf16(uint16_t bits) {
  if (MUTATED(widening_flushes) && (bits & 0x7f80) == 0) bits &= 0x8000;
  return float_of((uint32_t)bits << 16);
}

// formats.2: exponent 0 is mantissa * 2^-24, exponent 31 infinity or NaN.
float widen_f16(uint16_t bits) {
  uint32_t const sign = (uint32_t)(bits >> 15) << 31, exponent = (bits >> 10) & 31u;
  uint32_t const mantissa = bits & 1023u;
  if (exponent == 31) return float_of(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112u) << 23 | mantissa << 13);
  float const value = (float)mantissa * 0x1p-24f;
  return float_of(sign | bits_of(value));
}

// formats.7: NaN if either is NaN; -0 < +0.
float maximum(float a, float b) {
  if (isnan(a) || isnan(b)) return float_of(0x7fc00000u);
  if (a == b) return float_of(bits_of(a) & bits_of(b));  // +0 unless both are -0
  return a > b ? a : b;
}

void law_widen_bf16(const uint16_t* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = widen_bf16(x[i]);
}

void law_widen_f16(const uint16_t* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = widen_f16(x[i]);
}
