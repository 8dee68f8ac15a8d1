"""All checks: they stand under their names, and leave the learner's session as it is."""

import torch
from helpers import close
from torch.nn import functional as F

from vit_course import checks
from vit_course.checks import keeping
from vit_course.savings import photo_crops
from vit_course.teaching.unseen import TASKS
from vit_steps.images import load_image, sample_photo


def test_each_exercise_stands_in_checks_under_its_name_for_an_editor_to_complete():
    """Real imports, and a list, which an editor reads without running anything."""
    functions = {"difference", "exhibit", "mine", "my_file", "patient", "pieces", "quiz", "source"}
    assert set(checks.__all__) == {"EXERCISES"} | functions | set(checks.EXERCISES)
    assert all(getattr(checks, name) is check for name, check in checks.EXERCISES.items())
    assert all(check.name == name for name, check in TASKS.items())


def test_every_piece_of_the_learners_model_has_its_check():
    assert {check.keeps for check in TASKS.values()} - {None} == set(keeping.PIECES)
    assert all(check.keeps in (None, name) for name, check in TASKS.items())


def test_a_check_leaves_the_learners_random_numbers_and_threads_alone():
    """Though it seeds its trials by 0, and runs them on one thread."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    for name in ("patchify", "EncoderBlock", "train"):
        TASKS[name].judge(TASKS[name].reference)
        assert torch.equal(before, torch.get_rng_state())
        assert torch.get_num_threads() == 2


def test_crops_of_three_photos_are_parts_of_them_made_smaller():
    crops, other = photo_crops(3), photo_crops(3, seed=1)
    assert list(crops) == ["temple", "flower", "Grace Hopper"]
    for name, images in crops.items():
        assert images.shape == (3, 3, 32, 32)
        assert -1 <= images.min() < 0 < images.max() <= 1
        assert torch.equal(images, photo_crops(3)[name])
        assert not torch.equal(images, other[name])
    photo = 2 * load_image(sample_photo()) - 1
    corners = F.avg_pool2d(photo, 3, stride=1)  # of a crop's first pixel, wherever it is cut
    for crop in crops["Grace Hopper"]:
        place = (corners - crop[:, :1, :1]).abs().amax(dim=0).argmin().item()
        top, left = divmod(place, corners.shape[2])
        part = F.avg_pool2d(photo[:, top : top + 96, left : left + 96], 3)
        close(crop, part)
