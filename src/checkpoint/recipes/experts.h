// Mixture of experts: what takes the place of the MLP in the sparse layers of a decoder
// (spec/decoder.md decoder.14 to decoder.19). Part of Decoder.
#pragma once

#include <cstdint>
#include <string>

namespace invar::checkpoint {

// How a router makes weights of its logits (decoder.15).
enum class Routing { softmax, softmax_of_chosen, sigmoid, sigmoid_of_chosen, sparsemixer };
// The number of a group of experts: its largest one, or the sum of its two largest (decoder.16).
enum class GroupScore { maximum, sum_of_two };
// decoder.18: a tensor for each expert and matrix; stacks [E, out, in], gate above up; stacks
// [E, in, out], where columns of gate and up alternate; the same, where those of gate come first.
enum class ExpertLayout { separate, stacked, interleaved, halves };
// decoder.17: the activation of the decoder times up, or the clamped one of gpt-oss.
enum class ExpertGate { activation, clamped };

// Parts of names behind those of the layer.
struct ExpertNames {
  std::string router = "mlp.gate", correction_bias = "mlp.gate.e_score_correction_bias";
  bool correction_bias_is_row = false;   // [1, E]
  std::string experts = "mlp.experts.";  // then the number, "." and the matrix
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string gate_up_stack, down_stack;       // whole names
  std::string expert_scale;                    // "": none; a whole name
  std::string shared = "mlp.shared_experts.";  // then the matrix
  std::string shared_gate_up = "gate_up_proj", shared_down = "down_proj";
  std::string shared_gate = "mlp.shared_expert_gate";
  std::string latent_in, latent_out;  // around experts of latent_size
};

struct Experts {
  ExpertNames names;
  int64_t count = 0, chosen = 0, intermediate_size = 0;
  int64_t latent_size = 0;  // of the rows that experts take and give; 0: hidden_size
  int64_t passing = 0;      // experts behind the others, which give what they take
  Routing routing = Routing::softmax;
  float threshold = 0;       // of sparsemixer
  float router_softcap = 0;  // of its logits; 0: none
  bool router_bias = false;
  bool correction_bias = false;  // added to scores for the choice alone
  int64_t groups = 1, chosen_groups = 1;
  GroupScore group_score = GroupScore::maximum;
  bool normalized = false;                // weights are divided by their sum
  float sum_offset = 0, sum_minimum = 0;  // added to that sum; below it the sum counts as this
  float scale = 1;                        // of the weights

  ExpertLayout layout = ExpertLayout::separate;
  bool mxfp4 = false;  // matrices may be stored so; the export widens them
  bool bias = false;
  ExpertGate gate = ExpertGate::activation;
  float gate_alpha = 0, gate_limit = 0;  // of the clamped one
  int64_t shared_intermediate_size = 0;  // of the MLP for all tokens; 0: none
  bool shared_gate = false;
  float out_scale = 1;          // of the sum of all
  bool beside_mlp = false;      // added to the MLP of the layer, each with norms (decoder.38)
  bool weighted_input = false;  // the weight of an expert is on what goes into it, not on its result
  bool shortcut = false;        // beside the MLP, and added behind the next layer (decoder.74)
};

}  // namespace invar::checkpoint
