"""Small models of transformers and torch with random weights: the architectures that
tools/check_exported_models.py exports. Needs both."""

import logging
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from torch import nn

logging.disable(logging.WARNING)

WIDE = dict(
    hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, vocab_size=97
)
PLACES = dict(max_position_embeddings=64)


class Model:
    """A module, the inputs of one call (name -> tensor), the names of their dynamic dimensions, the
    names of its outputs."""

    def __init__(self, module, inputs, dims, outputs):
        self.module, self.inputs, self.dims, self.outputs = module.eval(), inputs, dims, outputs


class Call(nn.Module):
    """transformers' module with keyword inputs and plain tensors out."""

    def __init__(self, inner, names, outputs, **fixed):
        super().__init__()
        self.inner, self.names, self.outputs, self.fixed = inner, names, outputs, fixed

    def forward(self, *inputs):
        out = self.inner(**dict(zip(self.names, inputs)), **self.fixed)
        got = tuple(getattr(out, name) for name in self.outputs)
        return got if len(got) > 1 else got[0]


def seeded(make, *args, **kwargs):
    torch.manual_seed(0)
    module = make(*args, **kwargs)
    with torch.no_grad():  # what starts as 0 or 1 hides mistakes
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.02)
        for name, b in module.named_buffers():
            if "running" in name:
                b.add_(torch.rand_like(b) * 0.2)
    return module


def ids(batch, length, vocab=97):
    return (torch.arange(batch * length) * 37 % vocab).reshape(batch, length)


def mask(batch, length):
    return (
        torch.arange(length) < torch.tensor([[length - 2 * (i % 3)] for i in range(batch)])
    ).long()


BATCH_SEQ = {0: "batch", 1: "seq"}


def text_model(make, config, outputs=("last_hidden_state",), masked=True, **fixed):
    names = ["input_ids"] + ["attention_mask"] * masked
    module = Call(seeded(make, config), names, outputs, **fixed)
    inputs = {"input_ids": ids(3, 11)}
    if masked:
        inputs["attention_mask"] = mask(3, 11)
    return Model(module, inputs, {n: BATCH_SEQ for n in names}, list(outputs))


def causal(name, how={}, **config):
    def f():
        import transformers as t

        c = getattr(t, name + "Config")(**{**WIDE, **PLACES, **config})
        return text_model(
            lambda c: t.AutoModelForCausalLM.from_config(c, **how), c, ("logits",), use_cache=False
        )

    return f


