// log(1 + r) by a row of a table, for lanes that load rows from memory faster than they divide (a
// GPU's): the row holds c near 1 / (1 + r) and -log(c), and with d = (1 + r) c - 1, which is exact,
// log(1 + r) = -log(c) + log(1 + d). Constants: tools/prove/coefficients/log_rows.py.
//
// |d| < 2^-8, the polynomial errs by 2^-63 of log(1 + d), and each -log(c) by less than 2^-64. The
// row of 1 has c = 1, so near 0 the result is d + d^2 P(d) and errs by little more than its last
// rounding; elsewhere |-log(c)| > |d|. So log by rows needs no more hard cases than by division.
#pragma once

#include "num/log/core.h"

namespace invar::num::INVAR_ISA_NS {

#ifdef __CUDACC__
constexpr bool kLogByRows = true;
struct alignas(16) LogRow {
  double c, log;
};
INVAR_TABLE LogRow kLogRows[128] = {{0x1.690a94dp+0, -0x1.60110a52f57e6p-2},
                                    {0x1.6710013p+0, -0x1.5a7050ba3fa2bp-2},
                                    {0x1.651b302p+0, -0x1.54d82551281f1p-2},
                                    {0x1.632c2e7p+0, -0x1.4f48dc41dd4a5p-2},
                                    {0x1.61420bfp+0, -0x1.49bfed7d2f4f2p-2},
                                    {0x1.5f5d331p+0, -0x1.443eb47aa73f6p-2},
                                    {0x1.5d7d971p+0, -0x1.3ec5367810a31p-2},
                                    {0x1.5ba2cdep+0, -0x1.3952655fc21e5p-2},
                                    {0x1.59cd6b9p+0, -0x1.33e81d5452b4ep-2},
                                    {0x1.57fc1c3p+0, -0x1.2e829755de142p-2},
                                    {0x1.563072fp+0, -0x1.2926a7404e806p-2},
                                    {0x1.5469e52p+0, -0x1.23d2dc6af677bp-2},
                                    {0x1.52a767bp+0, -0x1.1e8439a30e4d4p-2},
                                    {0x1.50e973cp+0, -0x1.193c4d2749627p-2},
                                    {0x1.4f30d6fp+0, -0x1.13fdaf37949e3p-2},
                                    {0x1.4d7c07bp+0, -0x1.0ec3d556871b2p-2},
                                    {0x1.4bcb95ep+0, -0x1.0990975ccc49ap-2},
                                    {0x1.4a200aap+0, -0x1.0465c17660641p-2},
                                    {0x1.487825cp+0, -0x1.fe7f2df5561bp-3},
                                    {0x1.46d52efp+0, -0x1.f4446abaf835bp-3},
                                    {0x1.4535d27p+0, -0x1.ea133272ebe1p-3},
                                    {0x1.439ac27p+0, -0x1.dff0223af2da6p-3},
                                    {0x1.4203debp+0, -0x1.d5dab393e41e7p-3},
                                    {0x1.4070735p+0, -0x1.cbceacf098be3p-3},
                                    {0x1.3ee11d6p+0, -0x1.c1d032b79929fp-3},
                                    {0x1.3d55f4p+0, -0x1.b7e01d0362b58p-3},
                                    {0x1.3bcecc2p+0, -0x1.adfd9a0b97de5p-3},
                                    {0x1.3a4adefp+0, -0x1.a423dc31236adp-3},
                                    {0x1.38caca1p+0, -0x1.9a571b2d477cdp-3},
                                    {0x1.374e3a7p+0, -0x1.9095736ffc3c6p-3},
                                    {0x1.35d568p+0, -0x1.86e08e3bcb818p-3},
                                    {0x1.3460b24p+0, -0x1.7d3b22f869b11p-3},
                                    {0x1.32eef16p+0, -0x1.739dc25e5c714p-3},
                                    {0x1.3180481p+0, -0x1.6a0980264d033p-3},
                                    {0x1.30155efp+0, -0x1.6082fad2cafb4p-3},
                                    {0x1.2eae551p+0, -0x1.570b439463b6bp-3},
                                    {0x1.2d49a4ap+0, -0x1.4d9842fa76d65p-3},
                                    {0x1.2be8fcbp+0, -0x1.443596bf0659cp-3},
                                    {0x1.2a8b099p+0, -0x1.3ada6b874ff47p-3},
                                    {0x1.2930c4p+0, -0x1.318d9aeac752bp-3},
                                    {0x1.27d8e1p+0, -0x1.284670a441ccdp-3},
                                    {0x1.26848ecp+0, -0x1.1f0d4268197a9p-3},
                                    {0x1.2533354p+0, -0x1.15de27897416fp-3},
                                    {0x1.23e4fecp+0, -0x1.0cba7796a6174p-3},
                                    {0x1.22996b7p+0, -0x1.039ee1350ed86p-3},
                                    {0x1.21510c4p+0, -0x1.f51f1c36a3e5ap-4},
                                    {0x1.200baa6p+0, -0x1.e3165c6a24576p-4},
                                    {0x1.1ec8f2bp+0, -0x1.d11f416544b33p-4},
                                    {0x1.1d88f86p+0, -0x1.bf3b31064a50ep-4},
                                    {0x1.1c4bfdcp+0, -0x1.ad6e3d82bc3bbp-4},
                                    {0x1.1b11b99p+0, -0x1.9bb4a6c0cff76p-4},
                                    {0x1.19da57dp+0, -0x1.8a1142d744e1dp-4},
                                    {0x1.18a506p+0, -0x1.7878710389916p-4},
                                    {0x1.1772d39p+0, -0x1.66f9f467b403bp-4},
                                    {0x1.1642ccdp+0, -0x1.558835f003eb5p-4},
                                    {0x1.15158d6p+0, -0x1.442c70f6cb4efp-4},
                                    {0x1.13eb1c5p+0, -0x1.32e76add7694ep-4},
                                    {0x1.12c309ap+0, -0x1.21b2fc6035453p-4},
                                    {0x1.119d425p+0, -0x1.108e52f2e392dp-4},
                                    {0x1.107a6b4p+0, -0x1.ff06c7bfccd2cp-5},
                                    {0x1.0f5925fp+0, -0x1.dcfbd530b32b4p-5},
                                    {0x1.0e3add8p+0, -0x1.bb271847626afp-5},
                                    {0x1.0d1e85bp+0, -0x1.99697e95cf0ddp-5},
                                    {0x1.0c050f9p+0, -0x1.77e03f993a437p-5},
                                    {0x1.0aedea1p+0, -0x1.567ac213ce59dp-5},
                                    {0x1.09d8727p+0, -0x1.352604274e58bp-5},
                                    {0x1.08c5893p+0, -0x1.13fd80e9536b2p-5},
                                    {0x1.07b4981p+0, -0x1.e5df5602f62ffp-6},
                                    {0x1.06a609cp+0, -0x1.a413f15a6eb9ap-6},
                                    {0x1.0599707p+0, -0x1.627f355614e2ep-6},
                                    {0x1.048f363p+0, -0x1.213c1d83c3f4cp-6},
                                    {0x1.0387199p+0, -0x1.c0778cae3ce05p-7},
                                    {0x1.0281686p+0, -0x1.3f250739402afp-7},
                                    {0x1.017cef9p+0, -0x1.7bd53be6e485ep-8},
                                    {0x1p+0, 0x0p+0},
                                    {0x1.fdef096p-1, 0x1.09044daaba325p-8},
                                    {0x1.f9fed4ep-1, 0x1.8290354feae16p-7},
                                    {0x1.f61dc4ep-1, 0x1.3f5f19398e76bp-6},
                                    {0x1.f24d4cep-1, 0x1.bc4ece02c1ef6p-6},
                                    {0x1.ee89e72p-1, 0x1.1c419a5a7c2bbp-5},
                                    {0x1.ead6828p-1, 0x1.59ca1e7c4af14p-5},
                                    {0x1.e73048p-1, 0x1.96ec7ba3687a3p-5},
                                    {0x1.e396cccp-1, 0x1.d3ac9295bcda2p-5},
                                    {0x1.e00c2c4p-1, 0x1.07f1acab0e0d2p-4},
                                    {0x1.dc8ebe8p-1, 0x1.25d4b08d34491p-4},
                                    {0x1.d91e92p-1, 0x1.437d2e9cd83b3p-4},
                                    {0x1.d5b9ee2p-1, 0x1.60f8790f14148p-4},
                                    {0x1.d2622d8p-1, 0x1.7e3949e4c138dp-4},
                                    {0x1.cf1720ep-1, 0x1.9b3f9c04d56a8p-4},
                                    {0x1.cbd7122p-1, 0x1.b8190bb738b3fp-4},
                                    {0x1.c8a2a6ep-1, 0x1.d4be772d09977p-4},
                                    {0x1.c579938p-1, 0x1.f131125b67443p-4},
                                    {0x1.c25b59p-1, 0x1.06b9f9ca962e7p-3},
                                    {0x1.bf48e14p-1, 0x1.14beb242c5f9fp-3},
                                    {0x1.bc41038p-1, 0x1.22ab469276c0fp-3},
                                    {0x1.b9431aep-1, 0x1.308209fcda0ccp-3},
                                    {0x1.b64faap-1, 0x1.3e3ffdf64a64fp-3},
                                    {0x1.b36694ep-1, 0x1.4be4fc18afed6p-3},
                                    {0x1.b086242p-1, 0x1.59787bbaf4a7fp-3},
                                    {0x1.adb0eap-1, 0x1.66edba0663edap-3},
                                    {0x1.aae4b42p-1, 0x1.744e80421a522p-3},
                                    {0x1.a8207bep-1, 0x1.819f3518ab229p-3},
                                    {0x1.a566938p-1, 0x1.8ed41a330ca24p-3},
                                    {0x1.a2b5778p-1, 0x1.9bf3e77e05f8cp-3},
                                    {0x1.a00d58cp-1, 0x1.a8fd1fea2f11cp-3},
                                    {0x1.9d6c5c2p-1, 0x1.b5f862b56b3c7p-3},
                                    {0x1.9ad561ap-1, 0x1.c2d6f3c2b51d1p-3},
                                    {0x1.9845c6cp-1, 0x1.cfa55d161d2dap-3},
                                    {0x1.95bff0ap-1, 0x1.dc57187f10c33p-3},
                                    {0x1.9340798p-1, 0x1.e8fcbd121c4cdp-3},
                                    {0x1.90c9194p-1, 0x1.f58d294696cf7p-3},
                                    {0x1.8e58a9cp-1, 0x1.0106e08c35975p-2},
                                    {0x1.8bf071cp-1, 0x1.073bc05828b87p-2},
                                    {0x1.898fb16p-1, 0x1.0d66e2875384bp-2},
                                    {0x1.873758p-1, 0x1.138598437d104p-2},
                                    {0x1.84e47bp-1, 0x1.199f477b32553p-2},
                                    {0x1.8299686p-1, 0x1.1fadafe4a0cb2p-2},
                                    {0x1.8054a26p-1, 0x1.25b488eeba54cp-2},
                                    {0x1.7e17eb2p-1, 0x1.2baeebfd23713p-2},
                                    {0x1.7be0538p-1, 0x1.31a47bf21ae23p-2},
                                    {0x1.79afbc4p-1, 0x1.378ffe43f6711p-2},
                                    {0x1.77853e2p-1, 0x1.3d73af6ebc516p-2},
                                    {0x1.75625b2p-1, 0x1.434b3d2299db6p-2},
                                    {0x1.7345278p-1, 0x1.491bb17212126p-2},
                                    {0x1.712cb72p-1, 0x1.4ee76fb3a5359p-2},
                                    {0x1.6f1c0fcp-1, 0x1.54a5e8ad85a4fp-2},
                                    {0x1.6d101e8p-1, 0x1.5a5f75ebec25fp-2},
                                    {0x1.6b0add2p-1, 0x1.600e63c3ce7d9p-2}};

// The logarithm by the offset of 1 + r (exponent_offset() in core.h).
INVAR_INLINE D log_by_row(L offset) {
  const LogRow* rows = kLogRows;
  const LogRow row = rows[shift_right<45>(offset).v & 127];
  D d = fma(significand_of(offset), set1_d(row.c), set1_d(-1.0));
  D p = horner(d, -0.5, 0x1.5555555555553p-2, -0x1.ffffffff7241ep-3, 0x1.9999999b03ce2p-3,
               -0x1.5556d24fef3f7p-3, 0x1.2491afb9458a9p-3);
  return add(fma(mul(d, d), p, d), set1_d(row.log));
}
#else
constexpr bool kLogByRows = false;
INVAR_INLINE D log_by_row(L) {
  return set1_d(0.0);
}
#endif

}  // namespace invar::num::INVAR_ISA_NS
