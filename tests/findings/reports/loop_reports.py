"""Reports about training loops: what they hold is a batch, an error or a version, and is tested where these are."""

from __future__ import annotations

from typing import Dict

from report import Report

BATCHES, VALUES = 'unseen/kinds_batches.py', 'unseen/kinds_batch_values.py'

REPORTS: Dict[str, Report] = {
    'mmsegmentation#2500': Report(beside='unseen/kinds_logs.py: mmsegmentation#2500'),
    'XuJiacong/PIDNet#81': Report(beside=f'{BATCHES}: PIDNet#81'),
    'LiheYoung/FreeMask#4': Report(beside=f'{VALUES}: FreeMask#4'),
    'sel118/LaneAF#18': Report(beside=f'{VALUES}: LaneAF#18'),
    'open-edge-platform/geti#3264': Report(beside=f'{VALUES}: geti#3264'),
    'PaddlePaddle/PaddleSeg#2270': Report(beside=f'{VALUES}: PaddleSeg#2270'),
    'PaddlePaddle/PaddleSeg#1499': Report(beside=f'{VALUES}: PaddleSeg#1499'),
    'pytorch/pytorch#70348': Report(beside=f'{VALUES}: all ignored'),
    'pytorch/pytorch#116349': Report(beside=f'{VALUES}: all ignored'),
    'pytorch/pytorch#12670': Report(beside=f'{BATCHES}: pytorch#12670'),
    'pytorch/pytorch#15508': Report(beside=f'{VALUES}: pytorch#15508'),
    'pytorch/vision#2497': Report(beside=f'{BATCHES}: vision#2497'),
}
