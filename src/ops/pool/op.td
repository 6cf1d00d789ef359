// Pools over the spatial dimensions of x [N, C, ...]. pads: all begins, then all ends. ceil_mode:
// the number of windows is rounded up.
class Repro_PoolOp<string mnemonic, dag more = (ins)>
    : Repro_InferOp<mnemonic, !con((ins Repro_F32:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                                    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                                    I64Attr:$ceil_mode),
                                    more)>;
def Repro_MaxPoolOp : Repro_PoolOp<"max_pool">;
def Repro_MaxPoolIndicesOp : Repro_PoolOp<"max_pool_indices", (ins I64Attr:$column_major)>;
def Repro_AveragePoolOp : Repro_PoolOp<"average_pool", (ins I64Attr:$count_include_pad)>;
def Repro_LpPoolOp : Repro_PoolOp<"lp_pool", (ins I64Attr:$p)>;
