// The form: which fields there are, what is wrong with them, the command line.
#include "model/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/saved.h"
#include "model/shell_words.h"

namespace invar::tui {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool nothing_there(const std::string&) {
  return false;
}

std::vector<std::string> line(const Form& form) {
  EXPECT_THAT(form.problems(), IsEmpty());
  return arguments(form, nothing_there);
}

TEST(Form, RunWithText) {
  Form form;
  form[Field::model] = "models/shakespeare-4m";
  form[Field::prompt] = "ROMEO:\n  o";
  EXPECT_THAT(line(form), ElementsAre("run", "--model-name", "models/shakespeare-4m", "--prompt-text",
                                      "ROMEO:\n  o", "--receipt-path", "receipts/run-1.json"));
  form[Field::prompt] = "";  // an empty prompt is a prompt
  EXPECT_EQ(line(form)[3], "--prompt-text=");
  form[Field::prompt] = "--not-an-option";
  EXPECT_EQ(line(form)[3], "--prompt-text=--not-an-option");
}

TEST(Form, AQuestion) {
  Form form;
  form[Field::model] = "m";
  form[Field::prompt_from] = kFromQuestion;
  ASSERT_EQ(form.problems().size(), 1u);
  EXPECT_EQ(form.problems()[0].field, Field::user);
  form[Field::user] = "Who art thou?";
  form[Field::system] = "Be brief.";
  EXPECT_THAT(line(form), ElementsAre("run", "--model-name", "m", "--user", "Who art thou?", "--system",
                                      "Be brief.", "--receipt-path", "receipts/run-1.json"));
}

TEST(Form, EveryOptionOfRun) {
  Form form;
  form[Field::model] = "acme/tiny@v1";
  form[Field::prompt_from] = kFromMessages;
  form[Field::messages] = "m.json";
  form[Field::prompt] = "not used";
  form[Field::system] = "Be brief.";
  form[Field::new_tokens] = "64";
  form[Field::partitions] = "2";
  form[Field::tensor_parallel] = "1";
  form[Field::numerics] = "exact16";
  form[Field::device] = "cuda:0,cuda:1";
  form[Field::threads] = "3";
  form[Field::operation_set] = "deterministic";
  form[Field::sampling] = kSet;
  form[Field::temperature] = "0.8";
  form[Field::top_k] = "50";
  form[Field::top_p] = ".9";
  form[Field::min_p] = "1e-2";
  form[Field::seed] = "7";
  form[Field::receipt_path] = "r.json";
  form[Field::extra] = "--stop 'the end' --isa scalar";
  EXPECT_THAT(
      line(form),
      ElementsAre("run", "--model-name", "acme/tiny@v1", "--messages", "m.json", "--system", "Be brief.",
                  "--max-new-tokens", "64", "--temperature", "0.8", "--top-k", "50", "--top-p", ".9",
                  "--min-p", "1e-2", "--seed", "7", "--device", "cuda:0,cuda:1", "--n-partitions", "2",
                  "--tensor-parallel", "1", "--threads", "3", "--numerics", "exact16", "--operation-set",
                  "deterministic", "--receipt-path", "r.json", "--stop", "the end", "--isa", "scalar"));
}

TEST(Form, GreedyLeavesTheNumbersOut) {
  Form form;
  form[Field::model] = "m";
  form[Field::temperature] = "0.8";
  form[Field::sampling] = kGreedy;
  const auto words = line(form);
  EXPECT_THAT(words, testing::Contains("--no-do-sample"));
  EXPECT_THAT(words, testing::Not(testing::Contains("--temperature")));
}

TEST(Form, OtherCommands) {
  Form form;
  form[Field::model] = "m";
  form[Field::command] = "chat";
  EXPECT_THAT(line(form), ElementsAre("chat", "--model-name", "m", "--receipts", "receipts"));
  form[Field::command] = "verify";
  form[Field::receipts] = "a.json 'b c.json' -d.json";
  EXPECT_THAT(line(form), ElementsAre("verify", "--model-name", "m", "a.json", "b c.json", "./-d.json"));
  form[Field::model] = "";
  form[Field::command] = "validate";
  EXPECT_THAT(line(form), ElementsAre("validate", "a.json", "b c.json", "./-d.json"));
  form[Field::command] = "show";
  EXPECT_THAT(line(form), ElementsAre("show", "a.json", "b c.json", "./-d.json"));
  form[Field::command] = "digest";
  form[Field::model] = "-m";
  EXPECT_THAT(line(form), ElementsAre("digest", "./-m"));
  form[Field::model] = "";
  form[Field::command] = "compile";
  form[Field::onnx_file] = "m.onnx";
  form[Field::choices] = "none";
  form[Field::output] = "p.invar";
  EXPECT_THAT(line(form), ElementsAre("compile", "--choices", "none", "--output", "p.invar", "m.onnx"));
  form[Field::command] = "bench";
  form[Field::suites] = "gemm norm";
  EXPECT_THAT(line(form), ElementsAre("bench", "gemm", "norm"));
  form[Field::command] = "doctor";
  EXPECT_THAT(line(form), ElementsAre("doctor"));
  form[Field::command] = "export";
  form[Field::model] = "m";
  EXPECT_THAT(line(form), ElementsAre("export", "--model-name", "m", "--output", "p.invar"));
}

TEST(Form, Devices) {
  Form form;
  form[Field::model] = "m";
  for (const char* good : {"cpu", "cuda", "cuda:0", "cuda:12", "cuda:0,cpu,cuda"}) {
    form[Field::device] = good;
    EXPECT_THAT(form.problems(), IsEmpty()) << good;
  }
  for (const char* wrong : {"cdua", "CPU", "cuda:", "cuda:x", "cpu,", ",cpu", "cuda:0 cpu"}) {
    form[Field::device] = wrong;
    ASSERT_EQ(form.problems().size(), 1u) << wrong;
    EXPECT_EQ(form.problems()[0].field, Field::device);
  }
}

TEST(Form, Problems) {
  Form form;
  ASSERT_EQ(form.problems().size(), 1u);
  EXPECT_EQ(form.problems()[0].field, Field::model);
  form[Field::model] = "m";
  form[Field::new_tokens] = "-3";
  form[Field::extra] = "--stop 'the end";
  form[Field::prompt] = "-";
  const auto problems = form.problems();
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].field, Field::prompt);
  EXPECT_THAT(problems[0].message, HasSubstr("standard input"));
  EXPECT_THAT(problems[1].message, HasSubstr("whole number from 1 to 1073741824, got -3"));
  EXPECT_THAT(problems[2].message, HasSubstr("not closed"));
  form = Form();
  form[Field::model] = "m";
  form[Field::sampling] = kSet;
  for (const char* bad : {"x", ".", "1e", "0.8 ", "--1", "1.2.3", "nan"}) {
    form[Field::temperature] = bad;
    EXPECT_EQ(form.problems().size(), 1u) << bad;
  }
  form[Field::temperature] = "0.8";
  for (const auto& [field, bad] :
       {std::pair(Field::top_k, "2147483648"), {Field::tensor_parallel, "0"}, {Field::threads, "1025"}}) {
    const std::string good = std::exchange(form[field], bad);
    ASSERT_EQ(form.problems().size(), 1u) << bad;
    EXPECT_EQ(form.problems()[0].field, field);
    form[field] = good;
  }
  form[Field::temperature] = "x";
  // A field that the command does not take is not looked at.
  form[Field::sampling] = kOfModel;
  EXPECT_THAT(form.problems(), IsEmpty());
}

