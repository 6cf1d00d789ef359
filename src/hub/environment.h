// Settings of the hub in the environment: the variables of the Python package huggingface_hub. A
// variable that is empty counts as absent.
#pragma once

#include <string>

#include "base/status.h"

namespace invar::hub {

// HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, else the folder hub in HF_HOME, in
// $XDG_CACHE_HOME/huggingface or in ~/.cache/huggingface.
std::string cache_folder();
// HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is 1, ON, YES or TRUE: no network.
bool offline();
// HF_ENDPOINT, without a slash at its end; https://huggingface.co where it is absent. bad_input:
// neither https:// nor http://.
Result<std::string> endpoint();
// HF_TOKEN, else the file of HF_TOKEN_PATH, else the file token beside the cache, which `hf auth
// login` writes. "": none, or HF_HUB_DISABLE_IMPLICIT_TOKEN forbids to send one. bad_input: it
// holds characters that no header may hold.
Result<std::string> token();
// SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE: a file of certificates to trust instead of the
// system's. "": none.
std::string certificates();
// HF_HUB_DOWNLOAD_TIMEOUT: seconds without a byte after which a transfer counts as cut; else 30.
Result<long> stall_timeout();

}  // namespace invar::hub
