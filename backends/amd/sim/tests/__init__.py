"""Tests of the AMD simulator: kernels with NumPy answers, instruction models, mutants, refusals."""
