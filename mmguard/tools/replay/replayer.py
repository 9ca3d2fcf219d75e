"""Replays one sample: its files, its labels behind the pipeline, the model on it."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Dict, List, Mapping, Optional

import numpy as np
import torch
from torch import nn

from mmguard.config.read import ReadConfig
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.engine import chosen_rules
from mmguard.findings.finding import POSSIBLE, Finding
from mmguard.findings.order import sort_key
from mmguard.findings.rules.config.own_line_fails import OwnLineFails
from mmguard.hooks.discovery import class_names_of, rules_in
from mmguard.labels.space import LabelSpace
from mmguard.tools.replay.forward import raised_of, run_sample
from mmguard.tools.replay.outcome import INVALID, LEFT_OUT, NOT_FINITE, Judged, Outcome, judge
from mmguard.tools.samples import Sample, seed_all
from mmguard.tools.trace.snapshot import of_annotations, take

#: Of whom it is known that none of their transforms gives a label another value.
_FRAMEWORKS = ('mmcv', 'mmseg', 'mmdet')
#: Causes that are reported per sample.
_MOST_FINDINGS = 2


class Replayer:
    """Replays samples, one at a time.

    Args:
        spaces (dict[str, LabelSpace]): Kind -> which labels are valid.
        model (nn.Module, optional): ``None``: labels alone are looked at.
        config (ReadConfig, optional): What the config says about labels, for the likely cause.
        seeds (int): How often a random pipeline is run.
    """

    def __init__(
        self,
        spaces: Mapping[str, LabelSpace],
        model: Optional[nn.Module],
        config: Optional[ReadConfig] = None,
        seeds: int = 3,
    ) -> None:
        self._spaces = spaces
        self._model = model
        self._config = config
        self._seeds = seeds

    def replay(self, sample: Sample, outcome: Outcome) -> None:
        """Replays a sample; what is found goes into ``outcome``. It stops at the first seed that fails."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            self._look_at_files(sample, outcome)
            self._run_seeds(sample, outcome)
        reported = [' '.join(f'{w.category.__name__}: {w.message}'.split())[:200] for w in caught if _concerns_user(w)]
        outcome.warnings = list(dict.fromkeys(reported))
        self._weigh(sample, outcome)

    # ---- the steps

    def _look_at_files(self, sample: Sample, outcome: Outcome) -> None:
        outcome.stored = judge(of_annotations(sample.info), self._spaces, outcome.path)
        results: Any = copy.deepcopy(sample.info)
        seed_all(0)
        try:
            for transform in _loading(sample.transforms):
                results = transform(results)
        except Exception:
            return  # the whole pipeline will raise the same
        outcome.loaded = judge(take('loaded', results), self._spaces, outcome.path)

    def _run_seeds(self, sample: Sample, outcome: Outcome) -> None:
        before = None
        for seed in range(self._seeds):
            seed_all(seed)
            try:
                packed = sample.load()
            except Exception as error:
                outcome.seeds, outcome.seed = seed + 1, seed
                outcome.die('pipeline', raised_of(error))
                return
            if packed is None:
                outcome.seeds = seed + 1
                continue
            shot = take('trained', packed)
            if before is not None and _same(before, packed):
                return  # nothing in this pipeline is random
            before = packed
            outcome.seeds, outcome.seed = seed + 1, seed
            outcome.trained = judge(shot, self._spaces, outcome.path)
            self._run_model(packed, seed, outcome)
            if outcome.fails or outcome.raised is not None:
                return
            if any(judged.is_invalid for judged in outcome.trained.values()):
                outcome.status = INVALID
                return
        if before is None:
            outcome.status = LEFT_OUT
            outcome.notes.append('the pipeline leaves nothing of it (no target?); training draws another one instead')

    def _run_model(self, sample: Any, seed: int, outcome: Outcome) -> None:
        if self._model is None:
            return
        result = run_sample(self._model, sample, seed)
        outcome.losses = result.losses
        outcome.nonfinite_losses = result.nonfinite_losses
        outcome.nonfinite_gradients = result.nonfinite_gradients
        outcome.notes += [note for note in result.notes if note not in outcome.notes]
        if result.raised is not None:
            outcome.die('forward', result.raised)
        elif result.fails:
            outcome.status = NOT_FINITE

    def _weigh(self, sample: Sample, outcome: Outcome) -> None:
        """What the files hold and no seed has shown; and the likely causes."""
        hidden = {kind: judged for kind, judged in outcome.loaded.items() if judged.is_invalid}
        guarded = list(rules_in(sample.transforms))
        if hidden and not outcome.fails and not guarded:
            reported = '; '.join(str(judged) for judged in hidden.values())
            if outcome.status != LEFT_OUT and _keeps_values(sample.transforms):
                outcome.status = INVALID
                outcome.notes.append(f'random transforms hid it from these {outcome.seeds} seeds: try more --seeds')
            else:
                outcome.notes.append(f'loaded: {reported}; gone behind the pipeline')
        if hidden and guarded and not outcome.invalid:
            reported = '; '.join(str(judged) for judged in hidden.values())
            outcome.notes.append(f'loaded: {reported}; the guard in the pipeline takes it out')
        if sample.mixes:
            outcome.notes.append('other images are mixed in: what fails may be in one of them')
        if outcome.fails and outcome.stage != 'pipeline':
            names = class_names_of(sample.dataset)
            found = self._causes(outcome.invalid, names, outcome)
            sure = [finding for finding in found if finding.certainty != POSSIBLE]
            outcome.findings = (sure or found)[:_MOST_FINDINGS]

    def _causes(self, invalid: Dict[str, Judged], names: List[str], outcome: Outcome) -> List[Finding]:
        # Without an invalid label it may still be what the config makes of valid ones.
        asked = list(invalid.values()) or list(outcome.trained.values())
        found: List[Finding] = []
        for judged in asked:
            facts = LabelFacts(
                values=dict(judged.tally.values),
                num_classes=judged.num_classes,
                ignore_index=judged.ignore_index,
                total=judged.tally.total,
                files=1,
                offending_files=int(judged.is_invalid),
                kind=judged.kind,
                reasons=dict(judged.tally.reasons),
                class_names=names,
                split='train',
            )
            rules = [rule for rule in chosen_rules() if rule is not OwnLineFails]  # the run that died had built them
            found += [one for one in diagnose(facts, self._config, rules) if one.severity == 'error']
        return sorted(found, key=sort_key)


def _loading(transforms: List[Any]) -> List[Any]:
    """The steps at the head of a pipeline that only load."""
    loading = []
    for transform in transforms:
        if not type(transform).__name__.startswith('Load'):
            break
        loading.append(transform)
    return loading


def _keeps_values(transforms: List[Any]) -> bool:
    return all(type(transform).__module__.partition('.')[0] in _FRAMEWORKS for transform in transforms)


def _same(one: Any, other: Any) -> bool:
    """Whether two runs of a pipeline brought the same image and labels."""
    try:
        if not torch.equal(one['inputs'], other['inputs']):
            return False
        mine, yours = take('', one), take('', other)
        one_map, other_map = (np.zeros(0) if shot.label is None else shot.label for shot in (mine, yours))
        return np.array_equal(one_map, other_map) and repr(mine.instances) == repr(yours.instances)
    except (TypeError, KeyError, AttributeError):
        return False  # several inputs, or none that can be compared: run it again


def _concerns_user(warning: Any) -> bool:
    return issubclass(warning.category, (UserWarning, RuntimeWarning))