class Step(nn.Module):
    """A step with the keys and values of those before it, given and returned as tensors."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids, mask, *past):
        import transformers as t

        cache = t.DynamicCache(ddp_cache_data=list(zip(past[::2], past[1::2])))
        out = self.inner(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (
            out.logits,
            *(x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)),
        )


def step(name, heads, **config):
    def f():
        import transformers as t

        c = getattr(t, name + "Config")(**{**WIDE, **PLACES, **config})
        inputs = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 11, dtype=torch.long)}
        dims = {"input_ids": BATCH_SEQ, "attention_mask": {0: "batch", 1: "past + seq"}}
        for place in (f"{i}.{what}" for i in range(2) for what in ("key", "value")):
            inputs["past." + place], dims["past." + place] = (
                noise(3, heads, 7, 12),
                {0: "batch", 2: "past"},
            )
        outputs = [n.replace("past", "present") for n in list(inputs)[2:]]
        return Model(
            Step(seeded(t.AutoModelForCausalLM.from_config, c)), inputs, dims, ["logits", *outputs]
        )

    return f


def encoder(name, model="Model", **config):
    def f():
        import transformers as t

        c = getattr(t, name + "Config")(**{**WIDE, **PLACES, **config})
        return text_model(getattr(t, name + model), c)

    return f


def picture(name, model="Model", outputs=("last_hidden_state",), pixels=32, **config):
    def f():
        import transformers as t

        module = seeded(getattr(t, name + model), getattr(t, name + "Config")(**config))
        x = torch.randn(3, 3, pixels, pixels, generator=torch.Generator().manual_seed(1))
        return Model(
            Call(module, ["pixel_values"], outputs),
            {"pixel_values": x},
            {"pixel_values": {0: "batch"}},
            list(outputs),
        )

    return f


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def t5_decoder():
    import transformers as t

    module = seeded(
        t.T5ForConditionalGeneration,
        t.T5Config(d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4, vocab_size=97),
    )

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, ids, encoder_hidden_states, encoder_attention_mask):
            x = self.inner.decoder(
                input_ids=ids,
                encoder_hidden_states=encoder_hidden_states,
                encoder_attention_mask=encoder_attention_mask,
                use_cache=False,
            ).last_hidden_state
            return self.inner.lm_head(x * 48**-0.5)

    return Model(
        Decoder(),
        {
            "input_ids": ids(3, 7),
            "encoder_hidden_states": noise(3, 11, 48),
            "encoder_attention_mask": mask(3, 11),
        },
        {
            "input_ids": BATCH_SEQ,
            "encoder_hidden_states": {0: "batch", 1: "source"},
            "encoder_attention_mask": {0: "batch", 1: "source"},
        },
        ["logits"],
    )


WHISPER = dict(
    d_model=48,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=80,
    decoder_ffn_dim=80,
    vocab_size=97,
    num_mel_bins=20,
    max_source_positions=30,
    max_target_positions=40,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)


def whisper_encoder():
    import transformers as t

    module = Call(
        seeded(t.WhisperModel, t.WhisperConfig(**WHISPER)).encoder,
        ["input_features"],
        ["last_hidden_state"],
    )
    return Model(
        module,
        {"input_features": noise(3, 20, 60)},
        {"input_features": {0: "batch"}},
        ["last_hidden_state"],
    )


def whisper_decoder():
    import transformers as t

    module = seeded(t.WhisperModel, t.WhisperConfig(**WHISPER)).decoder
    return Model(
        Call(
            module, ["input_ids", "encoder_hidden_states"], ["last_hidden_state"], use_cache=False
        ),
        {"input_ids": ids(3, 7), "encoder_hidden_states": noise(3, 30, 48)},
        {"input_ids": BATCH_SEQ, "encoder_hidden_states": {0: "batch"}},
        ["last_hidden_state"],
    )


def clip():
    import transformers as t

    text = dict(
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=97,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=96,
        projection_dim=24,
    )
    vision = dict(
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        projection_dim=24,
    )
    module = seeded(
        t.CLIPModel, t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    )
    names, outputs = (
        ["input_ids", "pixel_values", "attention_mask"],
        ["logits_per_image", "text_embeds", "image_embeds"],
    )
    return Model(
        Call(module, names, outputs),
        {
            "input_ids": ids(3, 11),
            "pixel_values": noise(2, 3, 32, 32),
            "attention_mask": torch.ones(3, 11, dtype=torch.long),
        },
        {
            "input_ids": {0: "texts", 1: "seq"},
            "pixel_values": {0: "images"},
            "attention_mask": {0: "texts", 1: "seq"},
        },
        outputs,
    )


class UNet(nn.Module):
    """Two levels, group norm, transposed convolution and interpolation on the way up."""

    def __init__(self):
        super().__init__()

        def block(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1),
                nn.GroupNorm(4, b),
                nn.SiLU(),
                nn.Conv2d(b, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(),
            )

        self.one, self.two, self.middle = block(3, 16), block(16, 24), block(24, 32)
        self.up, self.right, self.left = (
            nn.ConvTranspose2d(32, 24, 2, stride=2),
            block(48, 24),
            block(40, 16),
        )
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.one(x)
        b = self.two(nn.functional.max_pool2d(a, 2))
        c = self.up(self.middle(nn.functional.avg_pool2d(b, 2)))
        d = self.right(torch.cat([b, c], 1))
        e = nn.functional.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(self.left(torch.cat([a, e], 1)))


def unet():
    return Model(seeded(UNet), {"image": noise(3, 3, 24, 24)}, {"image": {0: "batch"}}, ["mask"])


class Residual(nn.Module):
    """Two convolutions, the time between them."""

    def __init__(self, a, b, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, a), nn.Conv2d(a, b, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, b), nn.Conv2d(b, b, 3, padding=1)
        self.time, self.skip = nn.Linear(time, b), nn.Conv2d(a, b, 1)

    def forward(self, x, time):
        y = self.conv1(nn.functional.silu(self.norm1(x)))
        y = y + self.time(nn.functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(nn.functional.silu(self.norm2(y)))


class CrossAttention(nn.Module):
    """Pixels attend to a text, or without one to each other."""

    def __init__(self, size, text, heads):
        super().__init__()
        self.norm, self.heads, self.out = nn.GroupNorm(8, size), heads, nn.Linear(size, size)
        self.q, self.k, self.v = (
            nn.Linear(a, size, bias=False) for a in (size, text or size, text or size)
        )

    def forward(self, x, text=None):
        batch, size, height, width = x.shape
        pixels = self.norm(x).flatten(2).transpose(1, 2)
        text = pixels if text is None else text
        q, k, v = (
            y.reshape(batch, -1, self.heads, size // self.heads).transpose(1, 2)
            for y in (self.q(pixels), self.k(text), self.v(text))
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        y = self.out(y.transpose(1, 2).reshape(batch, -1, size))
        return x + y.transpose(1, 2).reshape(batch, size, height, width)


class Denoiser(nn.Module):
    """A UNet of diffusion: time, a text, two levels."""

    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Conv2d(4, 32, 3, padding=1), nn.Conv2d(32, 4, 3, padding=1)
        self.res1, self.res2, self.res3 = (
            Residual(32, 32, 32), Residual(48, 48, 32), Residual(80, 32, 32),
        )  # fmt: skip
        self.text1, self.text2 = CrossAttention(32, 24, 4), CrossAttention(48, 24, 4)
        self.down, self.norm = nn.Conv2d(32, 48, 3, 2, 1), nn.GroupNorm(8, 32)
        self.time = nn.Linear(32, 32)

    def forward(self, sample, steps, text):
        angles = steps[:, None].to(sample.dtype) * torch.exp(
            -torch.arange(16, dtype=sample.dtype) / 2
        )
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        high = self.text1(self.res1(self.into(sample), time), text)
        low = self.text2(self.res2(self.down(high), time), text)
        low = nn.functional.interpolate(low, scale_factor=2.0, mode="nearest")
        y = self.res3(torch.cat([low, high], 1), time)
        return self.out(nn.functional.silu(self.norm(y)))


def denoiser():
    return Model(
        seeded(Denoiser),
        {"sample": noise(3, 4, 12, 12), "steps": torch.tensor([9, 500, 71]), "text": noise(3, 7, 24)},
        {"sample": {0: "batch"}, "steps": {0: "batch"}, "text": {0: "batch", 1: "words"}},
        ["noise"],
    )


class Decoder(nn.Module):
    """That of a variational autoencoder."""

    def __init__(self):
        super().__init__()
        self.into, self.res = nn.Conv2d(4, 32, 3, padding=1), Residual(32, 32, 8)
        self.middle, self.up = CrossAttention(32, 0, 1), nn.Conv2d(32, 32, 3, padding=1)
        self.norm, self.out = nn.GroupNorm(8, 32), nn.Conv2d(32, 3, 3, padding=1)
        self.time = nn.Parameter(torch.zeros(1, 8))

    def forward(self, latents):
        y = self.middle(self.res(self.into(latents), self.time))
        y = self.up(nn.functional.interpolate(y, scale_factor=2.0, mode="nearest"))
        return self.out(nn.functional.silu(self.norm(y))).clamp(-1, 1)


def vae_decoder():
    return Model(
        seeded(Decoder), {"latents": noise(3, 4, 8, 8)}, {"latents": {0: "batch"}}, ["image"]
    )


class Tower(nn.Module):
    """What Qwen2-VL sees of one picture of 4 x 8 patches."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.register_buffer("grid", torch.tensor([[1, 4, 8]]))

    def forward(self, patches):
        return self.inner(patches[0], grid_thw=self.grid).pooler_output[None]


