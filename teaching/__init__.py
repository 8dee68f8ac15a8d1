"""What `python course.py` does for teachers: assignments, and their grading."""
