// Reads the rotary parameters of a config.json (spec/llama.md llama.3, spec/decoder.md decoder.3).
#pragma once

#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/recipes/decoder.h"

namespace invar::checkpoint {

struct RopeDefaults {
  double theta = 10000;
  double partial = 0;  // of partial_rotary_factor; 0: the model always rotates whole heads
  double whole = 1;    // without it: what partial_rotary_factor may say of whole heads
  const char *theta_key = "rope_theta", *partial_key = "partial_rotary_factor";  // beside the object
  bool longrope = false;       // the type longrope, also called su
  bool proportional = false;   // the type proportional
  bool scaled = true;          // the types linear, dynamic, llama3 and yarn
  bool alpha = false;          // the key `alpha` of the type dynamic
  bool mscale = false;         // with longrope the keys short_mscale and long_mscale, which must be there
  bool temperature = false;    // the key `llama_4_scaling_beta`, which must be there (decoder.33)
  bool deepseek_yarn = false;  // also a name of the type yarn
};

// Refuses a config without rotary parameters, for which the family has more than a default theta.
void require_rope_object(ConfigReader& top, const Decoder&);

// One rotary embedding for all layers -> ropes and rotary_dim. Needs head_dim and max_positions.
void read_rope(ConfigReader& top, const RopeDefaults&, Decoder&);

// One for layers without window, ropes[0], and one for those with it -> ropes, rotary_dim, the
// ropes of the layers. Needs the layers, too. Each may rotate another part of heads.
void read_ropes_of_layers(ConfigReader& top, const RopeDefaults& full, const RopeDefaults& windowed,
                          Decoder&);

}  // namespace invar::checkpoint
