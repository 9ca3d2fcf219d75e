"""Packages that do not fit together."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

_ENV = 'mmguard env'

SIGNATURES = (
    Signature(
        'MG498',
        'A value does not fit uint8 (numpy 2).',
        r'out of bounds for u?int8',
        'numpy 2 raises where numpy 1 wrapped around: -1 became 255.',
        (Cause('A label map is shifted or filled with -1: convert it to int64 before.', ('MG105', 'MG122', 'MG124')),),
        _ENV,
    ),
    Signature(
        'MG499',
        'A package cannot be imported, or refuses the version of another.',
        r'ModuleNotFoundError:|ImportError:|undefined symbol|DLL load failed|cannot open shared object file'
        r"|operator torchvision::nms does not exist|has no attribute '(?:_ext|nms)'|is used but incompatible"
        r'|[Pp]lease install mmcv|VersionConflict|DistributionNotFound|compiled using NumPy 1\.x cannot be run'
        r"|numpy\.dtype size changed|numpy\.core\.multiarray failed to import|module 'numpy' has no attribute '\w+'"
        r'|_ARRAY_API not found|Numpy is not available',
        'It is not in this environment, or was made for another release of torch, numpy, mmcv or mmengine.',
        (
            Cause(
                'mmcv-lite is installed, or an mmcv that was compiled for another torch.',
                ('MG509',),
                clue=r'_ext|undefined symbol|shared object|DLL|nms',
            ),
            Cause(
                'mmcv is newer than the release of mmdet or mmseg knows, or onedl and OpenMMLab are mixed.',
                ('MG508', 'MG502'),
                clue=r'incompatible|install mmcv|onedl',
            ),
            Cause(
                'numpy 2, and a package that was made for 1.x: `pip install "numpy<2"`.',
                ('MG507',),
                clue=r'[Nn]um[Pp]y',
            ),
            Cause(
                'A name that was moved in a newer release (Config and runner went from mmcv to mmengine).',
                ('MG227',),
                clue=r'mmcv\.(?:runner|utils|parallel)|cannot import name',
            ),
            Cause('The wrong environment is active.', tell='`which python`'),
        ),
        _ENV,
    ),
)
