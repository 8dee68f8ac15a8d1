"""Answers to lesson 13's build cells and exercises, as learners would write them."""

import math

import torch
from einops import rearrange
from torch import nn
from torch.nn import functional as F

# my_share ----------------------------------------------------------------------------------------


def dealt_by_step(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(mine) * processes / len(batch)


def dealt_in_a_loop(batch, number, processes):
    mine = [p for place, p in enumerate(batch.tolist()) if place % processes == number]
    average = len(batch) / processes
    return torch.tensor(mine, dtype=torch.long), len(mine) / average


def dealt_by_a_mask(batch, number, processes):
    places = torch.arange(len(batch))
    mine = batch[places % processes == number]
    return [mine, torch.tensor(mine.numel() / batch.numel() * processes)]


def dealt_in_rows(batch, number, processes):
    filled = F.pad(batch, (0, -len(batch) % processes), value=-1)
    mine = rearrange(filled, "(rows p) -> p rows", p=processes)[number]
    mine = mine[mine >= 0]
    return mine, (len(mine) / len(batch)) / (1 / processes)


def one_weight_for_all(batch, number, processes):
    mine = batch[number::processes]
    return mine, 1.0


def one_part_for_all(batch, number, processes):
    return batch[number::processes], 1 / processes


def weight_of_a_sum(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(mine) / len(batch)


def weight_is_a_count(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(mine)


def weight_upside_down(batch, number, processes):
    mine = batch[number::processes]
    weight = len(batch) / (processes * len(mine)) if len(mine) else 0.0
    return mine, weight


def weight_upside_down_and_no_care(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(batch) / len(mine)


def weight_divided_once_more(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(mine) / len(batch) / processes


def weight_of_the_largest(batch, number, processes):
    mine = batch[number::processes]
    largest = batch[0::processes]
    return mine, len(mine) / len(largest)


def weight_of_the_floor(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(mine) / max(1, len(batch) // processes)


def weight_in_whole_numbers(batch, number, processes):
    mine = batch[number::processes]
    return mine, len(mine) * processes // len(batch)


def empty_counts_one(batch, number, processes):
    mine = batch[number::processes]
    weight = len(mine) * processes / len(batch) if len(mine) else 1.0
    return mine, weight


def neighbours(batch, number, processes):
    mine = torch.tensor_split(batch, processes)[number]
    return mine, len(mine) * processes / len(batch)


def neighbours_by_slices(batch, number, processes):
    size = math.ceil(len(batch) / processes)
    mine = batch[size * number : size * number + size]
    return mine, len(mine) * processes / len(batch)


def neighbours_by_chunk(batch, number, processes):
    mine = batch.chunk(processes)[number]
    return mine, len(mine) * processes / len(batch)


def rest_dropped(batch, number, processes):
    batch_size = len(batch) - len(batch) % processes
    mine = batch[:batch_size][number::processes]
    return mine, len(mine) * processes / len(batch)


def filled_with_the_first(batch, number, processes):
    missing = -len(batch) % processes
    long = batch
    while len(long) < len(batch) + missing:
        long = torch.cat([long, batch])
    mine = long[: len(batch) + missing][number::processes]
    return mine, len(mine) * processes / len(batch)


def step_and_start_swapped(batch, number, processes):
    mine = batch[processes::number]
    return mine, len(mine) * processes / len(batch)


def one_colon(batch, number, processes):
    mine = batch[number:processes]
    return mine, len(mine) * processes / len(batch)


def counted_from_one(batch, number, processes):
    mine = batch[(number - 1) % processes :: processes]
    return mine, len(mine) * processes / len(batch)


def places_of_the_share(batch, number, processes):
    mine = torch.arange(number, len(batch), processes)
    return mine, len(mine) * processes / len(batch)


def one_picture(batch, number, processes):
    mine = batch[number : number + 1]
    return mine, len(mine) * processes / len(batch)


def whole_batch(batch, number, processes):
    return batch, 1.0


def share_swapped(batch, number, processes):
    mine = batch[number::processes]
    return len(mine) * processes / len(batch), mine


def share_without_weight(batch, number, processes):
    return batch[number::processes]


def weight_without_share(batch, number, processes):
    return len(batch[number::processes]) * processes / len(batch)


def share_in_a_list(batch, number, processes):
    mine = batch.tolist()[number::processes]
    return mine, len(mine) * processes / len(batch)


def share_written_into(batch, number, processes):
    batch[0] = -1
    return dealt_by_step(batch, number, processes)


# accumulated_step --------------------------------------------------------------------------------


def step_by_shares(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    pieces = zip(images.tensor_split(parts), labels.tensor_split(parts))  # noqa: B905
    for x, y in pieces:
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def step_by_sums(model, optimizer, images, labels, parts):
    total = torch.zeros((), device=images.device)
    optimizer.zero_grad(set_to_none=True)
    for places in torch.arange(len(images)).tensor_split(parts):
        logits = model(images[places])
        loss = F.cross_entropy(logits, labels[places], reduction="sum") / len(labels)
        loss.backward()
        total += loss.detach()
    optimizer.step()
    return total


def step_scaled_at_the_end(model, optimizer, images, labels, parts):
    model.zero_grad()
    total = 0
    for i in range(parts):
        start, stop = i * len(images) // parts, (i + 1) * len(images) // parts
        loss = nn.CrossEntropyLoss(reduction="sum")(model(images[start:stop]), labels[start:stop])
        loss.backward()
        total = total + loss.detach()
    for parameter in model.parameters():
        parameter.grad /= len(images)
    optimizer.step()
    return total / len(images)


def step_by_autograd(model, optimizer, images, labels, parts):
    parameters = list(model.parameters())
    grads, losses = [torch.zeros_like(p) for p in parameters], []
    sizes = [len(images) // parts + (i < len(images) % parts) for i in range(parts)]
    for x, y in zip(images.split(sizes), labels.split(sizes), strict=True):
        loss = F.cross_entropy(model(x), y) * (len(y) / len(labels))
        for grad, more in zip(grads, torch.autograd.grad(loss, parameters), strict=True):
            grad += more
        losses.append(loss.data)
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad
    optimizer.step()
    return torch.stack(losses).sum()


def never_shared(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        whole += loss.detach() * len(x) / len(images)
    optimizer.step()
    return whole


def never_shared_anywhere(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def never_shared_and_mean(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        whole += loss.detach() / parts
    optimizer.step()
    return whole


def divided_by_parts(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) / parts
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def divided_by_parts_of_chunk(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.chunk(parts), labels.chunk(parts), strict=True):
        loss = F.cross_entropy(model(x), y) / parts
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def summed_over_images(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def cleared_in_the_loop(model, optimizer, images, labels, parts):
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def stepped_in_the_loop(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        optimizer.step()
        whole += loss.detach()
    return whole


def a_train_step_each(model, optimizer, images, labels, parts):
    losses = []
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean()


def never_cleared(model, optimizer, images, labels, parts):
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def cleared_before_the_step(model, optimizer, images, labels, parts):
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.zero_grad()
    optimizer.step()
    return whole


def never_stepped(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    return whole


def never_backward(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward  # noqa: B018
        whole += loss.detach()
    optimizer.step()
    return whole


def backward_after_the_loop(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        whole = whole + F.cross_entropy(model(x), y) * len(x) / len(images)
    whole.backward()
    optimizer.step()
    return whole.detach()


def backward_of_the_sum_so_far(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        whole = whole + F.cross_entropy(model(x), y) * len(x) / len(images)
        whole.backward()
    optimizer.step()
    return whole.detach()


def last_loss(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        (loss * len(x) / len(images)).backward()
    optimizer.step()
    return loss.detach()


def last_loss_shared(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
    optimizer.step()
    return loss.detach()


def mean_of_the_means(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    losses = []
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        (loss * len(x) / len(images)).backward()
        losses.append(loss.detach())
    optimizer.step()
    return sum(losses) / len(losses)


def sum_of_the_means(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        (loss * len(x) / len(images)).backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def loss_of_each(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    losses = []
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y)
        (loss * len(x) / len(images)).backward()
        losses.append(loss.detach())
    optimizer.step()
    return torch.stack(losses)


def loss_in_a_number(model, optimizer, images, labels, parts):
    return step_by_shares(model, optimizer, images, labels, parts).item()


def loss_with_its_graph(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss
    optimizer.step()
    return whole


def without_a_result(model, optimizer, images, labels, parts):
    step_by_shares(model, optimizer, images, labels, parts)


def at_once(model, optimizer, images, labels, parts):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def logits_in_one_go(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole, logits = 0.0, model(images)
    for x, y in zip(logits.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(x, y) * len(x) / len(images)
        loss.backward(retain_graph=True)
        whole += loss.detach()
    optimizer.step()
    return whole


def by_chunk(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.chunk(parts), labels.chunk(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def by_split(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.split(parts), labels.split(parts), strict=True):
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def by_whole_pieces_and_a_rest(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    size = len(images) // parts
    whole = 0.0
    for start in range(0, len(images), size):
        x, y = images[start : start + size], labels[start : start + size]
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def rest_left_out(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    size = len(images) // parts
    whole = 0.0
    for i in range(parts):
        x, y = images[i * size : (i + 1) * size], labels[i * size : (i + 1) * size]
        loss = F.cross_entropy(model(x), y) / parts
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def by_turns(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for i in range(parts):
        x, y = images[i::parts], labels[i::parts]
        loss = F.cross_entropy(model(x), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def labels_not_cut(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x in images.tensor_split(parts):
        loss = F.cross_entropy(model(x), labels) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


def without_gradients(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    with torch.no_grad():
        for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
            loss = F.cross_entropy(model(x), y) * len(x) / len(images)
            loss.backward()
            whole += loss.detach()
    optimizer.step()
    return whole


def put_in_eval(model, optimizer, images, labels, parts):
    model.eval()
    return step_by_shares(model, optimizer, images, labels, parts)


def softmax_before_the_loss(model, optimizer, images, labels, parts):
    optimizer.zero_grad()
    whole = 0.0
    for x, y in zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True):
        loss = F.cross_entropy(model(x).softmax(dim=-1), y) * len(x) / len(images)
        loss.backward()
        whole += loss.detach()
    optimizer.step()
    return whole


# merge_tokens ------------------------------------------------------------------------------------


def merged_by_gather(x, keys, sizes, r):
    keys = F.normalize(keys, dim=-1)
    alike = keys[:, 0::2] @ keys[:, 1::2].mT
    alike[:, 0] = -torch.inf
    best, partner = alike.max(dim=-1)
    order = best.argsort(dim=1, descending=True)
    gone, left = order[:, :r], order[:, r:].sort(dim=1).values
    target = partner.gather(1, gone)
    rows = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1) * sizes[..., None]
    a, b = rows[:, 0::2], rows[:, 1::2]
    width = rows.shape[-1]
    moved = a.gather(1, gone[..., None].expand(-1, -1, width))
    b = b.scatter_add(1, target[..., None].expand(-1, -1, width), moved)
    rows = torch.cat([a.gather(1, left[..., None].expand(-1, -1, width)), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def merged_in_plain_python(x, keys, sizes, r, mean=None, into=None):
    """Image by image, token by token."""
    all_x, all_sizes = [], []
    for tokens, own_keys, own_sizes in zip(x, keys, sizes, strict=True):
        count = len(tokens)
        pairs = []
        for a in range(2, count, 2):
            scores = [
                F.cosine_similarity(own_keys[a], own_keys[b], dim=0) for b in range(1, count, 2)
            ]
            b = max(range(len(scores)), key=scores.__getitem__)
            pairs.append((scores[b], a, 2 * b + 1))
        pairs.sort(key=lambda pair: pair[0], reverse=True)
        groups = {i: [i] for i in range(count)}
        for _, a, b in pairs[:r]:
            groups[b].append(a)
            del groups[a]
        new_x, new_sizes = [], []
        for first in sorted(groups, key=lambda i: (i % 2, i)):
            members = groups[first]
            size = sum(own_sizes[i] for i in members)
            new_sizes.append(size)
            new_x.append(sum(tokens[i] * own_sizes[i] for i in members) / size)
        all_x.append(torch.stack(new_x))
        all_sizes.append(torch.stack(new_sizes))
    return torch.stack(all_x), torch.stack(all_sizes)


def merged_by_a_matrix(x, keys, sizes, r):
    """A matrix (B, N - r, N) of ones says who goes where."""
    batch, count, _ = x.shape
    unit = keys / keys.norm(dim=-1, keepdim=True)
    alike = unit[:, 2::2] @ unit[:, 1::2].transpose(1, 2)  # without cls
    best, partner = alike.max(dim=2)
    gone = best.topk(r, dim=1).indices
    stays = torch.ones_like(best, dtype=torch.bool).scatter(1, gone, False)
    goes = F.one_hot(partner, count // 2).to(x) * ~stays[..., None]  # (B, A - 1, B)
    who = torch.zeros(batch, count - r, count)
    who[:, 0, 0] = 1
    for image in range(batch):
        kept = stays[image].nonzero()[:, 0]
        who[image, 1 + torch.arange(len(kept)), 2 + 2 * kept] = 1
        who[image, -(count // 2) :, 1::2] = torch.eye(count // 2)
        who[image, -(count // 2) :, 2::2] = goes[image].T
    weighted = who * sizes[:, None]  # (B, N - r, N)
    new = weighted.sum(dim=2)
    return weighted @ x / new[..., None], new


def merged_by_topk(x, keys, sizes, r):
    (ka, kb), (xa, xb), (sa, sb) = ((t[:, ::2], t[:, 1::2]) for t in (keys, x, sizes))
    scores = F.cosine_similarity(ka[:, :, None], kb[:, None], dim=-1)
    scores[:, 0] = float("-inf")
    best, partner = scores.max(-1)
    gone = best.topk(r, dim=1).indices
    mask = torch.ones(best.shape, dtype=torch.bool).scatter_(1, gone, False)
    to = partner.gather(1, gone)
    sums, new = xb * sb[..., None], sb.clone()
    for image in range(len(x)):
        for a, b in zip(gone[image].tolist(), to[image].tolist(), strict=True):
            sums[image, b] += xa[image, a] * sa[image, a]
            new[image, b] += sa[image, a]
    left = xa[mask].view(len(x), -1, x.shape[-1])
    return (
        torch.cat([left, sums / new[..., None]], dim=1),
        torch.cat([sa[mask].view(len(x), -1), new], dim=1),
    )


def merge_like(
    normalize=True, guard=-torch.inf, descending=True, sort=True, own_sizes=True, total=True,
    by_tokens=False,
):  # fmt: skip
    """The stub of the lesson, with some lines written otherwise."""

    def merge_tokens(x, keys, sizes, r):
        keys = x if by_tokens else keys
        keys = F.normalize(keys, dim=-1) if normalize else keys
        alike = keys[:, 0::2] @ keys[:, 1::2].mT
        if guard is not None:
            alike[:, 0] = guard
        best, partner = alike.max(dim=2)
        order = best.argsort(dim=1, descending=descending)
        gone, left = order[:, :r], order[:, r:]
        left = left.sort(dim=1).values if sort else left
        target = partner.gather(1, gone)
        weights = sizes if own_sizes else torch.ones_like(sizes)
        parts = [x * weights[..., None], weights[..., None], sizes[..., None]]
        rows = torch.cat(parts, dim=-1)
        a, b = rows[:, 0::2], rows[:, 1::2]
        moved = a.take_along_dim(gone[..., None], dim=1)
        b = b.scatter_add(1, target[..., None].expand_as(moved), moved)
        rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
        tokens = rows[..., :-2] / rows[..., -2:-1] if total else rows[..., :-2]
        return tokens, rows[..., -1]

    return merge_tokens


def named(name, answer):
    answer.__name__ = name
    return answer


keys_not_normalised = named("keys_not_normalised", merge_like(normalize=False))
cls_not_spared = named("cls_not_spared", merge_like(guard=None))
cls_at_zero = named("cls_at_zero", merge_like(guard=0))
least_alike = named("least_alike", merge_like(guard=torch.inf, descending=False))
ascending = named("ascending", merge_like(descending=False))
left_unsorted = named("left_unsorted", merge_like(sort=False))
plain_means = named("plain_means", merge_like(own_sizes=False))
sums_of_tokens = named("sums_of_tokens", merge_like(total=False))
sums_without_sizes = named("sums_without_sizes", merge_like(own_sizes=False, total=False))
tokens_compared = named("tokens_compared", merge_like(by_tokens=True))


def matches_of(keys, r):
    """What of the stub is right, for answers that go wrong below it."""
    unit = F.normalize(keys, dim=-1)
    alike = unit[:, 0::2] @ unit[:, 1::2].mT
    alike[:, 0] = -torch.inf
    best, partner = alike.max(dim=2)
    order = best.argsort(dim=1, descending=True)
    return order[:, :r], order[:, r:].sort(dim=1).values, partner


def distances(x, keys, sizes, r):
    near = -torch.cdist(keys[:, 0::2], keys[:, 1::2])
    near[:, 0] = -torch.inf
    best, partner = near.max(dim=2)
    order = best.argsort(dim=1, descending=True)
    return put_together(x, sizes, order[:, :r], order[:, r:].sort(dim=1).values, partner)


def put_together(x, sizes, gone, left, partner):
    target = partner.gather(1, gone)
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, 0::2], rows[:, 1::2]
    moved = a.take_along_dim(gone[..., None], dim=1)
    b = b.scatter_add(1, target[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def normalised_over_tokens(x, keys, sizes, r):
    keys = F.normalize(keys)  # dim=1
    alike = keys[:, 0::2] @ keys[:, 1::2].mT
    alike[:, 0] = -torch.inf
    best, partner = alike.max(dim=2)
    order = best.argsort(dim=1, descending=True)
    return put_together(x, sizes, order[:, :r], order[:, r:].sort(dim=1).values, partner)


def first_half_with_second(x, keys, sizes, r):
    count = (x.shape[1] + 1) // 2
    unit = F.normalize(keys, dim=-1)
    alike = unit[:, :count] @ unit[:, count:].mT
    alike[:, 0] = -torch.inf
    best, partner = alike.max(dim=2)
    order = best.argsort(dim=1, descending=True)
    gone, left = order[:, :r], order[:, r:].sort(dim=1).values
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, :count], rows[:, count:]
    moved = a.take_along_dim(gone[..., None], dim=1)
    b = b.scatter_add(1, partner.gather(1, gone)[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def odd_into_even(x, keys, sizes, r):
    unit = F.normalize(keys, dim=-1)
    best, partner = (unit[:, 1::2] @ unit[:, 0::2].mT).max(dim=2)
    order = best.argsort(dim=1, descending=True)
    gone, left = order[:, :r], order[:, r:].sort(dim=1).values
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, 1::2], rows[:, 0::2]
    moved = a.take_along_dim(gone[..., None], dim=1)
    b = b.scatter_add(1, partner.gather(1, gone)[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def b_in_front(x, keys, sizes, r):
    new, new_sizes = merged_by_gather(x, keys, sizes, r)
    count = x.shape[1] // 2
    return (
        torch.cat([new[:, -count:], new[:, :-count]], dim=1),
        torch.cat([new_sizes[:, -count:], new_sizes[:, :-count]], dim=1),
    )


def in_reading_order(x, keys, sizes, r):
    gone, left, partner = matches_of(keys, r)
    new, new_sizes = put_together(x, sizes, gone, left, partner)
    odd = torch.arange(1, x.shape[1], 2).expand(len(x), -1)
    places = torch.cat([2 * left, odd], dim=1).argsort(dim=1)
    return new.take_along_dim(places[..., None], dim=1), new_sizes.gather(1, places)


def left_out_only(x, keys, sizes, r):
    left = matches_of(keys, r)[1]
    new = torch.cat([x[:, 0::2].take_along_dim(left[..., None], dim=1), x[:, 1::2]], dim=1)
    return new, torch.cat([sizes[:, 0::2].gather(1, left), sizes[:, 1::2]], dim=1)


def last_one_wins(x, keys, sizes, r):
    gone, left, partner = matches_of(keys, r)
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, 0::2], rows[:, 1::2].clone()
    for image in range(len(x)):
        target = partner[image, gone[image]]
        b[image, target] += a[image, gone[image]]
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def replaced(x, keys, sizes, r):
    gone, left, partner = matches_of(keys, r)
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, 0::2], rows[:, 1::2]
    moved = a.take_along_dim(gone[..., None], dim=1)
    b = b.scatter(1, partner.gather(1, gone)[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def sizes_of_before(x, keys, sizes, r):
    gone, left, partner = matches_of(keys, r)
    new, _ = put_together(x, sizes, gone, left, partner)
    return new, torch.cat([sizes[:, 0::2].gather(1, left), sizes[:, 1::2]], dim=1)


def sizes_of_one(x, keys, sizes, r):
    new, new_sizes = merged_by_gather(x, keys, sizes, r)
    return new, torch.ones_like(new_sizes)


def divided_by_two(x, keys, sizes, r):
    new, new_sizes = merged_by_gather(x, keys, sizes, r)
    return new * new_sizes[..., None] / 2, new_sizes


def unweighted_over_sizes(x, keys, sizes, r):
    gone, left, partner = matches_of(keys, r)
    target = partner.gather(1, gone)
    rows = torch.cat([x, sizes[..., None]], dim=-1)
    a, b = rows[:, 0::2], rows[:, 1::2]
    moved = a.take_along_dim(gone[..., None], dim=1)
    b = b.scatter_add(1, target[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def into_the_first_of_b(x, keys, sizes, r):
    gone, left, partner = matches_of(keys, r)
    rows = torch.cat([x * sizes[..., None], sizes[..., None]], dim=-1)
    a, b = rows[:, 0::2], rows[:, 1::2]
    moved = a.take_along_dim(gone[..., None], dim=1)
    target = partner[:, :r]
    b = b.scatter_add(1, target[..., None].expand_as(moved), moved)
    rows = torch.cat([a.take_along_dim(left[..., None], dim=1), b], dim=1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1]


def matched_as_the_first(x, keys, sizes, r):
    gone, left, partner = (t[:1].expand(len(x), -1) for t in matches_of(keys, r))
    return put_together(x, sizes, gone, left, partner)


def first_r(x, keys, sizes, r):
    _, _, partner = matches_of(keys, r)
    count = (x.shape[1] + 1) // 2
    places = torch.arange(count).expand(len(x), -1)
    left = torch.cat([places[:, :1], places[:, r + 1 :]], dim=1)
    return put_together(x, sizes, places[:, 1 : r + 1], left, partner)


def merge_swapped(x, keys, sizes, r):
    new, new_sizes = merged_by_gather(x, keys, sizes, r)
    return new_sizes, new


def tokens_alone(x, keys, sizes, r):
    return merged_by_gather(x, keys, sizes, r)[0]


def sizes_with_an_axis(x, keys, sizes, r):
    new, new_sizes = merged_by_gather(x, keys, sizes, r)
    return new, new_sizes.unsqueeze(-1)


def merged_without_gradients(x, keys, sizes, r):
    with torch.no_grad():
        return merged_by_gather(x, keys, sizes, r)


def merged_into_the_input(x, keys, sizes, r):
    x *= sizes[..., None]
    return merged_by_gather(x / sizes[..., None], keys, sizes, r)


def flat_index(x, keys, sizes, r):
    gone, _, partner = matches_of(keys, r)
    a, b = x[:, 0::2], x[:, 1::2]
    b = b.scatter_add(1, partner.gather(1, gone), a.gather(1, gone))
    return torch.cat([a, b], dim=1), sizes


def absolute_cosines(x, keys, sizes, r):
    unit = F.normalize(keys, dim=-1)
    alike = (unit[:, 0::2] @ unit[:, 1::2].mT).abs()
    alike[:, 0] = -torch.inf
    best, partner = alike.max(dim=2)
    order = best.argsort(dim=1, descending=True)
    return put_together(x, sizes, order[:, :r], order[:, r:].sort(dim=1).values, partner)


# crossover ---------------------------------------------------------------------------------------


def crossover_in_short(embed_dim, mlp_ratio):
    return (2 + mlp_ratio) * embed_dim


def crossover_by_parts(embed_dim, mlp_ratio):
    qkv, proj = 3 * embed_dim**2, embed_dim**2
    mlp = 2 * embed_dim * (mlp_ratio * embed_dim)
    return (qkv + proj + mlp) / (2 * embed_dim)


def crossover_by_search(embed_dim, mlp_ratio):
    few, many = 1.0, 1e9
    for _ in range(200):
        tokens = (few + many) / 2
        linears = tokens * (4 + 2 * mlp_ratio) * embed_dim**2
        if 2 * tokens**2 * embed_dim < linears:
            few = tokens
        else:
            many = tokens
    return few


def crossover_as_a_tensor(embed_dim, mlp_ratio):
    linears = [nn.Linear(1, 1)]  # a bias counts nothing
    assert linears
    return torch.tensor(2.0 + mlp_ratio) * embed_dim


def scores_alone(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim


def operations_on_the_right(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim**2 / (2 * 2 * embed_dim)


def without_the_mlp(embed_dim, mlp_ratio):
    return 2 * embed_dim


def the_mlp_alone(embed_dim, mlp_ratio):
    return mlp_ratio * embed_dim


def without_proj(embed_dim, mlp_ratio):
    return (3 + 2 * mlp_ratio) * embed_dim / 2


def without_qkv(embed_dim, mlp_ratio):
    return (1 + 2 * mlp_ratio) * embed_dim / 2


def half_an_mlp(embed_dim, mlp_ratio):
    return (4 + mlp_ratio) * embed_dim / 2


def qkv_once(embed_dim, mlp_ratio):
    return (1 + 1 + 2 * mlp_ratio) * embed_dim / 2


def ratio_squared(embed_dim, mlp_ratio):
    return (4 * embed_dim**2 + (mlp_ratio * embed_dim) ** 2) / (2 * embed_dim)


def six_times(embed_dim, mlp_ratio):
    return 6 * embed_dim


def without_d(embed_dim, mlp_ratio):
    return 2 + mlp_ratio


def with_d_squared(embed_dim, mlp_ratio):
    return (2 + mlp_ratio) * embed_dim * embed_dim


def crossover_upside_down(embed_dim, mlp_ratio):
    return 2 * embed_dim / (4 + 2 * mlp_ratio)


def linears_of_a_token(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim**2


def ratio_cut(embed_dim, mlp_ratio):
    return (2 + int(mlp_ratio)) * embed_dim


def both_sides(embed_dim, mlp_ratio):
    return (4 + 2 * mlp_ratio) * embed_dim**2, 2 * embed_dim


def crossover_printed(embed_dim, mlp_ratio):
    str((2 + mlp_ratio) * embed_dim)


# int8_rows ---------------------------------------------------------------------------------------


def rows_by_amax(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def rows_one_by_one(weight):
    whole, scales = [], []
    for row in weight:
        scale = max(row.abs().max().item(), 0) / 127 or 1.0
        whole.append([round(number / scale) for number in row.tolist()])
        scales.append([scale])
    return torch.tensor(whole, dtype=torch.int8), torch.tensor(scales)


def rows_by_limits(weight):
    largest = torch.maximum(weight.max(dim=1).values, -weight.min(dim=1).values)[:, None]
    scales = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return [torch.floor(weight / scales + 0.5).char(), scales]


def rows_by_norm(weight):
    scales = weight.norm(p=torch.inf, dim=1, keepdim=True) / 127
    scales = scales.masked_fill(scales == 0, 1)
    return weight.div(scales).round().clamp(-127, 127).type(torch.int8), scales


def one_scale(weight):
    scale = weight.abs().max() / 127
    return (weight / scale).round().to(torch.int8), scale


def one_scale_in_all_rows(weight):
    scales = (weight.abs().max() / 127).repeat(len(weight), 1)
    return (weight / scales).round().to(torch.int8), scales


def scales_of_columns(weight):
    scales = weight.abs().amax(dim=0, keepdim=True) / 127
    return (weight / scales).round().to(torch.int8), scales


def largest_with_its_sign(weight):
    scales = weight.amax(dim=1, keepdim=True) / 127
    return (weight / scales).round().to(torch.int8), scales


def over_128(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 128
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def over_255(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 255
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def twice_over_255(weight):
    scales = 2 * weight.abs().amax(dim=1, keepdim=True) / 255
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def by_the_mean(weight):
    scales = weight.abs().mean(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def not_divided(weight):
    scales = weight.abs().amax(dim=1, keepdim=True)
    scales[scales == 0] = 1
    return (weight / scales).round().to(torch.int8), scales


def cut_off(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).to(torch.int8), scales


def rounded_down(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).floor().to(torch.int8), scales


def still_fractions(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return weight / scales, scales


def whole_in_floats(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round(), scales


def whole_in_int(weight):
    whole, scales = rows_by_amax(weight)
    return whole.int(), scales


def whole_in_uint8(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weight / scales).round().long().to(torch.uint8), scales


def scales_upside_down(weight):
    scales = 127 / weight.abs().amax(dim=1, keepdim=True)
    scales[scales.isinf()] = 1
    return (weight * scales).round().to(torch.int8), scales


def scales_in_a_row(weight):
    whole, scales = rows_by_amax(weight)
    return whole, scales[:, 0]


def scales_that_do_not_meet(weight):
    scales = weight.abs().amax(dim=1) / 127
    return (weight / scales).round().to(torch.int8), scales


def zeros_forgotten(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    return (weight / scales).round().to(torch.int8), scales


def zeros_clamped(weight):
    scales = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
    return (weight / scales).round().to(torch.int8), scales


def zeros_with_a_little(weight):
    scales = (weight.abs().amax(dim=1, keepdim=True) + 1e-12) / 127
    return (weight / scales).round().to(torch.int8), scales


def from_end_to_end(weight):
    low, high = weight.min(dim=1, keepdim=True).values, weight.max(dim=1, keepdim=True).values
    scales = (high - low) / 255
    scales[scales == 0] = 1
    return ((weight - low) / scales - 128).round().to(torch.int8), scales


def put_back(weight):
    whole, scales = rows_by_amax(weight)
    return whole * scales


def signs_lost(weight):
    weight = weight.abs()
    return rows_by_amax(weight)


def rows_swapped(weight):
    whole, scales = rows_by_amax(weight)
    return scales, whole


def whole_alone(weight):
    return rows_by_amax(weight)[0]


def written_into(weight):
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales[scales == 0] = 1
    weight /= scales
    return weight.round().to(torch.int8), scales


# merge_schedule ----------------------------------------------------------------------------------


def middle_and_end():
    return [0, 4, 3, 4]


def most_in_the_third():
    return [0, 3, 4, 4]


def all_that_is_left_at_the_end():
    return (0, 4, 2, 8)


def one_in_each():
    return [1, 1, 1, 1]


def two_in_each():
    return [2, 2, 2, 2]


def three_in_each():
    return [3, 3, 3, 3]


def at_the_start():
    return [5, 0, 0, 0]


def at_the_start_and_the_end():
    return [4, 0, 0, 6]


def at_the_end_alone():
    return [0, 0, 0, 8]


def in_one_go():
    return [8, 4, 2, 1]


def nothing_at_all():
    return [0, 0, 0, 0]


def one_number():
    return 2


def three_numbers():
    return [0, 4, 8]


def below_zero():
    return [0, 8, -1, 8]


def as_fractions():
    return [0.0, 3.5, 4.0, 4.0]


def as_a_tensor():
    return torch.tensor([0, 4, 3, 4])


def schedule_in_words():
    return "0, 4, 3, 4"


RIGHT = {
    "my_share": [dealt_by_step, dealt_in_a_loop, dealt_by_a_mask, dealt_in_rows],
    "accumulated_step": [
        step_by_shares,
        step_by_sums,
        step_scaled_at_the_end,
        step_by_autograd,
    ],
    "merge_tokens": [
        merged_by_gather,
        merged_in_plain_python,
        merged_by_a_matrix,
        merged_by_topk,
    ],
    "crossover": [
        crossover_in_short,
        crossover_by_parts,
        crossover_by_search,
        crossover_as_a_tensor,
    ],
    "int8_rows": [rows_by_amax, rows_one_by_one, rows_by_limits, rows_by_norm],
    "merge_schedule": [middle_and_end, most_in_the_third, all_that_is_left_at_the_end],
}

WRONG = {
    "my_share": [
        (one_weight_for_all, "every share counts alike"),
        (one_part_for_all, "every share counts alike"),
        (weight_of_a_sum, "multiply by processes"),
        (weight_is_a_count, "divide it by what a share has on average"),
        (weight_upside_down, "upside down"),
        (weight_upside_down_and_no_care, "upside down"),
        (weight_divided_once_more, "divided by processes where it is multiplied"),
        (weight_of_the_largest, "compare it with the average"),
        (weight_of_the_floor, "divide by /"),
        (weight_in_whole_numbers, "loses its fraction"),
        (empty_counts_one, "nothing of the batch"),
        (neighbours, "take turns"),
        (neighbours_by_slices, "take turns"),
        (neighbours_by_chunk, "take turns"),
        (rest_dropped, "nobody's"),
        (filled_with_the_first, "are repeated"),
        (step_and_start_swapped, "starts at the process's own number"),
        (one_colon, "one colon is too few"),
        (counted_from_one, "counted from 0"),
        (places_of_the_share, "places in the batch"),
        (one_picture, "first picture alone"),
        (whole_batch, "the whole batch"),
        (share_swapped, "changed places"),
        (share_without_weight, "the weight is missing"),
        (weight_without_share, "the pictures are missing"),
        (share_in_a_list, "in a list"),
        (share_written_into, "changes the tensor that it was given"),
    ],
    "accumulated_step": [
        (never_shared, "`parts` times too large"),
        (never_shared_anywhere, "`parts` times too large"),
        (never_shared_and_mean, "`parts` times too large"),
        (divided_by_parts, "the pieces differ in size"),
        (divided_by_parts_of_chunk, "the pieces differ in size"),
        (summed_over_images, "divide by len(images)"),
        (cleared_in_the_loop, "only the last piece counts"),
        (stepped_in_the_loop, "one step, after the loop"),
        (a_train_step_each, "one step, after the loop"),
        (never_cleared, "gradients of the step before"),
        (cleared_before_the_step, "finds no gradient"),
        (never_stepped, "`optimizer.step()` is missing"),
        (never_backward, "finds no gradient"),
        (backward_after_the_loop, "all go forward before one goes back"),
        (backward_of_the_sum_so_far, "backward runs twice"),
        (last_loss, "the last piece's alone"),
        (last_loss_shared, "the last piece's, by its share"),
        (mean_of_the_means, "the mean of the pieces' means"),
        (sum_of_the_means, "the sum of the pieces' means"),
        (loss_of_each, "one for each piece"),
        (loss_in_a_number, "a plain number"),
        (loss_with_its_graph, "tied to its graph"),
        (without_a_result, "returns nothing"),
        (at_once, "the whole batch goes through the model at once"),
        (logits_in_one_go, "the whole batch goes through the model at once"),
        (by_chunk, "tensor_split gives"),
        (by_split, "`parts` says how many"),
        (by_whole_pieces_and_a_rest, "one piece more"),
        (rest_left_out, "left over"),
        (by_turns, "cut the batch in its order"),
        (labels_not_cut, "cut the labels as you cut the images"),
        (without_gradients, "no way back from the loss"),
        (put_in_eval, "evaluation mode"),
        (softmax_before_the_loss, "a softmax too many"),
    ],
    "merge_tokens": [
        (keys_not_normalised, "dot product"),
        (distances, "by their distance"),
        (normalised_over_tokens, "normalised along the tokens"),
        (tokens_compared, "the tokens themselves are compared"),
        (absolute_cosines, "the sign of the cosine"),
        (least_alike, "the least alike pairs"),
        (ascending, "cls is merged first"),
        (cls_not_spared, "cls is merged like any other"),
        (cls_at_zero, "a 0 in the row of cls"),
        (first_r, "the first r of A"),
        (first_half_with_second, "the first half"),
        (odd_into_even, "the two sets are swapped"),
        (left_unsorted, ".sort(dim=1).values"),
        (b_in_front, "B comes first here"),
        (in_reading_order, "the order in which they came"),
        (left_out_only, "that is leaving out"),
        (last_one_wins, "the last alone arrives"),
        (replaced, "is replaced by that of A"),
        (plain_means, "every member counts alike"),
        (sums_of_tokens, "these are sums; divide"),
        (sums_without_sizes, "never weighted by their sizes"),
        (unweighted_over_sizes, "summed without their sizes"),
        (divided_by_two, "divided by the number of members"),
        (sizes_of_before, "their sizes are those of before"),
        (sizes_of_one, "all sizes are 1"),
        (into_the_first_of_b, "the first r of B"),
        (matched_as_the_first, "as the first is"),
        (merge_swapped, "changed places"),
        (tokens_alone, "the sizes are missing"),
        (sizes_with_an_axis, "an axis too many"),
        (merged_without_gradients, "no gradient passes"),
        (merged_into_the_input, "changes the tensor that it was given"),
        (flat_index, "as many axes"),
    ],
    "crossover": [
        (scores_alone, "one of the two is missing"),
        (operations_on_the_right, "multiply-adds on both"),
        (without_the_mlp, "the MLP is missing"),
        (the_mlp_alone, "qkv and proj are missing"),
        (without_proj, "proj is missing"),
        (without_qkv, "qkv is missing"),
        (half_an_mlp, "two Linears"),
        (qkv_once, "qkv counts once"),
        (ratio_squared, "is squared"),
        (six_times, "holds for 4 alone"),
        (without_d, "D is missing"),
        (with_d_squared, "D is squared"),
        (crossover_upside_down, "upside down"),
        (linears_of_a_token, "cost for one token"),
        (ratio_cut, "loses its fraction"),
        (both_sides, "give one number"),
        (crossover_printed, "returns nothing"),
    ],
    "int8_rows": [
        (one_scale, "one for each row"),
        (one_scale_in_all_rows, "one for each row"),
        (scales_of_columns, "those of the columns"),
        (largest_with_its_sign, "the sign is kept"),
        (over_128, "divided by 128"),
        (over_255, "255 steps"),
        (twice_over_255, "255 steps"),
        (by_the_mean, "it is the mean"),
        (not_divided, "the division by 127 is missing"),
        (cut_off, "round first"),
        (rounded_down, "round first"),
        (still_fractions, "the fractions are still there"),
        (whole_in_floats, "not held in 8 bits"),
        (whole_in_int, "not held in 8 bits"),
        (whole_in_uint8, "uint8 holds 0 to 255"),
        (scales_upside_down, "upside down"),
        (scales_in_a_row, "(rows, 1)"),
        (scales_that_do_not_meet, "(rows, 1)"),
        (zeros_forgotten, "the scale 1"),
        (zeros_clamped, "the scale 1"),
        (zeros_with_a_little, "the scale 1"),
        (from_end_to_end, "evenly around 0"),
        (put_back, "the weight after rounding"),
        (signs_lost, "the signs are lost"),
        (rows_swapped, "changed places"),
        (whole_alone, "the scales are missing"),
        (written_into, "changes the tensor that it was given"),
    ],
    "merge_schedule": [
        (one_in_each, "at most 75% may be left"),
        (two_in_each, "are asked for"),
        (three_in_each, "are asked for"),
        (at_the_start, "which token does the head still read"),
        (at_the_start_and_the_end, "one patch alone"),
        (at_the_end_alone, "at most 75% may be left"),
        (in_one_go, "all that can be merged"),
        (nothing_at_all, "nothing is merged"),
        (one_number, "one alone is not a schedule"),
        (three_numbers, "the model has 4 blocks"),
        (below_zero, "0 tokens or more"),
        (as_fractions, "give whole numbers"),
        (as_a_tensor, "it gives a tensor"),
        (schedule_in_words, "a list of four"),
    ],
}
