"""Docstrings as a page shows them: examples as code, and those of the engine beside its stubs."""

import inspect
import re
from typing import Any

from griffe import Docstring, Extension, Object
from ottla import _engine

# A line of a prompt, and the lines up to the next empty one. One that is indented is code as it is.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?! *$).*)*", re.MULTILINE)

# Names of parameters that one line does not hold.
_NAMES = re.compile(r"^( +(?:\w+, )+\w+,)\n +(?=\w+[,:])", re.MULTILINE)


class ReadableDocstrings(Extension):
    """Gives stubs the docstrings that Python's `help` shows, and fences the examples of all."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Looks after the docstring of one object."""
        del kwargs
        if obj.docstring is None:
            text = _of_engine(obj)
            if text:
                obj.docstring = Docstring(text, parent=obj)
        if obj.docstring is not None:
            joined = _NAMES.sub(r"\1 ", obj.docstring.value)
            obj.docstring.value = with_fences(joined)


def with_fences(text: str) -> str:
    """Returns a docstring whose examples are blocks of code, in Markdown."""
    fenced = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    return re.sub(r"::$", ":", fenced, flags=re.MULTILINE)


def _of_engine(obj: Object) -> str | None:
    """Returns the docstring of what has the same name in the loaded engine."""
    module, _, name = obj.path.rpartition("._engine.")
    if module != "ottla":
        return None
    found: Any = _engine
    for part in name.split("."):
        found = getattr(found, part, None)
    # A number's docstring is that of all numbers.
    described = (
        inspect.isclass(found) or inspect.isroutine(found) or inspect.isdatadescriptor(found)
    )
    return inspect.getdoc(found) if described else None
