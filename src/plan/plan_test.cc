#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/file/file.h"
#include "plan/program_text.h"

namespace invar::plan {
namespace {

// The example of spec/plan.md (SpecShowsThisExample).
const std::string kProgram = R"(invar-plan 1
numerics "invar-1"
operations "reproducible"
symbol batch
symbol seq
weight w0 "embed" bf16 [4, 2] sha256 1111111111111111111111111111111111111111111111111111111111111111
weight w1 "norm" f32 [2] sha256 2222222222222222222222222222222222222222222222222222222222222222
state s0 "layer 0"
input v0: i64 [batch, seq] "input_ids"
node v1: f32 [batch, seq, 2] = gather.1(w0, v0) {numerics="convert-1"}
node v2: f32 [batch, seq, 2] = rmsnorm.1(v1, w1) {epsilon=0x3727c5ac, numerics="row-1"}
node v3: f32 [batch, seq, 2] = attention.1(v2, v2, v2) state s0 {causal=1, kv_heads=1, numerics="attention-1", q_heads=1, scale=0x3f800000}
node v4: f32 [batch, seq, 2] = add.1(v3, v1) {numerics="ieee"}
node v5: f32 [batch, seq, 4] = matmul.1(v4, w0) {numerics="fp32-1", trans_b=1}
output v5 "logits"
)";
const std::string kPlaces = R"(places
place w0 "model-1.safetensors" offset 128 length 16
place w1 "model-2.safetensors" offset 64 length 8
slots 3
slot v1 0
slot v2 1
slot v3 2
slot v4 1
slot v5 0
end
)";
const std::string kText = kProgram + kPlaces;

std::string replaced(const std::string& from, const std::string& to, std::string text = kText) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The error of a text that must be refused, without the file's name.
std::string refusal_as(const std::string& text, Code code = Code::bad_input) {
  const auto p = parse(text, "x.plan");
  if (p) return "accepted";
  EXPECT_EQ(p.error().code, code) << p.error().message;
  EXPECT_TRUE(p.error().message.starts_with("x.plan: line ")) << p.error().message;
  EXPECT_EQ(p.error().message.find('\n'), std::string::npos);
  return p.error().message.substr(8);
}

TEST(Plan, NumericsChoicesAreInTheDigest) {
  const std::string operations = "operations \"reproducible\"\n";
  const std::string two = operations + "choice \"rmsnorm-1\"\nchoice \"sdpa-1\"\n";
  const auto plain = parse(kText, "x.plan"), chosen = parse(replaced(operations, two), "x.plan");
  ASSERT_TRUE(plain && chosen);
  EXPECT_EQ(chosen->choices, (std::vector<std::string>{"rmsnorm-1", "sdpa-1"}));
  EXPECT_EQ(print(*chosen), replaced(operations, two));
  EXPECT_NE(digest(*plain), digest(*chosen));
  EXPECT_EQ(refusal_as(replaced(operations, operations + "choice \"rmsnorm-99\"\n"), Code::not_covered),
            "line 4: numerics choice 'rmsnorm-99' is not known to this build");
  EXPECT_EQ(refusal_as(replaced(operations, operations + "choice \"sdpa-1\"\nchoice \"rmsnorm-1\"\n")),
            "line 5: numerics choices are not in ascending order");
  EXPECT_EQ(refusal_as(replaced(operations, operations + "choice \"sdpa-1\"\nchoice \"sdpa-1\"\n")),
            "line 5: numerics choices are not in ascending order");
  EXPECT_EQ(refusal_as(replaced("symbol batch\n", "symbol batch\nchoice \"sdpa-1\"\n")),
            "line 5: unknown or misplaced line 'choice'");
}

TEST(Plan, PrintAfterParseIsTheSameText) {
  const auto p = parse(kText, "x.plan");
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(print(*p), kText);
  EXPECT_EQ(p->weights[1].offset, 64u);
  EXPECT_EQ(p->nodes[1].attrs.f("epsilon", 0), 1e-5f);
  EXPECT_EQ(p->nodes[2].state, 0);
  EXPECT_EQ(p->values[5].shape, (std::vector<DimRef>{{0, 0}, {0, 1}, {4, -1}}));
}

TEST(Plan, DigestIsTheHashOfTheProgramText) {
  const Plan p = *parse(kText, "x.plan");
  EXPECT_EQ(digest(p), invar::sha256(kProgram));
  EXPECT_EQ(to_hex(digest(p)), "3aaa5e45b30c845af33979a036b945143204d84d18eeb632205302402dc88fef");
}

