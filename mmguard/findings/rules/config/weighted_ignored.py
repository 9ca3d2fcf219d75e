from __future__ import annotations

from typing import Iterator

from mmguard.compat.stack import ignored_labels_weigh
from mmguard.config.ignored import ignored_labels
from mmguard.config.losses import class_weights, ignored_by, weighted_cross_entropies
from mmguard.config.read import ReadConfig
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import guarded
from mmguard.findings.views import is_whole, trained


class WeightedIgnored(ConfigRule):
    """F1: class_weight[255]; F3 in onedl's fork."""

    code = 'MG214'
    aliases = ('MG110',)
    summary = "MMSegmentation's CrossEntropyLoss with class_weight fails at the first ignored pixel."
    why = (
        'To average, it looks up class_weight[label] for every pixel, the ignored ones (255) included: IndexError, on '
        'a GPU a device-side assert whose trace often points at accuracy(). Your labels are right, and '
        'avg_non_ignore=True does not help: the look-up comes first. The onedl fork looks up none of the ignored ones, '
        'but with avg_non_ignore=True its mask does not fit, and any label map ends the run.'
    )
    advice = (
        "Write type='GuardedCrossEntropyLoss' with the same arguments, and `custom_imports = dict(imports=['mmguard'], "
        'allow_failed_imports=False)`. The labels need no change: ignored pixels belong there.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in weighted_cross_entropies(config):
            edits = [guarded(config, [loss.path], self.advice)]
            ignored = ignored_by(loss)
            weights = loss.config['class_weight']
            length = class_weights(loss).length
            if not ignored_labels_weigh():
                if loss.get('avg_non_ignore', False):
                    yield self.at(
                        loss.at('class_weight'),
                        weights,
                        "With avg_non_ignore=True the loss of onedl's mmseg masks the class weights with a shape that "
                        'does not fit, and the run ends. The labels are right.',
                        edits=edits,
                    )
                continue
            if ignored is None or (length is not None and -length <= ignored < length):
                continue
            yield self.at(
                loss.at('class_weight'),
                weights,
                f'The loss looks up class_weight[{ignored}] for every ignored pixel{_padded(config, ignored)}: there '
                f'is no such entry, and the run ends. The labels are right.',
                edits=edits,
            )

    def certainty_given(self, found: Finding, labels: LabelFacts) -> str:
        if labels.values:
            return POSSIBLE  # what is invalid may have ended it as well
        # Where no file holds one, padding brings some.
        return PROVEN if is_whole(labels) and labels.ignore_index in trained(labels) else LIKELY


def _padded(config: ReadConfig, ignored: int) -> str:
    """What adds ignored pixels to label maps that hold none."""
    fills = [place.path for place in ignored_labels(config) if place.role == 'fill' and place.value == ignored]
    return f' (also of label maps that hold none: {fills[0]} fills with {ignored})' if fills else ''
