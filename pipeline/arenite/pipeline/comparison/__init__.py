"""Strategies and policies compared on models."""
