"""The kit's providers inside other frameworks."""
