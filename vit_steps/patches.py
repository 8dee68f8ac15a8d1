"""Lesson 01: a picture becomes a row of patches, and each patch a token."""

from einops import rearrange
from torch import Tensor, nn

from .inputs import as_pair, check_axes, check_dtype, check_images, check_sizes


def grid_size(image_size: int | tuple[int, int], patch_size: int) -> tuple[int, int]:
    """Count the rows and columns of patches that an image holds; P must divide both its sides.

    The size is one number for a square, or (height, width), in pixels.
    """
    check_sizes(patch_size=patch_size)
    height, width = as_pair(image_size)
    for side, pixels in (("height", height), ("width", width)):
        if pixels % patch_size:
            problem = f"its {side} is not a multiple of the patch size {patch_size}"
            hint = "crop or resize it first (vit_steps.images.load_image does both)"
            raise ValueError(f"image is {height}×{width}: {problem}; {hint}")
    return height // patch_size, width // patch_size


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """Cut images into flat patches, row by row (Dosovitskiy et al. 2021, section 3.1).

    Images (B, C, H, W), of any type of number, become (B, n, P·P·C), n = H·W / P². In a patch the
    pixels run row by row too, and each pixel's channels stand together.
    """
    check_images(images)
    grid_size((images.shape[2], images.shape[3]), patch_size)
    pattern = "b c (row p1) (col p2) -> b (row col) (p1 p2 c)"
    return rearrange(images, pattern, p1=patch_size, p2=patch_size)


def unpatchify(patches: Tensor, patch_size: int, image_size: int | tuple[int, int]) -> Tensor:
    """Put the patches of `patchify` back together: (B, n, P·P·C) becomes (B, C, H, W) again."""
    rows, cols = grid_size(image_size, patch_size)
    check_axes("patches", patches, "B n P·P·C")
    if patches.shape[1] != rows * cols or patches.shape[2] % patch_size**2:
        hint = f"have the shape (B, {rows * cols}, {patch_size**2}·C)"
        shape = f"patches is {tuple(patches.shape)}"
        raise ValueError(f"{shape}; {rows}×{cols} patches of side {patch_size} {hint}")
    pattern = "b (row col) (p1 p2 c) -> b c (row p1) (col p2)"
    return rearrange(patches, pattern, row=rows, col=cols, p1=patch_size, p2=patch_size)


class PatchEmbedding(nn.Module):
    """Patches, each projected to a token (Dosovitskiy et al. 2021, eq. 1, the part x·E).

    A convolution whose stride is its kernel size does in one step what `patchify` and a Linear do
    in two: `proj.weight` (D, C, P, P) is that Linear's weight (D, P·P·C), permuted. Its sizes are
    as in `ViTConfig`.
    """

    def __init__(
        self,
        image_size: int | tuple[int, int] = 224,
        patch_size: int = 16,
        in_channels: int = 3,
        embed_dim: int = 768,
    ):
        super().__init__()
        check_sizes(in_channels=in_channels, embed_dim=embed_dim)
        self.in_channels = in_channels
        self.image_size = as_pair(image_size)
        self.grid = grid_size(image_size, patch_size)
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        """Turn images (B, C, H, W), floats as the weights are, into patch tokens (B, n, D)."""
        check_images(images, self.in_channels, self.image_size)
        check_dtype(images, self)
        x = self.proj(images)  # (B, D, rows, cols)
        return x.flatten(2).transpose(1, 2)  # (B, n, D)