TEST(Plan, SpecShowsThisExample) {
  const auto spec = read_file(INVAR_SOURCE_DIR "/spec/plan.md");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_NE(spec->find("\n```\n" + kText + "```\n"), std::string::npos);
  EXPECT_NE(spec->find(to_hex(digest(*parse(kText, "x.plan")))), std::string::npos);
}

TEST(Plan, DigestCoversTheProgramAndNotThePlaces) {
  const Plan p = *parse(kText, "x.plan");
  Plan q = p;
  q.weights[0].file = "elsewhere/a";
  q.weights[0].offset = 7;
  q.values[3].slot = 9;
  q.slots = 10;
  EXPECT_EQ(digest(q), digest(p));
  EXPECT_EQ(weights_digest(q.weights), weights_digest(p.weights));
  EXPECT_NE(print(q), print(p));
  auto differs = [&](auto change) {
    Plan r = p;
    change(r);
    EXPECT_NE(digest(r), digest(p));
  };
  differs([](Plan& r) { r.nodes[1].attrs["epsilon"] = F32Bits{0x3727c5ad}; });
  differs([](Plan& r) { r.nodes[4].version = 2; });
  differs([](Plan& r) { std::swap(r.nodes[3].in[0], r.nodes[3].in[1]); });
  differs([](Plan& r) { r.values[2].shape[2].value = 3; });
  differs([](Plan& r) { r.values[2].dtype = DType::f64; });
  differs([](Plan& r) { r.weights[0].sha256[31] ^= 1; });
  differs([](Plan& r) { r.outputs[0].name = "x"; });
  differs([](Plan& r) { r.numerics = "invar-2"; });
}

TEST(Plan, DigestDoesNotDependOnTheNumberingOfValues) {
  const Plan p = *parse(kText, "x.plan");
  Plan q = p;
  std::reverse(q.values.begin(), q.values.end());
  auto renumber = [](int& v) { v = 5 - v; };
  for (Node& n : q.nodes) {
    for (Operand& o : n.in)
      if (o.kind == Operand::value) renumber(o.index);
    for (int& v : n.out) renumber(v);
  }
  for (Port& i : q.inputs) renumber(i.value);
  for (Port& o : q.outputs) renumber(o.value);
  EXPECT_EQ(print(q), kText);
}

TEST(Plan, WeightsDigestIsAMerkleRootInNameOrder) {
  Plan p = *parse(kText, "x.plan");
  const Digest expected = merkle_root(
      std::vector<Digest>{invar::sha256("\"embed\" bf16 [4, 2] sha256 " + std::string(64, '1') + "\n"),
                          invar::sha256("\"norm\" f32 [2] sha256 " + std::string(64, '2') + "\n")});
  EXPECT_EQ(weights_digest(p.weights), expected);
  std::swap(p.weights[0], p.weights[1]);
  EXPECT_EQ(weights_digest(p.weights), expected);
  p.weights[0].shape = {1, 2};
  EXPECT_NE(weights_digest(p.weights), expected);
}

TEST(Plan, EveryKindOfAttributeAndOddNamesRoundTrip) {
  Plan p = *parse(kText, "x.plan");
  p.nodes[4].attrs["a"] = std::vector<int64_t>{-1, 0, INT64_MAX};
  p.nodes[4].attrs["b"] = std::vector<int64_t>{};
  p.nodes[4].attrs["c"] = F32Bits{0x7fc00001};
  p.nodes[4].attrs["d"] = INT64_MIN;
  p.nodes[4].attrs["e"] = std::string("\"\\\n\t\0\x7f\xc3\xa9", 8);
  p.weights[0].name = "line\nbreak";
  const auto q = parse(print(p), "x.plan");
  ASSERT_TRUE(q) << q.error().message;
  EXPECT_EQ(q->nodes[4].attrs, p.nodes[4].attrs);
  EXPECT_EQ(q->weights[0].name, p.weights[0].name);
  EXPECT_EQ(print(*q), print(p));
}

