// The keys of generation_config.json by what they do to an answer (docs/reference/cli.md, "Defaults
// of a checkpoint").
#pragma once

#include <span>
#include <string_view>

namespace invar::generate {

// A key of transformers' GenerationConfig (5.24, or 4.x) that changes which tokens come out and is
// not implemented. It passes with null and with the value that switches it off: a number, a word,
// [] for what is empty.
struct UnsupportedKey {
  std::string_view name, off;
  bool drawing = false;  // it only matters where tokens are drawn
};
std::span<const UnsupportedKey> unsupported_keys();

// The keys of settings that are implemented, with what switches them off. config.json may not have
// them, where transformers looks if there is no generation_config.json.
std::span<const UnsupportedKey> implemented_keys();

// Keys that change no token of an answer: what is returned beside it, ids of other roles, speed,
// beams where there is one.
std::span<const std::string_view> harmless_keys();

// Keys of models that hear: generate/speech reads them, or they are of timestamps and of texts
// before, which are not written.
std::span<const std::string_view> speech_keys();

// The same of `search` in genai_config.json alone: memory, and how much is computed at once.
std::span<const std::string_view> harmless_search_keys();

// Values of cache_implementation that change no token: where keys and values are kept in memory. A
// quantized cache has other bits.
std::span<const std::string_view> harmless_caches();

}  // namespace invar::generate
