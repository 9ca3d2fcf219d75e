from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Iterator, List

from mmguard.config.guards import imported
from mmguard.config.own_parts import imports_of, is_imported, is_known, meant, own_parts, why_not_built
from mmguard.config.parts import Part
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule


class OwnLineFails(ConfigRule):
    """A line of mmguard's that cannot be built: asked by building it."""

    code = 'MG250'
    summary = 'A guard, a guarded loss or a hook of mmguard is misspelt, not imported, or does not take its arguments.'
    why = (
        'The run ends when it builds this line, with an error about a registry, or about the class inside. `mmguard '
        'check` builds each line of mmguard by itself, and shows what that raises.'
    )
    advice = 'Write the name and the arguments as the message says.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        parts = own_parts(config)
        names = imports_of(config)
        if parts and names is not None and not is_imported(names):
            yield self._not_imported(config, parts[0], names)
        for part in parts:
            if not is_known(part):
                yield self._unknown(part)
                continue
            error = why_not_built(part)
            if error:
                yield self.at(part.path, part.config, f'{part.name} cannot be built: {error}.', _advice(part))

    def _not_imported(self, config: ReadConfig, part: Part, names: List[str]) -> Finding:
        near = next(iter(get_close_matches('mmguard', names, 1, 0.7)), '')
        text = "Write custom_imports=dict(imports=['mmguard'], allow_failed_imports=False)."
        edits: List[Edit] = []
        if near:
            right: Any = ['mmguard' if name == near else name for name in names]
            edits = [Edit(f"Write 'mmguard' instead of {near!r}.", SAFE, '', (('custom_imports.imports', right),))]
        elif not config.part('custom_imports') or names:
            edits = [Edit(text, SAFE, '', imported(config))]
        message = f'{part.name} at {part.path} needs mmguard, which custom_imports does not import.'
        return self.at('custom_imports.imports', names, message, text, edits=edits)

    def _unknown(self, part: Part) -> Finding:
        name, path = meant(part), part.at('type')
        if name:
            edit = Edit(f'Write type={name!r}.', SAFE, '', ((path, name),))
            return self.at(path, part.name, f'{part.name} does not exist. Did you mean {name}?', edits=[edit])
        stock = part.name[len('Guarded') :] if part.name.startswith('Guarded') else ''
        advice = (
            f"Write dict(type='GuardedLoss', loss=dict(type={stock!r}, ...)): GuardedX exists for the losses of the "
            f'frameworks only.'
            if stock
            else None
        )
        return self.at(path, part.name, f'{part.name} does not exist.', advice)


def _advice(part: Part) -> str:
    beside = [key for key in part.config if key not in ('type', 'loss', 'num_classes', 'ignore_index', 'on_invalid')]
    if part.name == 'GuardedLoss' and isinstance(part.config.get('loss'), dict) and beside:
        return (
            f'{", ".join(beside)} next to loss=dict(...) are arguments of the loss inside, inherited from the base '
            f'config: write _delete_=True in this dict, or the arguments that its loss takes.'
        )
    return 'Write the arguments as the message says.'