TEST(Plan, ComputedDimensionsRoundTrip) {
  for (const char* shape : {"[batch*seq, 2]", "[2*seq-1, (batch+1)/2+3]", "[(seq+1)/2*batch]",
                            "[2*min(seq,16), 3]", "[batch, min(batch,seq)*seq-1]"}) {
    const std::string text = replaced("[batch, seq, 2] = add.1", std::string(shape) + " = add.1");
    const auto p = parse(text, "x.plan");
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_EQ(print(*p), text);
  }
  for (const char* shape :
       {"[seq*batch]", "[past+seq]", "[seq+0]", "[2*3]", "[(seq)/2/2]", "[seq+-1]", "[1*seq]", "[(2*seq)/2]",
        "[min(16,seq)]", "[min(seq, 16)]", "[min(seq,past)]", "[min(seq,16]", "[min(seq]"})
    EXPECT_NE(refusal_as(replaced("[batch, seq, 2] = add.1", std::string(shape) + " = add.1"))
                  .find("line 13: there is no symbol"),
              std::string::npos)
        << shape;
}

TEST(Plan, PrintOfABrokenPlanIsRefusedByParse) {
  Plan p = *parse(kText, "x.plan");
  p.nodes[0].out[0] = 77;
  p.nodes[1].in[0].index = -3;
  p.values[4].shape[0].symbol = 99;
  EXPECT_NE(refusal_as(print(p)), "accepted");
}

TEST(Plan, AssignSlotsKeepsLivingValuesApart) {
  Plan p = *parse(kText, "x.plan");
  for (Value& v : p.values) v.slot = -1;
  assign_slots(p);
  EXPECT_LE(p.slots, 3);
  for (size_t v = 1; v < p.values.size(); ++v) EXPECT_GE(p.values[v].slot, 0);
  const auto q = parse(print(p), "x.plan");  // which checks lifetimes
  EXPECT_TRUE(q) << q.error().message;
}

TEST(Plan, TheOperationSetIsPartOfTheProgram) {
  std::set<Digest> digests;
  for (const std::string_view name : kOperationSets) {
    const std::string text = replaced("\"reproducible\"", "\"" + std::string(name) + "\"");
    const auto p = parse(text, "x.plan");
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_EQ(name_of(p->operation_set), name);
    EXPECT_EQ(print(*p), text);
    digests.insert(digest(*p));
  }
  EXPECT_EQ(digests.size(), 3u);
}

TEST(Plan, CountsWhatIsAliveTogether) {
  const auto p = parse(kText, "x.plan");
  ASSERT_TRUE(p);
  const auto f = footprint(*p, {{"batch", 2}, {"seq", 3}});
  ASSERT_TRUE(f) << f.error().message;
  // v0 (i64) and v1, v2, v3 of [batch, seq, 2] while attention runs; v5, of twice the size, is
  // alive with v4 and v0 alone.
  EXPECT_EQ(f->weights, 24);
  EXPECT_EQ(f->live, 4 * 8 * 6);
  EXPECT_EQ(f->node, 2);
  EXPECT_EQ(f->formula, "32*batch*seq");
  EXPECT_EQ(f->buffers, (8 + 16 + 8 + 8) * 6) << "slot 0 is as large as v5";
  EXPECT_EQ(footprint(*p, {})->live, 32 * kTypical * kTypical);
  EXPECT_EQ(footprint(*p, {{"seq", 0}})->live, 0);
  EXPECT_EQ(footprint(*p, {{"sequence", 1}}).error().code, Code::bad_input);
  EXPECT_EQ(footprint(*p, {{"seq", -1}}).error().code, Code::bad_input);
  EXPECT_FALSE(footprint(*p, {{"seq", int64_t{1} << 40}, {"batch", int64_t{1} << 40}}));
}

TEST(Plan, RefusesWhatThisBuildDoesNotCoverByName) {
  const Code nc = Code::not_covered;
  EXPECT_EQ(refusal_as(replaced("invar-plan 1", "invar-plan 2"), nc),
            "line 1: plan format '2' is not known to this build; it reads 'invar-plan 1'");
  EXPECT_EQ(refusal_as(replaced("\"invar-1\"", "\"invar-9\""), nc),
            "line 2: numerics 'invar-9' cannot be run by this build; it has \"invar-1\"");
  EXPECT_EQ(
      refusal_as(replaced("\"reproducible\"", "\"fast\""), nc),
      "line 3: operation set 'fast' is not known to this build; it has default, deterministic, reproducible");
  EXPECT_EQ(refusal_as(replaced("gather.1", "nosuch.1"), nc),
            "line 10: operation 'nosuch' is not one of this build");
  EXPECT_EQ(refusal_as(replaced("gather.1", "gather.7"), nc),
            "line 10: operation 'gather' version 7 is not in this build; it has version 1");
  EXPECT_EQ(refusal_as(replaced("\"fp32-1\"", "\"tf32-1\""), nc),
            "line 14: operation 'matmul' with numerics 'tf32-1' is not in this build; it has \"fp32-1\"");
}

