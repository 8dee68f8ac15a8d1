"""What the model's files and the maps refuse, and what their messages say to do."""

import pytest
import torch
from test_maps import small_vit
from torch import zeros

from vit_course.systems import FaceConfig, face_vit
from vit_steps import (
    MLP,
    Encoder,
    EncoderBlock,
    MultiHeadAttention,
    PatchEmbedding,
    TokenEmbedding,
    ViT,
    ViTConfig,
    grid_size,
    maps,
    merge_heads,
    patchify,
    pool_tokens,
    scaled_dot_product_attention,
    split_heads,
    split_qkv,
    unpatchify,
)


class OwnForward(ViT):
    def forward(self, images, return_attention=False):
        return self.head(self.features(images)[:, 1])


def blinded(hidden, kind=ViT):
    return maps.blinded(small_vit((8, 8), kind), torch.randn(2, 2, 8, 8), hidden)


EMBED, WIDE, TOKENS = PatchEmbedding(4, 2, 3, 8), PatchEmbedding((8, 12), 4), TokenEmbedding(5, 8)
ATTENTION, BLOCK = MultiHeadAttention(12, 3), EncoderBlock(12, 3)
TINY = ViTConfig(16, 4, embed_dim=12, depth=1, num_heads=3)
FACES = face_vit(FaceConfig(8, 4, 2, depth=1))
Q, WEIGHTS, X = zeros(2, 3, 5, 4), torch.full((1, 2, 5, 5), 0.2), zeros(2, 7, 12)
LAST = r"8 channels where .* takes 3; are the channels last\?.*permute\(0, 3, 1"
KNOWN = r"no preset .*Ti/16, S/16, B/16, B/32, L/16, L/32, H/14"
SIZES = "20×16 .*takes 16×16.*load_image.*at_size"
LIST = "attention is {}; give the list"
REFUSED = [
    # patches
    (lambda: grid_size((224, 0), 16), ValueError, r"image_size\[1\] is 0; .*at least 1"),
    (lambda: grid_size("224", 16), TypeError, "image_size is '224'; .*a pair"),
    (lambda: grid_size(True, 1), TypeError, "image_size"),
    (lambda: grid_size(224, (16, 16)), TypeError, "patch_size"),
    (lambda: patchify(zeros(3, 4, 4), 2), ValueError, r"\(3, 4, 4\): the batch .* images\[None\]"),
    (lambda: patchify(zeros(1, 0, 4, 4), 2), ValueError, "empty"),
    (lambda: patchify(zeros(1, 3, 4, 5), 2), ValueError, "4×5: its width .* the patch size 2"),
    (lambda: unpatchify(zeros(1, 4, 13), 2, 4), ValueError, "of side 2"),  # no whole channels
    (lambda: unpatchify(zeros(4, 12), 2, 4), ValueError, "axes"),  # no batch
    (lambda: unpatchify(zeros(1, 4, 12), 2, (4, 6)), ValueError, "of side 2"),  # the grid is 2×3
    (lambda: WIDE(zeros(2, 8, 12, 3)), ValueError, LAST),
    (lambda: WIDE(zeros(2, 3, 12, 8)), ValueError, r"12×8 .*takes 8×12.*load_image.*at_size"),
    (lambda: EMBED("photo.jpg"), TypeError, "not a tensor.*load_image"),
    (lambda: EMBED(zeros(1, 3, 4, 4).byte()), TypeError, r"images\.float\(\) / 255"),
    (lambda: EMBED(zeros(1, 3, 4, 4).double()), TypeError, r"images\.to\(torch\.float32\)"),
    (lambda: PatchEmbedding(4, 2, 0, 8), ValueError, "in_channels"),
    (lambda: PatchEmbedding(4, 2, 3, 4.0), TypeError, "embed_dim"),
    # tokens
    (lambda: TOKENS(zeros(2, 1, 8)), ValueError, r"tokens is \(2, 1, 8\).*\(B, 5, 8\)"),
    (lambda: TOKENS(zeros(2, 5, 1)), ValueError, r"\(B, 5, 8\)"),  # it would broadcast in silence
    (lambda: TokenEmbedding(0, 8), ValueError, "num_patches"),
    (lambda: TokenEmbedding(5, 4.0), TypeError, "embed_dim"),
    (lambda: TokenEmbedding(5, 8, dropout=1.0), ValueError, "dropout"),
    # heads
    (lambda: split_heads(zeros(2, 3, 768), 7), ValueError, "768 does not .* 7 heads.*: .*6, 8"),
    (lambda: split_heads(zeros(2, 3, 12), 2.0), TypeError, "num_heads"),
    (lambda: split_heads([[1.0]], 1), TypeError, "not a tensor"),
    (lambda: merge_heads(zeros(2, 3, 8)), ValueError, r"\(B, h, N, d\)"),
    (lambda: split_qkv(zeros(2, 5, 36), 5), ValueError, r"qkv is \(2, 5, 36\).*multiple of 5"),
    (lambda: split_qkv(zeros(2, 5, 36), 0), ValueError, "num_heads is 0"),
    # attention
    (lambda: scaled_dot_product_attention(Q, Q, [[1.0]]), TypeError, "v is a list, not a tensor"),
    (lambda: scaled_dot_product_attention(Q, Q, Q, dropout=1.0), ValueError, "dropout"),
    (lambda: MultiHeadAttention(12, 5), ValueError, "12 does not divide into 5 heads"),
    (lambda: MultiHeadAttention(12, 3, dropout=1.0), ValueError, "dropout"),
    (lambda: ATTENTION(zeros(2, 7, 11)), ValueError, "tokens is"),
    # encoder
    (lambda: MLP(0, 20), ValueError, "embed_dim"),
    (lambda: MLP(8, 20.0), TypeError, "hidden_dim"),
    (lambda: MLP(8, 20, dropout=1.5), ValueError, "dropout"),
    (lambda: EncoderBlock(12, 3, 1.3), ValueError, "mlp_ratio 1.3.*15.6.*embed_dim 12"),
    (lambda: EncoderBlock(12, 3, norm_eps=-1e-6), ValueError, "norm_eps"),
    (lambda: MLP(12, 48)(zeros(2, 7, 1)), ValueError, r"\(2, 7, 1\).*\(B, N, 12\)"),
    (lambda: BLOCK(zeros(2, 7, 1)), ValueError, r"\(2, 7, 1\).*\(B, N, 12\)"),
    (lambda: Encoder([BLOCK])(zeros(2, 7, 1)), ValueError, r"\(2, 7, 1\).*\(B, N, 12\)"),
    # vit
    (lambda: pool_tokens(X, "max"), ValueError, "pool is 'max'; give 'cls' or 'mean'"),
    (lambda: pool_tokens((X, [])), TypeError, "not a tensor"),
    (lambda: ViT(TINY).with_classes(-1), ValueError, "num_classes is"),
    (lambda: ViT(TINY).at_size(18), ValueError, "18×18"),
    (lambda: ViT(TINY)(zeros(2, 3, 20, 16)), ValueError, SIZES),
    (lambda: ViT("B/16"), TypeError, r"config is 'B/16'; give .*ViTConfig"),
    (lambda: ViTConfig.preset("b/16"), ValueError, KNOWN),
    # maps
    (lambda: maps.rollout(WEIGHTS), TypeError, LIST.format("a Tensor")),
    (lambda: maps.rollout([]), TypeError, LIST.format("empty")),
    (lambda: maps.rollout([WEIGHTS.long()]), TypeError, "not floats"),
    (lambda: maps.rollout([WEIGHTS[:, :, :3]]), ValueError, "queries, then keys"),
    (lambda: maps.rollout([WEIGHTS, WEIGHTS[..., :4, :4]]), ValueError, r"\(1, h, 5, 5\)"),
    (lambda: maps.cls_map(WEIGHTS, 3), ValueError, "5 tokens where the grid has 9 patches"),
    (lambda: maps.touched(zeros(2, 3), 8, 4, 4), ValueError, r"the axes \(B, 2\)"),
    (lambda: blinded(zeros(2, 2, 2).bool(), OwnForward), TypeError, "vit_steps.ViT"),
    (
        lambda: maps.blinded(FACES, zeros(2, 2, 8, 8), zeros(2, 2, 2).bool()),
        TypeError,
        "vit_steps.ViT",
    ),
    (lambda: blinded(zeros(2, 2, 2)), TypeError, "give booleans"),
    (lambda: blinded(zeros(2, 1, 4).bool()), ValueError, r"the axes \(2, 2, 2\)"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_with_what_to_do(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
