"""What `python -m vit_course` does for teachers: assignments, their grading, and slides."""
