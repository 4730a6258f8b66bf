"""From a model to a verified plan or a program, under the user's eyes."""