def qwen2_vl_vision():
    import transformers as t
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel

    sizes = dict(embed_dim=32, hidden_size=48, num_heads=4, mlp_ratio=2, patch_size=4, depth=2)
    config = t.Qwen2VLConfig(vision_config=sizes).vision_config
    module = Tower(seeded(Qwen2VisionTransformerPretrainedModel, config))
    return Model(module, {"patches": noise(1, 32, 3 * 2 * 16)}, {}, ["features"])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(97, 20)
        self.lstm = nn.LSTM(20, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 5)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


def lstm():
    return Model(
        seeded(Recurrent), {"input_ids": ids(3, 11)}, {"input_ids": {0: "batch"}}, ["logits"]
    )


def bart():
    import transformers as t

    config = t.BartConfig(
        vocab_size=97,
        d_model=48,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=80,
        decoder_ffn_dim=80,
        max_position_embeddings=64,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    names = ["input_ids", "attention_mask", "decoder_input_ids"]
    module = Call(
        seeded(t.BartForConditionalGeneration, config), names, ["logits"], use_cache=False
    )
    return Model(
        module,
        dict(zip(names, (ids(3, 11), mask(3, 11), ids(3, 7)))),
        {
            "input_ids": BATCH_SEQ,
            "attention_mask": BATCH_SEQ,
            "decoder_input_ids": {0: "batch", 1: "target"},
        },
        ["logits"],
    )


def speech():
    import transformers as t

    config = t.Wav2Vec2Config(
        **{**WIDE, "vocab_size": 32},
        conv_dim=(16, 16, 16),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 3),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    module = Call(seeded(t.Wav2Vec2ForCTC, config), ["input_values"], ["logits"])
    return Model(
        module,
        {"input_values": noise(3, 640)},
        {"input_values": {0: "batch", 1: "samples"}},
        ["logits"],
    )


def detr():
    import transformers as t

    backbone = t.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 12, 16, 24],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage4"],
    )
    config = t.DetrConfig(
        use_timm_backbone=False,
        backbone=None,
        use_pretrained_backbone=False,
        backbone_config=backbone,
        d_model=48,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=80,
        decoder_ffn_dim=80,
        num_queries=6,
    )
    module = Call(
        seeded(t.DetrForObjectDetection, config), ["pixel_values"], ["logits", "pred_boxes"]
    )
    return Model(
        module,
        {"pixel_values": noise(3, 3, 64, 64)},
        {"pixel_values": {0: "batch"}},
        ["logits", "pred_boxes"],
    )


