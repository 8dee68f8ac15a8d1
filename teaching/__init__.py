"""What `python course.py` does for teachers: assignments, their grading, and slides."""
