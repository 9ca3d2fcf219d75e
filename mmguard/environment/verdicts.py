"""From what is installed to a verdict per line: what is in order, what is not, and what to do."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.environment.facts import DISTRIBUTIONS, EnvironmentFacts

OK, WARNING, ERROR = 'ok', 'warning', 'error'


class Verdict(NamedTuple):
    """One line of ``mmguard env``.

    Attributes:
        name (str): What it is about.
        found (str): What was found.
        level (str): ``'ok'``, ``'warning'`` or ``'error'``.
        advice (str): What is wrong, and what to do; empty where nothing is.
    """

    name: str
    found: str
    level: str = OK
    advice: str = ''

    def to_json(self) -> Dict[str, str]:
        return dict(self._asdict())


def version_key(text: str) -> Tuple[Any, ...]:
    """A version that compares: ``2.0.0rc4`` before ``2.0.0``, ``+cu118`` and the like left out.

    Example:
        >>> version_key('2.0.0rc4') < version_key('2.0.0') < version_key('2.13.0+cpu')
        True
    """
    found = re.match(r'(\d+(?:\.\d+)*)(?:\.?(a|b|rc|dev)(\d*))?', text)
    if found is None:
        return ((0, 0, 0, 0), 0, 0)
    numbers = tuple(int(part) for part in found.group(1).split('.'))
    stage = {'dev': -4, 'a': -3, 'b': -2, 'rc': -1, None: 0}[found.group(2)]
    return ((*numbers, 0, 0, 0, 0)[:4], stage, int(found.group(3) or 0))


def verdicts(facts: EnvironmentFacts) -> List[Verdict]:
    """Judges an installation, line by line."""
    return [line for judge in _JUDGES for line in judge(facts)]


def _python(facts: EnvironmentFacts) -> Iterator[Verdict]:
    old = version_key(facts.python) < version_key('3.8')
    advice = 'mmguard needs Python 3.8 or newer' if old else ''
    yield Verdict('python', f'{facts.python} on {facts.system}', ERROR if old else OK, advice)


def _packages(facts: EnvironmentFacts) -> Iterator[Verdict]:
    for module in DISTRIBUTIONS:
        installed = {name: facts.versions[name] for name in DISTRIBUTIONS[module] if name in facts.versions}
        found = ', '.join(f'{name} {version}' for name, version in installed.items())
        shown = module if module in DISTRIBUTIONS[module] else f'{module} ({DISTRIBUTIONS[module][0]})'
        if module in facts.missing:
            yield _missing(shown, module, found)
        elif module in facts.errors:
            yield Verdict(shown, found or 'version unknown', ERROR, _import_advice(facts, module))
        elif len(installed) > 1:
            yield Verdict(shown, found, *_several(module, installed))
        else:
            yield Verdict(shown, found or 'version unknown (not installed by pip)', *_of_version(facts, module))


def _missing(shown: str, module: str, found: str) -> Verdict:
    if found:
        again = f'pip install --force-reinstall --no-deps {found.split()[0]}'
        return Verdict(shown, f'{found}, but its files are missing', ERROR, f'install it again: {again}')
    if module in ('mmseg', 'mmdet', 'cv2', 'mmguard'):
        return Verdict(shown, 'not installed', OK, 'needed only if you train with it' if module != 'mmguard' else '')
    level = ERROR if module in ('torch', 'numpy') else WARNING
    install = 'mim install "mmcv>=2.0.0"' if module == 'mmcv' else f'pip install {module}'
    return Verdict(shown, 'not installed', level, install)


def _import_advice(facts: EnvironmentFacts, module: str) -> str:
    error = facts.errors[module]
    numpy = facts.versions.get('numpy', '0')
    if 'numpy' in error.lower() and version_key(numpy) >= version_key('2'):
        return f'cannot be imported: {error}. Compiled against NumPy 1: pip install "numpy<2"'
    if 'libGL' in error:
        return f'cannot be imported: {error}. On a server: pip install opencv-python-headless instead'
    if 'MMCV==' in error:
        return f'cannot be imported: {error}. See the line on mmcv below'
    return f'cannot be imported: {error}'


def _several(module: str, installed: Dict[str, str]) -> Tuple[str, str]:
    fork = next((name for name in installed if name.startswith('onedl-')), None)
    others = ' '.join(name for name in installed if name != fork)
    if fork is not None:
        return ERROR, f'{fork} and {others} write the same folder: pip uninstall {" ".join(installed)}, then one again'
    level = WARNING if module == 'cv2' else ERROR
    return level, f'they write the same folder, the last installed wins: uninstall all, then install one ({others})'


def _of_version(facts: EnvironmentFacts, module: str) -> Tuple[str, str]:
    torch, numpy = facts.versions.get('torch'), facts.versions.get('numpy')
    numpy_2 = numpy is not None and version_key(numpy) >= version_key('2')
    if module == 'numpy' and numpy_2 and torch and version_key(torch) < version_key('2.3'):
        return ERROR, f'torch {torch} was compiled against NumPy 1: pip install "numpy<2"'
    if module == 'torch' and torch and version_key(torch) < version_key('1.13'):
        return WARNING, 'mmguard is made for torch 1.13 and newer'
    if module == 'mmcv':
        version = next((facts.versions[n] for n in DISTRIBUTIONS['mmcv'] if n in facts.versions), None)
        if version and version_key(version) < version_key('2.0.0rc4'):
            return ERROR, 'mmcv 1 belongs to mmseg 0.x and mmdet 2.x: mim install "mmcv>=2.0.0"'
    return OK, ''


def _ops(facts: EnvironmentFacts) -> Iterator[Verdict]:
    if facts.ops is None:
        return
    if not facts.ops:
        level = ERROR if 'mmdet' not in facts.missing else WARNING
        lite = 'mmcv-lite has none' if 'mmcv-lite' in facts.versions else 'no mmcv/_ext in its folder'
        yield Verdict(
            "mmcv's compiled ops",
            'not there',
            level,
            f'{lite}: deformable convolutions, NMS, RoIAlign and mmdet need them. pip uninstall mmcv mmcv-lite, then '
            f'mim install mmcv',
        )
    elif 'mmcv.ops' in facts.errors and 'mmcv' not in facts.errors:
        torch = facts.versions.get('torch', 'unknown')
        yield Verdict(
            "mmcv's compiled ops",
            'cannot be loaded',
            ERROR,
            f'{facts.errors["mmcv.ops"]}. They were compiled for another torch than {torch}: pip uninstall mmcv, then '
            f'mim install mmcv (where no wheel fits your torch, it is compiled; that takes minutes)',
        )
    else:
        yield Verdict("mmcv's compiled ops", 'there')


def _accepted(facts: EnvironmentFacts) -> Iterator[Verdict]:
    version = next((facts.versions[name] for name in DISTRIBUTIONS['mmcv'] if name in facts.versions), None)
    if version is None:
        return
    for module, (low, high) in facts.accepts.items():
        fits = version_key(low) <= version_key(version) < version_key(high)
        name = f'mmcv for {module}'
        found = f'{version}; accepted: {low} up to, not including, {high}'
        advice = f'pip uninstall mmcv, then mim install "mmcv>={low},<{high}"'
        yield Verdict(name, found) if fits else Verdict(name, found, ERROR, advice)


def _cuda(facts: EnvironmentFacts) -> Iterator[Verdict]:
    if 'torch' in facts.missing:
        return
    driver = f'driver {facts.driver}, up to CUDA {facts.driver_cuda}' if facts.driver else 'no NVIDIA driver'
    gpus = f'; {", ".join(facts.gpus)}' if facts.gpus else ''
    if facts.torch_cuda is None:
        advice = 'torch was installed without CUDA, so the GPU is not used: see pytorch.org/get-started'
        yield Verdict('CUDA', f'torch for the CPU; {driver}{gpus}', *((WARNING, advice) if facts.driver else (OK, '')))
        return
    found = f'torch for CUDA {facts.torch_cuda}; {driver}{gpus}'
    if facts.driver is None:
        yield Verdict('CUDA', found, WARNING, 'nvidia-smi finds no driver: training runs on the CPU')
    elif facts.driver_cuda and _major(facts.torch_cuda) > _major(facts.driver_cuda):
        advice = f'the driver is too old for this torch: update it, or install a torch for CUDA {facts.driver_cuda}'
        yield Verdict('CUDA', found, ERROR, advice)
    elif facts.cuda_available is False:
        advice = 'torch finds no usable GPU: is CUDA_VISIBLE_DEVICES empty, or the container without --gpus?'
        yield Verdict('CUDA', found, WARNING, advice)
    else:
        yield Verdict('CUDA', found)


def _major(version: str) -> int:
    return int(version.partition('.')[0])


def _resume(facts: EnvironmentFacts) -> Iterator[Verdict]:
    torch = facts.versions.get('torch')
    if torch is None or 'mmengine' in facts.missing:
        return
    if version_key(torch) < version_key('2.6') or facts.loads_weights_only:
        yield Verdict('resuming a run', 'mmengine can load its own checkpoints')
        return
    yield Verdict(
        'resuming a run',
        f'torch {torch} loads weights only, unless told',
        WARNING,
        'mmengine does not tell it, so resume and load_from of its checkpoints end with "Weights only load failed". '
        'For checkpoints that you trust: export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1',
    )


_JUDGES: Tuple[Callable[[EnvironmentFacts], Iterator[Verdict]], ...] = (
    _python,
    _packages,
    _ops,
    _accepted,
    _cuda,
    _resume,
)


def worst(lines: List[Verdict]) -> Optional[str]:
    """The highest level among lines."""
    levels = [level for level in (ERROR, WARNING, OK) if any(line.level == level for line in lines)]
    return levels[0] if levels else None
