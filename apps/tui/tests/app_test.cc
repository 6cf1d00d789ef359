// The whole interface by keys, at every size, without a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

#include "pages/app.h"

namespace invar::tui {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using K = Key::Kind;

const char* const kLocale = std::setlocale(LC_CTYPE, "C.UTF-8");

Form a_form() {
  Form form;
  form[Field::model] = "tiny";
  form[Field::prompt] = "ROMEO:";
  return form;
}

std::string shown(App& app, int width = 80, int height = 24) {
  Canvas canvas(width, height);
  app.draw(canvas, 1);
  std::string out;
  for (int y = 0; y < canvas.height(); ++y) out += canvas.row(y) + "\n";
  return out;
}

class AppTest : public testing::Test {
 protected:
  AppTest() : app(a_form(), "/nowhere") {}
  void key(const Key& k) { app.handle(k, 0); }
  void type(const char* text) {
    for (; *text; ++text) key({K::text, std::string(1, *text)});
  }
  App app;
};

TEST_F(AppTest, RunsWhatTheFormSays) {
  EXPECT_THAT(shown(app), HasSubstr("$ invar run --model-name tiny --prompt-text ROMEO:"));
  key(function_key(5));
  const auto requests = app.take_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].kind, Request::Kind::start);
  EXPECT_THAT(requests[0].arguments, testing::IsSupersetOf({"run", "--prompt-text", "ROMEO:"}));
  EXPECT_FALSE(requests[0].speaks);
  EXPECT_TRUE(app.running());
  key(function_key(5));  // one at a time
  EXPECT_TRUE(app.take_requests().empty());
  EXPECT_THAT(shown(app), HasSubstr("something runs"));
  app.read_err("{\"event\":\"text\",\"text\":\"then \xE6\x97\xA5\"}\n", 1);
  app.read_err("{\"event\":\"receipt\",\"path\":\"r/run-1.json\",\"hash\":\"83d316\"}\n", 1);
  app.ended(0, 0, 2);
  const std::string screen = shown(app);
  for (const char* text : {"then \xE6\x97\xA5", "83d316", "r/run-1.json", "not verified yet", "run: done"})
    EXPECT_THAT(screen, HasSubstr(text));
}

TEST_F(AppTest, VerifiesWhatItRan) {
  key(function_key(5));
  app.read_err("{\"event\":\"receipt\",\"path\":\"r/run-1.json\",\"hash\":\"83d316\"}\n", 1);
  app.ended(0, 0, 2);
  app.take_requests();
  key(text_key("v"));
  EXPECT_THAT(app.take_requests().at(0).arguments,
              ElementsAre("verify", "--model-name", "tiny", "r/run-1.json"));
  app.read_err(
      "{\"event\":\"phase\",\"phase\":\"recompute\",\"state\":\"running\",\"done\":3,\"total\":12,\"unit\":"
      "\"tokens\"}\n",
      2);
  EXPECT_THAT(shown(app), HasSubstr("verifying: recompute 3/12"));
  app.read_err(
      "{\"event\":\"verdict\",\"receipt\":\"r/run-1.json\",\"status\":\"verified\",\"detail\":\"\"}\n", 2);
  app.ended(0, 0, 3);
  EXPECT_THAT(shown(app), HasSubstr("VERIFIED"));
  key(text_key("v"));
  app.read_err(
      "{\"event\":\"verdict\",\"receipt\":\"r/"
      "run-1.json\",\"status\":\"failed\",\"detail\":\"output.text\"}\n",
      3);
  app.ended(1, 0, 4);
  EXPECT_THAT(shown(app), HasSubstr("FAILED  output.text"));
  EXPECT_THAT(shown(app), Not(HasSubstr("VERIFIED")));
  key(text_key("v"));  // one that finds no model has no verdict
  app.read_err("{\"event\":\"error\",\"code\":2,\"kind\":\"bad input\",\"message\":\"no such model\"}\n", 4);
  app.ended(2, 0, 5);
  EXPECT_THAT(shown(app), HasSubstr("no such model"));
  EXPECT_THAT(shown(app), Not(HasSubstr("FAILED")));
}

TEST_F(AppTest, AFailedRunShowsItsPhases) {
  const char* const load = "{\"event\":\"phase\",\"phase\":\"load\",\"state\":\"started\"}\n";
  key(function_key(5));
  app.read_err(load, 1);
  app.ended(0, 11, 2);
  EXPECT_THAT(shown(app), HasSubstr("─ phases"));
  EXPECT_THAT(shown(app), HasSubstr("× load"));
  key(function_key(5));
  app.read_err(load, 1);
  app.ended(0, 0, 2);
  EXPECT_THAT(shown(app), Not(HasSubstr("─ phases")));
}

TEST_F(AppTest, AProgramThatDoesNotStart) {
  key(function_key(5));
  app.not_started("/nowhere/invar: No such file or directory", 1);
  EXPECT_THAT(shown(app), HasSubstr("run: exit code 127: /nowhere/invar: No such file or directory"));
}