TEST(Plan, RefusesHostileText) {
  struct Case {
    const char *from, *to, *error;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"invar-plan 1", "ELF", "line 1: not a plan: the first line is not 'invar-plan 1'"},
           {"symbol seq", "symbol batch", "line 5: two symbols have the name 'batch'"},
           {"w1 \"norm\"", "w1 \"embed\"", "line 7: two weights have the name 'embed'"},
           {"weight w1", "weight w2", "line 7: expected 'w1' before 'w2 \"norm\" f32 [2] sha256 2222222...'"},
           {"[4, 2]", "[4294967296, 4294967296]", "line 6: impossible shape"},
           {"[4, 2]", "[0, 4611686018427387904]", "line 6: impossible shape"},
           {"[4, 2]", "[-4, 2]", "line 6: impossible shape"},
           {"[4, 2]", "[1, 1, 1, 1, 1, 1, 1, 4, 2]", "line 6: impossible shape"},
           {"[4, 2]", "[99999999999999999999, 2]",
            "line 6: number out of range: '99999999999999999999, 2] sha256 ...'"},
           {"sha256 1111", "sha256 11", "line 6: a SHA-256 is 64 lower-case hexadecimal digits"},
           {"bf16", "bf17", "line 6: there is no dtype 'bf17'"},
           {"[batch, seq]", "[batch, sequence]", "line 9: there is no symbol 'sequence'"},
           {"(w0, v0)", "(w2, v0)",
            "line 10: there is no such thing (yet): 'w2, v0) {numerics=\"convert-1\"}'"},
           {"(w0, v0)", "(w0, v1)", "line 10: there is no such thing (yet): 'v1) {numerics=\"convert-1\"}'"},
           {"(w0, v0)", "(w0, v99999999999)",
            "line 10: there is no such thing (yet): 'v99999999999) {numerics=\"convert...'"},
           {"node v2", "node v1", "line 11: expected 'v2' before 'v1: f32 [batch, seq, 2] = rmsnor...'"},
           {"0x3727c5ac", "0x3727c5a", "line 11: a float is 0x and 8 hexadecimal digits"},
           {"causal=1", "causal=1, causal=1", "line 12: attribute causal twice"},
           {"state s0 {", "state s1 {",
            "line 12: there is no such thing (yet): 's1 {causal=1, kv_heads=1, numeri...'"},
           {" state s0 {", " {", "line 16: state s0 is used by no node"},
           {"numerics=\"ieee\"", "", "line 13: operation 'add' does not name its numerics"},
           {"output v5", "output v6", "line 15: there is no such thing (yet): 'v6 \"logits\"'"},
           {"output v5", "ouput v5", "line 15: unknown or misplaced line 'ouput'"},
           {"place w1", "place w0", "line 18: expected 'w1' before 'w0 \"model-2.safetensors\" offset ...'"},
           {"model-1.", "/etc/x",
            "line 17: file '/etc/xsafetensors' must be relative, inside the plan's folder, "
            "without '..'"},
           {"model-1.", "a/../../b", nullptr},
           {"model-1.safetensors", "..", nullptr},
           {"model-1.safetensors", "", nullptr},
           {"model-1.safetensors", "a\\x00b", nullptr},
           {"length 16", "length 17", "line 17: length 17 of 'embed' should be 16 by its dtype and shape"},
           {"offset 128", "offset 18446744073709551615", "line 17: impossible offset 18446744073709551615"},
           {"offset 128", "offset -1", "line 17: expected a number before '-1 length 16'"},
           {"slots 3", "slots 4000000000", "line 19: more slots than values"},
           {"slots 3", "slots 2", "line 22: there is no slot 2"},
           {"slot v2 1", "slot v2 0", "line 21: v2 shares slot 0 with v1, which is still alive"},
           {"slot v4 1", "slot v4 2", "line 23: v4 shares slot 2 with v3, which is still alive"},
           {"slot v2 1", "slot v1 1", "line 21: slots are not in the order of the values"},
           {"slot v5 0\nend\n", "slot v5 0\n", "line 25: the plan ends before its line 'end'"},
           {"slot v5 0\nend\n", "slot v5 0\nend\nx", "line 25: unexpected text after the line 'end'"},
           {"place w1 \"model-2.safetensors\" offset 64 length 8\n", "", "line 18: weight w1 has no place"},
           {"[4, 2]", "[04, 2]",
            "line 6: not in canonical form; expected: weight w0 \"embed\" bf16 [4, 2] sha256 "
            "1111111111111111111111111111111111111111111111111111111111111111"},
           {"\"embed\"", "\"em\\x62ed\"", nullptr},
           {"\"embed\"", "\"embed", nullptr},
           {"\"embed\"", "\"em\\qbed\"", nullptr},
           {"causal=1, kv_heads=1", "kv_heads=1, causal=1", nullptr},
           {"symbol seq\n", "symbol seq\r\n", nullptr},
           {"symbol seq\n", "symbol seq\n\n", nullptr},
       }) {
    const std::string got = refusal_as(replaced(c.from, c.to));
    if (c.error) {
      EXPECT_EQ(got, c.error);
    } else {
      EXPECT_NE(got, "accepted") << c.to;
    }
  }
}

