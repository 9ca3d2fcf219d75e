"""What is collected where: a package that is not installed takes its own tests and doctests along, and no others.

``--select stack`` leaves out what is the same in every stack.
"""

from __future__ import annotations

import importlib.util
from typing import Dict, Iterable, List, Tuple

import pytest

#: Package -> what needs it, below ``mmguard/`` (doctests) and ``tests/``. The rest runs with torch and numpy alone.
NEEDS: Dict[str, Tuple[str, ...]] = {
    'mmengine': (
        'config/guards.py',
        'config/test_config_load.py',
        'hooks',
        'log/test_flight_record.py',
        'log/test_statistics.py',
        'losses',
        'properties/batches.py',
        'properties/evaluation.py',
        'properties/gradients.py',
        'properties/loss_terms.py',
        'properties/pipelines.py',
        'properties/program.py',
        'properties/samples.py',
        'properties/strides.py',
        'tools/samples.py',
    ),
    'mmcv': (
        'hooks/test_discovery.py',
        'registration.py',
        'test_registration.py',
        'transforms',
    ),
    'mmseg': (
        'config/test_config_commands.py',
        'tools/apply',
        'tools/check',
        'tools/explain/test_explain_with_data.py',
        'tools/explain/test_what_data_decide.py',
        'configs',
        'tools/demo',
        'findings/edits',
        'findings/test_edits_of_*.py',
        'findings/test_label_places.py',
        'findings/test_maps_applied_again.py',
        'findings/reports',
        'findings/situations',
        'findings/test_one_fault.py',
        'end_to_end',
        'gpu',
        'hooks/test_warnings.py',
        'losses/*_cases.py',
        'losses/test_*.py',
        'properties/every_*.py',
        'properties/hostile.py',
        'properties/own_datasets.py',
        'properties/planted.py',
        'properties/planted_models.py',
        'properties/programs.py',
        'properties/test_builder.py',
        'properties/test_dry_run.py',
        'properties/test_verified_edits.py',
        'tools/replay',
        'tools/report/test_crash_report.py',
        'tools/report/test_report_command.py',
        'coco_cases.py',
        'formats/coco/test_coco_counts.py',
        'formats/coco/test_coco_masks.py',
        'scanning/test_det_config_scan.py',
        'formats/voc/test_voc_scan.py',
        'scanning/test_scan_configs.py',
        'scanning/test_scan_loader.py',
        'scanning/test_scan_old_configs.py',
        'formats/maps/test_scan_read.py',
        'formats/maps/test_scan_sound.py',
        'small_det_data.py',
        'small_det_runs.py',
        'small_runs.py',
        'tools/trace',
        'transforms/test_*.py',
    ),
    'nnunetv2': ('nnunet',),
    'nibabel': ('formats/nnunet',),
    'PIL': (
        'docs/test_site.py',
        'findings/test_installed_rules.py',
        'interrupted',
        'masks_of_255.py',
        'test_closed_streams.py',
        'test_security.py',
        'tools/fix',
        'tools/page',
        'tools/report/test_page_html.py',
        'tools/report/test_pictures.py',
        'formats/coco/test_coco_folder.py',
        'formats/test_local_only.py',
        'formats/test_other_programs.py',
        'formats/test_other_sizes.py',
        'formats/maps/hostile_files.py',
        'label_files.py',
        'formats/maps/test_scan_arrays.py',
        'tools/scan/test_scan_command.py',
        'formats/maps/test_scan_engine.py',
        'formats/maps/test_scan_hostile.py',
        'scanning/test_scan_outside.py',
        'scanning/test_scan_stored.py',
        'scanning/test_scan_tried.py',
        'formats/coco/test_panoptic_png.py',
        'formats/folders.py',
        'formats/test_class_folders.py',
        'formats/yolo',
        'tools/test_data_runs_no_code.py',
        'tools/test_many_names.py',
        'tools/test_no_regular_files.py',
    ),
    'msgspec': (
        'tools/fix/test_fix_annotations.py',
        'tools/fix/test_fix_edits.py',
        'tools/fix/test_fix_hostile.py',
        'formats/coco/test_coco_folder.py',
        'formats/coco/test_panoptic_png.py',
    ),
    'yaml': ('docs/test_site.py', 'formats/yolo', 'tools/page'),
    'torchvision': (
        'examples/test_example_mlperf_retinanet.py',
        'nnunet/test_nnunet_cli.py',
        'peers/test_torchvision_detectors.py',
    ),
    'transformers': (
        'examples/test_example_rtdetr.py',
        'peers/test_transformers.py',
    ),
}

#: Commands that print with colors, and what they print with.
NEEDS['rich'] = (
    *NEEDS['PIL'],
    'test_language.py',
    'tools/console.py',
    'tools/dry_run/render.py',
    'text/test_texts.py',
    'tools/explain/test_explain_with_data.py',
    'tools/explain/test_pseudo_dice.py',
    'tools/report/test_damaged_runs.py',
    'formats/coco/test_coco_hostile.py',
    'tools/scan/test_labels_on_screen.py',
    'tools/scan/output.py',
    'scanning/test_scan_numbering.py',
    'scanning/test_scan_targets.py',
)

#: What only reads configs, annotations and logs, and says what is wrong with them, and what is text alone: no torch, no
#: model, no training. A test of anything else, a new one, too, runs in every stack, unless it is marked
#: ``same_everywhere``.
SAME_EVERYWHERE = (
    'tools/apply',
    'tools/check',
    'tools/explain',
    'findings',
    'interrupted',
    'tools/fix',
    'tools/report',
    'formats/test_*.py',  # its nnunet/ runs where nibabel is, and that is not in the first stack
    'formats/coco',
    'formats/maps',
    'formats/voc',
    'scanning',
    'tools/scan',
    'formats/folders.py',
    'formats/yolo',
    'tools/demo/test_demo_d*.py',
    'tools/demo/test_demo_parts.py',
    'tools/demo/test_demo_ver*.py',
    'config/test_config_types.py',
    'files',
    'text',
    'log/test_log_reader.py',
    'log/test_messages.py',
    'examples/test_examples_table.py',
    'test_packaging.py',
    'stacks/test_matrix.py',
    'docs/test_pages.py',
    'docs/test_site.py',
)

#: What needs only torch: it runs with the oldest and the newest torch, and need not with frameworks that have the same.
TORCH_ALONE = ('functional', 'nn', 'detection', 'distributed', 'gpu')


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        '--select',
        choices=('all', 'stack', 'framework'),
        default='all',
        help='stack: what differs between the stacks; framework: of these, what needs more than torch',
    )
    parser.addoption('--update-snapshots', action='store_true', help='rewrite tests/snapshots; read the difference')


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption('--select') != 'all':
        collect_ignore_glob.extend(below(SAME_EVERYWHERE))
    if config.getoption('--select') == 'framework':
        collect_ignore_glob.extend(below(TORCH_ALONE))


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    if config.getoption('--select') != 'all':
        out = [item for item in items if item.get_closest_marker('same_everywhere')]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def below(paths: Iterable[str]) -> List[str]:
    """From the repository's root."""
    return [f'{root}/{path}' for path in paths for root in ('mmguard', 'tests')]


def left_out(needs: Dict[str, Tuple[str, ...]]) -> List[str]:
    """Paths that are not collected here."""
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    return below(path for name in missing for path in needs[name])


# No conftest has doctests, and pytest takes two of one name for the same module.
collect_ignore_glob = [*left_out(NEEDS), 'tests/conftest.py', 'tests/*/conftest.py', 'tests/tools/*/conftest.py']