TEST_F(AppTest, StopsAndLeaves) {
  key(function_key(5));
  app.take_requests();
  key(function_key(10));
  EXPECT_TRUE(app.take_requests().empty());
  EXPECT_THAT(shown(app), HasSubstr("Something runs: stop it and leave?"));
  key(text_key("n"));
  key({K::control, {}, 'c'});
  EXPECT_EQ(app.take_requests().at(0).kind, Request::Kind::stop);
  key(function_key(6));
  EXPECT_EQ(app.take_requests().at(0).kind, Request::Kind::kill);
  app.ended(0, 9, 3);
  EXPECT_THAT(shown(app), HasSubstr("stopped"));
  key({K::control, {}, 'c'});
  EXPECT_EQ(app.take_requests().at(0).kind, Request::Kind::quit);
}

TEST_F(AppTest, AFormWithProblemsDoesNotRun) {
  key(function_key(8));
  EXPECT_THAT(shown(app), HasSubstr("as in the beginning"));
  key(function_key(5));
  EXPECT_TRUE(app.take_requests().empty());
  EXPECT_THAT(shown(app), HasSubstr("model: needed by run"));
  key(function_key(8));
  EXPECT_EQ(app.form(), a_form());
}

TEST_F(AppTest, FieldsComeAndGoWithTheCommand) {
  EXPECT_THAT(shown(app), HasSubstr("prompt from"));
  key({K::enter});  // the list of commands
  key(text_key("d"));
  key({K::enter});
  EXPECT_EQ(app.form()[Field::command], "doctor");
  EXPECT_THAT(shown(app), Not(HasSubstr("prompt from")));
  key({K::left});
  EXPECT_EQ(app.form()[Field::command], "compile");
  key({K::tab});
  type("x.onnx");
  EXPECT_THAT(shown(app), HasSubstr("$ invar compile x.onnx"));
}

TEST_F(AppTest, ModelsComeFromALister) {
  key({K::tab});
  key({K::enter});
  EXPECT_EQ(app.take_requests().at(0).kind, Request::Kind::list_models);
  app.set_hub({{"acme/tiny", 8400000}});
  EXPECT_THAT(shown(app), HasSubstr("acme/tiny  (8.40 MB)"));
  key({K::enter});
  EXPECT_EQ(app.form()[Field::model], "acme/tiny");
}

TEST_F(AppTest, AConversation) {
  key({K::right});
  key(function_key(5));
  EXPECT_TRUE(app.take_requests().at(0).speaks);
  type("Who?");
  EXPECT_THAT(shown(app, 60, 15), HasSubstr("say ▸ Who?"));
  key({K::enter});
  const auto requests = app.take_requests();
  EXPECT_EQ(requests.at(0).kind, Request::Kind::say);
  EXPECT_EQ(requests.at(0).text, "Who?\n");
  EXPECT_THAT(shown(app, 60, 15), HasSubstr("> Who?"));
  type("v");  // letters are text here
  EXPECT_TRUE(app.take_requests().empty());
}

TEST_F(AppTest, EverythingFitsEverySize) {
  key(function_key(5));
  app.read_err("{\"event\":\"phase\",\"phase\":\"load\",\"state\":\"running\",\"done\":1,\"total\":2}\n", 0);
  app.read_err("{\"event\":\"text\",\"text\":\"answer \xE6\x97\xA5 \"}\nlog line\n", 0);
  app.read_err("{\"event\":\"receipt\",\"path\":\"r.json\",\"hash\":\"83d316\"}\n", 1);
  for (const int width : {1, 20, 40, 60, 80, 120, 200, 400})
    for (const int height : {1, 5, 10, 15, 24, 50, 100}) {
      for (const int page : {2, 3, 4}) {
        key(function_key(page));
        for (int i = 0; i < 3; ++i) {
          shown(app, width, height);
          key({K::tab});
        }
        key(function_key(1));  // help
        shown(app, width, height);
        key({K::escape});
      }
      key(function_key(3));
      const std::string screen = shown(app, width, height);
      if (width >= 60 && height >= 24) {
        EXPECT_THAT(screen, HasSubstr("answer")) << width << " x " << height;
        EXPECT_THAT(screen, HasSubstr("log line")) << width << " x " << height;
      }
      if (width >= 60 && height >= 15) {
        EXPECT_THAT(screen, HasSubstr("83d316")) << width << " x " << height;
      }
    }
}

TEST_F(AppTest, AMousePressesWhatItSees) {
  Canvas canvas(80, 24);
  app.draw(canvas, 0);
  EXPECT_TRUE(canvas.pressed(10, 0).is_function(2));
  EXPECT_TRUE(canvas.pressed(28, 0).is_function(4));
  const Key field = canvas.pressed(20, 3);
  EXPECT_TRUE(field.is(K::focus));
  key(field);
  app.draw(canvas, 0);
  key(canvas.pressed(20, 3));  // once more: its choices
  EXPECT_THAT(shown(app), HasSubstr("prompt file"));
}

}  // namespace
}  // namespace invar::tui
