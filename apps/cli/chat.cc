// invar chat: a conversation in the terminal. Every answer has a receipt of the whole history.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/file/file.h"
#include "base/text/display.h"
#include "base/text/utf8.h"
#include "commands.h"
#include "console.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/engine.h"
#include "generate/engine/execution.h"
#include "generate/model/model_folder.h"
#include "generate/settings/structured.h"
#include "outputs/folders.h"
#include "outputs/user_state.h"
#include "progress/display.h"
#include "prompt/chat.h"
#include "terminal/line_editor.h"

namespace invar::cli {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kHelp =
    "  /reset        forget the conversation\n"
    "  /system TEXT  another system message; forgets the conversation\n"
    "  /save FILE    write the messages, for run --messages\n"
    "  /quit         leave, as the end of the input does\n"
    "  A line that ends with \\ goes on in the next one.\n";

class Conversation {
 public:
  Conversation(const ChatCommand& c, ChatOptions options, generate::Engine& engine,
               std::shared_ptr<const generate::RequestSettings> settings, Console& console)
      : command_(c),
        options_(std::move(options)),
        engine_(engine),
        settings_(std::move(settings)),
        console_(console),
        system_(c.chat.system) {
    options_.system.reset();
    reset();
  }
  // Whether it goes on.
  Result<bool> take(const std::string& line);

 private:
  void reset() {
    messages_ = Value::array;
    if (system_) messages_.add({{"role", "system"}, {"content", *system_}});
  }
  Status answer(const std::string& text);
  std::string receipt_path();
  void remark_cut(const receipt::Receipt&);
  Value message_of(const receipt::Receipt&);

