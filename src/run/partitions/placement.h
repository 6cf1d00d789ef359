// Makes the stages of a decoder as the options of a session place them.
#pragma once

#include "run/partitions/local_stage.h"
#include "run/partitions/pipeline_executor.h"

namespace invar::run {

// "cuda:0,cuda:1" -> its names. bad_input: an empty one.
Result<std::vector<std::string>> device_list(const std::string& text);

// A decoder on its devices: the pipeline, and what its stages refer to.
struct PlacedDecoder {
  std::vector<plan::Stage> parts;
  std::vector<std::unique_ptr<Stage>> stages;  // until the pipeline has them
  std::unique_ptr<Pipeline> pipeline;
  // The one device that computes, if all stages are on GPUs; null: the host has a part in it.
  std::shared_ptr<Device> device;
  std::string devices;    // "cpu", "cuda:0 NVIDIA H200", "cuda:0 NVIDIA H200 and cpu"
  std::string placement;  // "layers 0-5 on cuda:0, 6-11 on cpu"; "" with one partition
};
Result<PlacedDecoder> place(const plan::Plan&, const DecoderPorts&, const StageContext&);

}  // namespace invar::run
