"""Warnings of the hooks: before the first iteration, and at the first invalid label of a kind."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Set

from torch import nn

from mmguard.hooks.discovery import collect_rules, find_class_names, unwrap, walk_assigners, walk_pipelines, walk_rules
from mmguard.labels.heads import from_loss
from mmguard.labels.rules import BaseRule
from mmguard.labels.tally import LABEL_GUARD, LabelGuardError, Tally
from mmguard.language import Message, as_message, translate
from mmguard.log.statistics import Stats
from mmguard.text import describe_error, join_with_or

if TYPE_CHECKING:
    from mmguard.config.read import ReadConfig
    from mmguard.findings import Finding


def start_warnings(runner: Any) -> List[str]:
    """Return a line for each mismatch between the guards of a run and its model or data, with all places to change.

    A run that was built only from objects has no config, and gets no warning.
    """
    # Only needed at the start.
    from mmguard.config.read import ReadConfig
    from mmguard.config.start_check import find_start_faults

    try:
        config = ReadConfig(runner.cfg.to_dict(), runner.cfg.filename or '<config>', shows_guards=False)
        found = _find_mismatches(config) if find_start_faults(config) else []
    except Exception as error:  # a config may hold anything, and a warning must not end a training
        return [translate('the config could not be checked: {error}', error=describe_error(error))]
    return [
        translate(
            '{code} {evidence}: {title} {advice}',
            code=finding.code,
            evidence=as_message(finding.evidence),
            title=as_message(finding.title),
            advice=as_message(finding.next_step),
        )
        for finding in found
    ]


def _find_mismatches(config: ReadConfig) -> List[Finding]:
    from mmguard.config.start_check import FACTS
    from mmguard.findings.engine import diagnose, select_rules

    return diagnose(config=config, rules=select_rules(tuple(FACTS)))


def check_reports_arrive(logger: Any, dataset: Any) -> None:
    """Warn if a guard before a Pack transform loses its report because the meta_keys lack it.

    Raises:
        LabelGuardError: A guard after the Pack transform would apply the same ``label_map`` again.
    """
    for pipeline in walk_pipelines(dataset):
        packs = [i for i, t in enumerate(pipeline) if type(t).__name__.startswith('Pack')]
        guards = [i for i, t in enumerate(pipeline) if any(walk_rules([t]))]
        if not packs or not guards or LABEL_GUARD in getattr(pipeline[packs[-1]], 'meta_keys', ()):
            continue
        pack = type(pipeline[packs[-1]]).__name__
        for first, second in product(walk_rules(pipeline[: packs[-1]]), walk_rules(pipeline[packs[-1] :])):
            if first.kind == second.kind and first.label_map == second.label_map and not first.is_map_idempotent:
                raise LabelGuardError(
                    f'label_map={first.label_map} would be applied twice, before and after {pack}: its meta_keys '
                    f'lack {LABEL_GUARD!r}, so the second guard cannot see that labels are mapped. Add '
                    f'{LABEL_GUARD!r} to meta_keys of {pack}, or write label_map only in the first guard'
                )
        if max(guards) < packs[-1]:
            guard = type(pipeline[guards[0]]).__name__
            logger.warning(
                translate(
                    'guard: the meta_keys of {pack} lack {key!r}, so the hook cannot see the counts of {guard}. '
                    'Put the guard right after {pack}, or add {key!r} to its meta_keys',
                    pack=pack,
                    key=LABEL_GUARD,
                    guard=guard,
                )
            )


def build_warnings(mode: str, kind: str, stats: Stats, model: Any, dataset: Any) -> List[str]:
    """Return the messages for the first invalid labels of a kind; empty if the values show no cause."""
    offending = stats.offending[kind] or stats.loss_samples[kind]
    if not offending:
        return []
    rules = [rule for rule in collect_rules(dataset) if rule.kind == kind]
    findings = _find_likely_causes(kind, stats, offending, model, dataset, rules)
    if not findings:
        return []
    codes = [finding.code for finding in findings[:2]]
    lines = [
        translate(
            'First invalid {what}. {run} continues {how}, but check your data: other labels may be wrong yet in range.',
            what=Message('labels' if kind == 'pixels' else 'instances'),
            run=Message('Training' if mode == 'train' else 'The run'),
            how=Message('without them' if any(t.skipped for t in offending) else 'with them clamped to a class'),
        ),
        translate('  likely cause: {code} {title}', code=codes[0], title=as_message(findings[0].title)),
        translate('  seen: {evidence}', evidence=as_message(findings[0].evidence)),
        translate('  do: {advice}', advice=as_message(findings[0].advice)),
        translate('  more: {commands}', commands=join_with_or(f'`mmguard explain {code}`' for code in codes)),
    ]
    reported = ['\n'.join(lines)]
    if mode == 'train' and kind == 'instances' and any(rule.on_invalid == 'ignore' for rule in rules):
        background = describe_background(unwrap(model))
        reported += [background] if background else []
    mixed = describe_mixing(dataset)
    return [*reported, mixed] if mixed else reported


def _find_likely_causes(
    kind: str, stats: Stats, offending: List[Tally], model: Any, dataset: Any, rules: Sequence[BaseRule]
) -> List[Finding]:
    from mmguard.findings import LabelFacts, diagnose

    facts = LabelFacts.from_tallies(offending, kind, class_names=find_class_names(dataset), files=stats.samples)
    if stats.offending[kind] and rules:
        facts.num_classes, facts.ignore_index = rules[0].num_classes, rules[0].ignore_index
    else:
        of_losses = (from_loss(unwrap(model), name).get(kind) for name, count in stats.losses.items() if count)
        space = next((space for space in of_losses if space is not None), None)
        if space is None:
            return []
        facts.num_classes, facts.ignore_index = space.num_classes, space.ignore_index
    return diagnose(facts)


#: Assigners that always leave out the regions of ignored instances; they have no ``ignore_iof_thr``.
_ALWAYS = ('CenterRegionAssigner',)


def describe_background(model: nn.Module) -> Optional[str]:
    """Return the warning that ignored instances are trained as background; ``None`` if they are not."""
    blind: Set[str] = set()
    deaf: Set[str] = set()
    for assigner in walk_assigners(model):
        name = type(assigner).__name__
        threshold = getattr(assigner, 'ignore_iof_thr', None)
        if name in _ALWAYS or (threshold is not None and threshold > 0):
            continue
        (deaf if threshold is None else blind).add(name)
    if blind:
        return translate(
            'instances with an invalid label were marked as ignored, but {assigners} does not use ignored instances '
            '(ignore_iof_thr=-1): their regions are trained as background. Set ignore_iof_thr=0.5 in every assigner '
            "of the model's train_cfg",
            assigners=', '.join(sorted(blind)),
        )
    if deaf:
        return translate(
            'instances with an invalid label were marked as ignored, but {assigners} does not support ignored '
            "instances: they are trained as background. on_invalid='drop' in GuardInstanceLabels makes that "
            'explicit; only correct labels can change it',
            assigners=', '.join(sorted(deaf)),
        )
    return None


#: Transforms of mmdet and mmseg that mix images.
MIXING = (
    'CachedMixUp',
    'CachedMosaic',
    'CopyPaste',
    'MixUp',
    'Mosaic',
    'RandomMosaic',
)


def describe_mixing(dataset: Any) -> Optional[str]:
    """Return the warning that files named by the log may not hold the labels, as images are mixed; else ``None``."""
    steps = (type(step).__name__ for pipeline in walk_pipelines(dataset) for step in pipeline)
    found = sorted({name for name in steps if name in MIXING})
    if not found:
        return None
    return translate(
        'the pipeline mixes images ({transforms}): counts are exact, but a named file is the first of those mixed, and '
        'the invalid label may be in another. `mmguard scan CONFIG` names the files that hold them',
        transforms=', '.join(found),
    )
