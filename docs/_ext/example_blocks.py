"""What the examples of pages are to the extension that links their names to the reference."""

from sphinx_codeautolink import clean_pycon


def code_of(block: str) -> tuple[str, str]:
    """Return a block marked `python` as it is, and the code in it: what follows prompts, if any."""
    return clean_pycon(block) if block.lstrip().startswith(">>>") else (block, block)
