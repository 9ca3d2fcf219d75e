"""Config lines of mmguard that cannot be built, or that replace others."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Iterator, List

from mmguard.config.agreement import GUARD_TRANSFORMS, HOOKS, find_replaced_hooks
from mmguard.config.classes import SCOPES, UNGUARDED_SCOPES, build_full_name, get_type_name
from mmguard.config.guards import (
    add_reporting,
    build_error,
    find_custom_imports,
    find_own_parts,
    find_similar_name,
)
from mmguard.config.parts import Part
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.language import Message


class OwnLineFails(ConfigRule):
    """An mmguard line that cannot be built, which is checked by building it."""

    code = 'MG250'
    follows = ('MG252',)
    summary = (
        'A guard, a guarded loss or a hook of mmguard is misspelled, not imported, or does not take its arguments.'
    )
    title = '{part} cannot be built: {error}.'
    title_import = '{part} at {place} needs mmguard, which custom_imports does not import.'
    title_unknown = '{part} does not exist.'
    title_misspelt = '{part} does not exist. Did you mean {name}?'
    why = (
        'The run ends when it builds this line, with an error about a registry, or about the class inside. `mmguard '
        'check` builds each line of mmguard by itself, and shows what that raises.'
    )
    example = Example(wrong="dict(type='GaurdSegLabels', ...)", right="dict(type='GuardSegLabels', ...)")
    limits = 'Only configs in Python are built; a loss inside of a head of your own is not.'
    advice = (
        'Correct the line as the message says. GuardedX exists for each loss X of the frameworks; a loss of your own '
        "goes into dict(type='GuardedLoss', loss=...). The transforms and hooks are "
        f'{", ".join((*GUARD_TRANSFORMS, *HOOKS))}.'
    )
    aliases = ('MG224',)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        parts = find_own_parts(config)
        # A full path imports its module.
        plain = [p for p in parts if p.written and not build_full_name(p.config['type']).startswith('mmguard.')]
        if plain and not _may_import(find_custom_imports(config)):
            yield self._report_missing_import(config, plain[0])
        for part in parts:
            if part.cls is None:
                if find_similar_name(part) != part.name:  # otherwise its framework is not installed
                    yield self._report_unknown(part)
            elif config.file.endswith('.py'):  # a program that has already run; YAML, JSON and a log are data
                error = build_error(part)
                if error:
                    yield self.report_at(part.path, part.config, dict(part=part.name, error=error))

    def _report_missing_import(self, config: ReadConfig, part: Part) -> Finding:
        names, place = find_custom_imports(config), 'custom_imports.imports'
        near = _find_misspelt(names)
        edit = propose('Import mmguard.', *add_reporting(config))
        if near:
            edit = propose(f'Correct {near!r}.', (place, ['mmguard' if name == near else name for name in names]))
        words = dict(part=part.name, place=part.path)
        return self.report_at(place, names, words, self.title_import, edits=[edit])

    def _report_unknown(self, part: Part) -> Finding:
        name, path = find_similar_name(part), part.place('type')
        # Other losses have similar names; with the same letters, it cannot be another one.
        is_sure = part.registry != 'MODELS' or sorted(name.lower()) == sorted(part.name.lower())
        question = '' if is_sure else Message('Is {name} the loss that you want?', name=name)
        ways = [propose('Correct the name.', (path, name), question=question)] if name else []
        title = self.title_misspelt if name else self.title_unknown
        return self.report_at(path, part.name, dict(part=part.name, name=name), title, edits=ways)


def _may_import(names: List[str]) -> bool:
    """Return True if one of these modules is mmguard, or is the user's and may import it."""
    mistyped = _find_misspelt(names)
    return any(name.partition('.')[0] not in (*SCOPES, *UNGUARDED_SCOPES) and name != mistyped for name in names)


def _find_misspelt(names: List[str]) -> str:
    """Return a misspelled name of mmguard; empty if nothing resembles one."""
    found = [name for name in get_close_matches('mmguard', names, 1, 0.7) if name != 'mmguard']
    return found[0] if found else ''


class BaseHooksReplaced(ConfigRule):
    """A list of hooks that silently replaces the base config's."""

    code = 'MG253'
    summary = 'custom_hooks replaces the hooks of the base config, where a hook of mmguard was meant to be added.'
    title = 'custom_hooks replaces the list of the base config: {missing} will not run.'
    why = (
        'A list of a config replaces the list of its base. EMAHook or PipelineSwitchHook of the base then vanish '
        'silently, and the training changes.'
    )
    example = Example(
        wrong="custom_hooks = [dict(type='LabelGuardHook')]",
        right="custom_hooks = [*_base_.custom_hooks, dict(type='LabelGuardHook')]",
    )
    limits = 'It is checked only if custom_hooks holds a hook of mmguard and the base config can be read.'
    advice = (
        'Read custom_hooks of the base config. Put the hooks that should run first in your list, as '
        '[*_base_.custom_hooks, ...]; if they were left out on purpose, nothing needs to be done.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dropped, kept in find_replaced_hooks(config):
            missing = ', '.join(get_type_name(hook['type']) for hook in dropped)
            title, question = 'Keep the hooks of the base config.', f'Should {missing} run, as in the base config?'
            edit = propose(title, ('custom_hooks', [*dropped, *kept]), question=question)
            names = [get_type_name(hook['type']) for hook in kept]
            yield self.report_at('custom_hooks', names, dict(missing=missing), edits=[edit])
