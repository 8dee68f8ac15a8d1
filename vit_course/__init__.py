"""What teaches the course: checks, drawings, the live page, and what teachers need."""
