"""Messages at the first invalid label of a kind: the likely cause, and what the model makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Sequence

from mmguard.hooks.discovery import class_names_of, rules_of, unwrapped
from mmguard.hooks.ignore_regions import ignored_as_background
from mmguard.hooks.mixed_images import mixed_images
from mmguard.labels.images import ImageLabelRule
from mmguard.labels.space import LabelSpace
from mmguard.labels.spaces import of_loss
from mmguard.labels.spaces.heads import names_in
from mmguard.labels.tally import Tally
from mmguard.log.span import Span

if TYPE_CHECKING:
    from mmguard.findings import Finding


def warnings_of(mode: str, kind: str, span: Span, model: Any, dataset: Any) -> List[str]:
    """What to tell the reader; nothing where the values say nothing.

    Args:
        mode (str): ``'train'``, ``'val'`` or ``'test'``.
        kind (str): ``'pixels'`` or ``'instances'``.
        span (Span): What was found.
        model (nn.Module): With the losses that found it, where no guard in the pipeline did.
        dataset: Of the loop: its classes, and the guards in its pipelines.
    """
    offending = span.offending[kind] or span.loss_samples[kind]
    if not offending:
        return []
    rules = [rule for rule in rules_of(dataset) if rule.kind == kind]
    findings = _likely_causes(kind, span, offending, model, dataset, rules)
    if not findings:
        return []
    codes = [finding.code for finding in findings[:2]]
    what = 'labels' if kind == 'pixels' else 'instances'
    reported = [
        f'First invalid {what}. {"Training" if mode == "train" else "The run"} continues '
        f'{"without them" if any(t.skipped for t in offending) else "with them clamped to a class"}, but check your '
        f'data: other labels may be wrong yet in range.\n'
        f'  likely cause: {codes[0]} {findings[0].title}\n  seen: {findings[0].evidence}\n'
        f'  do: {findings[0].advice}\n'
        f'  more: {" or ".join(f"`mmguard explain {code}`" for code in codes)}'
    ]
    if mode == 'train' and kind == 'instances' and any(rule.on_invalid == 'ignore' for rule in rules):
        background = ignored_as_background(unwrapped(model))
        reported += [background] if background else []
    mixed = mixed_images(dataset)
    return [*reported, mixed] if mixed else reported


def _likely_causes(
    kind: str, span: Span, offending: List[Tally], model: Any, dataset: Any, rules: Sequence[LabelSpace]
) -> List[Finding]:
    from mmguard.findings import LabelFacts, diagnose

    found = sum(offending, Tally())
    facts = LabelFacts(
        values=found.values,
        kind=kind,
        reasons=found.reasons,
        class_names=class_names_of(dataset),
        total=found.total,
        files=span.samples,
        offending_files=len(offending),
        of_images=any(isinstance(rule, ImageLabelRule) for rule in rules),
    )
    if span.offending[kind] and rules:
        facts.num_classes, facts.ignore_index = rules[0].num_classes, rules[0].ignore_index
    else:
        of_losses = (of_loss(unwrapped(model), name).get(kind) for name, count in span.losses.items() if count)
        space = next((space for space in of_losses if space is not None), None)
        if space is None:
            return []
        facts.num_classes, facts.ignore_index = space.num_classes, space.ignore_index
        facts.of_images = facts.of_images or 'head' in names_in(space.place)  # as classifiers call theirs
    return diagnose(facts)
