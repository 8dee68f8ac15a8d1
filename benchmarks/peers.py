"""The models that speed.py compares: the same ViT, as others build it.

Each takes a ViTConfig and turns images (B, C, H, W) into logits (B, classes) by pre-norm blocks,
erf GELU, biases at query, key and value, a last norm, and a linear head on the cls token.
"""

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
        options = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        hidden = int(c.embed_dim * c.mlp_ratio)
        layer = nn.TransformerEncoderLayer(
            c.embed_dim, c.num_heads, hidden, layer_norm_eps=c.norm_eps, **options
        )
        norm = nn.LayerNorm(c.embed_dim, eps=c.norm_eps)
        self.encoder = nn.TransformerEncoder(layer, c.depth, norm, enable_nested_tensor=False)
        self.head = nn.Linear(c.embed_dim, c.num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(self.patch_embed(images)))[:, 0])


class TransformersViT(nn.Module):
    """Hugging Face's, with fused attention, which transformers calls sdpa."""

    def __init__(self, c: ViTConfig):
        from transformers import ViTConfig as TheirConfig
        from transformers import ViTForImageClassification

        super().__init__()
        sizes = dict(image_size=c.image_size, patch_size=c.patch_size, num_channels=c.in_channels)
        sizes |= dict(hidden_size=c.embed_dim, intermediate_size=int(c.embed_dim * c.mlp_ratio))
        sizes |= dict(num_hidden_layers=c.depth, num_attention_heads=c.num_heads)
        sizes |= dict(num_labels=c.num_classes, layer_norm_eps=c.norm_eps)
        config = TheirConfig(**sizes, attn_implementation="sdpa")
        self.model = ViTForImageClassification(config)

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).logits


MODELS = {"vit_steps": ViT, "transformers": TransformersViT, "torch's encoder": TorchViT}
