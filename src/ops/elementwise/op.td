// Elementwise operations. All infer their result type by infer_elementwise
// (src/compiler/lowering/elementwise_inference.cc). truth: the result is boolean.
class Elementwise<string mnemonic, dag operands, string truth> : Repro_InferOp<mnemonic, operands> {
  let extraClassDeclaration = "static bool pointwise() { return true; }";
  let extraClassDefinition = [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext*, std::optional<::mlir::Location> loc, Adaptor op,
        ::mlir::SmallVectorImpl<::mlir::Type>& out) {
      return ::invar::compiler::infer_elementwise(loc, op.getOperands(), }] # truth # [{, out);
    }
  }];
}
def Repro_Real : RankedTensorOf<[F32, F64]>;
def Repro_Integer : RankedTensorOf<[I64, I32, I8, UI64, UI8]>;
def Repro_Number : RankedTensorOf<[F32, F64, I64, I32, I8, UI64, UI8]>;
def Repro_Operand : RankedTensorOf<[F32, BF16, F16, F64, I64, I32, I8, UI64, UI8]>;
def Repro_Base : RankedTensorOf<[F32, BF16, F16, I64, I32]>;
def Repro_Bool : RankedTensorOf<[I1]>;
def Repro_Compared : RankedTensorOf<[F32, BF16, F16, F64, I64, I32, I8, UI64, UI8, I1]>;

class Unary<string op, TypeConstraint x = Repro_F32, string truth = "false">
    : Elementwise<op, (ins x:$x), truth>;
class Scaled<string op, dag scalars, string truth = "false">
    : Elementwise<op, !con((ins Repro_F32:$x), scalars), truth>;
class Binary<string op, TypeConstraint t, string truth = "false"> : Elementwise<op, (ins t:$a, t:$b), truth> {
  let extraClassDeclaration = [{
    static bool widens(unsigned) { return true; }
    static bool pointwise() { return true; }
  }];
}

// One class per constructor of kinds.h. The operations are its instances, by their rows in table.h.
class elementwise_light<string op> : Unary<op>;
class elementwise_light_real<string op> : Unary<op, Repro_Real>;
class elementwise_unary<string op> : Unary<op>;
class elementwise_binary64<string op> : Unary<op, RankedTensorOf<[F64]>>;
class elementwise_unary_number<string op> : Unary<op, Repro_Number>;
class elementwise_unary_bits<string op> : Unary<op, Repro_Integer>;
class elementwise_negation<string op> : Unary<op, Repro_Bool, "true">;
class elementwise_test_real<string op> : Unary<op, Repro_Real, "true">;
class elementwise_test<string op, dag scalars> : Scaled<op, scalars, "true">;
class elementwise_scaled<string op, dag scalars> : Scaled<op, scalars>;
class elementwise_scaled_heavy<string op, dag scalars> : Scaled<op, scalars>;
class elementwise_binary<string op> : Binary<op, Repro_Wide>;
class elementwise_binary_graph<string op> : Binary<op, Repro_Wide>;
class elementwise_binary_heavy<string op> : Binary<op, Repro_Wide>;
class elementwise_power<string op> : Binary<op, Repro_Base>;
class elementwise_binary_wrapping<string op> : Binary<op, Repro_Operand>;
class elementwise_binary_number<string op> : Binary<op, Repro_Operand>;
class elementwise_binary_bits<string op> : Binary<op, Repro_Integer>;
class elementwise_binary_integer<string op> : Binary<op, Repro_Integer>;
class elementwise_compare<string op> : Binary<op, Repro_Operand, "true">;
class elementwise_compare_all<string op> : Binary<op, Repro_Compared, "true">;
class elementwise_logic<string op> : Binary<op, Repro_Bool, "true">;
class elementwise_ternary_select<string op>
    : Elementwise<op, (ins Repro_Bool:$condition, Repro_Any:$a, Repro_Any:$b), "false"> {
  let extraClassDeclaration = [{
    static bool widens(unsigned i) { return i > 0; }
    static bool pointwise() { return true; }
  }];
}
include "ops/elementwise/table.td"  // made by the build
