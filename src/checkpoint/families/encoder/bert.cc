// BERT, and ELECTRA, whose embeddings may be narrower than its layers.
#include "checkpoint/families/encoder/encoder_family.h"

namespace invar::checkpoint {

void describe_bert(ConfigReader& r, Encoder& e) {
  read_bert_like(r, e);
  e.token_types = r.size("type_vocab_size", 2);
}

void describe_electra(ConfigReader& r, Encoder& e) {
  describe_bert(r, e);
  e.embedding_size = r.size("embedding_size", 128);
  e.names.prefix = "electra.";
  e.classifier.dense = "classifier.dense";
  e.classifier.out = "classifier.out_proj";
  e.classifier.activation = Classifier::gelu;
}

}  // namespace invar::checkpoint
