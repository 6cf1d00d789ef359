// Conversations of Anthropic's messages and of OpenAI's responses -> messages and tools of a chat,
// as OpenAI's chats have them. What no chat has is refused by its name.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "serve/protocol/call.h"

namespace invar::serve {

// Both set the chat's members of a call from those of their own protocol.
std::optional<Problem> take_messages(Call&);
std::optional<Problem> take_responses(Call&);

// The text of a text, or of a list of blocks that are all texts; `types` are the names of those.
// `param` is what messages call it.
Outcome<std::string> text_of_blocks(const json::Value& content, std::initializer_list<std::string_view> types,
                                    const std::string& param);

}  // namespace invar::serve
