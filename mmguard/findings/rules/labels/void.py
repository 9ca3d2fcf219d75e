"""Void that is not ignored or was shifted, and files that contain nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence

from mmguard.config.classes import starts_with_background
from mmguard.config.guards import is_guarded
from mmguard.config.parts import losses
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING
from mmguard.findings.map_edits import renumber
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.gray import map_object, may_be_subtracted
from mmguard.findings.usual_edits import guard_losses, set_ignore_index
from mmguard.findings.views import (
    VOID,
    config_of,
    count_stored,
    count_trained,
    has_many_channels,
    has_num_classes,
    ids_of,
    is_whole,
    listing,
    maps_of,
    number_of,
    share,
    subtracts_one,
)
from mmguard.language import Message
from mmguard.text import quantity


class VoidNotIgnored(DataRule):
    """255, the usual ignore value, with another ``ignore_index``."""

    code = 'MG104'
    summary = '255, the usual void value, is not ignored.'
    title = '255 is the usual value of ignored pixels and of padding, but ignore_index is {ignore_index}.'
    why = 'Every unlabeled or padded pixel is out of range for the loss: a device-side assert.'
    example = Example(
        wrong='ignore_index=-100, labels 0..10 and 255',
        right='ignore_index=255',
    )
    limits = '255 may be a class that was drawn in white.'
    advice = (
        'Look at one of the files. If 255 is void (unlabeled), use one ignored value everywhere: `ignore_index=255` '
        'in the head, the losses, the metric and GuardSegLabels, `seg_pad_val=255` in the data preprocessor. If it is '
        'a class, map it to the index of that class: `label_map={{255: CLASS}}`.'
    )
    pytorch = (
        'If 255 is void, or the fill value of padding or of a rotation: ignore_index=255, the same in loss, metric and '
        'transforms. If it is a class, map it to its index.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        # If a class never occurs, 255 may be that class.
        complete = set(range(labels.num_classes)) <= set(count_trained(labels))
        question = '' if complete else 'Is 255 your void (unlabeled) value?'
        yield set_ignore_index(facts, VOID, SAFE if complete else ASKS, question)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if set(facts.values) == {255} and facts.num_classes > 2 else None


#: Minimum share of pixels, and of files, of a background.
MUCH, MOST_FILES = 0.25, 0.8
#: In fewer files a class may be missing by chance.
SEVERAL_FILES = 5
#: What 0 and 255 look like; 254 is not a gray level.
OF_GRAY = ('MG106', 'MG125', 'MG135')


class ShiftedVoid(DataRule):
    """255 minus 1; or 0 minus 1, which is 255 in 8 bits."""

    code = 'MG133'
    needs = ()
    summary = '1 was subtracted from the ignored value 255, or from 0.'
    title = '254 is void, 255, after 1 was subtracted.'
    title_wrapped = (
        '1 seems to be subtracted in the files: {last}, the last class, never occurs, and 255 fills what 0 would.'
    )
    title_either = (
        'The files hold only 0 and 255, and 255 fills most of them: labels 0 and 1 from which 1 was subtracted (in 8 '
        'bits 0 - 1 is 255), or masks whose object is 255.'
    )
    why = (
        'A `label -= 1` copied from elsewhere makes the ignored value invalid; in 8 bits it turns 0 into 255, so the '
        'background is ignored.'
    )
    example = Example(
        wrong='label -= 1',
        right='label = np.where(label == 255, 255, label - 1)',
    )
    limits = '254 next to 255 may be void of another kind; a frequent 255 may be unlabeled on purpose.'
    advice = (
        'Find where 1 is subtracted, by hand when the files were saved or by a transform, and remove it: mmseg '
        'subtracts by itself and keeps 255, `reduce_zero_label=True` where 0 is unlabeled, `reduce_zero_label=False`'
        ' where it is a class. If the files were saved with the shift, map the moved value back: `label_map={{254: '
        '{void}}}`.'
    )
    pytorch = (
        'If the ids count from 1, subtract 1 from classes only: target = torch.where(target == 255, 255, target - 1), '
        'ignore_index=255. If they count from 0, or are ids of COCO-Stuff, subtract nothing.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if self._is_mask(labels):
            yield from map_object(facts, labels)
            return
        if self._is_wrapped(labels):
            table = {VOID: 0, **{value: value + 1 for value in range(labels.num_classes - 1)}}
            question = 'Was 1 subtracted when the files were made, so that the background, 0, became 255?'
            yield from renumber(facts, table, ASKS, question)
            if labels.values:
                yield set_ignore_index(facts, VOID, ASKS, 'Is 255 your void (unlabeled) value?')
            return
        if set(labels.values) != {254}:
            return
        void = VOID if labels.ignore_index is None else labels.ignore_index
        # If 255 occurs, too, 254 may be another kind of void, but never a class.
        clear = VOID not in count_trained(labels)
        question = '' if clear else 'Is 254 void, as 255 is?'
        yield from renumber(facts, {254: void}, SAFE if clear else ASKS, question)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._is_mask(facts):
            return PROVEN
        if self._is_wrapped(facts):
            return PROVEN if facts.values else LIKELY
        if 254 not in facts.values or len(facts.values) > 2:
            return None
        if is_whole(facts) and 255 in count_trained(facts):
            return POSSIBLE
        return PROVEN if len(facts.values) == 1 else LIKELY

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        codes = super().find_superseded(facts)
        return codes if self._is_mask(facts) else [code for code in codes if code not in OF_GRAY]

    def choose_title(self, facts: LabelFacts) -> str:
        if self._is_mask(facts):
            return self.title_either
        return self.title_wrapped if self._is_wrapped(facts) else self.title

    def severity_of(self, facts: LabelFacts) -> str:
        sure = facts.values or not self._is_wrapped(facts) or starts_with_background(facts.class_names)
        return ERROR if sure else WARNING

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        is_void = self._is_wrapped(facts) or self._is_mask(facts)
        return {VOID: count_stored(facts)[VOID]} if is_void else facts.values

    def evidence(self, facts: LabelFacts) -> str:
        if not self._is_wrapped(facts) and not self._is_mask(facts):
            return facts.evidence
        part = 100 * share(count_stored(facts)[VOID], sum(count_stored(facts).values()))
        files = maps_of(facts).files_with.get(VOID, 0)
        held = f'0..{facts.num_classes - 2}' if self._is_wrapped(facts) else '0'
        return Message(
            'the files hold {held} and 255, num_classes={num_classes}; 255 in {part:.3g} % '
            'of the pixels, in {files:,} of {all_files:,} files',
            held=held,
            num_classes=facts.num_classes,
            part=part,
            files=files,
            all_files=facts.files,
        )

    def _is_mask(self, facts: LabelFacts) -> bool:
        """True if most of a binary mask is 255."""
        mapped = VOID in config_of(facts).label_map or bool(ids_of(count_trained(facts)) - {0})
        return may_be_subtracted(facts) and not mapped and not has_many_channels(facts)

    def _is_wrapped(self, facts: LabelFacts) -> bool:
        """True if all classes but the last occur, and 255 is as frequent as a background."""
        counts, classes = count_stored(facts), facts.num_classes
        if set(facts.values) - {VOID} or classes < 3 or not has_num_classes(facts) or facts.files < SEVERAL_FILES:
            return False
        if subtracts_one(facts) or counts != count_trained(facts):
            return False
        named = config_of(facts).label_map or (facts.class_names and not starts_with_background(facts.class_names))
        if named or ids_of(counts) != set(range(classes - 1)):
            return False
        everywhere = share(maps_of(facts).files_with.get(VOID, 0), facts.files) >= MOST_FILES
        return everywhere and share(counts.get(VOID, 0), sum(counts.values())) >= MUCH


#: Share of the pixels; so many classes there are at least.
NEARLY_ALL, MANY = 0.75, 4


class NothingToTrainOn(DataRule):
    """Files, or a whole set, with only ignored pixels."""

    code = 'MG128'
    shows_values = False
    kinds = ('pixels',)
    needs = ()
    summary = 'Label files without a pixel to train on.'
    title = 'Label files without a pixel to train on: {number} of {files}.'
    title_all = 'Every pixel of every file is ignored.'
    why = (
        'A batch of them has no valid pixel: OHEM indexes an empty tensor, losses that divide by the number of valid '
        'pixels (avg_non_ignore, nn.CrossEntropyLoss) give nan, and under DDP a rank without a graph hangs the others.'
    )
    example = Example(
        wrong='reduce_zero_label=True, files of 0 only',
        right='reduce_zero_label=False, num_classes=1 more',
    )
    limits = 'It cannot tell a file that was not labeled from one that shows no object.'
    advice = (
        'Compare the values as stored with what the loader makes of them, `mmguard trace CONFIG`: reduce_zero_label '
        'on files of 0, a label_map to the ignored label, files of another class list. If the files really hold no '
        'label, label them or leave them out of the split; `cat_max_ratio=0.75` in RandomCrop avoids most crops of '
        'void only.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._is_empty(facts):
            return PROVEN
        number = self._number(facts)
        known = config_of(facts).losses
        # What a GuardedLoss wraps is at `.loss`.
        bare = {path: kind for path, kind in known.items() if 'Guarded' not in kind and not path.endswith('.loss')}
        return LIKELY if number and (bare or not known) else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if facts.config is None or self._is_empty(labels):
            return
        bare = [loss for loss in losses(facts.config) if not is_guarded(loss) and not loss.path.endswith('.loss')]
        if bare:
            title = 'Guard the losses until these files are labeled or left out.'
            note = 'A batch without a valid pixel then gives a loss of 0 with a graph.'
            yield replace(guard_losses(facts.config, [loss.path for loss in bare], title), notes=(note,))

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self._is_empty(facts) else 'warning'

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_all if self._is_empty(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, Any]:
        return {'number': self._number(facts), 'files': quantity(facts.files, 'file')}

    def evidence(self, facts: LabelFacts) -> str:
        void = self._void(facts)
        return f'{void:,} {facts.kind} are ignored; values as stored: {listing(sorted(count_stored(facts)))}'

    def files(self, facts: LabelFacts) -> List[str]:
        return maps_of(facts).all_void

    def _number(self, facts: LabelFacts) -> int:
        return max(number_of(maps_of(facts), 'all_void'), maps_of(facts).void_files)

    def _void(self, facts: LabelFacts) -> int:
        return count_trained(facts).get(VOID if facts.ignore_index is None else facts.ignore_index, 0)

    def _is_empty(self, facts: LabelFacts) -> bool:
        seen = ids_of(count_trained(facts)) - {facts.ignore_index}
        return bool(facts.histogram) and not seen and not facts.values
