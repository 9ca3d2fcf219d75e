from __future__ import annotations

from typing import Iterator, NamedTuple, Tuple

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentChanges, EnvironmentFacts, line_of
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule, Example


class Known(NamedTuple):
    """An exception whose cause is known.

    Attributes:
        module (str): Whose import raises it; empty: any.
        words (str): What its message holds, in lower case.
        numpy (str): From which NumPy on; empty: any.
        title (str): What to do.
        commands (tuple[str]): What to type for it.
        becomes (tuple): What that changes.
        source (str): Where it is said.
    """

    module: str
    words: str
    numpy: str
    title: str
    commands: Tuple[str, ...]
    becomes: EnvironmentChanges
    source: str


KNOWN = (
    Known(
        *('', 'numpy', '2'),
        'Install NumPy 1, which it was compiled against.',
        ('pip install "numpy<2"',),
        (('numpy', '1.26.4'),),
        'https://numpy.org/devdocs/numpy_2_0_migration_guide.html',
    ),
    Known(
        *('cv2', 'libgl', ''),
        'Install the OpenCV for servers, which needs no libGL.',
        ('pip uninstall -y opencv-python', 'pip install opencv-python-headless'),
        (('opencv-python', None), ('opencv-contrib-python', None), ('opencv-python-headless', '99')),
        'https://pypi.org/project/opencv-python/',
    ),
    Known(
        *('torchvision', '', ''),
        'Uninstall torchvision, which mmguard does not need, or install the one for this torch.',
        ('pip uninstall torchvision',),
        (('torchvision', None),),
        'https://github.com/pytorch/vision#installation',
    ),
)


class CannotImport(EnvironmentRule):
    """An installed package that cannot be imported."""

    code = 'MG506'
    summary = 'A package cannot be imported.'
    title = '{module} cannot be imported.'
    why = 'Whatever uses it fails; mmengine goes on without a framework that raises, and then knows none of its types.'
    example = Example(wrong='numpy 2.1 with a package compiled against NumPy 1', right='pip install "numpy<2"')
    limits = (
        'It imports the packages of its table; an import that fails only with a GPU or on another machine is not seen.'
    )
    advice = (
        'Read the exception. If it names another package, correct that one first; if not, reinstall this one. If that '
        'does not help, make a new environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module, error in environment.errors.items():
            if module not in DISTRIBUTIONS or 'MMCV==' in error:  # MG508 says what to do about the version of mmcv
                continue
            ways = [
                Edit(known.title, SAFE, environment=known.becomes, commands=known.commands)
                for known in KNOWN
                if known.module in ('', module)
                and known.words in error.lower()
                and (not known.numpy or environment.is_from('numpy', known.numpy))
            ]
            yield self.report(error, dict(module=module), edits=ways[:1], places=(line_of(module),))
