"""Rewrite a model into a program that the native core runs.

The program is planned, so what is planned is what runs.
"""
