"""Lowering to CUDA C++ in the vocabulary of ThunderKittens."""
