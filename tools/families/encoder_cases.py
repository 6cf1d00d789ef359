"""The small checkpoints that stand for the families of encoders: config.json as files of the field
have it, and files of sentence-transformers beside it. Every setting that a family covers is in at
least one of them."""

SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 160,
    "pad_token_id": 0,
}
TRANSFORMER = "sentence_transformers.models.Transformer"
POOLING = "sentence_transformers.models.Pooling"
NORMALIZE = "sentence_transformers.models.Normalize"


def case(model_type, architecture, files=None, **settings):
    config = {"model_type": model_type, "architectures": [architecture], **SIZES, **settings}
    return {k: v for k, v in config.items() if v is not ...}, files or {}


def sentence(*modes, normalize=True, older=True):
    """Files as sentence-transformers writes them: a switch for each mode, or their names."""
    modules = [("", TRANSFORMER), ("1_Pooling", POOLING), ("2_Normalize", NORMALIZE)]
    keys = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    keys |= {"mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "lasttoken": "lasttoken"}
    keys |= {"weightedmean": "weightedmean_tokens"}
    switches = {f"pooling_mode_{key}": mode in modes for mode, key in keys.items()}
    named = {"pooling_mode": modes[0] if len(modes) == 1 else list(modes)}
    return {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": kind}
            for i, (path, kind) in enumerate(modules[: 3 if normalize else 2])
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 32} | (switches if older else named),
    }


def roberta(model_type, architecture, files=None, **s):
    s = {"pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **s}
    return case(model_type, architecture, files, **s)


def distilbert(architecture, files=None, **s):
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    sizes = {"dim": 32, "hidden_dim": 44, "n_layers": 2, "n_heads": 4, "activation": "gelu"}
    return case("distilbert", architecture, files, **dict.fromkeys(names, ...), **sizes, **s)


def modernbert(architecture, files=None, **s):
    s = {"num_hidden_layers": 4, "local_attention": 16, "norm_eps": 1e-5, **s}
    return case("modernbert", architecture, files, hidden_activation="gelu", **s)


ONE_LABEL = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
IDENTITY = {"activation_fn": "torch.nn.modules.linear.Identity"}
CASES = {
    "bert": case("bert", "BertModel", sentence("mean")),
    "bert-cls": case("bert", "BertForMaskedLM", sentence("cls", older=False)),
    "bert-relu": case("bert", "BertModel", sentence("max", normalize=False), hidden_act="relu"),
    "bert-all-modes": case(
        "bert",
        "BertModel",
        sentence("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"),
        hidden_act="gelu_new",
    ),
    "bert-plain": case("bert", "BertModel"),
    "bert-reranker": case("bert", "BertForSequenceClassification", **ONE_LABEL),
    "electra": case("electra", "ElectraModel", sentence("mean"), embedding_size=24),
    "electra-reranker": case(
        "electra",
        "ElectraForSequenceClassification",
        embedding_size=32,
        sentence_transformers=IDENTITY,
        **ONE_LABEL,
    ),
    "roberta": roberta("roberta", "RobertaForMaskedLM", sentence("mean")),
    "camembert": roberta("camembert", "CamembertModel", sentence("weightedmean")),
    "xlm-roberta": roberta("xlm-roberta", "XLMRobertaModel", sentence("cls")),
    "xlm-roberta-reranker": roberta(
        "xlm-roberta", "XLMRobertaForSequenceClassification", **ONE_LABEL
    ),
    "roberta-labels": roberta("roberta", "RobertaForSequenceClassification", num_labels=3),
    "distilbert": distilbert("DistilBertModel", sentence("mean_sqrt_len_tokens")),
    "distilbert-reranker": distilbert("DistilBertForSequenceClassification", **ONE_LABEL),
    "mpnet": case("mpnet", "MPNetForMaskedLM", sentence("mean"), pad_token_id=1),
    "mpnet-reranker": case("mpnet", "MPNetForSequenceClassification", pad_token_id=1, **ONE_LABEL),
    "modernbert": modernbert("ModernBertModel", sentence("cls")),
    "modernbert-biases": modernbert(
        "ModernBertModel",
        sentence("lasttoken", normalize=False),
        norm_bias=True,
        attention_bias=True,
        mlp_bias=True,
        global_attn_every_n_layers=2,
        global_rope_theta=80000.0,
        local_rope_theta=500.0,
    ),
    "modernbert-reranker": modernbert(
        "ModernBertForSequenceClassification", classifier_pooling="mean", **ONE_LABEL
    ),
}