TEST(Form, ReceiptsTakeTheNextNumber) {
  const std::set<std::string> there = {"r/run-1.json", "r/run-2.json", "r/run-4.json"};
  const auto exists = [&](const std::string& path) { return there.count(path) == 1; };
  EXPECT_EQ(next_path("r/run-#.json", exists), "r/run-3.json");
  EXPECT_EQ(next_path("r/run-1.json", exists), "r/run-1.json");
  EXPECT_EQ(next_path("#/a#.json", exists), "#/a1.json");
}

TEST(Form, VerifyNamesTheModelThatFits) {
  EXPECT_THAT(verify_arguments("r.json", "tiny", "models/tiny/", "cpu"),
              ElementsAre("verify", "--model-name", "models/tiny/", "r.json"));
  EXPECT_THAT(verify_arguments("r.json", "acme/tiny", "acme/tiny@v1", "cuda"),
              ElementsAre("verify", "--model-name", "acme/tiny@v1", "--device", "cuda", "r.json"));
  // Another model of the form is not the receipt's: invar looks for it.
  EXPECT_THAT(verify_arguments("-r.json", "tiny", "models/mytiny", "cpu"),
              ElementsAre("verify", "./-r.json"));
  EXPECT_THAT(verify_arguments("r.json", "", "models/tiny", "cpu"), ElementsAre("verify", "r.json"));
}

TEST(Form, FieldsStandInOrderAndHaveHelp) {
  ASSERT_EQ(fields().size(), kFields);
  std::set<std::string> keys;
  for (size_t i = 0; i < kFields; ++i) {
    EXPECT_EQ(static_cast<size_t>(fields()[i].field), i);
    EXPECT_TRUE(keys.insert(fields()[i].key).second) << fields()[i].key;
    EXPECT_NE(std::string(fields()[i].help), "") << fields()[i].key;
    if (fields()[i].kind == Kind::choice) {
      EXPECT_FALSE(fields()[i].choices.empty()) << fields()[i].key;
    }
  }
}

TEST(Form, SavedAndReadAgain) {
  Form form;
  form[Field::prompt] = "two\nlines \"quoted\" \xE6\x97\xA5";
  form[Field::device] = "cuda";
  EXPECT_EQ(parse_form(form_text(form)), form);
  EXPECT_EQ(form_text(Form()), "{}\n");
  // Text that is not a form's is left alone.
  EXPECT_EQ(parse_form("{\"command\": \"tpu\", \"model\": 3, \"other\": {}}"), Form());
  EXPECT_EQ(parse_form("[1, 2"), Form());
  EXPECT_EQ(load_form("/nowhere/tui.json"), Form());
}

TEST(ShellWords, AsAShell) {
  EXPECT_THAT(*split_words(""), IsEmpty());
  EXPECT_THAT(*split_words("  a  b\tc\n"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*split_words("'a b'\"c d\"e '' \"\""), ElementsAre("a bc de", "", ""));
  EXPECT_THAT(*split_words("a\\ b \"\\\"\\$\\n\" '\\'"), ElementsAre("a b", "\"$\\n", "\\"));
  EXPECT_THAT(*split_words("$HOME `ls` *"), ElementsAre("$HOME", "`ls`", "*"));
  for (const char* bad : {"'", "\"a", "a\\", "'a\"", "\"\\"}) EXPECT_FALSE(split_words(bad)) << bad;
}

TEST(ShellWords, QuotedIsReadAgain) {
  for (const char* word :
       {"", "a", "a b", "it's", "$x", "-o", "a\nb", "\\", "\"", "日本", "~", "a;b", "#c", "{a,b}"}) {
    const auto words = split_words(shell_quoted(word));
    ASSERT_TRUE(words);
    EXPECT_THAT(*words, ElementsAre(word));
  }
  EXPECT_EQ(joined({"invar", "--stop", "the end"}), "invar --stop 'the end'");
}

}  // namespace
}  // namespace invar::tui
