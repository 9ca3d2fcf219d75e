"""Chinese texts: a complete catalogue, and no English sentence where findings, errors and logs are printed in it."""

from __future__ import annotations

import copy
import importlib.util
import os
import pickle
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Set

import numpy as np
import pytest
from example_facts import EXAMPLES
from label_files import write_copies
from PIL import Image
from volume_facts import HAS_NNUNET

from mmguard.cli import main
from mmguard.config.read import ReadConfig
from mmguard.facts.run import MISSED_ANOTHER, RAISED, RankFacts, RunFacts
from mmguard.findings import diagnose
from mmguard.findings.messages import format_finding
from mmguard.findings.plugins import list_own_rules
from mmguard.findings.signatures import read_signatures
from mmguard.language import Message, choose_language, join, translate
from mmguard.text import quantity, wrap

_TOOL = importlib.util.spec_from_file_location('translations', Path(__file__).parents[1] / 'tools' / 'translations.py')
assert _TOOL is not None
assert _TOOL.loader is not None
translations = importlib.util.module_from_spec(_TOOL)
_TOOL.loader.exec_module(translations)

#: Four English words in a row are a sentence.
SENTENCE = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*){3}")
#: Code, and what a log, a config or an exception says.
QUOTED = re.compile(r'`[^`]*`|"[^"]*"|\'[^\']*\'|\b\w+(?:Error|Interrupt):.*|^ {6,}\S+ ?[=({].*', re.MULTILINE)


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('MMGUARD_LANG', 'zh')


def find_english(text: str) -> List[str]:
    return [line for line in text.splitlines() if SENTENCE.search(QUOTED.sub('', line))]


def is_chinese(text: str) -> bool:
    return bool(re.search('[\u4e00-\u9fff]', text))


# ---- the catalogue


def fields(template: str) -> Set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def is_template(text: str) -> bool:
    try:
        fields(text)
    except ValueError:  # a brace of its own
        return False
    return True


def test_every_text_is_translated() -> None:
    wanted, entries = translations.extract(), translations.read()
    assert not [text for text in wanted if not entries.get(text, ('', ''))[1]]
    assert not [text for text in entries if text and text not in wanted]
    assert {text: plural for text, (plural, _) in entries.items() if text} == wanted


def test_every_covered_code_has_texts() -> None:
    wanted = translations.extract()
    rules = {rule.code: rule for rule in list_own_rules()}
    assert len(translations.CODES) == len(set(translations.CODES)) >= 40
    for code in translations.CODES if HAS_NNUNET else rules.keys() & {*translations.CODES}:
        for text in (rules[code].summary, rules[code].why, rules[code].advice):
            assert getattr(text, 'template', text) in wanted
    covered = [one.code for one in read_signatures() if one.title in wanted and one.meaning in wanted]
    assert {f'MG{number}' for number in (*range(401, 410), 411, 413, 414, 415, 417, 418)} <= set(covered)


def test_a_text_without_a_translation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # A rule that is not covered yet, so that its texts are missing.
    monkeypatch.setattr(translations, 'CODES', (*translations.CODES, 'MG135'))
    added = translations.extract().keys() - translations.read().keys()
    rule = next(rule for rule in list_own_rules() if rule.code == 'MG135')
    assert {rule.summary, rule.title, rule.title_never, rule.why, rule.advice} <= added  # type: ignore[attr-defined]


def test_translations_have_the_placeholders_of_their_texts() -> None:
    templates = {text: found for text, found in translations.read().items() if text and is_template(text)}
    assert len(templates) > 300
    for text, (plural, translation) in templates.items():
        assert fields(translation) == fields(text) == fields(plural or text)
        assert translation.count('`') == text.count('`'), text


def test_the_compiled_catalogue_is_that_of_the_texts() -> None:
    entries = translations.read()
    assert translations.CATALOGUE.with_suffix('.mo').read_bytes() == translations.compile_entries(entries)


def test_a_catalogue_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = {
        '': ('', translations.HEADER),
        'a "b"\\\n': ('', '甲\n“乙”'),
        '{number} ox': ('{number} oxen', '{number} 头牛'),
    }
    translations.write(entries, tmp_path / 'x.po')
    assert translations.read(tmp_path / 'x.po') == entries


# ---- messages


