"""What `with_refs` of a pull-back takes and gives beside references and cotangents."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xad.pull_backs import (
        DidntWant as DidntWant, DontWant as DontWant, GradRef as GradRef, GradValue as GradValue,
    )  # fmt: skip
