// The program behind the page: `verifier verify MODEL PLAN RECEIPT...` judges receipts and writes
// what happens as lines of JSON; `verifier outline PLAN` names a plan (src/plan/outline.h).
#include <cstdio>
#include <string>
#include <vector>

#include "base/text/display.h"
#include "base/text/json.h"
#include "generate/verify/verify.h"
#include "plan/outline.h"

namespace invar::web {
namespace {

using json::Value;

void write(const Value& line) {
  std::puts(json::dump(line).c_str());
  std::fflush(stdout);
}

class LinePhase : public generate::Phase {
 public:
  explicit LinePhase(std::string_view name) : name_(name) { write({{"phase", name_}}); }
  void progress(int64_t done, int64_t total, std::string_view) override {
    write({{"phase", name_}, {"done", done}, {"total", total}});
  }
  void done(std::string_view detail) override {
    write({{"phase", name_}, {"finished", printable(std::string(detail))}});
  }

 private:
  const std::string name_;
};

class Lines : public generate::Observer {
 public:
  std::unique_ptr<generate::Phase> phase(std::string_view name) override {
    return std::make_unique<LinePhase>(name);
  }
  void note(std::string_view topic, std::string_view text) override {
    (topic == "plan" ? plan : other) = text;
  }
  std::string plan, other;  // what was noted last
};

// The words of `invar verify --json`, and those of its report.
void write(const std::string& name, const Result<generate::Verdict>& verdict) {
  if (!verdict) return write(generate::json_of(name, verdict.error()));
  Value j = generate::json_of(*verdict);
  j["report"] = generate::report(*verdict);
  write(j);
}

int verify(const std::string& model, const std::string& plan, const std::vector<std::string>& receipts) {
  Lines lines;
  generate::ModelOptions options;
  options.model_name = model, options.plan = plan;
  generate::Verifier verifier(options, {}, lines);
  int code = 0;
  for (const std::string& path : receipts)
    generate::judge_file(
        path, verifier.reader(),
        [&](std::string_view text, const std::string& name, const generate::InBatch* batch) {
          auto verdict = verifier.verify(text, name, batch);
          if (verdict && verdict->ok())
            verdict->compared.push_back(
                {"plan", lines.plan, verdict->verdict.ends_with(generate::kByGivenPlan)});
          return verdict;
        },
        [&](const std::string& name, const Result<generate::Verdict>& verdict) {
          const int of_this = !verdict        ? static_cast<int>(verdict.error().code)
                              : verdict->ok() ? 0
                                              : static_cast<int>(Code::failed);
          code = std::max(code, of_this);
          write(name.substr(name.rfind('/') + 1), verdict);
        });
  return code;
}

int outline(const std::string& path) {
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return static_cast<int>(error.code);
  };
  const auto plan = plan::load(path);
  if (!plan) return fail(plan.error());
  const auto digest = plan::outline(*plan);
  if (!digest) return fail(digest.error());
  std::printf("%s %s\n", to_hex(plan->source->program).c_str(), to_hex(*digest).c_str());
  return 0;
}

}  // namespace
}  // namespace invar::web

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "outline") return invar::web::outline(words[1]);
  if (words.size() >= 4 && words[0] == "verify")
    return invar::web::verify(words[1], words[2], {words.begin() + 3, words.end()});
  std::fputs("usage: verifier verify MODEL PLAN RECEIPT... | verifier outline PLAN\n", stderr);
  return 2;
}
