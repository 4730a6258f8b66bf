"""Convert programs to and from JSON."""

def encode(json: str) -> bytes:
    """Return the FlatBuffer of a program.

    Raises:
        ValueError: The text is not JSON of the schema.
    """

def decode(data: bytes) -> str:
    """Return a program as JSON.

    Raises:
        ValueError: An offset leads outside the FlatBuffer.
    """
