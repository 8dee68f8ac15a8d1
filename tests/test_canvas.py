"""The canvas asks the learner's own class, keeps what is drawn, and says what went wrong."""

import base64
import sys
from io import BytesIO
from types import SimpleNamespace

import pytest
import torch
from helpers import close
from PIL import Image
from torch import nn

from vit_course import explorer
from vit_course.canvases import hands
from vit_course.explorer import asking
from vit_steps import ViT, ViTConfig
from vit_steps.weights import load

SIZES = ViTConfig(16, 4, 1, 10, embed_dim=16, depth=2, num_heads=2)
DRAWING = hands().images[277]
INK = ((DRAWING.flatten() + 1) * 127.5).round().int().tolist()  # as the browser sends it


def talk(model, message, keep=None):
    """What a live canvas is sent back for a message."""
    sent = []
    widget = SimpleNamespace(send=sent.append)
    asking._reply(asking.asks(model), 16, keep)(widget, message, [])
    return sent


def test_a_drawing_gets_the_models_own_shares_and_where_its_cls_attends():
    model = load("scattered").model
    (answer,) = talk(model, {"ink": INK, "number": 3})
    image = (torch.tensor(INK) / 127.5 - 1).view(1, 1, 16, 16)
    logits, attention = model(image, return_attention=True)
    assert answer["number"] == 3
    close(torch.tensor(answer["shares"]), logits[0].softmax(dim=-1).detach())
    close(torch.tensor(answer["attends"]), attention[-1][0, :, 0, 1:].mean(dim=0).detach())


def test_an_error_of_the_learners_class_is_a_line_and_the_next_drawing_is_answered():
    faulty = ViT(SIZES)
    faulty.head = nn.Linear(3, 3)
    (answer,) = talk(faulty, {"ink": INK, "number": 1})
    assert answer["error"].startswith("RuntimeError: mat1 and mat2")
    assert "\n" not in answer["error"]


def test_the_last_drawing_is_kept_on_paper_and_opened_again(tmp_path):
    path = tmp_path / "my_drawing.png"
    assert talk(ViT(SIZES), {"ink": INK, "keep": True}, path) == [
        {"kept": "kept in my_drawing.png"}
    ]
    with Image.open(path) as picture:
        assert (picture.size, picture.getpixel((0, 0))) == ((16, 16), 255)  # paper is white
    close(explorer.kept(path, 16), DRAWING, 1 / 127)
    assert talk(ViT(SIZES), {"ink": INK, "keep": True}) == []  # nowhere


def test_a_training_is_not_disturbed_and_the_stored_picture_is_the_same_each_time():
    model = ViT(SIZES).train()
    shown = explorer.canvas(model, start=DRAWING)
    first, again = (explorer.canvas(model, start=DRAWING)._repr_mimebundle_() for _ in range(2))
    assert first == again
    assert first["text/plain"] == repr(shown)
    assert Image.open(BytesIO(base64.b64decode(first["image/png"]))).width > 600
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_without_anywidget_the_picture_stands_alone(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "anywidget", None)  # as if it were not there
    assert "image/png" in explorer.canvas(ViT(SIZES))._repr_mimebundle_()
    assert "pip install anywidget" in capsys.readouterr().out


def test_what_cannot_be_drawn_for_is_refused():
    with pytest.raises(ValueError, match="takes pictures of 3 channels and 16×16"):
        explorer.canvas(ViT(ViTConfig(16, 4, 3, 10, embed_dim=16, depth=1, num_heads=2)))
    with pytest.raises(ValueError, match=r"start is \(1, 8, 8\); this model takes \(1, 16"):
        explorer.canvas(ViT(SIZES), start=torch.zeros(1, 8, 8))
    with pytest.raises(TypeError, match="without a ViTConfig"):
        explorer.canvas(nn.Linear(2, 2))


def test_canvas_and_page_say_which_classes_are_the_learners():
    class Block(nn.Module):
        pass

    model = ViT(SIZES)
    assert asking.whose(model) == ""
    model.mine = Block()
    assert asking.whose(model).startswith("Written by you: Block. The course's: ViT, ")
