// BART and its kin: mBART, Marian, Pegasus, Blenderbot, M2M100 with NLLB, and Whisper, whose
// encoder hears.
#include <cmath>

#include "checkpoint/families/seq2seq/seq2seq_family.h"

namespace invar::checkpoint {
namespace {

// What a side has where the file says nothing.
struct SideSizes {
  int64_t layers = 12, heads = 16, intermediate_size = 4096;
};
// The same of the model.
struct Absent {
  int64_t vocab_size = 50265;
  const char* activation = "gelu";
  bool scale_embedding = false;
  int64_t hidden_size = 1024, max_positions = 1024;
  SideSizes encoder = {}, decoder = {};
};

void read_side(ConfigReader& r, Seq2Seq& m, const std::string& prefix, const SideSizes& absent,
               Seq2SeqSide& s) {
  s.layers = r.size((prefix + "_layers").c_str(), absent.layers);
  s.heads = r.size((prefix + "_attention_heads").c_str(), absent.heads);
  s.intermediate_size = r.size((prefix + "_ffn_dim").c_str(), absent.intermediate_size);
  if (s.heads < 1 || m.hidden_size % s.heads != 0)
    return r.reject("'d_model' is not a multiple of '" + prefix + "_attention_heads'");
  s.head_dim = m.hidden_size / s.heads;
  s.attention_scale = default_attention_scale(s.head_dim);
}

// What all of them share. Some files of the field say what the classes do anyway.
void read_bart_like(ConfigReader& r, Seq2Seq& m, const Absent& absent) {
  m.hidden_size = r.size("d_model", absent.hidden_size);
  m.encoder.vocab_size = m.decoder.vocab_size = r.size("vocab_size", absent.vocab_size);
  m.max_positions = r.size("max_position_embeddings", absent.max_positions);
  read_side(r, m, "encoder", absent.encoder, m.encoder);
  read_side(r, m, "decoder", absent.decoder, m.decoder);
  read_activation(r, m, "activation_function", r.text("activation_function", absent.activation));
  if (r.flag("scale_embedding", absent.scale_embedding))
    m.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(m.hidden_size)));
  m.tied = r.flag("tie_word_embeddings", true);
  r.require_neutral("normalize_before", m.pre_norm);
  r.require_neutral("add_final_layer_norm", !m.final_norm.empty());
  r.require_neutral("normalize_embedding", !m.embedding_norm.empty());
}

void read_pre_norm(Seq2Seq& m) {
  m.pre_norm = true, m.final_norm = "layer_norm";
}

}  // namespace

void describe_bart(ConfigReader& r, Seq2Seq& m) {
  m.position_offset = 2;
  read_bart_like(r, m, {});
}

void describe_mbart(ConfigReader& r, Seq2Seq& m) {
  read_pre_norm(m);
  describe_bart(r, m);
}

void describe_marian(ConfigReader& r, Seq2Seq& m) {
  m.positions = SourcePositions::sinusoidal, m.embedding_norm = "";
  read_bart_like(r, m, {.vocab_size = 58101});
  m.decoder.vocab_size = r.size("decoder_vocab_size", m.encoder.vocab_size);
  if (r.flag("share_encoder_decoder_embeddings", true) && m.decoder.vocab_size != m.encoder.vocab_size)
    r.reject("'decoder_vocab_size' is not 'vocab_size', but the two sides share their embeddings");
}

void describe_pegasus(ConfigReader& r, Seq2Seq& m) {
  read_pre_norm(m);
  m.positions = SourcePositions::sinusoidal, m.embedding_norm = "";
  read_bart_like(r, m, {});
}

void describe_blenderbot(ConfigReader& r, Seq2Seq& m) {
  read_pre_norm(m);
  m.embedding_norm = "";
  read_bart_like(r, m,
                 {.vocab_size = 8008,
                  .hidden_size = 2560,
                  .max_positions = 128,
                  .encoder = {2, 32, 10240},
                  .decoder = {24, 32, 10240}});
}

void describe_m2m_100(ConfigReader& r, Seq2Seq& m) {
  read_pre_norm(m);
  m.positions = SourcePositions::sinusoidal32, m.embedding_norm = "";
  read_bart_like(r, m, {.vocab_size = 128112, .activation = "relu", .scale_embedding = true});
  m.padding = r.is_null("pad_token_id") ? -1 : r.size("pad_token_id", 1);
  if (m.padding < 0 || m.hidden_size < 4 || m.hidden_size % 2 != 0)
    r.refuse("'pad_token_id' null, or an odd or tiny 'd_model', is not covered");
  m.position_offset = m.padding + 1;
}

void describe_whisper(ConfigReader& r, Seq2Seq& m) {
  constexpr SideSizes kTiny{4, 6, 1536};
  read_pre_norm(m);
  m.embedding_norm = "", m.head = "proj_out", m.key_bias = false;
  m.hidden_size = r.size("d_model", 384);
  m.decoder.vocab_size = r.size("vocab_size", 51865);
  m.mel_bands = r.size("num_mel_bins", 80);
  m.source_positions = r.size("max_source_positions", 1500);
  m.max_positions = r.size("max_target_positions", 448);
  read_side(r, m, "encoder", kTiny, m.encoder), read_side(r, m, "decoder", kTiny, m.decoder);
  read_activation(r, m, "activation_function", r.text("activation_function", "gelu"));
  r.require_neutral("scale_embedding");
  m.tied = r.flag("tie_word_embeddings", true);
  if (m.mel_bands > 512 || m.source_positions < 2 || m.source_positions > 1500)
    r.refuse(
        "'num_mel_bins' above 512, or 'max_source_positions' outside 2 to 1500, the frames of 30 seconds, is "
        "not covered");
}

}  // namespace invar::checkpoint
