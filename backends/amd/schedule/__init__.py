"""Schedules of pipelined loops: their form as data, the proof that one is sound, and its picture."""
