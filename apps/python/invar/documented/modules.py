"""An example of each module of invar.nn: a call, and below it the shape of its result."""

EXAMPLES = """
nn.AdaptiveAvgPool1d(2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 2])
nn.AdaptiveAvgPool2d(2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 2, 2])
nn.AdaptiveAvgPool3d(2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 2, 2, 2])
nn.AdaptiveMaxPool1d(2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 2])
nn.AdaptiveMaxPool2d(2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 2, 2])
nn.AdaptiveMaxPool3d(2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 2, 2, 2])
nn.AlphaDropout(0.5)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.AvgPool1d(2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 4])
nn.AvgPool2d(2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
nn.AvgPool3d(2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 4, 4, 4])
nn.BCELoss()(torch.full((3,), 0.5), torch.ones(3)).shape
    torch.Size([])
nn.BCEWithLogitsLoss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.BatchNorm1d(3)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.BatchNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
nn.BatchNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
nn.Bilinear(2, 3, 4)(torch.ones(5, 2), torch.ones(5, 3)).shape
    torch.Size([5, 4])
nn.CELU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.CTCLoss()(torch.ones(4, 1, 3), torch.tensor([[1, 2]]), *map(torch.tensor, ([4], [2]))).shape
    torch.Size([])
nn.CircularPad1d(1)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 10])
nn.CircularPad2d(1)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 10, 10])
nn.CircularPad3d(1)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 10, 10, 10])
nn.Conv1d(3, 4, 2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 4, 7])
nn.Conv2d(3, 4, 2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 4, 7, 7])
nn.Conv3d(3, 4, 2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 4, 7, 7, 7])
nn.ConvTranspose1d(3, 4, 2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 4, 9])
nn.ConvTranspose2d(3, 4, 2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 4, 9, 9])
nn.ConvTranspose3d(3, 4, 2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 4, 9, 9, 9])
nn.CosineEmbeddingLoss()(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2)).shape
    torch.Size([])
nn.CosineSimilarity()(torch.ones(2, 3), torch.ones(2, 3)).shape
    torch.Size([2])
nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
nn.Dropout(0.5)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Dropout1d(0.5)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 8])
nn.Dropout2d(0.5)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 8, 8])
nn.Dropout3d(0.5)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 8, 8, 8])
nn.ELU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Embedding(10, 4)(torch.tensor([1, 2])).shape
    torch.Size([2, 4])
nn.EmbeddingBag(10, 4)(torch.tensor([[1, 2]])).shape
    torch.Size([1, 4])
nn.FeatureAlphaDropout(0.5)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 8])
nn.Fold((2, 2), (1, 1))(torch.ones(1, 3, 4)).shape
    torch.Size([1, 3, 2, 2])
nn.GELU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.GLU()(torch.ones(2, 4)).shape
    torch.Size([2, 2])
nn.GRU(3, 4)(torch.ones(5, 2, 3))[0].shape
    torch.Size([5, 2, 4])
nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
nn.GaussianNLLLoss()(torch.ones(3), torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.GroupNorm(1, 3)(torch.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
nn.Hardshrink()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Hardsigmoid()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Hardswish()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Hardtanh()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.HingeEmbeddingLoss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.HuberLoss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.InstanceNorm1d(3)(torch.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
nn.InstanceNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
nn.KLDivLoss(reduction="sum")(torch.zeros(3), torch.ones(3)).shape
    torch.Size([])
nn.L1Loss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.LPPool1d(2, 2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 4])
nn.LPPool2d(2, 2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
nn.LPPool3d(2, 2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 4, 4, 4])
nn.LSTM(3, 4)(torch.ones(5, 2, 3))[0].shape
    torch.Size([5, 2, 4])
nn.LSTMCell(3, 4)(torch.ones(2, 3))[0].shape
    torch.Size([2, 4])
nn.LayerNorm(3)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.LeakyReLU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Linear(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
nn.LocalResponseNorm(2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 8])
nn.LogSigmoid()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.LogSoftmax(-1)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.MSELoss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.MarginRankingLoss()(torch.ones(3), torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.MaxPool1d(2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 4])
nn.MaxPool2d(2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
nn.MaxPool3d(2)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 4, 4, 4])
nn.MaxUnpool1d(2)(torch.ones(1, 1, 1), torch.tensor([[[1]]])).shape
    torch.Size([1, 1, 2])
nn.MaxUnpool2d(2)(torch.ones(1, 1, 1, 1), torch.tensor([[[[1]]]])).shape
    torch.Size([1, 1, 2, 2])
nn.MaxUnpool3d(2)(torch.ones(1, 1, 1, 1, 1), torch.tensor([[[[[1]]]]])).shape
    torch.Size([1, 1, 2, 2, 2])
nn.Mish()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.MultiLabelMarginLoss()(torch.ones(2, 3), torch.tensor([[0, -1, -1], [2, -1, -1]])).shape
    torch.Size([])
nn.MultiLabelSoftMarginLoss()(torch.ones(2, 3), torch.ones(2, 3)).shape
    torch.Size([])
nn.MultiMarginLoss()(torch.ones(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
nn.MultiheadAttention(4, 2)(*[torch.ones(5, 2, 4)] * 3)[0].shape
    torch.Size([5, 2, 4])
nn.NLLLoss()(torch.ones(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
nn.PReLU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.PairwiseDistance()(torch.ones(2, 3), torch.ones(2, 3)).shape
    torch.Size([2])
nn.PoissonNLLLoss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.RMSNorm(3)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.RNN(3, 4)(torch.ones(5, 2, 3))[0].shape
    torch.Size([5, 2, 4])
nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
nn.RReLU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.ReLU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.ReLU6()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.ReflectionPad1d(1)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 10])
nn.ReflectionPad2d(1)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 10, 10])
nn.ReflectionPad3d(1)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 10, 10, 10])
nn.ReplicationPad1d(1)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 10])
nn.ReplicationPad2d(1)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 10, 10])
nn.ReplicationPad3d(1)(torch.ones(1, 3, 8, 8, 8)).shape
    torch.Size([1, 3, 10, 10, 10])
nn.SELU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.SiLU()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Sigmoid()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.SmoothL1Loss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.SoftMarginLoss()(torch.ones(3), torch.ones(3)).shape
    torch.Size([])
nn.Softmax(-1)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Softmax2d()(torch.ones(1, 3, 2, 2)).shape
    torch.Size([1, 3, 2, 2])
nn.Softmin(-1)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Softplus()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Softshrink()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Softsign()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Tanh()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Tanhshrink()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Threshold(0.5, 0.0)(torch.ones(2, 3)).shape
    torch.Size([2, 3])
nn.Transformer(4, 2, 1, 1, 8)(torch.ones(5, 2, 4), torch.ones(3, 2, 4)).shape
    torch.Size([3, 2, 4])
nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1)(*torch.ones(2, 5, 2, 4)).shape
    torch.Size([5, 2, 4])
nn.TransformerDecoderLayer(4, 2, 8)(torch.ones(3, 2, 4), torch.ones(5, 2, 4)).shape
    torch.Size([3, 2, 4])
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1)(torch.ones(5, 2, 4)).shape
    torch.Size([5, 2, 4])
nn.TransformerEncoderLayer(4, 2, 8)(torch.ones(5, 2, 4)).shape
    torch.Size([5, 2, 4])
nn.TripletMarginLoss()(torch.ones(2, 3), torch.ones(2, 3), torch.zeros(2, 3)).shape
    torch.Size([])
nn.TripletMarginWithDistanceLoss()(torch.ones(2, 3), torch.ones(2, 3), torch.zeros(2, 3)).shape
    torch.Size([])
nn.Unfold(2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
nn.Upsample(scale_factor=2)(torch.ones(1, 3, 4)).shape
    torch.Size([1, 3, 8])
nn.UpsamplingBilinear2d(scale_factor=2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 8, 8])
nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 8, 8])
"""
