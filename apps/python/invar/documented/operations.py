"""An example of each function of invar.ops and invar.bitexact: the call, and below it its result.
It is long because the functions are many; they stand in the order of their names. Operands are
those of OPERANDS."""

OPERANDS = {
    "x": "np.float32([-1.5, 0.5, 2.0])",
    "h": "np.float32([-0.5, 0.5])",
    "m": "np.float32([[1.0, 2.0], [3.0, 4.0]])",
    "b": "np.float32([[[1.0, 2.0], [3.0, 4.0]]])",
    "row": "np.float32([[[1.0, 2.0, 3.0, 4.0]]])",
    "image": "np.float32([[[[1.0, 2.0], [3.0, 4.0]]]])",
    "volume": "np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 2, 2)",
    "n": "np.array([1, 2])",
    "w": "np.float32([1.0, 1.0])",
}

EXAMPLES = """
ops.abs(x).tolist()
    [1.5, 0.5, 2.0]
ops.acos(h).tolist()
    [2.094395160675049, 1.0471975803375244]
ops.acosh(np.float32([1.0, 2.0])).tolist()
    [0.0, 1.316957950592041]
ops.adaptive_avg_pool1d(row, 2).tolist()
    [[[1.5, 3.5]]]
ops.adaptive_avg_pool2d(image, 1).tolist()
    [[[[2.5]]]]
ops.adaptive_avg_pool3d(volume, 1).tolist()
    [[[[[4.5]]]]]
ops.adaptive_max_pool1d(row, 2).tolist()
    [[[2.0, 4.0]]]
ops.adaptive_max_pool2d(image, 1).tolist()
    [[[[4.0]]]]
ops.adaptive_max_pool3d(volume, 1).tolist()
    [[[[[8.0]]]]]
ops.add(x, 2).tolist()
    [0.5, 2.5, 4.0]
ops.addcdiv(x, x, np.float32([2.0, 2.0, 4.0]), value=2).tolist()
    [-3.0, 1.0, 3.0]
ops.addcmul(x, x, x, value=2).tolist()
    [3.0, 1.0, 10.0]
ops.addmm(m, m, m).tolist()
    [[8.0, 12.0], [18.0, 26.0]]
ops.addmv(np.float32([1.0, 1.0]), m, np.float32([1.0, 2.0])).tolist()
    [6.0, 12.0]
ops.affine_grid(np.float32([[[1, 0, 0], [0, 1, 0]]]), (1, 1, 2, 2)).tolist()
    [[[[-0.5, -0.5], [0.5, -0.5]], [[-0.5, 0.5], [0.5, 0.5]]]]
ops.all(np.array([True, False])).tolist()
    False
ops.alpha_dropout(x, 0.5, seed=1).tolist()
    [-1.5, 0.5, 2.0]
ops.amax(m, 1).tolist()
    [2.0, 4.0]
ops.amin(m, 1).tolist()
    [1.0, 3.0]
ops.any(np.array([True, False])).tolist()
    True
ops.arange(3, dtype=np.float32).tolist()
    [0.0, 1.0, 2.0]
ops.argmax(x).tolist()
    2
ops.argmin(x).tolist()
    0
ops.argsort(np.float32([2.0, 1.0])).tolist()
    [1, 0]
ops.asin(h).tolist()
    [-0.5235987901687622, 0.5235987901687622]
ops.asinh(h).tolist()
    [-0.4812118113040924, 0.4812118113040924]
ops.atan(h).tolist()
    [-0.46364760398864746, 0.46364760398864746]
ops.atan2(h, np.float32([1.0, -1.0])).tolist()
    [-0.46364760398864746, 2.677945137023926]
ops.atanh(h).tolist()
    [-0.5493061542510986, 0.5493061542510986]
ops.avg_pool1d(row, 2).tolist()
    [[[1.5, 3.5]]]
ops.avg_pool2d(image, 2).tolist()
    [[[[2.5]]]]
ops.avg_pool3d(volume, 2).tolist()
    [[[[[4.5]]]]]
ops.baddbmm(b, b, b).tolist()
    [[[8.0, 12.0], [18.0, 26.0]]]
ops.batch_norm(m, np.float32([2.0, 3.0]), np.float32([1.0, 1.0])).tolist()
    [[-0.9999949932098389, -0.9999949932098389], [0.9999949932098389, 0.9999949932098389]]
ops.bilinear(m, m, np.float32([[[1.0, 0.0], [0.0, 1.0]]])).tolist()
    [[5.0], [25.0]]
ops.binary_cross_entropy(np.float32([0.25, 0.5]), np.float32([0.0, 1.0])).tolist()
    0.4904146194458008
ops.binary_cross_entropy_with_logits(x, np.float32([0.0, 1.0, 1.0])).tolist()
    0.2674727737903595
ops.bitwise_and(n, 3).tolist()
    [1, 2]
ops.bitwise_not(n).tolist()
    [-2, -3]
ops.bitwise_or(n, 3).tolist()
    [3, 3]
ops.bitwise_xor(n, 3).tolist()
    [2, 1]
ops.bmm(b, b).tolist()
    [[[7.0, 10.0], [15.0, 22.0]]]
ops.broadcast_to(np.float32([1.0, 2.0]), (2, 2)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
ops.cat([x, x]).tolist()
    [-1.5, 0.5, 2.0, -1.5, 0.5, 2.0]
ops.ceil(x).tolist()
    [-1.0, 1.0, 2.0]
ops.celu(x).tolist()
    [-0.7768698334693909, 0.5, 2.0]
[y.tolist() for y in ops.chunk(x, 2)]
    [[-1.5, 0.5], [2.0]]
ops.clamp(x, -1, 1).tolist()
    [-1.0, 0.5, 1.0]
ops.conv1d(row, np.float32([[[1.0, 1.0]]])).tolist()
    [[[3.0, 5.0, 7.0]]]
ops.conv2d(image, np.float32([[[[1.0, 1.0]]]])).tolist()
    [[[[3.0], [7.0]]]]
ops.conv3d(volume, np.float32([[[[[1.0, 1.0]]]]])).tolist()
    [[[[[3.0], [7.0]], [[11.0], [15.0]]]]]
ops.conv_transpose1d(row, np.float32([[[1.0, 1.0]]])).tolist()
    [[[1.0, 3.0, 5.0, 7.0, 4.0]]]
ops.conv_transpose2d(image, np.float32([[[[1.0, 1.0]]]])).tolist()
    [[[[1.0, 3.0, 2.0], [3.0, 7.0, 4.0]]]]
ops.conv_transpose3d(volume, np.float32([[[[[1.0, 1.0]]]]])).tolist()
    [[[[[1.0, 3.0, 2.0], [3.0, 7.0, 4.0]], [[5.0, 11.0, 6.0], [7.0, 15.0, 8.0]]]]]
ops.cos(h).tolist()
    [0.8775825500488281, 0.8775825500488281]
ops.cosh(h).tolist()
    [1.1276259422302246, 1.1276259422302246]
ops.cosine_embedding_loss(m, m, np.float32([1.0, -1.0])).tolist()
    0.5
ops.cosine_similarity(m, m).tolist()
    [0.9999999403953552, 1.0]
ops.count_nonzero(n).tolist()
    2
ops.cross_entropy(m, np.array([0, 1])).tolist()
    0.8132616281509399
ops.ctc_loss(np.float32([[[-1.0, -0.5]]]), np.array([[1]]), np.array([1]), np.array([1])).tolist()
    0.5
ops.cumprod(x, 0).tolist()
    [-1.5, -0.75, -1.5]
ops.cumsum(x, 0).tolist()
    [-1.5, -1.0, 1.0]
ops.dist(x, -x).tolist()
    5.099019527435303
ops.div(x, 2).tolist()
    [-0.75, 0.25, 1.0]
ops.dot(x, x).tolist()
    6.5
ops.dropout(x, 0.5, seed=1).tolist()
    [-3.0, 0.0, 4.0]
ops.dropout1d(row, 0.5, seed=1).tolist()
    [[[2.0, 4.0, 6.0, 8.0]]]
ops.dropout2d(image, 0.5, seed=1).tolist()
    [[[[2.0, 4.0], [6.0, 8.0]]]]
ops.dropout3d(volume, 0.5, seed=1).tolist()
    [[[[[2.0, 4.0], [6.0, 8.0]], [[10.0, 12.0], [14.0, 16.0]]]]]
ops.einsum("ij,jk->ik", m, m).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
ops.elu(x).tolist()
    [-0.7768698334693909, 0.5, 2.0]
ops.embedding(np.array([1, 0]), m).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
ops.embedding_bag(np.array([[0, 1]]), m).tolist()
    [[2.0, 3.0]]
ops.eq(x, 2).tolist()
    [False, False, True]
ops.equal(x, x)
    True
ops.erf(h).tolist()
    [-0.5204998850822449, 0.5204998850822449]
ops.erfc(h).tolist()
    [1.5204998254776, 0.4795001149177551]
ops.exp(h).tolist()
    [0.6065306663513184, 1.6487212181091309]
ops.exp2(x).tolist()
    [0.3535533845424652, 1.4142135381698608, 4.0]
ops.expm1(h).tolist()
    [-0.39346933364868164, 0.6487212777137756]
ops.eye(2, dtype=np.float32).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
ops.feature_alpha_dropout(row, 0.5, seed=1).tolist()
    [[[1.0, 2.0, 3.0, 4.0]]]
ops.flatten(m).tolist()
    [1.0, 2.0, 3.0, 4.0]
ops.flip(x, [0]).tolist()
    [2.0, 0.5, -1.5]
ops.floor(x).tolist()
    [-2.0, 0.0, 2.0]
ops.floor_divide(x, 2).tolist()
    [-1.0, 0.0, 1.0]
ops.fmod(x, 2).tolist()
    [-1.5, 0.5, 0.0]
ops.fold(np.float32([[[1.0, 2.0]]]), (1, 2), (1, 1)).tolist()
    [[[[1.0, 2.0]]]]
ops.frac(x).tolist()
    [-0.5, 0.5, 0.0]
ops.full((2,), 7.0, dtype=np.float32).tolist()
    [7.0, 7.0]
ops.full_like(x, 7).tolist()
    [7.0, 7.0, 7.0]
ops.gather(m, 1, np.array([[0], [1]])).tolist()
    [[1.0], [4.0]]
ops.gaussian_nll_loss(x, x, np.float32([1.0, 1.0, 1.0])).tolist()
    0.0
ops.ge(x, 2).tolist()
    [False, False, True]
ops.gelu(x).tolist()
    [-0.10021080076694489, 0.3457312285900116, 1.9544997215270996]
ops.glu(np.float32([1.0, 0.0])).tolist()
    [0.5]
ops.grid_sample(image, np.float32([[[[0.0, 0.0]]]]), align_corners=False).tolist()
    [[[[2.5]]]]
ops.group_norm(row, 1).tolist()
    [[[-1.3416354656219482, -0.4472118318080902, 0.4472118318080902, 1.3416354656219482]]]
ops.grouped_matmul(m, np.array([0, 0]), b).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
ops.gt(x, 0).tolist()
    [False, True, True]
ops.hardshrink(x).tolist()
    [-1.5, 0.0, 2.0]
ops.hardsigmoid(x).tolist()
    [0.25, 0.5833333134651184, 0.8333333730697632]
ops.hardswish(x).tolist()
    [-0.375, 0.2916666567325592, 1.6666667461395264]
ops.hardtanh(x).tolist()
    [-1.0, 0.5, 1.0]
ops.hinge_embedding_loss(x, np.float32([1.0, -1.0, 1.0])).tolist()
    0.3333333432674408
ops.huber_loss(x, -x).tolist()
    2.1666667461395264
ops.index_add(m, 0, np.array([1]), np.float32([[10.0, 10.0]])).tolist()
    [[1.0, 2.0], [13.0, 14.0]]
ops.index_select(m, 0, np.array([1])).tolist()
    [[3.0, 4.0]]
ops.instance_norm(row).tolist()
    [[[-1.3416354656219482, -0.4472118318080902, 0.4472118318080902, 1.3416354656219482]]]
ops.interpolate(row, scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]]]
ops.isfinite(np.float32([1.0, np.inf])).tolist()
    [True, False]
ops.isinf(np.float32([1.0, np.inf])).tolist()
    [False, True]
ops.isnan(np.float32([1.0, np.nan])).tolist()
    [False, True]
ops.kl_div(np.float32([-1.0, -0.5]), np.float32([0.5, 0.5]), reduction="sum").tolist()
    0.05685281753540039
ops.l1_loss(x, -x).tolist()
    2.6666667461395264
ops.layer_norm(m, (2,)).tolist()
    [[-0.9999799728393555, 0.9999799728393555], [-0.9999799728393555, 0.9999799728393555]]
ops.le(x, 0.5).tolist()
    [True, True, False]
ops.leaky_relu(x).tolist()
    [-0.014999999664723873, 0.5, 2.0]
ops.lerp(x, -x, 0.5).tolist()
    [0.0, 0.0, 0.0]
ops.linear(m, m).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
ops.linspace(0, 1, 3, dtype=np.float32).tolist()
    [0.0, 0.5, 1.0]
ops.local_response_norm(row, 2).tolist()
    [[[0.999962568283081, 1.9997000694274902, 2.998987913131714, 3.9976015090942383]]]
ops.log(np.float32([1.0, 2.0])).tolist()
    [0.0, 0.6931471824645996]
ops.log10(np.float32([1.0, 100.0])).tolist()
    [0.0, 2.0]
ops.log1p(h).tolist()
    [-0.6931471824645996, 0.40546509623527527]
ops.log2(np.float32([1.0, 8.0])).tolist()
    [0.0, 3.0]
ops.log_softmax(x, 0).tolist()
    [-3.725802183151245, -1.7258020639419556, -0.22580209374427795]
ops.logaddexp(x, x).tolist()
    [-0.8068528175354004, 1.1931471824645996, 2.6931471824645996]
ops.logical_and(n, n).tolist()
    [True, True]
ops.logical_not(n).tolist()
    [False, False]
ops.logical_or(n, n).tolist()
    [True, True]
ops.logical_xor(n, n).tolist()
    [False, False]
ops.logit(np.float32([0.25, 0.5])).tolist()
    [-1.0986123085021973, 0.0]
ops.logsigmoid(x).tolist()
    [-1.7014132738113403, -0.4740769863128662, -0.12692801654338837]
ops.logsumexp(x, 0).tolist()
    2.225802183151245
ops.lp_pool1d(row, 2, 2).tolist()
    [[[2.2360680103302, 5.0]]]
ops.lp_pool2d(image, 2, 2).tolist()
    [[[[5.4772257804870605]]]]
ops.lp_pool3d(volume, 2, 2).tolist()
    [[[[[14.282856941223145]]]]]
ops.lt(x, 0).tolist()
    [True, False, False]
ops.margin_ranking_loss(x, -x, np.float32([1.0, 1.0, 1.0])).tolist()
    1.0
ops.masked_fill(x, x < 0, 0.0).tolist()
    [0.0, 0.5, 2.0]
ops.matmul(m, m).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
ops.matmul_integer(np.int8([[1, 2]]), np.int8([[3], [4]])).tolist()
    [[11]]
ops.matmul_nbits(m, np.int8([[1, 0], [0, 1]]), np.float32([0.5, 0.5])).tolist()
    [[0.5, 1.0], [1.5, 2.0]]
ops.max(x).tolist()
    2.0
ops.max_pool1d(row, 2).tolist()
    [[[2.0, 4.0]]]
ops.max_pool2d(image, 2).tolist()
    [[[[4.0]]]]
ops.max_pool3d(volume, 2).tolist()
    [[[[[8.0]]]]]
ops.max_unpool1d(np.float32([[[5.0]]]), np.array([[[1]]]), 2).tolist()
    [[[0.0, 5.0]]]
ops.max_unpool2d(np.float32([[[[5.0]]]]), np.array([[[[1]]]]), 2).tolist()
    [[[[0.0, 5.0], [0.0, 0.0]]]]
ops.max_unpool3d(np.float32([[[[[5.0]]]]]), np.array([[[[[1]]]]]), 2).tolist()
    [[[[[0.0, 5.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]]]
ops.maximum(x, -x).tolist()
    [1.5, 0.5, 2.0]
ops.mean(x).tolist()
    0.3333333432674408
[y.tolist() for y in ops.meshgrid(np.array([0, 1]), np.array([2]))]
    [[[0], [1]], [[2], [2]]]
ops.min(x).tolist()
    -1.5
ops.minimum(x, -x).tolist()
    [-1.5, -0.5, -2.0]
ops.mish(x).tolist()
    [-0.2980997562408447, 0.37524521350860596, 1.9439589977264404]
ops.mm(m, m).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
ops.movedim(row, 0, 2).tolist()
    [[[1.0], [2.0], [3.0], [4.0]]]
ops.mse_loss(x, -x).tolist()
    8.666666984558105
ops.mul(x, x).tolist()
    [2.25, 0.25, 4.0]
ops.multi_margin_loss(m, np.array([0, 1])).tolist()
    0.5
ops.multilabel_margin_loss(m, np.array([[0, -1], [1, -1]])).tolist()
    0.5
ops.multilabel_soft_margin_loss(m, np.float32([[1.0, 0.0], [0.0, 1.0]])).tolist()
    1.3767317533493042
ops.mv(m, np.float32([1.0, 2.0])).tolist()
    [5.0, 11.0]
ops.nan_to_num(np.float32([1.0, np.nan])).tolist()
    [1.0, 0.0]
ops.narrow(x, 0, 1, 2).tolist()
    [0.5, 2.0]
ops.ne(x, 2).tolist()
    [True, True, False]
ops.neg(x).tolist()
    [1.5, -0.5, -2.0]
ops.nll_loss(-m, np.array([0, 1])).tolist()
    2.5
ops.norm(x).tolist()
    2.5495097637176514
ops.normalize(m).tolist()
    [[0.4472135901451111, 0.8944271802902222], [0.6000000238418579, 0.800000011920929]]
ops.one_hot(np.array([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
ops.ones(2, dtype=np.float32).tolist()
    [1.0, 1.0]
ops.ones_like(x).tolist()
    [1.0, 1.0, 1.0]
ops.outer(x, x).tolist()
    [[2.25, -0.75, -3.0], [-0.75, 0.25, 1.0], [-3.0, 1.0, 4.0]]
ops.pad(x, (1, 0)).tolist()
    [0.0, -1.5, 0.5, 2.0]
ops.pairwise_distance(m, -m).tolist()
    [4.472137451171875, 10.000001907348633]
ops.permute(m, (1, 0)).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
ops.pixel_shuffle(np.float32([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]), 2).tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
ops.pixel_unshuffle(image, 2).tolist()
    [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
ops.poisson_nll_loss(x, np.float32([1.0, 1.0, 1.0])).tolist()
    2.753636121749878
ops.pow(x, 2).tolist()
    [2.25, 0.25, 4.0]
ops.prelu(x, np.float32([0.25])).tolist()
    [-0.375, 0.5, 2.0]
ops.prod(x).tolist()
    -1.5
ops.rand(2, seed=1).tolist()
    [0.8667362928390503, 0.09140676259994507]
ops.randn(2, seed=1).tolist()
    [1.9986127614974976, -0.43607455492019653]
ops.reciprocal(x).tolist()
    [-0.6666666865348816, 2.0, 0.5]
ops.relu(x).tolist()
    [0.0, 0.5, 2.0]
ops.relu6(x).tolist()
    [0.0, 0.5, 2.0]
ops.remainder(x, 2).tolist()
    [0.5, 0.5, 0.0]
ops.reshape(m, (4,)).tolist()
    [1.0, 2.0, 3.0, 4.0]
ops.rms_norm(m, (2,)).tolist()
    [[0.6324555277824402, 1.2649110555648804], [0.8485281467437744, 1.1313709020614624]]
ops.roll(x, 1).tolist()
    [2.0, -1.5, 0.5]
ops.rope(np.float32([[[[1.0, 2.0]]]]), np.float32([[0.5]]), np.float32([[0.5]])).tolist()
    [[[[-0.5, 1.5]]]]
ops.round(x).tolist()
    [-2.0, 0.0, 2.0]
ops.rrelu(x).tolist()
    [-0.34375, 0.5, 2.0]
ops.rsqrt(np.float32([4.0, 2.0])).tolist()
    [0.5, 0.7071067690849304]
ops.scaled_dot_product_attention(b, b, b).tolist()
    [[[2.971667766571045, 3.971667766571045], [2.9998998641967773, 3.9998998641967773]]]
ops.scatter(m, 1, np.array([[0], [1]]), np.float32([[9.0], [9.0]])).tolist()
    [[9.0, 2.0], [3.0, 9.0]]
ops.scatter_add(m, 1, np.array([[0], [1]]), np.float32([[9.0], [9.0]])).tolist()
    [[10.0, 2.0], [3.0, 13.0]]
ops.scatter_reduce(m, 1, np.array([[0], [1]]), np.float32([[9.0], [9.0]]), "amax").tolist()
    [[9.0, 2.0], [3.0, 9.0]]
ops.select(m, 0, 1).tolist()
    [3.0, 4.0]
ops.selu(x).tolist()
    [-1.3658143281936646, 0.5253505110740662, 2.1014020442962646]
ops.sigmoid(x).tolist()
    [0.18242552876472473, 0.622459352016449, 0.8807970285415649]
ops.sign(x).tolist()
    [-1.0, 1.0, 1.0]
ops.silu(x).tolist()
    [-0.2736383080482483, 0.3112296760082245, 1.7615940570831299]
ops.sin(h).tolist()
    [-0.4794255495071411, 0.4794255495071411]
ops.sinh(h).tolist()
    [-0.5210952758789062, 0.5210952758789062]
ops.smooth_l1_loss(x, -x).tolist()
    2.1666667461395264
ops.soft_margin_loss(x, np.float32([1.0, -1.0, 1.0])).tolist()
    0.9341394305229187
ops.softmax(x, 0).tolist()
    [0.024093767628073692, 0.17803020775318146, 0.7978760004043579]
ops.softmin(x, 0).tolist()
    [0.8579767942428589, 0.1161145269870758, 0.025908654555678368]
ops.softplus(x).tolist()
    [0.20141328871250153, 0.9740769863128662, 2.1269280910491943]
ops.softshrink(x).tolist()
    [-1.0, 0.0, 1.5]
ops.softsign(x).tolist()
    [-0.6000000238418579, 0.3333333432674408, 0.6666666865348816]
[y.tolist() for y in ops.sort(x, descending=True)]
    [[2.0, 0.5, -1.5], [2, 1, 0]]
[y.tolist() for y in ops.split(x, 2)]
    [[-1.5, 0.5], [2.0]]
ops.sqrt(np.float32([4.0, 2.0])).tolist()
    [2.0, 1.4142135381698608]
ops.square(x).tolist()
    [2.25, 0.25, 4.0]
ops.squeeze(row).tolist()
    [1.0, 2.0, 3.0, 4.0]
ops.stack([x, x]).tolist()
    [[-1.5, 0.5, 2.0], [-1.5, 0.5, 2.0]]
ops.std(x).tolist()
    1.7559422254562378
ops.sub(x, 2).tolist()
    [-3.5, -1.5, 0.0]
ops.sum(m, 1).tolist()
    [3.0, 7.0]
ops.swapaxes(m, 0, 1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
ops.take_along_dim(m, np.array([[1], [0]]), 1).tolist()
    [[2.0], [3.0]]
ops.tan(h).tolist()
    [-0.5463024973869324, 0.5463024973869324]
ops.tanh(h).tolist()
    [-0.46211716532707214, 0.46211716532707214]
ops.tanhshrink(x).tolist()
    [-0.5948517322540283, 0.037882834672927856, 1.0359723567962646]
ops.tensordot(m, m, 1).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
ops.threshold(x, 0.0, 9.0).tolist()
    [9.0, 0.5, 2.0]
ops.tile(x, 2).tolist()
    [-1.5, 0.5, 2.0, -1.5, 0.5, 2.0]
ops.to(x, np.int64).tolist()
    [-1, 0, 2]
[y.tolist() for y in ops.topk(x, 2)]
    [[2.0, 0.5], [2, 1]]
ops.transpose(m, 0, 1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
ops.tril(m).tolist()
    [[1.0, 0.0], [3.0, 4.0]]
ops.triplet_margin_loss(m, m, -m).tolist()
    0.0
ops.triplet_margin_with_distance_loss(m, m, -m).tolist()
    0.0
ops.triu(m).tolist()
    [[1.0, 2.0], [0.0, 4.0]]
ops.true_divide(x, 2).tolist()
    [-0.75, 0.25, 1.0]
ops.trunc(x).tolist()
    [-1.0, 0.0, 2.0]
[y.tolist() for y in ops.unbind(m)]
    [[1.0, 2.0], [3.0, 4.0]]
ops.unflatten(x, 0, (3, 1)).tolist()
    [[-1.5], [0.5], [2.0]]
ops.unfold(image, (1, 2)).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]
ops.unsqueeze(x, 0).tolist()
    [[-1.5, 0.5, 2.0]]
ops.var(x).tolist()
    3.0833332538604736
[y.tolist() for y in ops.var_mean(x)]
    [3.0833332538604736, 0.3333333432674408]
ops.vector_norm(x).tolist()
    2.5495097637176514
ops.where(x > 0, x, -x).tolist()
    [1.5, 0.5, 2.0]
ops.zeros(2, dtype=np.float32).tolist()
    [0.0, 0.0]
ops.zeros_like(x).tolist()
    [0.0, 0.0, 0.0]
"""

OF_BITEXACT = """
bitexact.rms_norm(m, w).tolist()
    [[0.6324554085731506, 1.2649108171463013], [0.8485280871391296, 1.1313707828521729]]
bitexact.layer_norm(m, w, w).tolist()
    [[2.0265579223632812e-06, 1.9999979734420776], [2.0265579223632812e-06, 1.9999979734420776]]
bitexact.matmul(m, m).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
bitexact.sum(m).tolist()
    [[3.0], [7.0]]
bitexact.mean(m).tolist()
    [[1.5], [3.5]]
bitexact.max(m).tolist()
    [[2.0], [4.0]]
bitexact.min(m).tolist()
    [[1.0], [3.0]]
bitexact.var(m).tolist()
    [[0.25], [0.25]]
bitexact.sigmoid(m).tolist()
    [[0.7310585975646973, 0.8807970285415649], [0.9525741338729858, 0.9820137619972229]]
"""
