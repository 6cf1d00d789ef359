#include "checkpoint/config_reading/rope_reader.h"

#include <algorithm>

#include "checkpoint/architecture.h"

namespace invar::checkpoint {
namespace {

using json::Value;
using onnx::quote;

const Value kNone(Value::object);

// A number that may be inside of the rope object (new format) or beside it (old format). If it is
// in both, the values must agree.
double nested_or_top_level(ConfigReader& top, ConfigReader& inner, const char* inner_key, const char* top_key,
                           double fallback) {
  if (!inner.find(inner_key)) return top_key ? top.positive(top_key, fallback) : fallback;
  const double value = inner.positive(inner_key, fallback);
  if (top_key && top.find(top_key) && top.positive(top_key, fallback) != value)
    top.fail(bad_input("config.json: " + quote(top_key) + " is given twice with different values"));
  return value;
}

std::string type_name(ConfigReader& inner) {
  return inner.text("rope_type", inner.text("type", "default").c_str());
}

RopeParameters::Type read_type(ConfigReader& inner, const RopeDefaults& defaults) {
  const std::string type = type_name(inner);
  if (type == "default") return RopeParameters::standard;
  if (defaults.longrope && (type == "longrope" || type == "su")) return RopeParameters::longrope;
  if (defaults.proportional && type == "proportional") return RopeParameters::proportional;
  if (defaults.scaled) {
    // Up to max_position_embeddings positions, and no model has more, these are the default angles.
    if (type == "dynamic") return RopeParameters::standard;
    if (type == "linear") return RopeParameters::linear;
    if (type == "llama3") return RopeParameters::llama3;
    if (type == "yarn" || (defaults.deepseek_yarn && type == "deepseek_yarn")) return RopeParameters::yarn;
  }
  std::string covered = "default";
  if (defaults.scaled) covered += ", linear, dynamic, llama3, yarn";
  if (defaults.longrope) covered += ", longrope";
  if (defaults.proportional) covered += ", proportional";
  inner.refuse("type " + quote(type) + " is not covered; covered: " + covered);
  return RopeParameters::standard;
}

void check_keys(const Value& object, RopeParameters::Type type, const RopeDefaults& defaults,
                ConfigReader& inner) {
  const bool alpha = defaults.alpha;
  static const std::set<std::string> known_keys = {"rope_type",
                                                   "type",
                                                   "rope_theta",
                                                   "factor",
                                                   "low_freq_factor",
                                                   "high_freq_factor",
                                                   "original_max_position_embeddings",
                                                   "partial_rotary_factor"};
  static const std::set<std::string> yarn_keys = {
      "attention_factor", "beta_fast", "beta_slow", "mscale",
      "mscale_all_dim",   "truncate",  "finetuned"};  // of the training; transformers ignores it
  static const std::set<std::string> longrope_keys = {"attention_factor", "short_factor", "long_factor"};
  static const std::set<std::string> temperature_keys = {
      "llama_4_scaling_beta", "max_position_embeddings"};  // transformers ignores the second
  const bool yarn = type == RopeParameters::yarn, longrope = type == RopeParameters::longrope;
  for (const auto& [key, value] : object.members)
    if (!known_keys.contains(key) && !((yarn || alpha) && yarn_keys.contains(key)) &&
        !(alpha && key == "alpha") && !(defaults.temperature && temperature_keys.contains(key)) &&
        !(longrope && longrope_keys.contains(key)) &&
        !(longrope && defaults.mscale && (key == "short_mscale" || key == "long_mscale")) && !value.is_null())
      inner.refuse(quote(key) + " = " + short_text(value) + " is not covered");
}

void read_yarn(ConfigReader& inner, RopeParameters& rope) {
  rope.beta_fast = inner.positive("beta_fast", rope.beta_fast);
  rope.beta_slow = inner.positive("beta_slow", rope.beta_slow);
  rope.attention_factor = inner.optional("attention_factor");
  const auto scale = [&](const char* key) {  // 0 is none, as in transformers
    const Value* v = inner.find(key);
    return v && v->is_number() && *v == 0 ? 0 : inner.optional(key);
  };
  rope.mscale = scale("mscale");
  rope.mscale_all_dim = scale("mscale_all_dim");
  rope.truncate = inner.flag("truncate", true);
  if (rope.beta_fast < rope.beta_slow) inner.reject("'beta_fast' is below 'beta_slow'");
  if (rope.theta <= 1) inner.reject("'rope_theta' must be above 1 for yarn");
}

// One positive number for each rotated pair.
std::vector<double> read_factors(ConfigReader& inner, const char* key, int64_t pairs) {
  const Value* list = inner.find(key);
  std::vector<double> factors;
  if (list && list->is_array() && list->size() == static_cast<size_t>(pairs))
    for (const Value& f : list->items)
      if (f.is_number() && static_cast<float>(f.to_double()) > 0) factors.push_back(f.to_double());
  if (factors.size() == static_cast<size_t>(pairs)) return factors;
  inner.reject(quote(key) + " is not a list of " + std::to_string(pairs) + " positive numbers");
  return std::vector<double>(static_cast<size_t>(pairs), 1.0);
}

// The factors of one of the two programs (decoder.29).
void read_longrope(ConfigReader& inner, Decoder& d, int64_t pairs, RopeParameters& rope) {
  rope.factors = read_factors(inner, "short_factor", pairs);
  const std::vector<double> long_factors = read_factors(inner, "long_factor", pairs);
  if ((rope.long_factors = d.long_context)) rope.factors = long_factors;
  rope.attention_factor = inner.optional("attention_factor");
  const auto positions = static_cast<double>(d.max_positions);
  rope.factor = inner.find("factor") ? inner.positive("factor", 0) : positions / rope.original_max_positions;
  if (rope.original_max_positions < 2) inner.reject("'original_max_position_embeddings' is below 2");
  const auto original = static_cast<int64_t>(rope.original_max_positions);
  if (d.long_context && original >= d.max_positions)
    inner.reject("no positions beyond 'original_max_position_embeddings': leave --long-context out");
  if (!d.long_context) d.max_positions = std::min(d.max_positions, original);
}

// How much queries grow with their positions; 0 is not at all.
float read_beta(ConfigReader& inner) {
  const Value* v = inner.find("llama_4_scaling_beta");
  return v && *v == 0 ? 0 : static_cast<float>(inner.positive("llama_4_scaling_beta", 0));
}

// int(head_dim * factor), as transformers has it.
int64_t rotated_part(ConfigReader& top, const Decoder& d, double partial) {
  const auto rotated = static_cast<int64_t>(static_cast<double>(d.head_dim) * std::min(partial, 2.0));
  if (rotated < 2 || rotated > d.head_dim || rotated % 2 != 0)
    top.refuse("rotary embedding of " + std::to_string(rotated) + " of " + std::to_string(d.head_dim) +
               " elements of a head is not covered; it needs pairs");
  return std::max<int64_t>(2, rotated / 2 * 2);
}

// The rotary embedding of one object -> the fraction of a head that it rotates.
double read_object(const Value& object, ConfigReader& top, const RopeDefaults& defaults, Decoder& d,
                   RopeParameters& rope) {
  ConfigReader inner(object, top.where() + ": rope");
  rope.type = read_type(inner, defaults);
  const bool yarn = rope.type == RopeParameters::yarn, llama3 = rope.type == RopeParameters::llama3,
             longrope = rope.type == RopeParameters::longrope;
  check_keys(object, rope.type, defaults, inner);
  double partial = 1;
  if (rope.type == RopeParameters::proportional) {
    rope.proportion = inner.positive("partial_rotary_factor", 1);
    if (rope.proportion > 1) inner.reject("'partial_rotary_factor' is above 1");
  } else if (defaults.partial == 0) {
    if (inner.positive("partial_rotary_factor", defaults.whole) != defaults.whole)
      inner.refuse("'partial_rotary_factor' other than " + short_text(Value(defaults.whole)) +
                   " is not covered");
  } else {
    partial =
        nested_or_top_level(top, inner, "partial_rotary_factor", defaults.partial_key, defaults.partial);
  }
  rope.theta = nested_or_top_level(top, inner, "rope_theta", defaults.theta_key, defaults.theta);
  if (type_name(inner) == "dynamic") {
    if (defaults.alpha && inner.find("alpha") && d.head_dim > 2)
      rope.theta = stretched_theta(rope.theta, inner.positive("alpha", 0), d.head_dim);
    else
      inner.positive("factor", 0);
  }
  if (rope.type == RopeParameters::proportional)
    rope.factor = inner.positive("factor", 1);
  else if (rope.type != RopeParameters::standard && !longrope && !(yarn && inner.is_null("factor")))
    rope.factor = inner.positive("factor", 0);
  if (yarn || llama3 || longrope)
    rope.original_max_positions = nested_or_top_level(
        top, inner, "original_max_position_embeddings", "original_max_position_embeddings",
        defaults.longrope && !defaults.scaled ? 4096 : static_cast<double>(d.max_positions));
  if (defaults.temperature) {
    d.temperature.beta = read_beta(inner);
    d.temperature.positions = inner.size("original_max_position_embeddings", 0);
  }
  if (longrope) read_longrope(inner, d, rotated_part(top, d, partial) / 2, rope);
  if (longrope && defaults.mscale) {
    const double short_mscale = inner.positive("short_mscale", 0);
    const double long_mscale = inner.positive("long_mscale", 0);
    rope.attention_factor = rope.long_factors ? long_mscale : short_mscale;
  }
  if (yarn && inner.is_null("factor"))
    rope.factor = static_cast<double>(d.max_positions) / rope.original_max_positions;
  if (yarn) read_yarn(inner, rope);
  if (llama3) {
    rope.low_freq_factor = inner.positive("low_freq_factor", 0);
    rope.high_freq_factor = inner.positive("high_freq_factor", 0);
    if (rope.high_freq_factor < rope.low_freq_factor)  // Llama 4 Scout has them equal
      inner.reject("'high_freq_factor' is below 'low_freq_factor'");
  }
  if (!inner.status()) top.fail(inner.status().error());
  return partial;
}

}  // namespace

void require_rope_object(ConfigReader& top, const Decoder& d) {
  if (!top.find("rope_scaling") && !top.find("rope_parameters"))
    top.refuse("a " + d.family + " config without 'rope_scaling' and 'rope_parameters' is not covered");
}

void read_rope(ConfigReader& top, const RopeDefaults& defaults, Decoder& d) {
  const Value *older = top.find("rope_scaling"), *newer = top.find("rope_parameters");
  if (older && newer && *older != *newer) return top.reject("'rope_scaling' and 'rope_parameters' disagree");
  const Value& object = older ? *older : newer ? *newer : kNone;
  if (!object.is_object())
    return top.reject(std::string(older ? "'rope_scaling'" : "'rope_parameters'") + " is not an object");
  d.ropes = {RopeParameters{}};
  d.rotary_dim = rotated_part(top, d, read_object(object, top, defaults, d, d.ropes[0]));
}

void read_ropes_of_layers(ConfigReader& top, const RopeDefaults& full, const RopeDefaults& windowed,
                          Decoder& d) {
  const Value *older = top.find("rope_scaling"), *newer = top.find("rope_parameters");
  if (older && newer) return top.refuse("'rope_scaling' beside 'rope_parameters' is not covered");
  for (const Value* given : {older, newer})
    if (given && !given->is_object()) return top.reject("the rotary parameters are not an object");
  const Value *outer = newer ? newer : &kNone, *full_object = older ? older : &kNone, *local_object = &kNone;
  for (const auto& [key, value] : outer->members) {
    const Value** slot = key == "full_attention"      ? &full_object
                         : key == "sliding_attention" ? &local_object
                                                      : nullptr;
    if (!slot || !(value.is_object() || value.is_null()))
      return top.refuse("rope: " + quote(key) + " = " + short_text(value) + " is not covered");
    // transformers reads it beside the objects, where it is not.
    if (value.is_object() && value.get("truncate") == false)
      return top.refuse("rope: 'truncate' = false of one kind of layers is not covered");
    if (value.is_object()) *slot = &value;
  }
  d.ropes = {RopeParameters{}, RopeParameters{}};
  d.rotary_dim = rotated_part(top, d, read_object(*full_object, top, full, d, d.ropes[0]));
  const int64_t local = rotated_part(top, d, read_object(*local_object, top, windowed, d, d.ropes[1]));
  if (local != d.rotary_dim) d.ropes[1].size = local;
  if (d.ropes[0] == d.ropes[1] && !full.proportional) return d.ropes.resize(1);
  for (Layer& layer : d.layers) layer.rope = layer.window;
}

}  // namespace invar::checkpoint
