"""What is collected where: a package that is not installed takes its own tests and doctests along, and no others."""

from __future__ import annotations

import importlib.util
from typing import Dict, List, Tuple

#: Package -> what needs it, below ``mmguard/`` (doctests) and ``tests/``. The rest runs with torch and numpy alone.
NEEDS: Dict[str, Tuple[str, ...]] = {
    'mmengine': (
        'apply',
        'check',
        'configs',
        'demo',
        'diagnosis/report_files.py',
        'diagnosis/test_generated_sets.py',
        'diagnosis/test_real_reports.py',
        'diagnosis/unseen',
        'end_to_end',
        'gpu',
        'hooks',
        'log/test_flight_record.py',
        'log/test_ledger.py',
        'losses',
        'registration.py',
        'replay',
        'report/test_crash_report.py',
        'report/test_report_command.py',
        'scan/annotations/coco_cases.py',
        'scan/annotations/test_coco_counts.py',
        'scan/annotations/test_det_config_scan.py',
        'scan/annotations/test_voc_scan.py',
        'scan/test_scan_configs.py',
        'scan/test_scan_read.py',
        'small_det_runs.py',
        'small_runs.py',
        'test_registration.py',
        'trace',
        'transforms',
    ),
    'nnunetv2': ('nnunet',),
    'nibabel': ('scan/nnunet',),
    'PIL': (
        'fix',
        'report/test_page_html.py',
        'report/test_page_in_browser.py',
        'report/test_pictures.py',
        'scan/annotations/test_openimages_metas.py',
        'scan/annotations/test_other_sizes.py',
        'scan/hostile_files.py',
        'scan/label_files.py',
        'scan/test_scan_command.py',
        'scan/test_scan_engine.py',
        'scan/test_scan_hostile.py',
        'scan/test_scan_stored.py',
    ),
    'distributed': ('scan/on_dask.py', 'scan/test_scan_dask.py'),
    'torchvision': ('peers/test_torchvision_detectors.py', 'peers/torchvision_models.py'),
    'transformers': (
        'peers/test_transformers_detectors.py',
        'peers/test_transformers_ranks.py',
        'peers/test_transformers_segformer.py',
        'peers/transformers_models.py',
    ),
}


def left_out(needs: Dict[str, Tuple[str, ...]]) -> List[str]:
    """Paths, from the repository's root, that are not collected here."""
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    return [f'{root}/{path}' for name in missing for path in needs[name] for root in ('mmguard', 'tests')]


# No conftest has doctests, and pytest takes two of one name for the same module.
collect_ignore_glob = [*left_out(NEEDS), 'tests/conftest.py', 'tests/*/conftest.py']