// plan.17.
TEST(Plan, OriginsAreNamesOutsideTheDigest) {
  const std::string two = "origin 0 \"Gather\" \"/embed\"\norigin 3 \"Add\" \"\"\n";
  const std::string text = replaced("end\n", two + "end\n");
  const auto plain = parse(kText, "x.plan"), named = parse(text, "x.plan");
  ASSERT_TRUE(plain && named) << named.error().message;
  EXPECT_EQ(named->nodes[0].origin, (Origin{"Gather", "/embed"}));
  EXPECT_EQ(named->nodes[1].origin, Origin{});
  EXPECT_EQ(named->nodes[3].origin, (Origin{"Add", ""}));
  EXPECT_EQ(print(*named), text);
  EXPECT_EQ(digest(*named), digest(*plain));
  EXPECT_EQ(weights_digest(named->weights), weights_digest(plain->weights));
  struct Case {
    const char *lines, *error;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"origin 5 \"a\" \"b\"\n", "line 25: there is no node 5"},
           {"origin 18446744073709551615 \"a\" \"b\"\n", "line 25: there is no node 18446744073709551615"},
           {"origin -1 \"a\" \"b\"\n", "line 25: expected a number before '-1 \"a\" \"b\"'"},
           {"origin 1 \"a\" \"b\"\norigin 1 \"a\" \"b\"\n",
            "line 26: origins are not in the order of the nodes"},
           {"origin 2 \"a\" \"b\"\norigin 1 \"a\" \"b\"\n",
            "line 26: origins are not in the order of the nodes"},
           {"origin 1 \"a\" \"b\"\nslot v5 0\n", "line 26: unknown or misplaced line 'slot'"},
           {"origin 1 \"a\"\n", "line 25: expected ' ' before the end of the line"},
           {"origin 1 \"a\" \"b\" \n", "line 25: unexpected ' '"},
           {"origin 1 \"\" \"\"\n", nullptr},
           {"origin 01 \"a\" \"b\"\n", nullptr},
           {"origin 1 \"\\x61\" \"b\"\n", nullptr}}) {
    const std::string got = refusal_as(replaced("end\n", c.lines + std::string("end\n")));
    if (c.error) {
      EXPECT_EQ(got, c.error);
    } else {
      EXPECT_NE(got, "accepted") << c.lines;
    }
  }
  EXPECT_NE(refusal_as(replaced("places\n", two + "places\n")), "accepted");
  EXPECT_NE(refusal_as(replaced("slots 3\n", two + "slots 3\n")), "accepted");
}

