"""Reading a traceback: only a label's death counts."""

from __future__ import annotations

from mmguard.tools.demo.death import read_death

HEAD = """\
11/21 09:01:42 - mmengine - INFO - Hooks will be executed
Traceback (most recent call last):
  File "/somewhere/mmguard/demo/train.py", line 46, in <module>
    main()
  File "/somewhere/mmseg/models/losses/cross_entropy_loss.py", line {line}, in cross_entropy
    {code}
    ^^^^^^
  File "/somewhere/torch/nn/functional.py", line 3555, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
"""
PLANTED = {'a.png': {26: 3, 200: 4}, 'b.png': {26: 1}}


def output(error: str, line: int = 45, code: str = 'loss = F.cross_entropy(') -> list:
    return (HEAD.format(line=line, code=code) + error).splitlines()


def test_a_planted_label():
    death = read_death(output('IndexError: Target 26 is out of bounds.'), PLANTED)
    assert death.by_label
    assert death.place == 'mmseg/models/losses/cross_entropy_loss.py:45'
    assert 'Label 26 (raw id of car), planted in 2' in death.explanation
    assert 'CUDA error: device-side assert triggered' in death.explanation
    assert death.excerpt[-1] == 'IndexError: Target 26 is out of bounds.'


def test_a_label_that_nobody_planted_is_no_proof():
    assert not read_death(output('IndexError: Target 27 is out of bounds.'), PLANTED).by_label
    assert not read_death(output('IndexError: Target 26 is out of bounds.'), {}).by_label


def test_the_ordinary_ignored_label():
    death = read_death(output('IndexError: index 255 is out of bounds for dimension 0 with size 19'), {})
    assert death.by_label
    assert 'class_weight' in death.explanation


def test_on_a_gpu():
    error = 'torch.AcceleratorError: CUDA error: device-side assert triggered\nCUDA kernel errors might be reported'
    death = read_death(output(error), PLANTED)
    assert death.by_label
    assert death.excerpt[-1].endswith('device-side assert triggered')


def test_another_death_is_none_of_a_label():
    assert not read_death(output("ModuleNotFoundError: No module named 'mmcv._ext'"), PLANTED).by_label
    assert read_death(['Killed'], PLANTED) is None
