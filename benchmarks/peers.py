"""The models that speed.py compares: the same ViT, as other libraries build it.

Each function takes a ViTConfig and gives a model from images (B, C, H, W) to logits (B, classes);
it raises ImportError where its library is missing. All compute the same thing: pre-norm blocks, erf
GELU, biases at query, key and value, a last norm, a linear head on the cls token.
"""

from contextlib import suppress
from math import prod

import torch
from torch import Tensor, nn

from vit_steps import PatchEmbedding, TokenEmbedding, ViT, ViTConfig, grid_size


def random_images(c: ViTConfig, batch: int) -> Tensor:
    """Draw a batch (B, C, H, W) for a model of these sizes."""
    rows, cols = grid_size(c.image_size, c.patch_size)
    return torch.randn(batch, c.in_channels, rows * c.patch_size, cols * c.patch_size)


class TorchViT(nn.Module):
    """The same model on torch's own encoder."""

    def __init__(self, c: ViTConfig):
        super().__init__()
        self.patch_embed = PatchEmbedding(c.image_size, c.patch_size, c.in_channels, c.embed_dim)
        self.tokens = TokenEmbedding(prod(self.patch_embed.grid), c.embed_dim)
        layer = nn.TransformerEncoderLayer(
            c.embed_dim,
            c.num_heads,
            dim_feedforward=int(c.embed_dim * c.mlp_ratio),
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=c.norm_eps,
            batch_first=True,
            norm_first=True,
        )
        norm = nn.LayerNorm(c.embed_dim, eps=c.norm_eps)
        self.encoder = nn.TransformerEncoder(layer, c.depth, norm, enable_nested_tensor=False)
        self.head = nn.Linear(c.embed_dim, c.num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(self.patch_embed(images)))[:, 0])


def timm(c: ViTConfig) -> nn.Module:
    """Build timm's, whose attention is fused too."""
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(
        img_size=c.image_size,
        patch_size=c.patch_size,
        in_chans=c.in_channels,
        num_classes=c.num_classes,
        embed_dim=c.embed_dim,
        depth=c.depth,
        num_heads=c.num_heads,
        mlp_ratio=c.mlp_ratio,
    )


class LogitsOnly(nn.Module):
    """A model of transformers, which gives its logits inside an output object."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).logits


def transformers(c: ViTConfig) -> nn.Module:
    """Build theirs with fused attention, which transformers calls sdpa."""
    from transformers import ViTConfig as TheirConfig
    from transformers import ViTForImageClassification

    config = TheirConfig(
        image_size=c.image_size,
        patch_size=c.patch_size,
        num_channels=c.in_channels,
        num_labels=c.num_classes,
        hidden_size=c.embed_dim,
        num_hidden_layers=c.depth,
        num_attention_heads=c.num_heads,
        intermediate_size=int(c.embed_dim * c.mlp_ratio),
        layer_norm_eps=c.norm_eps,
        attn_implementation="sdpa",
    )
    return LogitsOnly(ViTForImageClassification(config))


def vit_pytorch(c: ViTConfig) -> nn.Module:
    """Build it without its two norms around the patches, and with biases, as the others are.

    The first change also makes it a little faster.
    """
    from vit_pytorch import ViT as TheirViT

    model = TheirViT(
        image_size=c.image_size,
        patch_size=c.patch_size,
        channels=c.in_channels,
        num_classes=c.num_classes,
        dim=c.embed_dim,
        depth=c.depth,
        heads=c.num_heads,
        dim_head=c.embed_dim // c.num_heads,
        mlp_dim=int(c.embed_dim * c.mlp_ratio),
    )
    cut, _, project, _ = model.to_patch_embedding
    model.to_patch_embedding = nn.Sequential(cut, project)
    for attention, _ in model.transformer.layers:
        attention.to_qkv = nn.Linear(c.embed_dim, 3 * c.embed_dim)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = c.norm_eps
    return model


PEERS = {
    "vit_steps": ViT,
    "timm": timm,
    "transformers": transformers,
    "vit-pytorch": vit_pytorch,
    "torch's encoder": TorchViT,
}


def build(c: ViTConfig) -> dict[str, nn.Module]:
    """Build each peer's model whose library is there.

    Raises:
        RuntimeError: one has another number of parameters than ours, or gives no logits.
    """
    models = {}
    for name, make in PEERS.items():
        with suppress(ImportError):
            models[name] = make(c)
    parameters = {name: sum(p.numel() for p in m.parameters()) for name, m in models.items()}
    for name, model in models.items():
        if parameters[name] != parameters["vit_steps"]:
            counts = f"{parameters[name]} parameters where ours has {parameters['vit_steps']}"
            raise RuntimeError(f"{name} has {counts}")
        with torch.no_grad():
            shape = tuple(model(random_images(c, 1)).shape)
        if shape != (1, c.num_classes):
            raise RuntimeError(f"{name} gives {shape} where logits are (1, {c.num_classes})")
    return models
