#include "generate/model/decoding_params.h"

#include <algorithm>

namespace invar::generate {

Result<DecodingParams> decoding_params(const ModelFolder& m, const SamplingOptions& o) {
  DecodingParams d;
  d.requested = o.max_new_tokens;
  if (!o.no_generation_config) {
    INVAR_TRY(d.config, read_generation_config(m.folder));
  }
  if (o.do_sample == false) return d;
  sample::Params& p = d.params;
  p.do_sample =
      o.do_sample.value_or(o.temperature || o.top_k || o.top_p || d.config.do_sample.value_or(false));
  if (p.do_sample) {
    INVAR_CHECK_OK(d.config.drawing);
  }
  auto first_of = [](auto option, auto config, auto otherwise) {
    return option.value_or(config.value_or(otherwise));
  };
  p.temperature = first_of(o.temperature, d.config.temperature, p.temperature);
  p.top_k = first_of(o.top_k, d.config.top_k, p.do_sample ? kTopK : 0);
  p.top_p = first_of(o.top_p, d.config.top_p, p.top_p);
  p.seed = o.seed;
  INVAR_CHECK_OK(sample::check(p));
  if (!p.do_sample) p = {};  // receipt.21: what draws nothing decides nothing
  return d;
}

Result<int64_t> new_tokens(const ModelFolder& m, const DecodingParams& d, int64_t tokens) {
  const int64_t room = m.context - tokens;
  if (room < 1)
    return bad_input(std::to_string(tokens) + " tokens, but the context of " + m.identity.name + " is " +
                     std::to_string(m.context) + ": shorten it to at most " + std::to_string(m.context - 1));
  if (d.requested && *d.requested > room)
    return bad_input(std::to_string(tokens) + " tokens and " + std::to_string(*d.requested) +
                     " new ones exceed the context of " + std::to_string(m.context) +
                     ": use --max-new-tokens " + std::to_string(room) + " or less");
  if (d.requested) return *d.requested;
  if (d.config.max_new_tokens) return std::min(*d.config.max_new_tokens, room);
  if (!d.config.max_length) return std::min(kMaxNewTokens, room);
  if (*d.config.max_length <= tokens)
    return bad_input(std::to_string(tokens) + " tokens, but max_length in generation_config.json is " +
                     std::to_string(*d.config.max_length) + ": pass --max-new-tokens");
  return std::min(*d.config.max_length - tokens, room);
}

}  // namespace invar::generate
