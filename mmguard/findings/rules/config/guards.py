"""Rules about guards that cannot be built, do not see the labels, disagree with the head, or lack LabelGuardHook."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import Iterator, List

from mmguard.config.agreement import (
    GUARD_TRANSFORMS,
    HOOKS,
    find_guards,
    find_mismatched_guards,
    find_misplaced_guards,
    find_replaced_hooks,
    find_unguarded_evaluation,
)
from mmguard.config.classes import SCOPES, UNGUARDED_SCOPES, build_full_name, get_type_name
from mmguard.config.guarded_pipelines import ALWAYS, has_threshold
from mmguard.config.guards import add_reporting, build_error, find_custom_imports, find_own_parts, find_similar_name
from mmguard.config.parts import (
    GUARD_KINDS,
    HOOK,
    Part,
    find_assigners,
    find_hooks,
    find_label_guard_hooks,
    find_losses,
    find_pipelines,
    find_transforms,
    from_config,
)
from mmguard.config.read import ReadConfig
from mmguard.findings.config_edits import guard_pipelines, propose
from mmguard.findings.edits import Code, Edit, as_code, format_config_lines
from mmguard.findings.finding import LIKELY, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.labels.loss_selection import is_guarded_type
from mmguard.labels.tally import LABEL_GUARD
from mmguard.language import Message
from mmguard.text import plural


class OwnLineFails(ConfigRule):
    code = 'MG250'
    follows = ('MG252',)
    summary = 'A guard, a guarded loss or a hook of mmguard is misspelled, not imported, or has wrong arguments.'
    title = '{part} cannot be built: {error}.'
    title_import = '{part} at {place} needs mmguard, which custom_imports does not import.'
    title_unknown = '{part} does not exist.'
    title_misspelt = '{part} does not exist. Did you mean {name}?'
    why = (
        'The run fails when it builds this guard, loss or hook, with an error about a registry or a wrapped class. '
        '`mmguard check` builds each guard, loss and hook separately and shows its error.'
    )
    example = Example(wrong="dict(type='GaurdSegLabels', ...)", right="dict(type='GuardSegLabels', ...)")
    limits = (
        'Guards, losses and hooks are built only if the config is a Python file. Losses inside of a custom head are '
        'not built.'
    )
    advice = (
        'Correct the line as the message says: write GuardedX for a loss X of mmseg or mmdet, and wrap a loss of your '
        "own as dict(type='GuardedLoss', loss=...). The transforms and hooks of mmguard are "
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
            elif config.file.endswith('.py'):  # already executed; YAML, JSON and logs are data
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
        # Losses have similar names, so ask, unless only the order of the letters differs.
        is_sure = part.registry != 'MODELS' or sorted(name.lower()) == sorted(part.name.lower())
        question = '' if is_sure else Message('Is {name} the loss that you want?', name=name)
        ways = [propose('Correct the name.', (path, name), question=question)] if name else []
        title = self.title_misspelt if name else self.title_unknown
        return self.report_at(path, part.name, dict(part=part.name, name=name), title, edits=ways)


def _may_import(names: List[str]) -> bool:
    """Return True if one of these modules is mmguard, or a user's module, which may import mmguard."""
    mistyped = _find_misspelt(names)
    return any(name.partition('.')[0] not in (*SCOPES, *UNGUARDED_SCOPES) and name != mistyped for name in names)


def _find_misspelt(names: List[str]) -> str:
    """Return the name that looks like a misspelled 'mmguard', or '' if no name does."""
    found = [name for name in get_close_matches('mmguard', names, 1, 0.7) if name != 'mmguard']
    return found[0] if found else ''


