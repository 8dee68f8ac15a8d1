"""What `python course.py` does for teachers."""
