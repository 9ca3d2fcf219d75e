from __future__ import annotations

from difflib import get_close_matches
from typing import Iterator, List

from mmguard.config.classes import SCOPES, full_name
from mmguard.config.guards import HOOKS, TRANSFORMS, build_error, imports_of, meant, own_lines, reported
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
    advice = 'Write the arguments as the message says.'
    aliases = ('MG224',)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        parts = own_lines(config)
        # A full path brings its module.
        plain = [part for part in parts if not full_name(part.config['type']).startswith('mmguard.')]
        if plain and not _may_import(imports_of(config)):
            yield self._not_imported(config, plain[0])
        for part in parts:
            if part.cls is None:
                if meant(part) != part.name:  # else its framework is not installed
                    yield self._unknown(part)
            elif config.file.endswith('.py'):  # a program, which ran already; YAML, JSON and a log are data
                error = build_error(part)
                if error:
                    yield self.at(part.path, part.config, f'{part.name} cannot be built: {error}.')

    def _not_imported(self, config: ReadConfig, part: Part) -> Finding:
        names = imports_of(config)
        near = _near(names)
        text, changes = "Write custom_imports=dict(imports=['mmguard'], allow_failed_imports=False).", reported(config)
        if near:
            right = ['mmguard' if name == near else name for name in names]
            text, changes = f"Write 'mmguard' instead of {near!r}.", (('custom_imports.imports', right),)
        message = f'{part.name} at {part.path} needs mmguard, which custom_imports does not import.'
        return self.at('custom_imports.imports', names, message, edits=[Edit(text, SAFE, '', changes)])

    def _unknown(self, part: Part) -> Finding:
        name, path = meant(part), part.at('type')
        if name:
            edit = Edit(f'Write type={name!r}.', SAFE, '', ((path, name),))
            return self.at(path, part.name, f'{part.name} does not exist. Did you mean {name}?', edits=[edit])
        stock = f'loss=dict(type={part.name.replace("Guarded", "", 1)!r}, ...)'
        advice = f"GuardedX exists for losses of the frameworks; write dict(type='GuardedLoss', {stock})."
        known = f'Write one of {", ".join((*TRANSFORMS, *HOOKS))}.'
        return self.at(path, part.name, f'{part.name} does not exist.', advice if part.registry == 'MODELS' else known)


def _may_import(names: List[str]) -> bool:
    """Return True if one of these modules is mmguard, or one of the user's, which may import it."""
    mistyped = _near(names)
    return any(name.partition('.')[0] not in SCOPES and name != mistyped for name in names)


def _near(names: List[str]) -> str:
    """Return the name that is mmguard, misspelt; empty if none is."""
    found = [name for name in get_close_matches('mmguard', names, 1, 0.7) if name != 'mmguard']
    return found[0] if found else ''
