"""What can be seen of a model from the outside: images in, logits out, in any dtype."""

import torch

from ..patient import SAME, Patient, SoundError, need, only_if
from ..report import Finding

NO_LOGITS = "the model gave no logits"


def forward_fails(p: Patient) -> Finding:
    """Run two images. No threshold: an error, or an output in which no logits can be found."""
    only_if(p.logits is None)
    if p.answer.error:
        return Finding(
            f"two images {tuple(p.images.shape)}: {p.answer.error}",
            "nothing else can be examined before the model runs: mend this line first",
            p.answer.where,
        )
    return Finding(
        f"two images {tuple(p.images.shape)}: no logits (2, classes) in what came out",
        "a classifier gives one row of numbers for each image: let the head read one token, "
        "or the mean of all",
    )


def backward_fails(p: Patient) -> Finding:
    """Send a gradient back from the logits of two images. No threshold: an error is a finding."""
    need(p.logits, NO_LOGITS)
    only_if(p.backward_error)
    return Finding(
        f"the gradient of the logits: {p.backward_error}",
        "forward alone runs, and training cannot; x += y writes into what relu, say, keeps for its "
        "gradient: write x = x + y",
    )


def not_finite(p: Patient) -> Finding:
    """Look for NaN and infinity in the logits of two images of noise; one is enough."""
    logits = need(p.logits, NO_LOGITS)
    count = only_if(int((~logits.isfinite()).sum()))
    return Finding(
        f"{count} of {logits.numel()} logits are NaN or infinite",
        "one NaN makes the loss, and with it every weight, NaN: log, sqrt and / by what may be 0",
    )


def images_mixed(p: Patient) -> Finding:
    """Measure the first image's logits' gradient at the second image; sound is zero, exactly."""
    gradients = need(p.pixel_gradients, "no gradient reaches the images")
    first, second = (float(gradients[i].abs().max()) for i in (0, 1))
    only_if(second > 1e-6 * first)
    return Finding(
        f"the first image's logits change with the second image: {second / max(first, 1e-30):.2g} "
        "of the influence of its own pixels",
        "a prediction then depends on what else is in the batch: an axis is taken for another; "
        "torch's attention wants batch_first=True where the batch comes first",
    )


def input_changed(p: Patient) -> Finding:
    """Compare the images before and after forward, to the last bit."""
    need(p.logits, NO_LOGITS)
    only_if(p.input_changed)
    return Finding(
        "the images differ after forward",
        "the caller's images are spoilt: a second look at them gives something else; write x = "
        "x + y, not x += y",
    )


def parameters_changed(p: Patient) -> Finding:
    """Compare every parameter before and after the runs in eval mode, to the last bit."""
    need(p.logits, NO_LOGITS)
    now = dict(p.model.named_parameters())
    names = only_if(
        [n for n, old in p.old_parameters.items() if n in now and not torch.equal(old, now[n])]
    )
    return Finding(
        f"forward in eval mode changed {', '.join(names[:3])}",
        "weights are for the optimizer alone to change; here each prediction changes the next",
        names[0],
    )


def random_in_eval(p: Patient) -> Finding:
    """Run one image twice with different random states; logits may differ by SAME."""
    reason = "an image cannot be compared with itself"
    reference = need(p.reference, reason)
    need(not {"parameters changed", "not finite"} & set(p.found_names), reason)
    again = p.ask(p.sample, seed=1).logits
    difference = 0.0 if again is None else p.difference(again, reference)
    only_if(difference > SAME)
    return Finding(
        f"the same image twice, in eval mode: logits differ by {difference:.2g} of their spread",
        "dropout that stays on in eval makes each prediction a draw; pass training=self.training, "
        "or use nn.Dropout",
    )


def prints(p: Patient) -> Finding:
    """Listen to stdout during forward; one character is enough."""
    text, where = p.answer.printed
    only_if(text.strip())
    return Finding(
        f"forward prints {text.strip().splitlines()[0][:60]!r}",
        "a line for each step of training: take the print out",
        where,
    )


def probabilities(p: Patient) -> Finding:
    """Tell whether the outputs are positive and each image's sum to 1, within 1e-3.

    Logits of two images do so by chance never.
    """
    logits = need(p.logits, NO_LOGITS)
    need(logits.shape[1] > 1, "there is one class")
    sums = logits.float().sum(1)
    only_if((logits >= 0).all() and (sums - 1).abs().max() <= 1e-3)
    return Finding(
        f"the outputs are not negative and sum to {float(sums[0]):.3f}: softmax was applied",
        "nn.CrossEntropyLoss applies softmax itself; twice, it can hardly fall: give logits",
    )


def batch_of_one(p: Patient) -> Finding:
    """Run one image alone, in eval mode; an error, or logits of another shape, is a finding."""
    logits = need(p.logits, NO_LOGITS)
    only_if(p.single.logits is None or p.single.logits.shape != logits[:1].shape)
    return Finding(
        f"one image alone: {p.single.error or 'no logits (1, classes) in what came out'}",
        "the last batch of an epoch, and every use of the model, may hold one image; squeeze() "
        "without an axis takes the batch's away: squeeze(1)",
        p.single.where,
    )


def device_fixed(p: Patient) -> Finding:
    """Look for tensors that were told no device, or plain attributes, that meet others in forward.

    So is autocast for "cuda" by name, where nothing on its line asks whether there is one.
    """
    need(p.logits, NO_LOGITS)
    why = "with the model on a GPU, or without one, it fails or does nothing: take x.device"
    if p.devices.cuda_casts:
        line, where = p.devices.cuda_casts[0]
        return Finding(f"autocast is for cuda alone: {line}", f"{why}.type", where)
    meeting, where = only_if(p.devices.meetings)[0]
    source = "it was made without a device, or is no buffer, and stays on the CPU"
    return Finding(f"{meeting}; {source}", why, where)


def another_dtype(p: Patient) -> Finding:
    """Run the model and one image in float64; an error is a finding. The model stays in float64."""
    need(p.reference, NO_LOGITS)
    need(p.images.dtype == torch.float32, f"the model is in {p.images.dtype}")
    p.model.double()
    answer = p.ask(p.sample.double())
    if not answer.error:
        p.reference64 = answer.logits
        raise SoundError
    p.model.float()
    return Finding(
        f"model and image in float64: {answer.error}",
        "a dtype written into the code keeps the model from float64, bfloat16 and half: take "
        "x.dtype",
        answer.where,
    )
