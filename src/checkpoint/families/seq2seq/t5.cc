// T5, and T5 1.1 with its gated MLP (FLAN-T5). mT5 is T5 1.1 with other defaults; in UMT5 each
// layer has biases of its own.
#include <cmath>

#include "checkpoint/families/seq2seq/seq2seq_family.h"

namespace invar::checkpoint {

static Seq2SeqNames t5_names(bool decoder) {
  Seq2SeqNames n;
  const std::string self = "layer.0.SelfAttention.", cross = "layer.1.EncDecAttention.",
                    last = decoder ? "layer.2." : "layer.1.";
  n.q = self + "q", n.k = self + "k", n.v = self + "v", n.o = self + "o";
  n.attention_norm = "layer.0.layer_norm";
  n.cross_q = cross + "q", n.cross_k = cross + "k", n.cross_v = cross + "v", n.cross_o = cross + "o";
  n.cross_norm = "layer.1.layer_norm";
  n.up = last + "DenseReluDense.wi", n.down = last + "DenseReluDense.wo", n.mlp_norm = last + "layer_norm";
  return n;
}

// What is absent.
struct T5Defaults {
  int64_t intermediate_size = 2048, layers = 6, heads = 8, vocab_size = 32128;
  const char* activation = "relu";
};
static constexpr T5Defaults kMT5{1024, 8, 6, 250112, "gated-gelu"};

static void read_t5(ConfigReader& r, Seq2Seq& m, const T5Defaults& absent) {
  m.prefix = "", m.layers = "block.", m.final_norm = "final_layer_norm", m.embedding_norm = "";
  m.position_bias = "layer.0.SelfAttention.relative_attention_bias";
  m.positions = SourcePositions::buckets;
  m.norm = Norm::rms, m.pre_norm = true, m.bias = false;
  m.hidden_size = r.size("d_model", 512);
  m.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-6);
  m.buckets = r.size("relative_attention_num_buckets", 32);
  m.farthest = r.size("relative_attention_max_distance", 128);
  if (m.buckets < 4 || m.buckets % 2 != 0 || m.farthest <= m.buckets / 2 || m.farthest > 65536)
    r.refuse(
        "'relative_attention_num_buckets' and 'relative_attention_max_distance' are covered where the "
        "buckets "
        "are an even number from 4 on and the distance is more than half of them, at most 65536");
  // Older files say by `tie_word_embeddings` whether the head's input is scaled (T5 1.1: it is
  // not).
  if (r.flag("tie_word_embeddings", true))
    m.head_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(m.hidden_size)));
  std::string act = r.text("feed_forward_proj", absent.activation);
  const bool gated = act.starts_with("gated-");
  if (act == "gated-gelu") act = "gated-gelu_new";
  read_activation(r, m, "feed_forward_proj", gated ? act.substr(6) : act);
  const int64_t layers = r.size("num_layers", absent.layers);
  for (Seq2SeqSide* s : {&m.encoder, &m.decoder}) {
    s->names = t5_names(s == &m.decoder);
    if (gated) s->names.gate = s->names.up + "_0", s->names.up += "_1";
    s->layers = s == &m.decoder ? r.size("num_decoder_layers", layers) : layers;
    s->heads = r.size("num_heads", absent.heads), s->head_dim = r.size("d_kv", 64);
    s->intermediate_size = r.size("d_ff", absent.intermediate_size);
    s->vocab_size = r.size("vocab_size", absent.vocab_size);
    s->attention_scale = 1;
  }
}

void describe_t5(ConfigReader& r, Seq2Seq& m) {
  read_t5(r, m, {});
}

void describe_mt5(ConfigReader& r, Seq2Seq& m) {
  read_t5(r, m, kMT5);
  m.head_scale = 1;
}

void describe_umt5(ConfigReader& r, Seq2Seq& m) {
  read_t5(r, m, kMT5);
  m.biases_of_layers = true;
}

}  // namespace invar::checkpoint
