"""Answers to lesson 12's exercises, the repaired classes, as learners would write them."""

import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F

from vit_steps import (
    EncoderBlock,
    MultiHeadAttention,
    ViT,
    merge_heads,
    scaled_dot_product_attention,
    split_qkv,
)

# first_patient -----------------------------------------------------------------------------------


class MlpReadsY(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y = self.norm1(x)
        y, weights = self.attn(y, mask, return_attention=True)
        x = x + y
        y = self.norm2(x)
        y = self.mlp(y)
        x = x + y
        return (x, weights) if return_attention else x


class OneLineEach(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        mixed, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + mixed
        x = x + self.mlp(self.norm2(x))
        if return_attention:
            return x, weights
        return x


class OwnBlock(nn.Module):
    """Made anew, with the same names."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = EncoderBlock(embed_dim, num_heads).mlp

    def forward(self, x, mask=None, return_attention=False):
        mixed, weights = self.attn(self.norm1(x), mask, True)
        y = x + mixed
        out = y + self.mlp(self.norm2(y))
        return (out, weights) if return_attention else out


class InPlaceOnItsOwn(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        x += self.mlp(self.norm2(x))
        return (x, weights) if return_attention else x


class NormBehindMlp(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y = self.norm1(x)
        y, weights = self.attn(y, mask, return_attention=True)
        x = x + y
        y = self.mlp(x)
        y = self.norm2(y)
        x = x + y
        return (x, weights) if return_attention else x


class StreamNormed(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y = self.norm1(x)
        y, weights = self.attn(y, mask, return_attention=True)
        x = x + y
        x = self.norm2(x)
        y = self.mlp(x)
        x = x + y
        return (x, weights) if return_attention else x


class NormedYTwice(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y = self.norm1(x)
        y, weights = self.attn(y, mask, return_attention=True)
        x = x + y
        y = self.norm2(y)
        y = self.mlp(y)
        x = x + y
        return (x, weights) if return_attention else x


class StreamReplaced(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        x = self.norm2(x)
        x = self.mlp(x)
        return (x, weights) if return_attention else x


class Norm1Again(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        y = self.norm1(x)
        y = self.mlp(y)
        x = x + y
        return (x, weights) if return_attention else x


class NormAdded(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        y = self.norm2(x)
        x = x + y + self.mlp(x)
        return (x, weights) if return_attention else x


class NormAtTheEnd(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        y = self.mlp(x)
        x = self.norm2(x + y)
        return (x, weights) if return_attention else x


class NoNorm2(EncoderBlock):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        del self.norm2

    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        y = self.mlp(x)
        x = x + y
        return (x, weights) if return_attention else x


class Norm1OutInstead(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y = self.norm1(x)
        y, weights = self.attn(x, mask, return_attention=True)
        x = x + y
        y = self.norm2(x)
        y = self.mlp(y)
        x = x + y
        return (x, weights) if return_attention else x


class SideBySide(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        z = self.mlp(self.norm2(x))
        x = x + y + z
        return (x, weights) if return_attention else x


class BlockWithoutWeights(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class BlockGivesBoth(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x = x + y
        x = x + self.mlp(self.norm2(x))
        return x, weights


class BlockInPlace(EncoderBlock):
    def forward(self, x, mask=None, return_attention=False):
        y, weights = self.attn(self.norm1(x), mask, return_attention=True)
        x += y
        x = x + self.mlp(self.norm2(x))
        return (x, weights) if return_attention else x


# second_patient ----------------------------------------------------------------------------------


class LettersTurned(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        mixed = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class WithThePackage(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = scaled_dot_product_attention(q, k, v, mask)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class OtherAxisAndTurnedBack(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhkd,bhqd->bhkq", k, q) / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-2)
        mixed = torch.einsum("bhkq,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights.transpose(-1, -2)) if return_attention else x


class HeadByHead(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, weights = [], []
        for head in range(self.num_heads):
            scores = q[:, head] @ k[:, head].transpose(1, 2)
            weights.append(torch.softmax(scores / q.shape[-1] ** 0.5, -1))
            mixed.append(weights[-1] @ v[:, head])
        x = self.proj(torch.cat(mixed, dim=-1))
        return (x, torch.stack(weights, dim=1)) if return_attention else x


class OtherAxisOnly(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhkd,bhqd->bhkq", k, q)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-2)
        mixed = torch.einsum("bhkq,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class FirstLineTurned(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        mixed = torch.einsum("bhkq,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class LastLineTurned(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhkd,bhqd->bhkq", k, q)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        mixed = weights @ v
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class OverHeads(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhkd,bhqd->bhkq", k, q)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=1)
        mixed = torch.einsum("bhkq,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class DividedAfterwards(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhkd,bhqd->bhkq", k, q)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        weights = weights / weights.sum(dim=-2, keepdim=True)
        mixed = torch.einsum("bhkq,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class SoftmaxTwice(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        scores = torch.einsum("bhkd,bhqd->bhkq", k, q)
        scores = scores / k.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1).softmax(dim=-2)
        mixed = torch.einsum("bhkq,bhkd->bhqd", weights, v)
        x = self.proj(merge_heads(mixed))
        return (x, weights) if return_attention else x


class ScaleLost(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        weights = (q @ k.mT).softmax(dim=-1)
        x = self.proj(merge_heads(weights @ v))
        return (x, weights) if return_attention else x


class ScaleOfTheWholeWidth(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        weights = (q @ k.mT / x.shape[-1] ** 0.5).softmax(dim=-1)
        x = self.proj(merge_heads(weights @ v))
        return (x, weights) if return_attention else x


class MergedByReshape(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(dim=-1)
        x = self.proj((weights @ v).reshape(x.shape))
        return (x, weights) if return_attention else x


class WithoutProjection(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(dim=-1)
        x = merge_heads(weights @ v)
        return (x, weights) if return_attention else x


class AttentionGivesBoth(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(dim=-1)
        return self.proj(merge_heads(weights @ v)), weights


class FusedWithoutWeights(MultiHeadAttention):
    def forward(self, x, mask=None, return_attention=False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        return self.proj(merge_heads(F.scaled_dot_product_attention(q, k, v)))


# third_patient -----------------------------------------------------------------------------------


class BothMended(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1:]
        cls = cls.expand(len(patches), -1, -1)
        x = torch.cat([cls, patches], dim=1)
        attention = []
        for block in self.blocks:
            x, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class PiecesOfThePackage(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        x, attention = self.blocks(x, return_attention=True)
        logits = self.head(self.norm(x[:, 0]))
        return (logits, attention) if return_attention else logits


class JoinedFirst(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        cls = self.tokens.cls_token.repeat(len(patches), 1, 1)
        x = torch.cat([cls, patches], dim=1) + self.tokens.pos_embed
        attention = []
        for block in self.blocks:
            attention.append(block(x, return_attention=True)[1])
            x = block(x)
        x = self.norm(x)
        logits = self.head(rearrange(x, "b n d -> n b d")[0])
        return (logits, attention) if return_attention else logits


class PositionsOnly(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1:]
        cls = cls.expand(len(patches), -1, -1)
        x = torch.cat([cls, patches], dim=1)
        attention = []
        for block in self.blocks:
            _, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class LoopOnly(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1]
        cls = cls.expand(len(patches), -1, -1)
        x = torch.cat([cls, patches], dim=1)
        attention = []
        for block in self.blocks:
            x, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class HeadReadsTokens(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1]
        cls = cls.expand(len(patches), -1, -1)
        x = torch.cat([cls, patches], dim=1)
        tokens, attention = x, []
        for block in self.blocks:
            tokens, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(tokens)[:, 0])
        return (logits, attention) if return_attention else logits


class AddedAgain(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1:]
        x = torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)
        attention = []
        for block in self.blocks:
            tokens, weights = block(x, return_attention=True)
            x = x + tokens
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class AddedAgainAndOnePosition(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1]
        x = torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)
        attention = []
        for block in self.blocks:
            tokens, weights = block(x, return_attention=True)
            x = x + tokens
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class OneRowTooEarly(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, : patches.shape[1]]
        x = torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)
        x, attention = self.blocks(x, return_attention=True)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class PositionsTwice(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions[:, 1]
        x = torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)
        x = x + positions
        x, attention = self.blocks(x, return_attention=True)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class ThroughTheTokens(ViT):
    """Hands patches that have positions to the piece that adds them."""

    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        patches = patches + self.tokens.pos_embed[:, 1:]
        x, attention = self.blocks(self.tokens(patches), return_attention=True)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class AllPositions(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        positions = self.tokens.pos_embed
        cls = self.tokens.cls_token + positions[:, 0]
        patches = patches + positions
        x = torch.cat([cls.expand(len(patches), -1, -1), patches], dim=1)
        x, attention = self.blocks(x, return_attention=True)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class MeanRead(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        x, attention = self.blocks(x, return_attention=True)
        logits = self.head(self.norm(x)[:, 1:].mean(dim=1))
        return (logits, attention) if return_attention else logits


class NormInTheLoop(ViT):
    def forward(self, images, return_attention=False):
        x, attention = self.tokens(self.patch_embed(images)), []
        for block in self.blocks:
            tokens, weights = block(x, return_attention=True)
            x = self.norm(tokens)
            attention.append(weights)
        logits = self.head(x[:, 0])
        return (logits, attention) if return_attention else logits


class AsksTwice(ViT):
    def forward(self, images, return_attention=False):
        x, attention = self.tokens(self.patch_embed(images)), []
        for block in self.blocks:
            x = block(x)
            _, weights = block(x, return_attention=True)
            attention.append(weights)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


class WithoutTheList(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class ClsWithoutPosition(ViT):
    def forward(self, images, return_attention=False):
        patches = self.patch_embed(images)
        patches = patches + self.tokens.pos_embed[:, 1:]
        cls = self.tokens.cls_token.expand(len(patches), -1, -1)
        x, attention = self.blocks(torch.cat([cls, patches], dim=1), return_attention=True)
        logits = self.head(self.norm(x)[:, 0])
        return (logits, attention) if return_attention else logits


RIGHT = {
    "first_patient": [MlpReadsY, OneLineEach, OwnBlock],
    "second_patient": [LettersTurned, WithThePackage, OtherAxisAndTurnedBack, HeadByHead],
    "third_patient": [BothMended, PiecesOfThePackage, JoinedFirst],
}

WRONG = {
    "first_patient": [
        (NormBehindMlp, "comes after the MLP"),
        (StreamNormed, "the stream itself is normed"),
        (NormedYTwice, "norm2 is given y"),
        (StreamReplaced, "takes the stream's place"),
        (Norm1Again, "a norm of its own, norm2"),
        (NormAdded, "the MLP still reads x"),
        (NormAtTheEnd, "comes after the sum"),
        (NoNorm2, "norm2 is gone"),
        (Norm1OutInstead, "attention reads x"),
        (SideBySide, "attention's change is to be in it"),
        (BlockWithoutWeights, "it is to give two things"),
        (BlockGivesBoth, "give the weights only where"),
        (BlockInPlace, "backward fails"),
        (InPlaceOnItsOwn, "backward fails"),
    ],
    "second_patient": [
        (OtherAxisOnly, "the weights that it gives stand as (keys, queries)"),
        (FirstLineTurned, "takes keys for queries"),
        (LastLineTurned, "queries and keys have changed places"),
        (OverHeads, "over the heads now"),
        (DividedAfterwards, "one softmax, over the keys"),
        (SoftmaxTwice, "two softmaxes"),
        (ScaleLost, "the scale is lost"),
        (ScaleOfTheWholeWidth, "scale width"),
        (MergedByReshape, "use merge_heads"),
        (WithoutProjection, "proj is not used"),
        (AttentionGivesBoth, "give the weights only where"),
        (FusedWithoutWeights, "it is to give two things"),
    ],
    "third_patient": [
        (PositionsOnly, "the other fault hides the repair"),
        (LoopOnly, "no positions\n  measured: "),
        (HeadReadsTokens, "the head reads the last block alone"),
        (AddedAgain, "hand it on as it is"),
        (AddedAgainAndOnePosition, "hand it on as it is"),
        (OneRowTooEarly, "one too early"),
        (PositionsTwice, "the second row on top"),
        (ThroughTheTokens, "positions twice"),
        (AllPositions, "patches = patches + positions"),
        (MeanRead, "the head reads the mean"),
        (NormInTheLoop, "inside the loop"),
        (AsksTwice, "a second run of each block"),
        (WithoutTheList, "list of the weights as well"),
        (ClsWithoutPosition, "lost its position"),
    ],
}
