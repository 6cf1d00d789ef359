// quantization_config -> Quantization.
#include "checkpoint/formats/quantization.h"

#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/config_reading/config_reader.h"

namespace invar::checkpoint {
namespace {

using json::Value;
using onnx::quote;

constexpr const char* kWayOut =
    "; take a GGUF file of the model (docs/guide/quantised.md), or the model in bfloat16";

// A size under one of two names; 0: neither is there. -1 is a group as long as a row.
int64_t size_of_group(const Value& q, const char* name, const char* other, ConfigReader& r) {
  const Value* v = q.find(name);
  if (!v) v = q.find(other);
  if (!v || v->is_null() || *v == -1) return 0;
  if (v->is_unsigned() && v->to_int64() > 0 && v->to_uint64() < 1u << 30) return v->to_int64();
  r.reject("'quantization_config': " + quote(name) + " = " + short_text(*v) + " is not a size");
  return 0;
}

void read_block(const Value& sizes, Quantization& out, ConfigReader& r) {
  const auto size = [](const Value& v) {
    return v.is_unsigned() && v.to_int64() > 0 && v.to_uint64() < 1u << 30;
  };
  if (!sizes.is_array() || sizes.size() != 2 || !size(sizes.items[0]) || !size(sizes.items[1]))
    return r.reject("'quantization_config': the size of a block = " + short_text(sizes) +
                    " is not two sizes");
  out.block_rows = sizes.items[0].to_int64(), out.block_columns = sizes.items[1].to_int64();
}

void read_fp8(const Value& q, Quantization& out, ConfigReader& r) {
  out.by = PackedBy::fp8;
  static constexpr std::string_view kFloats[] = {"e4m3", "float8_e4m3fn", "e5m2", "float8_e5m2"};
  if (const Value* format = q.find("fmt");
      format && (!format->is_string() || !std::ranges::count(kFloats, format->text)))
    r.refuse("'quantization_config': fmt " + short_text(*format) + " is not covered; e4m3 and e5m2 are");
  if (const Value* sizes = q.find("weight_block_size"); sizes && !sizes->is_null())
    read_block(*sizes, out, r);
}

// All groups have one format, which the tensors of each matrix show.
void read_compressed_tensors(const Value& q, Quantization& out, ConfigReader& r) {
  out.by = PackedBy::compressed_tensors;
  static constexpr std::string_view kKnown[] = {"float-quantized",      "naive-quantized",
                                                "int-quantized",        "pack-quantized",
                                                "nvfp4-pack-quantized", "mxfp4-pack-quantized"};
  const Value* format = q.find("format");
  if (!format || !format->is_string() || !std::ranges::count(kKnown, format->text))
    return r.refuse("'quantization_config': format " + (format ? short_text(*format) : "(absent)") +
                    " is not covered; float-quantized, naive-quantized, int-quantized, pack-quantized, "
                    "nvfp4-pack-quantized and mxfp4-pack-quantized are" +
                    kWayOut);
  if (const Value* sparse = q.find("sparsity_config");
      sparse && !sparse->is_null() && !sparse->empty() && sparse->get("format") != "dense")
    return r.refuse("'quantization_config': a sparsity_config is not covered" + std::string(kWayOut));
  out.scales_are_powers = format->text == "mxfp4-pack-quantized";
  for (const auto& [name, group] : q.get("config_groups").members) {
    const Value& weights = group.get("weights");
    if (const Value& sizes = weights.get("block_structure"); !sizes.is_null()) read_block(sizes, out, r);
    if (const Value& size = weights.get("group_size"); size.is_unsigned()) out.group = size.to_int64();
    if (const Value& bits = weights.get("num_bits"); bits.is_unsigned()) {
      if (out.bits != 0 && bits != out.bits)
        r.refuse("'quantization_config': groups of different 'num_bits' are not covered" +
                 std::string(kWayOut));
      out.bits = static_cast<int>(bits.to_int64());
    }
  }
  if (format->text == "pack-quantized" && out.bits != 4 && out.bits != 8)
    r.refuse("'quantization_config': num_bits = " + std::to_string(out.bits) +
             " is not covered; 4 and 8 are" + kWayOut);
}

void read_gptq(const Value& q, Quantization& out, ConfigReader& r) {
  out.by = PackedBy::gptq;
  const Value& bits = q.get("bits");
  if (bits != 4 && bits != 8)
    r.refuse("'quantization_config': bits = " + short_text(bits) + " of gptq is not covered; 4 and 8 are" +
             kWayOut);
  out.bits = bits == 8 ? 8 : 4;
  out.group = size_of_group(q, "group_size", "group_size", r);
  const Value& format = q.get("checkpoint_format");
  out.zeros_are_less = format != "gptq_v2";
  if (!format.is_null() && format != "gptq" && format != "gptq_v2")
    r.refuse("'quantization_config': checkpoint_format " + short_text(format) +
             " is not covered; gptq and gptq_v2 are" + kWayOut);
}

void read_awq(const Value& q, Quantization& out, ConfigReader& r) {
  out.by = PackedBy::awq, out.bits = 4;
  const Value& bits = q.find("bits") ? q.get("bits") : q.get("w_bit");
  if (bits != 4)
    r.refuse("'quantization_config': bits = " + short_text(bits) + " of awq is not covered; 4 is" + kWayOut);
  out.group = size_of_group(q, "group_size", "q_group_size", r);
  const Value& version = q.get("version");
  if (!version.is_null() && version != "gemm" && version != "GEMM")
    r.refuse("'quantization_config': version " + short_text(version) + " of awq is not covered; gemm is" +
             kWayOut);
}

}  // namespace

Quantization read_quantization(ConfigReader& r) {
  Quantization out;
  const Value* q = r.find("quantization_config");
  if (!q) q = r.find("compression_config");  // its name in old files
  if (!q || !q->is_object() || q->empty()) return out;
  const Value& method = q->get("quant_method");
  if (method == "fp8" || method == "fbgemm_fp8")
    read_fp8(*q, out, r);
  else if (method == "compressed-tensors")
    read_compressed_tensors(*q, out, r);
  else if (method == "modelopt" && q->get("quant_algo") == "NVFP4")
    out.by = PackedBy::modelopt;
  else if (method == "gptq")
    read_gptq(*q, out, r);
  else if (method == "awq")
    read_awq(*q, out, r);
  else if (method == "bitsandbytes" && (q->get("load_in_4bit").is_true() || q->get("load_in_8bit").is_true()))
    out.by = PackedBy::bitsandbytes;
  else
    r.refuse("'quantization_config': weights quantised by " +
             (method.is_string() ? quote(method.text) : "a method without a name") +
             " are not covered; fp8, compressed-tensors, gptq, awq, bitsandbytes and NVFP4 of "
             "modelopt are" +
             kWayOut + " (docs/guide/models.md)");
  return out;
}

}  // namespace invar::checkpoint
