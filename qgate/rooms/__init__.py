"""Stages that touch the world: one type in, one type out."""