class BaseHooksReplaced(ConfigRule):
    code = 'MG253'
    summary = 'custom_hooks contains a hook of mmguard, but replaces the hooks of the base config.'
    title = 'custom_hooks replaces the list of the base config: {missing} will not run.'
    why = (
        'A list in a config replaces the list of the base config. Hooks of the base config, such as EMAHook or '
        'PipelineSwitchHook, then silently do not run.'
    )
    example = Example(
        wrong="custom_hooks = [dict(type='LabelGuardHook')]",
        right="custom_hooks = [*_base_.custom_hooks, dict(type='LabelGuardHook')]",
    )
    limits = 'Hooks are compared only if custom_hooks contains a hook of mmguard and the base config can be read.'
    advice = (
        'If the hooks of the base config should run, put them at the start of your list: [*_base_.custom_hooks, ...]. '
        'If they were left out on purpose, change nothing.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dropped, kept in find_replaced_hooks(config):
            missing = ', '.join(get_type_name(hook['type']) for hook in dropped)
            title, question = 'Keep the hooks of the base config.', f'Should {missing} run, as in the base config?'
            edit = propose(title, ('custom_hooks', [*dropped, *kept]), question=question)
            names = [get_type_name(hook['type']) for hook in kept]
            yield self.report_at('custom_hooks', names, dict(missing=missing), edits=[edit])


class GuardMisplaced(ConfigRule):
    code = 'MG251'
    follows = ('MG223',)
    summary = 'A guard comes before the transform that loads the labels, or is made for the labels of another task.'
    title = '{guard} comes before the transform that loads the labels.'
    title_kind = '{guard} does not guard the labels that {pack} packs. Use {wanted}.'
    why = 'Such a guard never sees the labels, so the run fails at the first invalid label, as without a guard.'
    example = Example(
        wrong="[..., dict(type='GuardSegLabels', num_classes=19), dict(type='LoadAnnotations'), ...]",
        right="[..., dict(type='PackSegInputs'), dict(type='GuardSegLabels', num_classes=19)]",
    )
    limits = 'A pipeline with a Pack transform of your own is not checked.'
    advice = (
        'Put the guard right after the Pack transform, and use the guard for your task: GuardSegLabels for label '
        'maps, GuardInstanceLabels for boxes and masks.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for guard, steps, pack, wanted in find_misplaced_guards(config):
            if pack is not None and wanted:
                space = from_config(config).get(GUARD_KINDS[wanted])
                classes = guard.config.get('num_classes') if space is None else space.num_classes
                edit = propose(
                    'Use the guard of this task.',
                    (guard.place('type'), wanted),
                    (guard.place('num_classes'), classes),
                )
                words = dict(guard=guard.name, pack=pack.name, wanted=wanted)
                yield self.report_at(guard.place('type'), guard.name, words, self.title_kind, edits=[edit])
            else:
                ways = [] if pack is None else [_move(steps, guard, pack)]
                yield self.report_at(guard.path, guard.config, dict(guard=guard.name), edits=ways)


def _move(steps: List[Part], guard: Part, pack: Part) -> Edit:
    order = [step for step in steps if step is not guard and step.written]
    order.insert(order.index(pack) + 1, guard)
    pipeline = guard.path.rpartition('[')[0]
    title, moved = f'Move {guard.name} right after {pack.name}.', [step.config for step in order]
    at, end = steps.index(guard), steps.index(pack) + 1
    base = f'_base_.{pipeline}'
    code = Code(f'[*{base}[:{at}], *{base}[{at + 1}:{end}], {base}[{at}], *{base}[{end}:]]')
    lines = format_config_lines(((pipeline, code),)) if all(step.written for step in steps) else ()
    return propose(title, (pipeline, moved), lines=tuple(lines))


class IgnoredAsBackground(ConfigRule):
    code = 'MG222'
    summary = 'GuardInstanceLabels marks instances as ignored, but the assigner does not use ignored instances.'
    title = (
        '{assigner} does not use ignored instances, so the instances that {guard} ignores are trained as background.'
    )
    title_unable = (
        '{assigner} cannot ignore instances, so the instances that {guard} ignores are trained as background.'
    )
    why = (
        'With ignore_iof_thr=-1, the default, the regions of ignored instances, including crowds, are trained as '
        'background. The matchers of DETR-like heads do not support ignored instances.'
    )
    example = Example(wrong="dict(type='MaxIoUAssigner')", right="dict(type='MaxIoUAssigner', ignore_iof_thr=0.5)")
    limits = 'An assigner of your own is judged only by its argument ignore_iof_thr.'
    advice = (
        'Write ignore_iof_thr=0.5 in every assigner of train_cfg, and keep_ignored=False in the training guard: '
        'crowds are then trained as they would be without a guard. If an assigner lacks ignore_iof_thr, write '
        "on_invalid='drop' in the guard."
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        moving = [
            guard
            for guard in find_transforms(config)
            if guard.name == 'GuardInstanceLabels'
            and guard.split == 'train'
            and guard.config.get('on_invalid', 'ignore') == 'ignore'
        ]
        if not moving:
            return
        heeding = [one for one in find_assigners(config) if one.name in ALWAYS or has_threshold(one)]
        # If no assigner uses ignored regions, crowds must be trained as before.
        leaving = () if heeding else tuple((guard.place('keep_ignored'), False) for guard in moving)
        for assigner in find_assigners(config):
            if assigner.name in ALWAYS or assigner.cls is None:
                continue
            place, threshold = assigner.place('ignore_iof_thr'), assigner.get('ignore_iof_thr')
            words = dict(assigner=assigner.name, guard=moving[0].path)
            if threshold is None:
                drops = ((guard.place('on_invalid'), 'drop') for guard in moving)
                edit, kind = propose('Let the guard drop invalid instances.', *drops), assigner.config['type']
                yield self.report_at(assigner.place('type'), kind, words, self.title_unable, edits=[edit])
            elif isinstance(threshold, (int, float)) and threshold <= 0:
                note = 'With keep_ignored=False crowds are trained as they would be without a guard.'
                title, changes = 'Leave ignored regions out of the training.', ((place, 0.5), *leaving)
                edit = propose(title, *changes, notes=(note,) if leaving else ())
                yield self.report_at(place, threshold, words, edits=[edit])


class GuardReportMissing(ConfigRule):
    code = 'MG223'
    summary = "meta_keys of the Pack transform after a guard lack 'label_guard' or the path of the image."
    title = 'LabelGuardHook cannot see the counts of {guard} ({place}): {pack} drops them.'
    title_file = "The log cannot name the files of invalid labels: meta_keys of {pack} lack 'img_path'."
    why = (
        'The guard sanitizes the labels, but the Pack transform drops its counts, so the log reports 0 invalid labels. '
        'Without img_path or seg_map_path, the log has the counts, but no file names.'
    )
    example = Example(wrong="meta_keys=('img_path',)", right="meta_keys=('img_path', 'label_guard')")
    limits = 'A Pack transform of your own is judged by its meta_keys only.'
    advice = (
        "Add 'label_guard' to meta_keys of the Pack transform, or put the guard right after this transform. If "
        "'img_path' is missing in meta_keys, add it."
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in find_pipelines(config):
            guards = find_guards(pipeline)
            pack = next((t for t in pipeline if t.name.startswith('Pack')), None)
            keys = None if pack is None else pack.get('meta_keys')
            if not guards or pack is None or not isinstance(keys, (list, tuple)):
                continue
            place, first = pack.place('meta_keys'), guards[0]
            words = dict(guard=first.name, place=first.path, pack=pack.name)
            is_early = any(pipeline.index(guard) < pipeline.index(pack) for guard in guards)
            for key, is_missing, title in (
                (LABEL_GUARD, is_early and LABEL_GUARD not in keys, self.title),
                ('img_path', not {'img_path', 'seg_map_path'} & set(keys), self.title_file),
            ):
                if is_missing:
                    name = "Add 'label_guard' to meta_keys." if key == LABEL_GUARD else "Add 'img_path' to meta_keys."
                    edit = propose(name, (place, (*keys, key)))
                    yield self.report_at(place, keys, words, title, edits=[edit])


class GuardNumClasses(ConfigRule):
    code = 'MG225'
    summary = 'num_classes of a guard differs from num_classes of the head.'
    title = 'The guard has num_classes={given}, but the head has {numbers} {noun} ({place}).'
    why = (
        'If num_classes of the guard is larger, the guard accepts labels that crash the run; if it is smaller, the '
        'guard excludes classes of the head.'
    )
    example = Example(wrong='num_classes=19 in the head, 20 in GuardSegLabels', right='num_classes=19 in both')
    limits = 'This rule takes num_classes of the head as correct; MG201 checks it.'
    advice = 'Set num_classes of the guard to num_classes of the head.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for guard, number, (space, *heads) in find_mismatched_guards(config):
            place, given = guard.place('num_classes'), guard.config['num_classes']
            numbers = sorted({head.num_classes for head in heads})
            several, noun = ' or '.join(map(str, numbers)), plural(numbers[-1], 'class')
            words = dict(given=given, numbers=several, noun=noun, place=space.place)
            edit = propose('Set num_classes of the guard to that of the head.', (place, number))
            yield self.report_at(place, given, words, edits=[edit])


class GuardsNotReported(ConfigRule):
    code = 'MG252'
    summary = 'The config contains guards without LabelGuardHook, or LabelGuardHook without guards.'
    title = 'The counts of {guard} at {place} are not reported: LabelGuardHook is missing.'
    title_hook = 'LabelGuardHook has nothing to report: no pipeline contains a guard, and no loss is guarded.'
    why = (
        'Guards exclude invalid labels from the training, but only the hook names the files of these labels. The hook '
        'adds guards only if guard=True.'
    )
    example = Example(wrong="dict(type='LabelGuardHook')", right="dict(type='LabelGuardHook', guard=True)")
    limits = 'Guards that your own code adds when training starts are not seen.'
    advice = "Write dict(type='LabelGuardHook') in custom_hooks; with guard=True the hook adds the guards itself."
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        guards = [
            *find_guards(find_transforms(config)),
            *(loss for loss in find_losses(config) if is_guarded_type(loss.name)),
        ]
        hook = next((one for one in find_hooks(config) if one.name == HOOK), None)
        if guards and hook is None:
            names = [one.get('type') for one in config.data.get('custom_hooks') or [] if isinstance(one, dict)]
            words = dict(guard=guards[0].name, place=guards[0].path)
            edit = propose('Add LabelGuardHook to the hooks.', *add_reporting(config))
            yield self.report_at('custom_hooks', names, words, edits=[edit])
        elif hook is not None and not guards and not hook.config.get('guard') and from_config(config).to_dict():
            edit = propose('Let LabelGuardHook add the guards.', (hook.place('guard'), True))
            yield self.report_at(hook.path, hook.config, title=self.title_hook, edits=[edit])


class SecondHook(ConfigRule):
    code = 'MG255'
    follows = ('MG252',)
    summary = 'LabelGuardHook is listed twice.'
    title = 'LabelGuardHook is listed {number} times: only the first is used ({place}).'
    why = 'Each hook would count all invalid labels, so a run uses only the first, without the arguments of the others.'
    example = Example(
        wrong="[dict(type='LabelGuardHook'), dict(type='LabelGuardHook', guard=True)]",
        right="[dict(type='LabelGuardHook', guard=True)]",
    )
    limits = 'Hooks that your own code registers are not seen.'
    advice = 'Write one LabelGuardHook with all arguments in custom_hooks, and remove the others.'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        hooks = find_label_guard_hooks(config)
        if len(hooks) < 2:
            return
        first, *others = hooks
        merged = dict(first.config)
        for other in others:
            merged.update(other.config)
        differ = any(merged[key] != value for hook in hooks for key, value in hook.config.items())
        question = Message('Are these the arguments that you want: {hook}?', hook=as_code(merged)) if differ else ''
        gone = [other.config for other in others]
        listed = [one for one in config.data.get('custom_hooks') or () if not any(one is other for other in gone)]
        kept = [merged if one is first.config else one for one in listed]
        named = [(hook.path, None if hook in others else merged) for hook in hooks if hook.path.startswith('default')]
        edit = propose('Merge the hooks into one.', ('custom_hooks', kept), *named, question=question)
        words = dict(number=len(others) + 1, place=first.path)
        found = self.report_at(others[0].path, others[0].config, words, edits=[edit])
        yield replace(found, certainty=LIKELY)  # findings about missing arguments may follow from this one


class UnguardedEvaluation(ConfigRule):
    code = 'MG230'
    summary = 'Training is guarded, but the labels of the evaluation are not.'
    title = '{metric} counts every prediction at an invalid label as an error.'
    why = (
        'Metrics take every label as the truth, but no model can predict an invalid label: every prediction there '
        'counts as a false positive, and IoU and AP fall silently.'
    )
    example = Example(
        wrong="train: [..., dict(type='GuardSegLabels', num_classes=19)]; val without it",
        right="train and val: [..., dict(type='GuardSegLabels', num_classes=19)]",
    )
    limits = 'Metrics that open annotation files themselves cannot be guarded, and are not checked.'
    advice = 'Put the guard of the training pipeline into the pipelines of val and test, too.'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for found in find_unguarded_evaluation(config):
            place, names = found.dataset.place('pipeline'), [transform.name for transform in found.pipeline]
            ways = [guard_pipelines(config, [found.pipeline], found.guard)]
            yield self.report_at(place, names, dict(metric=found.metric.name), edits=ways)
