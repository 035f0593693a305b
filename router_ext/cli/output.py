"""Standard output for texts with colours, which are there on a terminal only."""

from typing import NoReturn

from rich.console import Console


class Output(Console):
    """Standard output. ``soft_wrap``: a line is never broken, however narrow the terminal is. A text is printed as it
    is: brackets in it are no markup.
    """

    def __init__(self, *, soft_wrap: bool = False) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)

    def on_broken_pipe(self) -> NoReturn:
        """Nobody reads any more: ends as every command does then, where rich would exit with a code of its own."""
        raise BrokenPipeError
