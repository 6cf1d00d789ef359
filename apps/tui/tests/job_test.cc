// Events of a command become what the screen says of it.
#include "model/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace invar::tui {
namespace {

using testing::HasSubstr;

Job job_of(const std::string& events, const char* command = "run") {
  Job job({command}, 0);
  job.read_err(events, 1);
  return job;
}

TEST(Event, OfTheSchema) {
  const auto e = parse_event(
      R"({"event":"phase","phase":"prefill","state":"running","done":12,"total":64,"unit":"tokens","per_second":2})");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->phase, "prefill");
  EXPECT_EQ(e->done, 12);
  EXPECT_EQ(e->total, 64);
  EXPECT_EQ(e->per_second, 2);
  EXPECT_EQ(parse_event(R"({"event":"verdict","receipt":"r","status":"failed","detail":"d"})")->path, "r");
}

TEST(Event, WhatIsNone) {
  for (const char* line : {"", "text", "[]", "{}", "{\"event\":3}", "{\"event\":\"tomorrow\"}",
                           "{\"event\":\"phase\"", "\xff", "{\"event\":\"note\",\"text\":\"\xff\"}"})
    EXPECT_FALSE(parse_event(line)) << line;
  // Members of other types are as if they were missing.
  const auto e = parse_event(R"({"event":"phase","phase":[],"done":"many","total":1.5,"ms":"1"})");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->phase, "");
  EXPECT_EQ(e->done, -1);
  EXPECT_EQ(e->total, -1);
  EXPECT_EQ(e->ms, -1);
}

TEST(Job, PhasesInOrder) {
  const Job job = job_of(
      R"({"event":"phase","phase":"compile","state":"started"}
{"event":"phase","phase":"compile","state":"done","detail":"program 81","ms":12.3}
{"event":"phase","phase":"prefill","state":"running","done":16,"total":64,"unit":"tokens"}
)");
  ASSERT_EQ(job.phases().size(), 2u);
  EXPECT_EQ(job.phases()[0].state, PhaseView::State::done);
  EXPECT_EQ(job.phases()[0].fraction(), 1);
  EXPECT_EQ(job.phases()[0].ms, 12.3);
  EXPECT_EQ(*job.phases()[1].fraction(), 0.25);
  EXPECT_EQ(job.current()->name, "prefill");
  EXPECT_THAT(job.log(), HasSubstr("compile  program 81  (12 ms)"));
}

TEST(Job, LinesMayComeInPieces) {
  Job job({"run"}, 0);
  const std::string line = "{\"event\":\"text\",\"prompt\":0,\"text\":\"日\"}\nplain line\n";
  for (const char c : line) job.read_err(std::string(1, c), 0);
  EXPECT_EQ(job.answer(), "日");
  EXPECT_EQ(job.log(), "plain line");
  job.read_err("{\"event\":\"text\",\"prompt\":0,\"text\":\"!\"}", 0);
  EXPECT_EQ(job.answer(), "日");
  job.end(0, 0, 1);  // the last line needs no end
  EXPECT_EQ(job.answer(), "日!");
}

TEST(Job, EventsOfTextStandForStandardOutput) {
  Job job({"run"}, 0);
  job.read_out("The an");
  EXPECT_EQ(job.answer(), "The an");
  job.read_err("{\"event\":\"text\",\"prompt\":0,\"text\":\"The answer\"}\n", 0);
  EXPECT_EQ(job.answer(), "The answer");
}

TEST(Job, SeveralPrompts) {
  const Job job = job_of(
      "{\"event\":\"text\",\"prompt\":0,\"text\":\"a\"}\n{\"event\":\"text\",\"prompt\":0,\"text\":\"b\\n\"}"
      "\n"
      "{\"event\":\"text\",\"prompt\":1,\"text\":\"c\"}\n");
  EXPECT_EQ(job.answer(), "ab\n\n-- prompt 2 --\nc");
}

TEST(Job, AConversation) {
  Job job({"chat"}, 0);
  job.say("Who art thou?");
  job.read_out("A king.");
  job.read_err("{\"event\":\"text\",\"prompt\":0,\"text\":\"A king.\"}\n", 0);
  job.say("Of what?");
  job.read_err("{\"event\":\"text\",\"prompt\":1,\"text\":\"Denmark.\"}\n", 0);
  EXPECT_EQ(job.answer(), "> Who art thou?\nA king.\n\n> Of what?\nDenmark.");
}

TEST(Job, AConversationWaitsAndGoesOnBehindWhatWasRefused) {
  Job job({"chat"}, 0);
  EXPECT_FALSE(job.waits());
  job.read_err("{\"event\":\"phase\",\"phase\":\"load\",\"state\":\"done\",\"ms\":1}\n", 0);
  EXPECT_TRUE(job.waits());
  job.say("Who?");
  EXPECT_FALSE(job.waits());
  job.read_err("{\"event\":\"receipt\",\"path\":\"r\",\"hash\":\"a\"}\n", 0);
  job.say("/nope");
  job.read_err("{\"event\":\"error\",\"code\":2,\"kind\":\"bad input\",\"message\":\"no command\"}\n", 0);
  job.read_err("{\"event\":\"note\",\"topic\":\"forgotten\",\"text\":\"all\"}\n", 0);
  job.read_err("{\"event\":\"note\",\"topic\":\"template\",\"text\":\"a note\"}\n", 0);
  EXPECT_EQ(job.answer(), "> Who?\n\n> /nope\n  ! no command\n  forgotten: all\n");
  EXPECT_THAT(job.log(), HasSubstr("template  a note"));
  job.read_err("{\"event\":\"phase\",\"phase\":\"prefill\",\"state\":\"started\"}\n", 0);
  EXPECT_FALSE(job.waits());
  job.end(2, 0, 1);
  EXPECT_EQ(job.state(), Job::State::done);
  Job unloaded({"chat"}, 0);
  unloaded.end(2, 0, 1);
  EXPECT_EQ(unloaded.state(), Job::State::failed);
}

