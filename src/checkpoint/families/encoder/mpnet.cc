// MPNet: scores of attention have a bias by the distance of the tokens, the same in all layers.
#include "checkpoint/families/encoder/encoder_family.h"

namespace invar::checkpoint {

void describe_mpnet(ConfigReader& r, Encoder& e) {
  read_bert_like(r, e);
  e.positions = Positions::behind_padding;
  e.padding = 1;
  e.position_buckets = r.size("relative_attention_num_buckets", 32);
  // transformers sorts distances into 32 buckets whatever the table's size.
  if (e.position_buckets != 32) r.refuse("'relative_attention_num_buckets' other than 32 is not covered");
  EncoderNames& n = e.names;
  n.prefix = "mpnet.";
  n.q = "attention.attn.q";
  n.k = "attention.attn.k";
  n.v = "attention.attn.v";
  n.o = "attention.attn.o";
  n.attention_norm = "attention.LayerNorm";
  e.classifier.dense = "classifier.dense";
  e.classifier.out = "classifier.out_proj";
}

}  // namespace invar::checkpoint
