"""Bit-exact arithmetic of matrix instructions, from their published description, in NumPy."""

from __future__ import annotations

from warpwave.conformance.models.products import MODELS, Model, model_of, multiply_accumulate

__all__ = ["MODELS", "Model", "model_of", "multiply_accumulate"]
