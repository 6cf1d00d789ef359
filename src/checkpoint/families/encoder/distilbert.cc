// DistilBERT: BERT with half of the layers, no types of tokens, and names of its own.
#include "checkpoint/families/encoder/encoder_family.h"

namespace invar::checkpoint {

void describe_distilbert(ConfigReader& r, Encoder& e) {
  read_blocks(r, e,
              {.hidden = "dim",
               .inner = "hidden_dim",
               .layers = "n_layers",
               .heads = "n_heads",
               .kv_heads = nullptr,
               .head_dim = nullptr},
              "activation");
  e.norm_epsilon = 1e-12f;
  e.position_rows = r.size("max_position_embeddings", 512);
  EncoderNames& n = e.names;
  n.prefix = "distilbert.";
  n.layers = "transformer.layer.";
  n.q = "attention.q_lin";
  n.k = "attention.k_lin";
  n.v = "attention.v_lin";
  n.o = "attention.out_lin";
  n.attention_norm = "sa_layer_norm";
  n.up = "ffn.lin1";
  n.down = "ffn.lin2";
  n.mlp_norm = "output_layer_norm";
  e.classifier.dense = "pre_classifier";
  e.classifier.activation = Classifier::relu;
}

}  // namespace invar::checkpoint
