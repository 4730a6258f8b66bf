"""`arenite fit`: programs that need less memory, and what they cost."""
