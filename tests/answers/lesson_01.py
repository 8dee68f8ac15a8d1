"""Answers to lesson 01's build cells and exercises, as learners would write them."""

import torch
from einops import rearrange, reduce
from torch import nn
from torch.nn import functional as F

# patchify: (B, C, H, W) to (B, n, P·P·C), all in reading order.


def slices(images, p):
    _, _, height, width = images.shape
    tokens = [
        images[:, :, top : top + p, left : left + p].permute(0, 2, 3, 1).flatten(1)
        for top in range(0, height, p)
        for left in range(0, width, p)
    ]
    return torch.stack(tokens, dim=1)


def unfold(images, p):
    tokens = F.unfold(images, p, stride=p).mT
    return tokens.unflatten(2, (images.shape[1], p * p)).mT.flatten(2)


def permuted(images, patch_size):
    b, c, h, w = images.shape
    x = images.view(b, c, h // patch_size, patch_size, w // patch_size, patch_size)
    x = x.permute(0, 2, 4, 3, 5, 1)
    return x.reshape(b, -1, patch_size * patch_size * c)


def by_einops(images, patch_size):
    return rearrange(images, "B C (h P1) (w P2) -> B (h w) (P1 P2 C)", P1=patch_size, P2=patch_size)


def tensor_unfold(images, p):
    windows = images.unfold(2, p, p).unfold(3, p, p)  # (B, C, rows, cols, P, P)
    return windows.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


def pattern(pattern):
    return lambda images, patch_size: rearrange(images, pattern, p1=patch_size, p2=patch_size)


def viewed(images, p):
    return images.reshape(images.shape[0], -1, p * p * images.shape[1])


def viewed_contiguous(images, patch_size):
    b, c, h, w = images.shape
    n = (h // patch_size) * (w // patch_size)
    return images.contiguous().view(b, n, patch_size**2 * c)


def columns_first(images, p):
    return slices(images.mT, p).unflatten(2, (p, p, -1)).transpose(2, 3).flatten(2)


def of_transposed(images, p):
    return slices(images.mT, p)


def transposed_inside(images, p):
    return slices(images, p).unflatten(2, (p, p, -1)).transpose(2, 3).flatten(2)


def channels_first(images, p):
    return F.unfold(images, p, stride=p).mT


def unfold_untransposed(images, p):
    return F.unfold(images, p, stride=p)


def in_place(images, p):
    images /= 255
    return slices(images, p)


def grid_kept(images, p):
    return rearrange(images, "b c (h p1) (w p2) -> b h w (p1 p2 c)", p1=p, p2=p)


def not_flat(images, p):
    return rearrange(images, "b c (h p1) (w p2) -> b (h w) p1 p2 c", p1=p, p2=p)


def batch_merged(images, p):
    return rearrange(images, "b c (h p1) (w p2) -> (b h w) (p1 p2 c)", p1=p, p2=p)


def features_first(images, p):
    return slices(images, p).transpose(1, 2)


def channels_apart(images, p):
    return rearrange(images, "b c (h p1) (w p2) -> b (c h w) (p1 p2)", p1=p, p2=p)


def first_image_only(images, p):
    return slices(images[:1], p)


def mean_of_patches(images, p):
    return reduce(images, "b c (h p1) (w p2) -> b (h w) c", "mean", p1=p, p2=p)


def three_channels(images, p):
    b, _, h, w = images.shape
    x = images.reshape(b, 3, h // p, p, w // p, p)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(b, -1, p * p * 3)


def square_only(images, p):
    b, c, h, _ = images.shape
    side = h // p
    x = images.reshape(b, c, side, p, side, p)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(b, side * side, p * p * c)


def square_only_by_einops(images, p):
    side = images.shape[-1] // p
    return rearrange(images, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", h=side, w=side, p1=p, p2=p)


def fourteen_by_reshape(images, patch_size):
    B, C, _, _ = images.shape
    x = images.reshape(B, C, 14, patch_size, 14, patch_size)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(B, 196, -1)


def fourteen_by_einops(images, p):
    return rearrange(images, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", h=14, w=14, p1=p, p2=p)


def pixel_rows_before_columns(images, p):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // p, p, W // p, p)
    return x.permute(0, 2, 3, 4, 5, 1).reshape(B, (H // p) * (W // p), -1)


def unfolded_and_reshaped(images, p):
    windows = images.unfold(2, p, p).unfold(3, p, p)  # (B, C, row, col, P, P)
    return windows.reshape(len(images), -1, p * p * images.shape[1])


def always_sixteen(images, patch_size):
    return rearrange(images, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=16, p2=16)


def as_a_list(images, p):
    patches = []
    for top in range(0, images.shape[2], p):
        for left in range(0, images.shape[3], p):
            patch = images[:, :, top : top + p, left : left + p]
            patches.append(patch.permute(0, 2, 3, 1).flatten(1))
    return patches


def overlapping(images, p):
    return unfold_with_stride(images, p, 1)


def unfold_with_stride(images, p, stride):
    tokens = F.unfold(images, p, stride=stride).mT
    return tokens.unflatten(2, (images.shape[1], p * p)).mT.flatten(2)


# PatchEmbedding: a Conv2d `proj`, then (B, n, D).


class Embedding(nn.Module):
    """What the answers below share; each changes one thing."""

    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)


class ByMT(Embedding):
    def forward(self, images):
        return self.proj(images).flatten(2).mT


class ByPermute(Embedding):
    def forward(self, images):
        x = self.proj(images).permute(0, 2, 3, 1)
        b, h, w, d = x.shape
        return x.reshape(b, h * w, d)


class ByEinops(nn.Module):
    def __init__(self, image_size, patch_size, in_channels=3, embed_dim=768):
        super().__init__()
        self.proj = nn.Conv2d(
            in_channels, embed_dim, (patch_size, patch_size), (patch_size, patch_size), bias=True
        )

    def forward(self, x):
        return rearrange(self.proj(x), "b d h w -> b (h w) d")


class ByUnfold(Embedding):
    def forward(self, images):
        windows = F.unfold(images, self.proj.kernel_size, stride=self.proj.stride).mT
        return windows @ self.proj.weight.flatten(1).mT + self.proj.bias


class NotTransposed(Embedding):
    def forward(self, images):
        return self.proj(images).flatten(2)


class Reshaped(Embedding):
    def forward(self, images):
        x = self.proj(images)
        return x.reshape(x.shape[0], -1, x.shape[1])


class FlattenedThenViewed(Embedding):
    def forward(self, images):
        x = self.proj(images).flatten(2)
        return x.view(len(x), x.shape[2], x.shape[1])


class GridKept(Embedding):
    def forward(self, images):
        return self.proj(images)


class GridKeptLast(Embedding):
    def forward(self, images):
        return self.proj(images).permute(0, 2, 3, 1)


class ColumnsFirst(Embedding):
    def forward(self, images):
        return self.proj(images).transpose(2, 3).flatten(2).transpose(1, 2)


class FlatAll(Embedding):
    def forward(self, images):
        return self.proj(images).flatten(1)


class MeanOfAll(Embedding):
    def forward(self, images):
        return self.proj(images).flatten(2).mean(dim=2)


class Activated(Embedding):
    def forward(self, images):
        return F.relu(self.proj(images)).flatten(2).transpose(1, 2)


class WithoutReturn(Embedding):
    def forward(self, images):
        self.proj(images).flatten(2).transpose(1, 2)


class BiasUnused(Embedding):
    def forward(self, images):
        x = F.conv2d(images, self.proj.weight, stride=self.proj.stride)
        return x.flatten(2).transpose(1, 2)


class Detached(Embedding):
    def forward(self, images):
        return self.proj(images).detach().flatten(2).transpose(1, 2)


class NoStride(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class NoBias(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size, bias=False)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class OtherName(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.projection = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size)

    def forward(self, images):
        return self.projection(images).flatten(2).transpose(1, 2)


class ByLinear(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Linear(patch_size * patch_size * in_channels, embed_dim)

    def forward(self, images):
        return self.proj(slices(images, self.patch_size))


class ChannelsSwapped(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(embed_dim, in_channels, patch_size, stride=patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class AlwaysThree(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(3, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class AlwaysB16(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(3, 768, kernel_size=16, stride=16)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class AlwaysPatches16(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=16, stride=16)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class AlwaysStride16(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=16)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class Padded(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size, padding=1)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class MadeInForward(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.sizes = in_channels, embed_dim, patch_size

    def forward(self, images):
        c, d, p = self.sizes
        return nn.Conv2d(c, d, p, stride=p)(images).flatten(2).transpose(1, 2)


class WithoutSuper(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class GridAsStride(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=image_size // patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


# patch_of: (number of the patch, number of the pixel in it).


def by_divmod(y, x, image_width, patch_size):
    row, p1 = divmod(y, patch_size)
    col, p2 = divmod(x, patch_size)
    return row * (image_width // patch_size) + col, p1 * patch_size + p2


def by_cutting(y, x, image_width, patch_size):
    height = (y // patch_size + 1) * patch_size
    numbers = torch.arange(height * image_width).float().view(1, 1, height, image_width)
    found = (slices(numbers, patch_size)[0] == y * image_width + x).nonzero()[0]
    return found[0].item(), found[1].item()


def by_counting(y, x, image_width, patch_size):
    patch = 0
    for top in range(0, y + 1, patch_size):
        for left in range(0, image_width, patch_size):
            if top <= y < top + patch_size and left <= x < left + patch_size:
                pixel = 0
                for i in range(top, top + patch_size):
                    for j in range(left, left + patch_size):
                        if (i, j) == (y, x):
                            return patch, pixel
                        pixel += 1
            patch += 1
    return None


def as_list(y, x, image_width, patch_size):
    return list(by_divmod(y, x, image_width, patch_size))


def axes_swapped(y, x, image_width, patch_size):
    return by_divmod(x, y, image_width, patch_size)


def width_in_pixels(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return (y // patch_size) * image_width + x // patch_size, pixel


def from_one(y, x, image_width, patch_size):
    patch, pixel = by_divmod(y, x, image_width, patch_size)
    return patch + 1, pixel + 1


def patch_from_one(y, x, image_width, patch_size):
    patch, pixel = by_divmod(y, x, image_width, patch_size)
    return patch + 1, pixel


def pixel_of_image(y, x, image_width, patch_size):
    patch, _ = by_divmod(y, x, image_width, patch_size)
    return patch, y * image_width + x


def rows_by_patch_size(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return (y // patch_size) * patch_size + x // patch_size, pixel


def pixel_transposed(y, x, image_width, patch_size):
    patch, _ = by_divmod(y, x, image_width, patch_size)
    return patch, (x % patch_size) * patch_size + y % patch_size


def pixel_rows_as_wide_as_image(y, x, image_width, patch_size):
    patch, _ = by_divmod(y, x, image_width, patch_size)
    return patch, (y % patch_size) * image_width + x % patch_size


def patch_columns_first(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return (x // patch_size) * (image_width // patch_size) + y // patch_size, pixel


def with_true_division(y, x, image_width, patch_size):
    _, pixel = by_divmod(y, x, image_width, patch_size)
    return y / patch_size * (image_width / patch_size) + x / patch_size, pixel


def patch_only(y, x, image_width, patch_size):
    return by_divmod(y, x, image_width, patch_size)[0]


def row_and_column(y, x, image_width, patch_size):
    return y // patch_size, x // patch_size


def pixel_first(y, x, image_width, patch_size):
    return by_divmod(y, x, image_width, patch_size)[::-1]


def always_14(y, x, image_width, patch_size):
    return (y // 16) * 14 + x // 16, (y % 16) * 16 + x % 16


def as_floats(y, x, image_width, patch_size):
    patch, pixel = by_divmod(y, x, image_width, patch_size)
    return float(patch), float(pixel)


# conv_weight: (D, P·P·C) to (D, C, P, P).


def weight_by_axes(weight, channels, p):
    return weight.view(len(weight), p, p, channels).permute(0, 3, 1, 2)


def weight_by_einops(weight, channels, patch_size):
    return rearrange(weight, "d (h w c) -> d c h w", c=channels, h=patch_size)


def weight_by_stack(weight, channels, p):
    return torch.stack([weight[:, c::channels].reshape(-1, p, p) for c in range(channels)], dim=1)


def weight_naive(weight, channels, p):
    return weight.view(len(weight), channels, p, p)


def weight_transposed(weight, channels, p):
    return weight_by_axes(weight, channels, p).transpose(2, 3)


def weight_channels_last(weight, channels, p):
    return weight.view(len(weight), p, p, channels)


def weight_input_first(weight, channels, p):
    return weight_by_axes(weight, channels, p).transpose(0, 1)


def weight_flipped(weight, channels, p):
    return weight_by_axes(weight, channels, p).flip(2, 3)


def weight_untouched(weight, channels, p):
    return weight


def weight_three(weight, channels, p):
    return weight.reshape(-1, p, p, 3).permute(0, 3, 1, 2)


def weight_split_wrongly(weight, channels, p):
    return weight.reshape(len(weight), p, channels, p).transpose(1, 2)


def weight_sixteen(weight, channels, patch_size):
    return rearrange(weight, "d (h w c) -> d c h w", h=16, w=16)


def weight_divided(weight, channels, p):
    return weight_by_axes(weight, channels, p) / (p * p)


def weight_of_transposed(weight, channels, p):
    return weight.T.reshape(p, p, channels, -1).permute(2, 3, 0, 1)


def weight_doubled_in_place(weight, channels, p):
    weight += 0.1
    return weight_by_axes(weight, channels, p)


def weight_as_module(weight, channels, p):
    conv = nn.Conv2d(channels, len(weight), p, stride=p)
    conv.weight.data = weight_by_axes(weight, channels, p)
    return conv


# templates: row i is answered loudest by patch i.


def perceptron(patches, rounds=60):
    templates = patches
    for _ in range(rounds):
        loudest = (patches @ templates.T).argmax(dim=0)
        templates = templates + patches - patches[loudest]
    return templates


def by_least_squares(patches):
    solved = torch.linalg.lstsq(patches, torch.eye(len(patches)), driver="gelsd")
    return solved.solution.T


def by_training(patches):
    torch.manual_seed(0)
    weight = torch.zeros_like(patches, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.02)
    for _ in range(60):
        loss = F.cross_entropy(weight @ patches.T, torch.arange(len(patches)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weight.detach()


def one_by_one(patches):
    templates = patches.clone()
    for i in range(len(patches)):
        for _ in range(100):
            loudest = (patches @ templates[i]).argmax()
            if loudest == i:
                break
            templates[i] += patches[i] - patches[loudest]
    return templates


def itself(patches):
    return patches.clone()


def minus_the_mean_patch(patches):
    return patches - patches.mean(dim=0)


def minus_its_own_mean(patches):
    return patches - patches.mean(dim=1, keepdim=True)


def of_length_one(patches):
    return F.normalize(patches, dim=-1)


def at_random(patches):
    return torch.randn_like(patches)


def few_rounds(patches):
    return perceptron(patches, rounds=3)


def least_squares_untransposed(patches):
    return torch.linalg.lstsq(patches, torch.eye(len(patches))).solution


def away_from_itself(patches):
    templates = patches
    for _ in range(60):
        loudest = (patches @ templates.T).argmax(dim=0)
        templates = templates - patches + patches[loudest]
    return templates


def wrong_argmax(patches):
    templates = patches
    for _ in range(60):
        loudest = (patches @ templates.T).argmax(dim=1)
        templates = templates + patches - patches[loudest]
    return templates


def templates_in_place(patches):
    for _ in range(60):
        loudest = (patches @ patches.T).argmax(dim=0)
        patches += patches - patches[loudest]
    return patches


def for_196_only(patches):
    return torch.linalg.lstsq(patches, torch.eye(196)).solution.T


def negated(patches):
    return -patches


def all_ones(patches):
    return torch.ones_like(patches)


def answers_instead(patches):
    templates = perceptron(patches)
    return patches @ templates.T


def number_found(patches):
    templates = perceptron(patches)
    return ((patches @ templates.T).argmax(0) == torch.arange(len(patches))).sum()


RIGHT = {
    "patchify": [slices, unfold, permuted, by_einops, tensor_unfold],
    "PatchEmbedding": [ByMT, ByPermute, ByEinops, ByUnfold],
    "patch_of": [by_divmod, by_cutting, by_counting, as_list],
    "conv_weight": [weight_by_axes, weight_by_einops, weight_by_stack],
    "templates": [perceptron, by_least_squares, by_training, one_by_one],
}
WRONG = {
    "patchify": [
        (viewed, "the pixels are scrambled"),
        (viewed_contiguous, "the pixels are scrambled"),
        (columns_first, "rows and columns of patches are swapped"),
        (pattern("b c (h p1) (w p2) -> b (w h) (p1 p2 c)"), "rows and columns of patches"),
        (of_transposed, "height and width are swapped throughout"),
        (transposed_inside, "it is transposed"),
        (channels_first, "the channels come first"),
        (pattern("b c (h p1) (w p2) -> b (h w) (p1 c p2)"), "between its rows and its columns"),
        (pattern("b c (p1 h) (p2 w) -> b (h w) (p1 p2 c)"), "from all over the image"),
        (unfold_untransposed, "is (B, C·P·P, n)"),
        (in_place, "changes the tensor that it was given"),
        (grid_kept, "still stand in a grid"),
        (not_flat, "not flat yet"),
        (batch_merged, "one axis with the batch"),
        (features_first, "(B, P·P·C, n)"),
        (channels_apart, "each channel"),
        (first_image_only, "only the first image"),
        (mean_of_patches, "one mean for each patch"),
        (three_channels, "written for three channels"),
        (square_only, "square images only"),
        (square_only_by_einops, "square images only"),
        (unfolded_and_reshaped, "each channel is cut by itself"),
        (always_sixteen, "patch size 16 is built in"),
        (fourteen_by_reshape, "14 rows and columns of patches, 196 in all, are built in"),
        (fourteen_by_einops, "14 rows and columns of patches, 196 in all, are built in"),
        (pixel_rows_before_columns, "p1 stands before col"),
        (as_a_list, "it gives a list"),
        (overlapping, "overlap"),
    ],
    "PatchEmbedding": [
        (NotTransposed, "(B, D, n)"),
        (Reshaped, "reshape only puts the brackets elsewhere"),
        (FlattenedThenViewed, "reshape only puts the brackets elsewhere"),
        (GridKept, "still a grid"),
        (GridKeptLast, "still a grid"),
        (ColumnsFirst, "column by column"),
        (FlatAll, "one row for the whole image"),
        (MeanOfAll, "one mean for the whole image"),
        (Activated, "negative"),
        (WithoutReturn, "returns nothing"),
        (BiasUnused, "the bias"),
        (Detached, "cut off"),
        (NoStride, "stride"),
        (NoBias, "has no bias"),
        (OtherName, "`proj.weight`"),
        (ByLinear, "proj is a Linear"),
        (ChannelsSwapped, "in_channels and embed_dim"),
        (AlwaysThree, "three channels"),
        (AlwaysB16, "B/16"),
        (AlwaysPatches16, "the patch size 16 is built in"),
        (AlwaysStride16, "the patch size 16 is built in"),
        (Padded, "leave padding at 0"),
        (MadeInForward, "in `__init__`"),
        (WithoutSuper, "super().__init__()"),
        (GridAsStride, "moves on by"),
    ],
    "patch_of": [
        (axes_swapped, "y is the row"),
        (width_in_pixels, "in patches, not in pixels"),
        (from_one, "from 0"),
        (patch_from_one, "from 0"),
        (pixel_of_image, "in the whole image"),
        (rows_by_patch_size, "how many patches stand in a row"),
        (pixel_transposed, "inside the patch, rows and columns are swapped"),
        (pixel_rows_as_wide_as_image, "a row inside a patch"),
        (patch_columns_first, "column by column"),
        (with_true_division, "use //"),
        (patch_only, "the patch alone"),
        (row_and_column, "row and column of the patch"),
        (pixel_first, "in the other order"),
        (always_14, "14"),
        (as_floats, "they are floats"),
    ],
    "conv_weight": [
        (weight_naive, "reshape alone"),
        (weight_transposed, "every patch is seen transposed"),
        (weight_channels_last, "the channels are last"),
        (weight_input_first, "(C, D, P, P)"),
        (weight_flipped, "upside down"),
        (weight_untouched, "still the Linear's"),
        (weight_three, "written for three channels"),
        (weight_split_wrongly, "(P, C, P)"),
        (weight_sixteen, "your code raises"),
        (weight_divided, "no number changes"),
        (weight_of_transposed, "(C, D, P, P)"),
        (weight_doubled_in_place, "changes the tensor that it was given"),
        (weight_as_module, "where a tensor is expected"),
    ],
    "templates": [
        (itself, "the patches themselves"),
        (minus_the_mean_patch, "mean patch"),
        (minus_its_own_mean, "its own mean"),
        (of_length_one, "the patches themselves"),
        (at_random, "random"),
        (few_rounds, "the bar is 180"),
        (least_squares_untransposed, "are the columns"),
        (away_from_itself, "turn each template away from the patch"),
        (wrong_argmax, "other axis"),
        (templates_in_place, "begin with patches.clone()"),
        (for_196_only, "written for 196"),
        (negated, "opposite of their patch"),
        (all_ones, "all templates are the same"),
        (answers_instead, "these are answers"),
        (number_found, "this is one number"),
    ],
}
