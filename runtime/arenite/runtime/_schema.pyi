"""Convert programs to and from JSON."""

def encode(json: str, keeps_defaults: bool = False) -> bytes:
    """Return the FlatBuffer of a program.

    Args:
        json: The program.
        keeps_defaults: Whether numbers that equal the schema's defaults are written too.

    Raises:
        ValueError: The text is not JSON of the schema.
    """

def decode(data: bytes) -> str:
    """Return a program as JSON.

    Raises:
        ValueError: An offset leads outside the FlatBuffer, a step has no operator, or something
            is named by a number or text that JSON of the schema cannot have.
    """
