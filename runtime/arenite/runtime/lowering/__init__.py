"""Rewrite a model into a program that the native core runs.

The lowered program is planned: the plan and the run have the same steps.
"""
