from __future__ import annotations

from typing import Iterator, NamedTuple

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentChanges, EnvironmentFacts, line_of
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule


class Known(NamedTuple):
    """An exception whose cause is known.

    Attributes:
        module (str): Whose import raises it; empty: any.
        words (str): What its message holds, in lower case.
        numpy (str): From which NumPy on; empty: any.
        advice (str): What to do.
        becomes (tuple): What that changes.
        source (str): Where it is said.
    """

    module: str
    words: str
    numpy: str
    advice: str
    becomes: EnvironmentChanges
    source: str


KNOWN = (
    Known(
        *('', 'numpy', '2'),
        'It was compiled against NumPy 1: `pip install "numpy<2"`',
        (('numpy', '1.26.4'),),
        'https://numpy.org/devdocs/numpy_2_0_migration_guide.html',
    ),
    Known(
        *('cv2', 'libgl', ''),
        'On a server: `pip uninstall -y opencv-python`, then `pip install opencv-python-headless`',
        (('opencv-python', None), ('opencv-contrib-python', None), ('opencv-python-headless', '99')),
        'https://pypi.org/project/opencv-python/',
    ),
    Known(
        *('torchvision', '', ''),
        'mmguard needs none: `pip uninstall torchvision`, or install the one for this torch.',
        (('torchvision', None),),
        'https://github.com/pytorch/vision#installation',
    ),
)


class CannotImport(EnvironmentRule):
    """A package that is there and cannot be imported."""

    code = 'MG506'
    summary = 'A package cannot be imported.'
    why = 'Whatever uses it fails; mmengine goes on without a framework that raises, and then knows none of its types.'
    advice = 'Look at the exception; if it names another package, correct that one first.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module, error in environment.errors.items():
            if module not in DISTRIBUTIONS or 'MMCV==' in error:  # MG508 says what to do about the version of mmcv
                continue
            ways = [
                Edit(known.advice, SAFE, environment=known.becomes)
                for known in KNOWN
                if known.module in ('', module)
                and known.words in error.lower()
                and (not known.numpy or environment.is_from('numpy', known.numpy))
            ]
            yield self.found(f'{module} cannot be imported.', error, edits=ways[:1], places=(line_of(module),))
