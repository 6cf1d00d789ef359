"""Law 8: tests compare bytes, never tolerances. Accuracy against higher precision is a separate
test (accuracy in its file name) that states a figure. A test fails where it cannot do its work; a
skip gives its reason on the same line and is for what no machine promises (an instruction, a
privilege), never for a device or a program that the set-up installs."""

import re

from law import code, finding, is_test, lines

TOLERANCE = re.compile(
    r"(EXPECT|ASSERT)_(NEAR|FLOAT_EQ|DOUBLE_EQ)\b|\b(Float|Double|NanSensitiveFloat|NanSensitiveDouble)(Eq|Near)\s*\(|\ballclose\b|"
    r"\bisclose\b|\bapprox\s*\(|assert_almost|assertAlmostEqual|\b[ra]tol\b|\btolerance\b|\bf?abs\s*\([^()]*-[^()]*\)\s*<"
)
SKIP = re.compile(
    r'\bGTEST_SKIP\(\)(?!\s*<<\s*")|pytest\.skip\((?!["\'f])|pytest\.mark\.(skip|skipif|xfail)\b|pytest\.(xfail|importorskip)\b|'
    r"\bunittest\.skip|\bDISABLED_\w+"
)


def check(files):
    found = []
    tests = 0
    for path, text in files.items():
        if (
            text is None
            or not (is_test(path) or path.startswith("src/conformance/"))
            or not path.endswith((".cc", ".h", ".py", ".sh"))
        ):
            continue
        tests += 1
        accuracy = "accuracy" in path
        text = (
            code(text, strings=False) if path.endswith((".cc", ".h")) else re.sub(r"#.*", "", text)
        )
        text = re.sub(r"(pytest\.skip\()\n\s*(.*)", r"\1\2\n", text)  # as ruff breaks it
        for n, line in lines(text):
            if TOLERANCE.search(line) and not accuracy:
                found.append(
                    finding(
                        path,
                        n,
                        f"'{TOLERANCE.search(line).group(0)}': compare bytes; accuracy belongs "
                        f"into a file named for it",
                    )
                )
            if SKIP.search(line):
                found.append(
                    finding(
                        path,
                        n,
                        f"'{SKIP.search(line).group(0)}': a test that cannot run must fail, or "
                        f"give its reason here",
                    )
                )
    if not tests:
        found.append(finding("tests", 1, "no tests found: this law has nothing to hold on to"))
    return found


SELF_TEST = [
    ("near", {"src/num/x_test.cc": "EXPECT_NEAR(a, b, 1e-6);\n"}, 1),
    ("float equality", {"src/num/x_test.cc": "EXPECT_FLOAT_EQ(a, b);\n"}, 1),
    ("allclose", {"tests/test_x.py": "assert np.allclose(a, b)\n"}, 1),
    ("a difference below", {"tests/x_test.cc": "EXPECT_TRUE(std::fabs(a - b) < eps);\n"}, 1),
    (
        "in the harness that ships",
        {"src/conformance/runner.cc": "if (std::fabs(a - b) < eps) return;\n"},
        1,
    ),
    ("a skip", {"tests/test_x.py": '@pytest.mark.skipif(True, reason="")\n'}, 1),
    ("a skip without a reason", {"src/num/x_test.cc": "if (a) GTEST_SKIP();\n"}, 1),
    ("a skip that gives none behind a break", {"tests/test_x.py": "pytest.skip(\n    why\n)\n"}, 1),
    ("a skip with one behind a break", {"tests/test_x.py": 'pytest.skip(\n    "why"\n)\n'}, 0),
    (
        "a skip with one",
        {"src/num/x_test.cc": 'if (a) GTEST_SKIP() << "this processor has no F16C";\n'},
        0,
    ),
    (
        "bytes, and accuracy apart",
        {
            "src/num/x_test.cc": "EXPECT_EQ(bits(a), bits(b));  // not EXPECT_NEAR\n",
            "tests/checkpoint/test_accuracy.py": "assert abs(a - b) < 1e-6\n",
        },
        0,
    ),
]