T5 = dict(d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4)
FEW = dict(num_key_value_heads=2)
MOE = dict(**FEW, num_experts_per_tok=2)
MLA = dict(
    num_key_value_heads=4,
    kv_lora_rank=16,
    q_lora_rank=24,
    qk_rope_head_dim=8,
    qk_nope_head_dim=8,
    v_head_dim=12,
    n_routed_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=32,
    first_k_dense_replace=1,
    n_group=2,
    topk_group=1,
    n_shared_experts=1,
)
BATCHED = dict(experts_implementation="batched_mm")  # the others have sizes that depend on data
MODELS = {
    "gpt2": causal("GPT2", n_embd=48, n_layer=2, n_head=4, n_positions=64),
    "llama": causal("Llama", **FEW),
    "llama-3-rope": causal(
        "Llama",
        **FEW,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "mistral": causal("Mistral", **FEW, sliding_window=6),
    "qwen2": causal("Qwen2", **FEW),
    "qwen3": causal("Qwen3", **FEW, head_dim=16),
    "qwen3-moe": causal(
        "Qwen3Moe", BATCHED, **MOE, head_dim=16, num_experts=4, moe_intermediate_size=32
    ),
    "mixtral": causal("Mixtral", BATCHED, **MOE, num_local_experts=4),
    "gemma2": causal("Gemma2", **FEW, head_dim=16, sliding_window=6, query_pre_attn_scalar=16),
    "gemma3": causal("Gemma3Text", **FEW, head_dim=16, sliding_window=6, query_pre_attn_scalar=16),
    "gpt-oss": causal("GptOss", BATCHED, **MOE, head_dim=12, num_local_experts=4, sliding_window=6),
    "deepseek-v3": causal("DeepseekV3", BATCHED, **MLA),
    "phi3": causal("Phi3", **FEW, pad_token_id=0, eos_token_id=1, bos_token_id=1),
    "smollm3": causal("SmolLM3", **FEW, pad_token_id=0),
    "gpt2-past": step("GPT2", 4, n_embd=48, n_layer=2, n_head=4, n_positions=64),
    "llama-past": step("Llama", 2, **FEW),
    "qwen3-past": step("Qwen3", 2, **FEW, head_dim=12),
    "opt": causal("OPT", ffn_dim=80, word_embed_proj_dim=48),
    "bert": encoder("Bert"),
    "roberta": encoder("Roberta", pad_token_id=0),
    "distilbert": encoder("DistilBert", dim=48, hidden_dim=80, n_layers=2, n_heads=4),
    "mpnet": encoder("MPNet"),
    "deberta": encoder(
        "Deberta", relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=16
    ),
    "deberta-v2": encoder(
        "DebertaV2",
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
    ),
    "t5-encoder": encoder("T5", "EncoderModel", **T5),
    "t5-decoder": t5_decoder,
    "bart": bart,
    "whisper-encoder": whisper_encoder,
    "whisper-decoder": whisper_decoder,
    "vit": picture(
        "ViT",
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    ),
    "dinov2": picture(
        "Dinov2",
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    ),
    "clip": clip,
    "siglip": picture(
        "SiglipVision",
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    ),
    "resnet": picture(
        "ResNet",
        "ForImageClassification",
        ("logits",),
        embedding_size=12,
        hidden_sizes=[16, 24, 32, 40],
        depths=[1, 2, 1, 1],
    ),
    "convnext": picture(
        "ConvNext",
        "ForImageClassification",
        ("logits",),
        hidden_sizes=[12, 16, 24, 32],
        depths=[1, 1, 2, 1],
    ),
    "efficientnet": picture(
        "EfficientNet",
        "ForImageClassification",
        ("logits",),
        width_coefficient=0.25,
        depth_coefficient=0.25,
        hidden_dim=320,
    ),
    "swinv2": picture(
        "Swinv2",
        image_size=32,
        patch_size=4,
        embed_dim=12,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "segformer": picture(
        "Segformer",
        "ForSemanticSegmentation",
        ("logits",),
        64,
        num_encoder_blocks=4,
        depths=[1, 1, 1, 1],
        sr_ratios=[8, 4, 2, 1],
        hidden_sizes=[8, 16, 24, 32],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
    ),
    "detr": detr,
    "wav2vec2": speech,
    "unet": unet,
    "denoiser": denoiser,
    "vae-decoder": vae_decoder,
    "qwen2-vl-vision": qwen2_vl_vision,
    "lstm": lstm,
}
