// RoBERTa, XLM-RoBERTa and CamemBERT: positions are counted behind the padding token's number.
#include "checkpoint/families/encoder/encoder_family.h"

namespace invar::checkpoint {

void describe_roberta(ConfigReader& r, Encoder& e) {
  read_bert_like(r, e);
  e.token_types = r.size("type_vocab_size", 2);
  e.positions = Positions::behind_padding;
  e.padding = r.find("pad_token_id") ? r.size("pad_token_id", 1) : 1;
  e.names.prefix = "roberta.";
  e.classifier.dense = "classifier.dense";
  e.classifier.out = "classifier.out_proj";
}

void describe_xlm_roberta(ConfigReader& r, Encoder& e) {
  describe_roberta(r, e);
}

void describe_camembert(ConfigReader& r, Encoder& e) {
  describe_roberta(r, e);
}

}  // namespace invar::checkpoint
