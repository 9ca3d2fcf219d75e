"""Packages that do not fit together."""

from __future__ import annotations

from mmguard.findings.signatures.signature import Cause, Signature

_ENV = 'mmguard env'

SIGNATURES = (
    Signature(
        'MG496',
        'The compiled part of mmcv is missing or does not fit torch.',
        r"No module named '(?:mmcv\._ext|torchvision\._C|MultiScaleDeformableAttention|detectron2\._C)'"
        r'|undefined symbol'
        r'|DLL load failed|mmcv.{0,60}_ext|operator torchvision::nms does not exist|cannot open shared object file'
        r"|has no attribute '(?:_ext|nms)'|module 'mmcv' has no attribute '_ext'",
        'mmcv-lite, or an mmcv that was built for another torch or CUDA.',
        (
            Cause(
                'mmcv-lite is installed: it has no operations. Install mmcv of the index of your torch.',
                clue='No module',
            ),
            Cause('torch was updated after mmcv was compiled.', clue=r'undefined symbol|shared object|DLL|nms'),
        ),
        _ENV,
    ),
    Signature(
        'MG497',
        'A version is refused.',
        r'is used but incompatible|[Pp]lease install mmcv|requires? (?:torch|numpy|mmcv|mmengine|python)\S*\s?[<>=!]'
        r'|VersionConflict|DistributionNotFound|mmcv(?:-full)?==\S{1,80} is used',
        'mmseg and mmdet accept a range of versions of mmcv and mmengine only.',
        (
            Cause('mmcv is newer than the release of mmdet or mmseg knows (2.2.0 with mmdet 3.3.0 asks < 2.2.0).'),
            Cause('Packages of onedl and OpenMMLab are mixed.', clue=r'onedl'),
        ),
        _ENV,
    ),
    Signature(
        'MG498',
        'numpy 2 does not fit: something was compiled for 1.x, or uses names that are gone.',
        r'compiled using NumPy 1\.x cannot be run|numpy\.dtype size changed|numpy\.core\.multiarray failed to import'
        r"|module 'numpy' has no attribute '(?:bool|int|float|object|str|long|typeDict|complex|sctypes|NaN|Inf"
        r"|float_|product|in1d|trapz)'"
        r"|_ARRAY_API not found|`np\.\w+` was removed|Numpy is not available|No module named 'numpy\._core'"
        r'|out of bounds for u?int8|could not be promoted',
        'numpy 2 changed its binary interface, and numpy 1.24 took names away.',
        (
            Cause(
                '`pip install "numpy<2"`, or newer releases of the rest.',
                clue=r'compiled|dtype size|ARRAY_API|multiarray',
            ),
            Cause('An old repository: replace np.bool by bool, np.int by int.', clue=r'no attribute'),
            Cause(
                'A value does not fit uint8: numpy 2 raises where numpy 1 wrapped around (-1 became 255).',
                ('MG105', 'MG122', 'MG124'),
                clue=r'out of bounds for',
            ),
        ),
        _ENV,
    ),
    Signature(
        'MG499',
        'A package or a name in it cannot be imported.',
        r'ModuleNotFoundError:|ImportError:',
        'It is not installed in this environment, or in a version without this name.',
        (
            Cause('The wrong environment is active.', tell='`which python`'),
            Cause(
                'A name that was moved in a newer release (Config and runner went from mmcv to mmengine).',
                ('MG227',),
                clue=r'mmcv\.(?:runner|utils|parallel)|cannot import name|mmcv',
            ),
            Cause("pkg_resources went with setuptools 81: `pip install 'setuptools<81'`.", clue=r'pkg_resources'),
        ),
        _ENV,
    ),
)
