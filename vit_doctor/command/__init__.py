"""What `python -m vit_doctor` does: one file, or each of a folder, in its own process."""