  const ChatCommand& command_;
  ChatOptions options_;
  generate::Engine& engine_;
  const std::shared_ptr<const generate::RequestSettings> settings_;
  Console& console_;
  std::optional<std::string> system_;
  Value messages_;
  size_t turns_ = 0;
  std::string remark_;  // of the last turn
  int number_ = 0;      // of the last receipt
};

// turn-N.json, the first that is not there yet.
std::string Conversation::receipt_path() {
  std::error_code ec;
  std::string path;
  do path = (fs::path(command_.receipts) / ("turn-" + std::to_string(++number_) + ".json")).string();
  while (fs::exists(path, ec));
  return path;
}

// Why an answer ends before the model has ended it.
void Conversation::remark_cut(const receipt::Receipt& r) {
  if (r.finish_reason != "length") return;
  const auto tokens = static_cast<int64_t>(r.tokens.size());
  const bool full = static_cast<int64_t>(r.prompt_tokens.size()) + tokens >= engine_.positions();
  console_.note("cut", "the answer ends after " + std::to_string(tokens) +
                           " tokens, before the model ended it: " +
                           (full ? "the conversation fills its " + std::to_string(engine_.positions()) +
                                       " positions; /reset forgets it, --context makes room for more"
                                 : "that is the limit; --max-new-tokens allows more"));
}

// The answer as templates read it in the next turn.
Value Conversation::message_of(const receipt::Receipt& r) {
  const prompt::ChatAnswer parts =
      prompt::parse_answer(r.text, prompt::begins_in_reasoning(r.prompt, r.chat));
  Value message = {{"role", "assistant"}, {"content", parts.content}};
  if (!parts.reasoning.empty()) message["reasoning_content"] = parts.reasoning;
  Value calls = json::read_or_null(parts.tool_calls, json::Order::as_written);
  for (Value& call : calls.items) {
    Value& arguments = call["function"]["arguments"];
    const Value parsed = json::read_or_null(arguments.text, json::Order::as_written);
    if (parsed.is_object()) arguments = parsed;
  }
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

Status Conversation::answer(const std::string& text) {
  Value messages = messages_;
  messages.add({{"role", "user"}, {"content", text}});
  INVAR_TRY(std::string input, generate::chat_input(json::dump(messages), "the conversation", options_));
  const std::string path = receipt_path();
  INVAR_TRY(auto request, generate::Request::make(
                              engine_.model(), {"", path, std::move(input), "the conversation"}, settings_));
  INVAR_CHECK_OK(engine_.fit(request, console_));
  const size_t turn = turns_++;
  const std::string remark = prompt::texts_left_out(engine_.model().folder.chat_templates,
                                                    {request.prompt.text, request.prompt.chat});
  if (!remark.empty() && remark != remark_) console_.note("template", remark);
  remark_ = remark;
  generate::AnswerStream stream = engine_.stream(request, console_);
  for (;;) {
    INVAR_TRY(const std::optional<std::string> piece, stream.next());
    if (!piece) break;
    if (!command_.json) {
      INVAR_CHECK_OK(write_stdout(*piece));
    }
    console_.text(turn, *piece);
  }
  if (!command_.json) {
    INVAR_CHECK_OK(write_stdout("\n"));
  }
  INVAR_TRY(const generate::Answer a, stream.finish());
  if (command_.json) {
    const receipt::Receipt& r = a.receipt;
    INVAR_CHECK_OK(write_stdout(line_of({{"turn", turn},
                                         {"text", r.text},
                                         {"tokens", r.tokens},
                                         {"finish_reason", r.finish_reason},
                                         {"receipt", path},
                                         {"receipt_hash", a.receipt_hash}})));
  }
  messages.add(message_of(a.receipt));
  messages_ = std::move(messages);
  remember_receipt(path);
  if (!command_.json || shows_events()) remark_cut(a.receipt);
  if (!command_.execution.speculate.empty() && !command_.json)
    console_.note("drafts", generate::describe_drafts(a.drafted, a.accepted));
  if (shows_events())
    console_.receipt(path, a.receipt_hash);
  else if (!command_.json)
    console_.note("receipt", path + "  " + a.receipt_hash.substr(0, 16));
  return {};
}

Result<bool> Conversation::take(const std::string& line) {
  const auto argument = [&](const char* command) -> std::optional<std::string> {
    const std::string start = std::string(command) + " ";
    if (!line.starts_with(start)) return std::nullopt;
    return line.substr(start.size());
  };
  if (line.find_first_not_of(" \t") == line.npos) return true;
  if (line[0] != '/') {
    INVAR_CHECK_OK(answer(line));
  } else if (line == "/quit") {
    return false;
  } else if (line == "/help") {
    shows_events() ? console_.note("help", kHelp) : write_stderr(kHelp);
  } else if (line == "/reset") {
    reset();
    console_.note("forgotten", "the conversation starts over");
  } else if (const auto system = argument("/system")) {
    system_ = *system;
    reset();
    console_.note("forgotten", "the conversation starts over, with this system message");
  } else if (const auto path = argument("/save")) {
    OutputFolders folders;
    INVAR_CHECK_OK(folders.make_above("/save", *path));
    INVAR_CHECK_OK(write_file(*path, json::dump(messages_, {.indent = 2}) + "\n"));
    console_.note("saved", std::to_string(messages_.size()) + " messages in " + *path);
  } else {
    return bad_input(line + ": no command of a conversation: /help lists them");
  }
  return true;
}

// Reads what a person says: a line, or several. None at the end of the input.
std::optional<std::string> read_lines(LineEditor& editor) {
  std::string text;
  for (bool more = true; more;) {
    std::optional<std::string> line = editor.read(text.empty() ? "> " : ". ");
    if (!line) return text.empty() ? std::nullopt : std::optional(text);
    more = line->ends_with('\\');
    if (more) line->back() = '\n';
    text += *line;
  }
  return text;
}

Error no_chat_template(const ChatCommand& c) {
  return bad_input(c.model.model_name + ": the model has no chat template: use `invar run --prompt-text`");
}

// `worst`: the exit code of turns that had no answer.
Status do_chat(const ChatCommand& c, int& worst) {
  ChatOptions options = c.chat;
  INVAR_CHECK_OK(generate::read_tools(c.tools, options));
  generate::SamplingOptions sampling = c.sampling;
  INVAR_CHECK_OK(generate::take_json_options(c.json_schema, c.json_object, sampling));
  Console console(c.json);
  std::error_code ec;
  fs::create_directories(c.receipts, ec);
  if (ec) return bad_input(c.receipts + ": no folder for receipts: " + ec.message());
  if (fs::is_directory(c.model.model_name, ec)) {  // before the work of loading; of the hub behind it
    INVAR_TRY(const auto location, generate::resolve(c.model.model_name));
    INVAR_TRY(const auto templates, generate::open_chat_templates(location));
    if (templates.texts.empty()) return no_chat_template(c);
  }
  const auto starting = generate::start(c.execution);
  INVAR_TRY(const auto model, generate::Model::open(c.model, console));
  INVAR_TRY(const auto settings,
            generate::RequestSettings::make(*model, {sampling, c.record_model_path, {}, false, {}, true}));
  INVAR_TRY(generate::Engine engine,
            generate::Engine::open(model, c.execution, {.positions = c.context}, {}, console));
  if (model->folder.chat_templates.texts.empty()) return no_chat_template(c);
  std::signal(SIGHUP, SIG_IGN);
  Conversation conversation(c, std::move(options), engine, settings, console);
  LineEditor editor(c.no_history ? "" : state_file("chat-history"), stderr_is_terminal() && !shows_events());
  while (const auto line = read_lines(editor)) {
    if (valid_prefix(*line) < line->size()) {
      worst = fail(bad_input("the line is not UTF-8"));
      continue;
    }
    const auto open = conversation.take(*line);
    if (!open) worst = fail(open.error());
    if (open && !*open) break;
  }
  return {};
}

}  // namespace

int chat(const ChatCommand& c) {
  int worst = 0;
  const int code = exit_code(do_chat(c, worst));
  return code ? code : worst;
}

}  // namespace invar::cli
