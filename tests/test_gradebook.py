"""What a teacher adds to a grading's tables: points by hand, and a roster."""

import pytest

from vit_course.teaching import gradebook

TASKS = """student_id,assignment,task,score,max_score
Mina,03_heads,split_heads,0,7
Mina,03_heads,rows_of,5,5
Kim_Li,03_heads,split_heads,7,7
"""
GRADES = """assignment,student_id,score,max_score
03_heads,Mina,5.0,12.0
03_heads,Kim_Li,7.0,12.0
"""


@pytest.fixture
def to(tmp_path):
    (tmp_path / "tasks.csv").write_text(TASKS, encoding="utf-8")
    (tmp_path / "grades.csv").write_text(GRADES, encoding="utf-8")
    return tmp_path


def lay(to, *lines: str, name: str = "by_hand.csv"):
    (to / name).write_text("\n".join(lines), encoding="utf-8-sig")  # as a spreadsheet saves it
    return to / name


def scores(to) -> dict[str, str]:
    return {row["student_id"]: row["score"] for row in gradebook.table(to / "grades.csv")}


def test_points_by_hand_are_in_both_tables(to):
    assert gradebook.by_hand(to) == []
    lay(to, "student_id,assignment,task,score", "Mina,03_heads,split_heads,3.5")
    assert gradebook.by_hand(to) == ["Mina, 03_heads, split_heads: 3.5 by hand"]
    assert gradebook.table(to / "tasks.csv")[0]["score"] == "3.5"
    assert scores(to) == {"Mina": "8.5", "Kim_Li": "7.0"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Mina,03_heads,trust_split,3", "tasks.csv has no trust_split of Mina in 03_heads"),
        ("Mina,03_heads,split_heads,8", "split_heads of Mina may have 0 to 7, not '8'"),
        ("Mina,03_heads,split_heads,-1", "may have 0 to 7, not '-1'"),
        ("Mina,03_heads,split_heads,²", "may have 0 to 7, not '²'"),
        ("Mina,03_heads,split_heads,", "line 2: no score; its columns are student_id,assign"),
    ],
)
def test_points_that_a_task_cannot_have_are_refused_and_nothing_is_changed(line, problem, to):
    lay(to, "student_id,assignment,task,score", line)
    with pytest.raises(ValueError, match=problem):
        gradebook.by_hand(to)
    assert (to / "tasks.csv").read_text("utf-8") == TASKS
    assert (to / "grades.csv").read_text("utf-8") == GRADES


def test_a_roster_gives_names_and_a_line_to_who_handed_in_nothing(to):
    roster = lay(to, "student_id,name", 'Kim Li,"Li, Kim"', "Ada,Ada L.", name="names.csv")
    notes = gradebook.named(to, roster, {"Kim Li": "Kim_Li"})
    assert notes == ["Mina is not in names.csv"]
    rows = {row["student_id"]: row for row in gradebook.table(to / "grades.csv")}
    assert {student: row["name"] for student, row in rows.items()} == {
        "Mina": "",
        "Kim_Li": "Li, Kim",
        "Ada": "Ada L.",
    }
    assert (rows["Ada"]["score"], rows["Ada"]["max_score"]) == ("0.0", "12.0")
    with pytest.raises(ValueError, match="no name; its columns are student_id,name"):
        gradebook.named(to, lay(to, "student_id,names", "Ada,Ada L."), {})
