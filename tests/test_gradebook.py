"""The tables of a grading: points by hand, the names of a class, and who handed in nothing."""

import pytest

from vit_course.teaching import gradebook

MOST = {
    ("Mina", "03_heads", "split_heads"): 7.0,
    ("Mina", "03_heads", "rows_of"): 5.0,
    ("Kim_Li", "03_heads", "split_heads"): 7.0,
    ("Kim_Li", "03_heads", "rows_of"): 5.0,
    ("Kim_Li", "04_attention", "find_fault"): 15.0,
}
POINTS = dict.fromkeys(MOST, 0.0) | {("Mina", "03_heads", "rows_of"): 5.0}


def called(student: str) -> str:
    return student.replace(" ", "_")


@pytest.fixture
def file(tmp_path):
    def lay(*lines: str):
        path = tmp_path / "table.csv"
        path.write_text("\n".join(lines), encoding="utf-8-sig")  # as a spreadsheet saves it
        return path

    return lay


def by_hand(path):
    return gradebook.by_hand(path, MOST, called)


def test_points_by_hand_are_read_for_either_form_of_a_name(file, tmp_path):
    assert by_hand(tmp_path / "none.csv") == {}
    head, line = "student_id,assignment,task,score", "03_heads,split_heads,3.5"
    for name in ("Kim Li", "Kim_Li"):
        given = by_hand(file(head, f"{name},{line}"))
        assert given == {("Kim_Li", "03_heads", "split_heads"): 3.5}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Mina,03_heads,trust_split,3", "line 2: Mina handed in no trust_split of 03_heads"),
        ("Mina,03_heads,split_heads,8", "split_heads of Mina may have 0 to 7, not '8'"),
        ("Mina,03_heads,split_heads,-1", "may have 0 to 7, not '-1'"),
        ("Mina,03_heads,split_heads,²", "may have 0 to 7, not '²'"),
        ("Mina,03_heads,split_heads,", "line 2: no score; its columns are student_id,assign"),
    ],
)
def test_points_that_a_task_cannot_have_are_refused(line, problem, file):
    with pytest.raises(ValueError, match=problem):
        by_hand(file("student_id,assignment,task,score", line))


def test_a_roster_has_names_by_student(file):
    path = file("student_id,name", 'Kim Li,"Li, Kim"', "Ada,Ada L.")
    assert gradebook.roster(path, called) == {"Kim_Li": "Li, Kim", "Ada": "Ada L."}
    with pytest.raises(ValueError, match="no name; its columns are student_id,name"):
        gradebook.roster(file("student_id,names", "Ada,Ada L."), called)


def test_the_tables_have_each_task_and_a_row_a_student(tmp_path):
    for names in ({}, {"Kim_Li": "Li, Kim", "Ada": "Ada L."}):
        gradebook.save(tmp_path / "grades.csv", gradebook.grades(POINTS, MOST, names))
        rows = gradebook.table(tmp_path / "grades.csv")
        assert [*rows[0]][-3:] == ["03_heads (12)", "04_attention (15)", "all (27)"]
        scores = {row["student_id"]: [*row.values()][-3:] for row in rows}
        assert scores == dict.fromkeys({"Kim_Li", *names}, ["0"] * 3) | {"Mina": ["5", "0", "5"]}
        assert [row.get("name") for row in rows][-1] == ("" if names else None)  # Mina's
    gradebook.save(tmp_path / "tasks.csv", gradebook.tasks(POINTS, MOST))
    lines = (tmp_path / "tasks.csv").read_text("utf-8").splitlines()
    assert lines[0] == "student_id,assignment,task,score,max_score"
    assert lines[2] == "Mina,03_heads,rows_of,5,5"
    assert len(lines) == 6
