"""From what is installed to a verdict per line: what is in order, what is not, and what to do."""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Optional, Tuple

from mmguard.environment.facts import DISTRIBUTIONS, EnvironmentFacts
from mmguard.environment.stacks import install_advice, judge_stack
from mmguard.environment.tried import judge_tried
from mmguard.environment.verdict import ERROR, OK, WARNING, Verdict, version_key
from mmguard.stack import ONEDL, stacks_among

__all__ = ['ERROR', 'OK', 'WARNING', 'Verdict', 'verdicts', 'version_key', 'worst']

#: Shown only where they are installed.
_OPTIONAL = ('nnunetv2', 'torchvision')


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
        if module in _OPTIONAL and not installed:
            continue
        found = ', '.join(f'{name} {version}' for name, version in installed.items())
        shown = module if module in DISTRIBUTIONS[module] else f'{module} ({DISTRIBUTIONS[module][0]})'
        if module in facts.missing:
            yield _missing(shown, module, found, facts)
        elif module in facts.errors:
            yield Verdict(shown, found or 'version unknown', ERROR, _import_advice(facts, module))
        elif len(installed) > 1:
            yield Verdict(shown, found, *_several(module, installed))
        else:
            yield Verdict(shown, found or 'version unknown (not installed by pip)', *_of_version(facts, module))


def _missing(shown: str, module: str, found: str, facts: EnvironmentFacts) -> Verdict:
    if found:
        again = f'pip install --force-reinstall --no-deps {found.split()[0]}'
        return Verdict(shown, f'{found}, but its files are missing', ERROR, f'install it again: {again}')
    if module in ('torch', 'numpy'):
        return Verdict(shown, 'not installed', ERROR, f'pip install {module}')
    if module == 'mmguard':
        return Verdict(shown, 'not installed')
    if module in ('mmengine', 'mmcv'):
        needing = [name for name in ('mmseg', 'mmdet') if name not in facts.missing]
        if needing:
            advice = f'{" and ".join(needing)} cannot do without: {install_advice(module, facts)}'
            return Verdict(shown, 'not installed', ERROR, advice)
        if module == 'mmcv' and 'mmengine' not in facts.missing:
            advice = f'GuardSegLabels and GuardInstanceLabels need it: {install_advice(module, facts)}'
            return Verdict(shown, 'not installed', WARNING, advice)
    return Verdict(shown, 'not installed', OK, 'needed only if you train with it')


def _import_advice(facts: EnvironmentFacts, module: str) -> str:
    error = facts.errors[module]
    numpy = facts.versions.get('numpy', '0')
    if 'numpy' in error.lower() and version_key(numpy) >= version_key('2'):
        return f'cannot be imported: {error}. Compiled against NumPy 1: pip install "numpy<2"'
    if 'libGL' in error:
        return f'cannot be imported: {error}. On a server: pip install opencv-python-headless instead'
    if module == 'torchvision':
        return f'cannot be imported: {error}. mmguard needs none: pip uninstall torchvision, or one for this torch'
    if 'MMCV==' in error:
        return f'cannot be imported: {error}. See the line on mmcv below'
    return f'cannot be imported: {error}'


def _several(module: str, installed: Dict[str, str]) -> Tuple[str, str]:
    fork = next((name for name in installed if name.startswith('onedl-')), None)
    others = ' '.join(name for name in installed if name != fork)
    if fork is not None:
        return ERROR, f'{fork} and {others} write the same folder: pip uninstall {" ".join(installed)}, then one again'
    if module == 'cv2' and len(set(installed.values())) == 1:  # the same files, as onedl-mmdetection's packages bring
        return OK, ''
    level = WARNING if module == 'cv2' else ERROR
    return level, f'they write the same folder, the last installed wins: uninstall all, then install one ({others})'


def _of_version(facts: EnvironmentFacts, module: str) -> Tuple[str, str]:
    torch, numpy = facts.versions.get('torch'), facts.versions.get('numpy')
    numpy_2 = numpy is not None and version_key(numpy) >= version_key('2')
    if module == 'numpy' and numpy_2 and torch and version_key(torch) < version_key('2.3'):
        return ERROR, f'torch {torch} was compiled against NumPy 1: pip install "numpy<2"'
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
            f'{lite}: deformable convolutions, NMS, RoIAlign and mmdet need them. {_mmcv_again(facts)}',
        )
    elif 'mmcv.ops' in facts.errors and 'mmcv' not in facts.errors:
        torch = facts.versions.get('torch', 'unknown')
        yield Verdict(
            "mmcv's compiled ops",
            'cannot be loaded',
            ERROR,
            f'{facts.errors["mmcv.ops"]}. They were compiled for another torch than {torch}: {_mmcv_again(facts)} '
            f'(where no wheel fits your torch, it is compiled; that takes minutes)',
        )
    else:
        yield Verdict("mmcv's compiled ops", 'there')


def _mmcv_again(facts: EnvironmentFacts, limits: str = '') -> str:
    """How to install mmcv once more, from the stack that is there."""
    if list(stacks_among(facts.versions)) == [ONEDL]:
        wanted = f'"onedl-mmcv{limits}"' if limits else 'onedl-mmcv'
        return f'pip uninstall onedl-mmcv, then pip install --no-build-isolation {wanted}'
    names = [name for name in DISTRIBUTIONS['mmcv'] if name in facts.versions] or ['mmcv']
    wanted = f'"mmcv{limits}"' if limits else 'mmcv'
    return f'pip uninstall {" ".join(names)}, then mim install {wanted}'


def _accepted(facts: EnvironmentFacts) -> Iterator[Verdict]:
    version = next((facts.versions[name] for name in DISTRIBUTIONS['mmcv'] if name in facts.versions), None)
    if version is None:
        return
    for module, (low, high) in facts.accepts.items():
        too_old = low and version_key(version) < version_key(low)
        too_new = high and version_key(version) >= version_key(high)
        limits = ' '.join(['from ' + low] * bool(low) + [f'up to, not including, {high}'] * bool(high))
        line = Verdict(f'mmcv for {module}', f'{version}; accepted: {limits}')
        if too_old or too_new:
            advice = _mmcv_again(facts, ','.join([f'>={low}'] * bool(low) + [f'<{high}'] * bool(high)))
            line = line._replace(level=ERROR, advice=advice)
        yield line


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
    judge_stack,
    _packages,
    _ops,
    _accepted,
    _cuda,
    _resume,
    judge_tried,
)


def worst(lines: List[Verdict]) -> Optional[str]:
    """The highest level among lines."""
    levels = [level for level in (ERROR, WARNING, OK) if any(line.level == level for line in lines)]
    return levels[0] if levels else None