TEST(Job, TokensPerSecond) {
  Job job({"run"}, 0);
  const auto decode = [&](int done, double now) {
    job.read_err("{\"event\":\"phase\",\"phase\":\"decode\",\"state\":\"running\",\"done\":" +
                     std::to_string(done) + ",\"total\":100,\"unit\":\"tokens\"}\n",
                 now);
  };
  decode(1, 10);
  EXPECT_EQ(job.tokens_per_second(), 0);
  decode(21, 12);
  EXPECT_EQ(job.tokens_per_second(), 10);
  job.read_err(
      "{\"event\":\"phase\",\"phase\":\"decode\",\"state\":\"running\",\"done\":30,\"per_second\":12.5}\n",
      13);
  EXPECT_EQ(job.tokens_per_second(), 12.5);
  job.read_err("{\"event\":\"phase\",\"phase\":\"decode\",\"state\":\"done\",\"done\":100,\"ms\":5000}\n",
               14);
  EXPECT_EQ(job.tokens_per_second(), 20);
}

TEST(Job, ReceiptsAndVerdicts) {
  const Job job = job_of(
      "{\"event\":\"receipt\",\"path\":\"a.json\",\"hash\":\"83d3\"}\n"
      "{\"event\":\"verdict\",\"receipt\":\"a.json\",\"status\":\"verified\",\"detail\":\"\"}\n"
      "{\"event\":\"verdict\",\"receipt\":\"b.json\",\"status\":\"failed\",\"hash\":\"99\",\"detail\":"
      "\"output.text\"}\n");
  ASSERT_EQ(job.receipts().size(), 2u);
  EXPECT_EQ(job.receipts()[0].status, "verified");
  EXPECT_EQ(job.receipts()[0].hash, "83d3");
  EXPECT_EQ(job.receipts()[1].hash, "99");
}

TEST(Job, HowItEnds) {
  Job job = job_of(
      "{\"event\":\"phase\",\"phase\":\"load\",\"state\":\"started\"}\n"
      "{\"event\":\"error\",\"code\":3,\"kind\":\"not "
      "covered\",\"message\":\"no\",\"items\":[\"a\",7],\"hint\":\"h\"}\n");
  job.end(3, 0, 5);
  EXPECT_EQ(job.state(), Job::State::failed);
  EXPECT_EQ(job.summary(), "exit code 3: no");
  EXPECT_EQ(job.phases()[0].state, PhaseView::State::stopped);
  EXPECT_EQ(job.log(), "error  no\n       a\n       h");
  EXPECT_EQ(job.seconds(100), 5);

  // A phase with nothing to do makes way for the next; one that failed stays.
  const std::string plan = "{\"event\":\"phase\",\"phase\":\"plan\",\"state\":\"stopped\"}\n";
  const std::string next = "{\"event\":\"phase\",\"phase\":\"export\",\"state\":\"started\"}\n";
  ASSERT_EQ(job_of(plan + next).phases().size(), 1u);
  EXPECT_EQ(job_of(plan + next).phases()[0].name, "export");
  EXPECT_EQ(job_of(plan + "{\"event\":\"error\",\"message\":\"no\"}\n" + next).phases().size(), 2u);

  job = job_of("invar: model: not there\n");
  job.end(2, 0, 1);
  EXPECT_EQ(job.summary(), "exit code 2: model: not there");

  job = job_of("");
  job.end(0, 11, 1);
  EXPECT_THAT(job.summary(), HasSubstr("signal 11"));

  job = job_of("");
  job.cancel();
  EXPECT_TRUE(job.running());
  job.end(130, 0, 1);
  EXPECT_EQ(job.state(), Job::State::cancelled);

  job = job_of("");  // it was done before the signal came
  job.cancel();
  job.end(0, 0, 1);
  EXPECT_EQ(job.state(), Job::State::done);
}

TEST(Job, WhatIsKeptIsBounded) {
  Job job({"run"}, 0);
  const std::string line(1000, 'x');
  for (int i = 0; i < 3000; ++i) job.read_err(std::to_string(i) + line + "\n", 0);
  EXPECT_LE(job.log().size(), size_t{1} << 20);
  EXPECT_THAT(job.log(), HasSubstr("2999"));
  for (int i = 0; i < 9; ++i) job.read_out(std::string(1 << 20, 'y'));
  EXPECT_LE(job.answer().size(), size_t{8} << 20);
  job.read_err(std::string(3 << 20, 'z') + "\nafter\n", 0);  // one endless line
  EXPECT_THAT(job.log(), HasSubstr("after"));
}

TEST(Job, Words) {
  EXPECT_EQ(duration_text(0.027), "27 ms");
  EXPECT_EQ(duration_text(1.25), "1.2 s");
  EXPECT_EQ(duration_text(185), "3:05");
  EXPECT_EQ(rate_text(5867.2), "5867");
  EXPECT_EQ(rate_text(12.54), "12.5");
}

}  // namespace
}  // namespace invar::tui
