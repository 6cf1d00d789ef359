// The computation behind a verification. It is here and not in src/receipt: a receipt is compared
// with any computation (receipt::Forward), also by builds and judges without a runtime, so receipt
// does not know run (tools/laws/includes.py).
#pragma once

#include <cstddef>
#include <cstdint>

#include "generate/observer.h"
#include "receipt/receipt.h"
#include "run/session.h"

namespace invar::generate {

// receipt.16: one forward pass in the session's pieces, with the logits of the wanted positions and
// few between them. The session and the phase outlive the result.
receipt::Forward forward_pass(run::Session&, Phase&);

// receipt.18: the steps of the run itself, since the bits of a position may depend on its step: the
// prompt at once (the session cuts it as it did then), each answer token alone.
receipt::Forward repeat_steps(run::Session&, size_t prompt_tokens, Phase&);

}  // namespace invar::generate