@pytest.mark.parametrize(
    ('variables', 'language'),
    [
        ({}, 'en'),
        ({'MMGUARD_LANG': 'zh'}, 'zh_CN'),
        ({'MMGUARD_LANG': 'en', 'LANG': 'zh_CN.UTF-8'}, 'en'),
        ({'MMGUARD_LANG': '', 'LC_ALL': 'zh_CN.UTF-8', 'LANG': 'en_US.UTF-8'}, 'zh_CN'),
        ({'LC_ALL': 'C', 'LC_MESSAGES': 'zh_CN.UTF-8', 'LANG': 'zh_CN.UTF-8'}, 'en'),
        ({'LC_MESSAGES': 'zh_CN.UTF-8', 'LANG': 'de_DE.UTF-8'}, 'zh_CN'),
        ({'LANG': 'zh_CN.UTF-8'}, 'zh_CN'),
        ({'LANG': 'fr_FR.UTF-8'}, 'en'),
    ],
)
def test_language(variables: Dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('MMGUARD_LANG', 'LC_ALL', 'LC_MESSAGES', 'LANG'):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert choose_language() == language
    assert is_chinese(translate('Your labels are fine.')) == (language == 'zh_CN')


@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
@pytest.mark.parametrize(
    'text',
    [
        quantity(1, 'file'),
        quantity(1204, 'file'),
        Message('values {values}', values='{1}'),
        join('; ', ('a {b}', Message('never seen: {never}', never='3'))),
    ],
)
def test_a_message_survives_a_copy(copied: Any, text: Message, chinese: None) -> None:
    assert copied(text) == text
    assert translate(copied(text)) == translate(text) != text


def test_data_in_a_message_are_not_translated(chinese: None) -> None:
    assert translate('never seen: {never}', never='files, error').endswith('files, error')
    assert translate('the words of a user: {error}') == 'the words of a user: {error}'


TEXT = '标签文件中有不是类别的值、灰度级、颜色和 0/255 掩码。'


def test_a_chinese_line_is_as_wide_as_the_terminal(chinese: None) -> None:
    rows = wrap(TEXT * 5, 40, '  ', '    ')
    widths = [len(row) + len(re.findall('[^\x00-\x7f]', row)) for row in rows]
    assert ''.join(row.strip() for row in rows).replace(' ', '') == TEXT.replace(' ', '') * 5
    assert max(widths) <= 42
    assert min(widths[:-1]) > 30


PIPES: Any = dict(capture_output=True, text=True, check=True)


def test_english_reads_no_catalogue() -> None:
    program = (
        'import mmguard, mmguard.language as one; one.translate("files"); print(one._read_catalogue.cache_info()[3])'
    )
    for language, loaded in (('en', '0'), ('zh', '1')):
        ended = subprocess.run([sys.executable, '-c', program], env={**os.environ, 'MMGUARD_LANG': language}, **PIPES)
        assert ended.stdout.strip() == loaded


# ---- what is printed


@pytest.mark.parametrize('code', [code for code in translations.CODES if code in EXAMPLES])
def test_a_finding_about_labels(code: str, chinese: None) -> None:
    finding = next(finding for finding in diagnose(EXAMPLES[code]()) if finding.code == code)
    text = format_finding(finding, 200)
    assert not find_english(text)
    assert is_chinese(text)
    assert not is_chinese(f'{finding.title}{finding.evidence}{finding.advice}{finding.next_step}')


@pytest.mark.parametrize('code', ['MG101', 'MG115', *['MG185'] * HAS_NNUNET])
def test_an_english_finding_is_recognised_as_one(code: str) -> None:
    text = format_finding(diagnose(EXAMPLES[code]())[0], 200)
    assert find_english(text)
    assert not is_chinese(text)


CONFIGS: Dict[str, Dict[str, Any]] = {
    'MG227': {'data': {'train': {'type': 'CocoDataset'}}},
    'MG209': {
        'model': {'type': 'EncoderDecoder', 'decode_head': {'type': 'FCNHead', 'num_classes': 7, 'ignore_index': 3}},
        'default_scope': 'mmseg',
    },
    'MG207': {
        'model': {
            'type': 'EncoderDecoder',
            'decode_head': {
                'type': 'FCNHead',
                'num_classes': 5,
                'loss_decode': {'type': 'CrossEntropyLoss', 'class_weight': [1.0, 2.0, 3.0]},
            },
        },
        'default_scope': 'mmseg',
    },
    'MG215': {
        'model': {
            'type': 'EncoderDecoder',
            'decode_head': {'type': 'FCNHead', 'num_classes': 1, 'loss_decode': {'type': 'CrossEntropyLoss'}},
        },
        'default_scope': 'mmseg',
    },
}


@pytest.mark.parametrize('code', sorted(CONFIGS))
def test_a_finding_about_a_config(code: str, chinese: None) -> None:
    pytest.importorskip('mmseg')
    found = [finding for finding in diagnose(config=ReadConfig(CONFIGS[code])) if finding.code == code]
    assert found
    assert not find_english(format_finding(found[0], 200))


UNUSED = (
    'RuntimeError: Expected to have finished reduction\nParameter indices which did not receive grad for rank 1: 3 4'
)


@pytest.mark.parametrize(
    ('code', 'ranks'),
    [
        ('MG303', [RankFacts(0, MISSED_ANOTHER, error='AbsentRankError: rank 0 waited')]),
        ('MG304', [RankFacts(0, RAISED, error='AssertionError: loss log variables are different across GPUs!')]),
        ('MG305', [RankFacts(rank, RAISED, error=UNUSED) for rank in (0, 1)]),
        ('MG306', []),
    ],
)
def test_a_finding_about_ranks(code: str, ranks: List[RankFacts], chinese: None) -> None:
    run = RunFacts(silent=[2, 5], filled={'loss_mask': {'1': 3}}, first_filled={1: (12, ['b.jpg'])})
    found = [finding for finding in diagnose(run=run, ranks=ranks) if finding.code == code]
    assert found
    assert not find_english(format_finding(found[0], 200))


#: What a log says -> the signature.
LOGS = {
    'Loss.cu:250: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.': 'MG402',
    'IndexKernel.cu:92: operator(): Assertion `index >= -sizes[i] && index < sizes[i]` failed.': 'MG403',
    'ScatterGatherKernel.cu:145: operator(): Assertion `idx_dim >= 0 && idx_dim < index_size` failed.': 'MG404',
    'Loss.cu:94: operator(): Assertion `input_val >= zero && input_val <= one` failed.': 'MG405',
    'Indexing.cu:1290: indexSelectLargeIndex: Assertion `srcIndex < srcSelectDimSize` failed.': 'MG406',
    'RuntimeError: Class values must be smaller than num_classes.': 'MG407',
    'RuntimeError: CUDA error: an illegal memory access was encountered': 'MG408',
    'RuntimeError: CUDA error: device-side assert triggered': 'MG401',
    'RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR': 'MG411',
    'IndexError: Target 12 is out of bounds.': 'MG413',
    'IndexError: Target -1 is out of bounds.': 'MG413',
}


@pytest.mark.parametrize('verbose', [[], ['--verbose']])
@pytest.mark.parametrize('error', LOGS)
def test_an_error(
    error: str, verbose: List[str], tmp_path: Path, chinese: None, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / 'train.log'
    traceback = (
        '' if 'Assertion' in error else 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
    )
    log.write_text(f'{traceback}{error}\n')
    assert main(['explain', str(log), *verbose]) == 1
    printed = capsys.readouterr().out.replace(error, '')
    assert printed.startswith(LOGS[error])
    assert not find_english(printed)


@pytest.mark.parametrize('code', ['MG401', 'MG413', 'MG102', 'MG214', 'MG304'])
def test_an_explained_code(code: str, chinese: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['explain', code]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(code)
    # The example is code.
    assert not find_english(re.sub('^  .*$', '', printed, flags=re.MULTILINE))


PLANTED = {'one more': (3, range(4)), 'masks': (2, (0, 255)), 'from one': (19, range(1, 20)), 'fine': (4, range(4))}


@pytest.mark.parametrize('name', PLANTED)
def test_a_scan(name: str, tmp_path: Path, chinese: None, capsys: pytest.CaptureFixture[str]) -> None:
    num_classes, values = PLANTED[name]
    folder = write_copies(tmp_path / 'labels', np.tile(np.repeat(np.array(values, np.uint8), 3)[:, None], (1, 20)), 6)
    report = tmp_path / 'scan.json'
    command = ['scan', str(folder), '--num-classes', str(num_classes), '--json', str(report)]
    assert main([*command, '--verbose']) == int(name != 'fine')
    printed = capsys.readouterr().out
    assert is_chinese(printed)
    assert not find_english(printed)
    assert not is_chinese(report.read_text())


@pytest.mark.parametrize('form', ['json', 'sarif', 'junit', 'github'])
def test_machine_formats_stay_english(
    form: str, tmp_path: Path, chinese: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(np.full((8, 8), 9, np.uint8)).save(tmp_path / 'a.png')
    main(['scan', str(tmp_path), '--num-classes', '3', '--format', form])
    captured = capsys.readouterr()
    assert captured.out
    assert not is_chinese(captured.out)
    assert is_chinese(captured.err)


def test_the_summaries_of_commands(chinese: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(['--help'])
    commands = [line for line in capsys.readouterr().out.splitlines() if re.match(r' {4}[a-z]', line)]
    assert len(commands) >= 11 + HAS_NNUNET
    assert all(map(is_chinese, commands))


@pytest.mark.slow
def test_the_log_of_a_training(cityscapes: str, work_dir: str, chinese: None, snapshot: Any) -> None:
    pytest.importorskip('mmseg')
    from small_runs import GUARD, LOAD, PACK, add_loop, tiny_config, train

    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK, GUARD])
    add_loop(config, 'val', [*LOAD, PACK, GUARD])
    run = train(config)
    # A line of the hook, and the lines that belong to it.
    lines = re.findall(r'^.*(guard: .*(?:\n(?!\d{4}/).*)*)', run.log, re.MULTILINE)
    assert len(lines) >= 5
    assert all(map(is_chinese, lines))
    assert not find_english('\n'.join(lines))
    assert not is_chinese(Path(run.log_dir, 'label_guard.jsonl').read_text())
    snapshot('chinese', 'log of a training', '\n'.join(lines))


@pytest.mark.parametrize('command', ['explain', 'scan'])
def test_text(command: str, tmp_path: Path, chinese: None, snapshot: Any, capsys: pytest.CaptureFixture[str]) -> None:
    if command == 'explain':
        (tmp_path / 'train.log').write_text('\n'.join(['loss: 1.0', *LOGS][:2]))
        main(['explain', str(tmp_path / 'train.log')])
    else:
        Image.fromarray(np.arange(12, dtype=np.uint8).repeat(12).reshape(12, 12)).save(tmp_path / 'a.png')
        main(['scan', str(tmp_path), '--num-classes', '11'])
    snapshot('chinese', command, capsys.readouterr().out)