TEST(Plan, HostileOriginsStayWithinTheirLine) {
  const Plan plain = *parse(kText, "x.plan");
  for (const std::string& name : {std::string("a\nb"), std::string("\"\nend\n"), std::string("\\"),
                                  std::string("\x1b[2J"), std::string("\0\r\x7f\xff\xc3", 5),
                                  std::string("\nplaces\nslots 0\nend\n"), std::string(1 << 16, 'x')}) {
    Plan p = plain;
    p.nodes[2].origin = {name, name}, p.nodes[4].origin = {"MatMul", name};
    const auto q = parse(print(p), "x.plan");
    ASSERT_TRUE(q) << q.error().message;
    EXPECT_EQ(q->nodes[2].origin, p.nodes[2].origin);
    EXPECT_EQ(q->nodes[4].origin, p.nodes[4].origin);
    EXPECT_EQ(print(*q), print(p));
    EXPECT_EQ(digest(*q), digest(plain));
    const std::string said = text_of(p.nodes[2].origin);
    EXPECT_LT(said.size(), 300u);
    EXPECT_TRUE(
        std::none_of(said.begin(), said.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
  }
  EXPECT_EQ(text_of({"Gather", "a\nb"}), "Gather (node \"a?b\"), ");
  EXPECT_EQ(text_of({}), "");
}

TEST(Plan, EveryTruncationIsRefused) {
  for (size_t n = 0; n < kText.size(); ++n) EXPECT_NE(refusal_as(kText.substr(0, n)), "accepted") << n;
}

// Runs under the address and undefined sanitizers in CI: mutations must be refused, or be plans
// that print the same.
TEST(Plan, MutationsNeverCrash) {
  uint64_t seed = 1;
  auto random = [&seed](uint64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
  };
  const std::string start =
      replaced("end\n", "origin 0 \"Gather\" \"/embed\"\norigin 4 \"MatMul\" \"y\"\nend\n");
  const std::string alphabet = "0123456789vws,.:=()[]{}\"\\ \n-xabcdef\x01\xff";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = start;
    for (uint64_t edits = 1 + random(3); edits > 0; --edits) {
      const size_t at = random(text.size());
      switch (random(4)) {
        case 0: text[at] = alphabet[random(alphabet.size())]; break;
        case 1: text.erase(at, 1 + random(8)); break;
        case 2: text.insert(at, 1, alphabet[random(alphabet.size())]); break;
        case 3: text.insert(at, text.substr(random(text.size()), random(40))); break;
      }
    }
    const auto p = parse(text, "x.plan");
    if (p) {
      ++accepted;
      ASSERT_EQ(print(*p), text);
    } else {
      ASSERT_FALSE(p.error().message.empty());
      ASSERT_EQ(p.error().message.find('\n'), std::string::npos) << p.error().message;
    }
  }
  EXPECT_GT(accepted, 0);  // names and attributes may change freely
}

// plan.18
TEST(Plan, SourceStandsBehindThePlaces) {
  const std::string hash(64, '3'),
      named = "program \"toy-1\" sha256 " + hash + "\n",
      tensors = "tensor \"a\" bf16 [4, 2] sha256 " + hash + "\ntensor \"b\" f32 [] sha256 " + hash + "\n";
  const auto plain = parse(kText, "x.plan"),
             p = parse(replaced("end\n", named + tensors + "end\n"), "x.plan");
  ASSERT_TRUE(plain && p) << p.error().message;
  EXPECT_FALSE(plain->source);
  ASSERT_TRUE(p->source);
  EXPECT_EQ(p->source->recipe, "toy-1");
  EXPECT_EQ(to_hex(p->source->program), hash);
  ASSERT_EQ(p->source->tensors.size(), 2u);
  EXPECT_EQ(p->source->tensors[0].shape, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(print(*p), replaced("end\n", named + tensors + "end\n"));
  EXPECT_EQ(digest(*p), digest(*plain));
  for (const auto& [lines, error] : std::vector<std::pair<std::string, std::string>>{
           {tensors, "line 25: unknown or misplaced line 'tensor'"},
           {named + named, "line 26: unknown or misplaced line 'program'"},
           {named + "origin 0 \"a\" \"b\"\n", "line 26: unknown or misplaced line 'origin'"},
           {named + tensors + tensors, "line 28: tensors are not in ascending order of names"},
           {named + "tensor \"a\" bf17 [] sha256 " + hash + "\n", "line 26: there is no dtype 'bf17'"},
           {"program \"toy-1\" sha256 3\n", "line 25: a SHA-256 is 64 lower-case hexadecimal digits"}})
    EXPECT_EQ(refusal_as(replaced("end\n", lines + "end\n")), error);
}

// program.2
TEST(Plan, ProgramText) {
  EXPECT_EQ(program_text("toy-1", "invar-1", Profile::fp32, OperationSet::deterministic,
                         {{"b", "0x3f800000"}, {"a", "2"}}),
            "invar-program 1\nrecipe \"toy-1\"\nnumerics \"invar-1\"\nprofile \"fp32\"\n"
            "operations \"deterministic\"\nparameter a 2\nparameter b 0x3f800000\n");
}

}  // namespace
}  // namespace invar::plan
