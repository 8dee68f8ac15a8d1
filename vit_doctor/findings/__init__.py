"""The checks: each looks for one fault, says what it measures, and when that is a finding.

A new finding is one function, named like it, in the file of its subject, and in `CHECKS`: it takes
a `Patient`, and returns a `Finding`, or a `Note` of what is no fault, or raises `SoundError`, as by
`only_if`; the docstring says what it measures. tests/sick.py gets a model with the fault,
tests/sound.py one that comes near it.
"""

from . import inside_blocks, mixing, norms, output, parameters, pixels, residuals, starts, training

__all__ = ["CHECKS"]

# In the order of the report. The last two come last: another_dtype leaves the model in float64, if
# it can do that, and there no_positions is measured.
CHECKS = (
    *(output.forward_fails, output.backward_fails, output.not_finite, output.images_mixed),
    *(output.input_changed, output.parameters_changed, output.random_in_eval, output.prints),
    *(output.probabilities, output.batch_of_one),
    *(pixels.unseen_pixels, pixels.images_cropped, pixels.patches_scrambled),
    *(parameters.no_gradient, parameters.cls_unused, parameters.idle_block, parameters.hidden),
    parameters.not_saved,
    *(starts.initial_loss, starts.weights_large, starts.weights_small, starts.positions_large),
    *(starts.positions_small, starts.token_large),
    *(inside_blocks.scale_after_softmax, inside_blocks.softmax_axis, inside_blocks.softmax_unused),
    inside_blocks.softmax_missing,
    *(inside_blocks.mask_unused, inside_blocks.activation_missing, inside_blocks.activation_last),
    *(inside_blocks.scale_missing, inside_blocks.scale_width, inside_blocks.attention_uniform),
    inside_blocks.attention_saturated,
    *(mixing.heads_mixed, mixing.tokens_apart, mixing.tokens_read),
    *(norms.norm_missing, norms.final_norm_missing, norms.norm_unused, norms.norm_twice),
    *(residuals.residual_missing, residuals.shared_block),
    *(starts.bias_large, starts.eps_large),
    *(training.training_fails, training.returned_attention),
    *(output.device_fixed, output.another_dtype),
    pixels.no_positions,
)
