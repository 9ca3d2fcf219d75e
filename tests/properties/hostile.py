"""Data sets of a user's own that do what programs should not."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS


class Plain(BaseDataset):
    def load_data_list(self):
        return [dict(img_path=f'{number}.png') for number in range(3)]


@DATASETS.register_module()
class Quiet(Plain):
    """Works."""


@DATASETS.register_module()
class Hangs(Plain):
    def load_data_list(self):
        while True:
            time.sleep(1)


@DATASETS.register_module()
class Dies(Plain):
    def load_data_list(self):
        os._exit(7)


@DATASETS.register_module()
class EndsTheProgram(Plain):
    def load_data_list(self):
        sys.exit('that is all')


@DATASETS.register_module()
class ReadsJson(Plain):
    def load_data_list(self):
        return json.loads('{')


@DATASETS.register_module()
class CallsPackage(Plain):
    def load_data_list(self):
        return list(map(str, np.zeros(-1)))


@DATASETS.register_module()
class Floods(Plain):
    def load_data_list(self):
        for stream in (sys.stdout, sys.stderr):
            for _ in range(64):
                stream.write('x' * (1 << 20))
        os.system('yes | head -c 10000000')
        return super().load_data_list()


def send(*message):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        getattr(datagrams, 'sendmsg' if len(message) > 2 else 'sendto')(*message)


CONNECTIONS = {
    'connect': lambda: socket.create_connection(('127.0.0.1', 9)),
    'send': lambda: send(b'x', ('127.0.0.1', 9)),
    'send parts': lambda: send([b'x'], [], 0, ('127.0.0.1', 9)),
    'look up': lambda: socket.gethostbyname('localhost'),
}


@DATASETS.register_module()
class Connects(Plain):
    def __init__(self, how='connect', **kwargs):
        CONNECTIONS[how]()
        super().__init__(**kwargs)


@DATASETS.register_module()
class Replies(Plain):
    """Writes bytes into all of its sockets, as the start of a message, and goes on, ends or waits."""

    def __init__(self, message, then='wait', **kwargs):
        for name in os.listdir('/proc/self/fd'):
            if os.path.exists(f'/proc/self/fd/{name}') and stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                os.write(int(name), message)
        if then == 'end':
            os._exit(7)
        if then == 'wait':
            time.sleep(600)
        super().__init__(**kwargs)


@DATASETS.register_module()
class Allocates(Plain):
    def load_data_list(self):
        held = []
        while True:
            held.append(bytearray(64 << 20))


@DATASETS.register_module()
class StartsPrograms(Plain):
    """Starts ``program`` twice, once detached, writes both ids to ``ids``, and goes on, waits or dies."""

    def __init__(self, program, ids, waits=False, dies=False, **kwargs):
        command = [sys.executable, '-c', program]
        started = [subprocess.Popen(command, start_new_session=detached) for detached in (True, False)]
        with open(ids, 'w', encoding='utf-8') as file:
            file.write(' '.join(str(one.pid) for one in started))
        if dies:
            os._exit(7)
        if waits:
            print([one.wait() for one in started])
        self.codes = [one.poll() for one in started]
        super().__init__(**kwargs)

    def load_data_list(self):
        if any(self.codes):
            raise ConnectionError(f'exit codes {self.codes}')
        return super().load_data_list()


@DATASETS.register_module()
class StartsPool(Plain):
    def load_data_list(self):
        with multiprocessing.Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
        return super().load_data_list()


@DATASETS.register_module()
class Interrupts(Plain):
    def load_data_list(self):
        raise KeyboardInterrupt


@DATASETS.register_module()
class Unspeakable(Plain):
    def load_data_list(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError('no words')

        raise Mute


def empty(path):
    with open(path, 'w', encoding='utf-8'):
        pass


CHANGES = {
    'nameless': lambda path: tempfile.TemporaryFile(dir=os.path.dirname(path)).close(),
    'empty': empty,
    'move': lambda path: os.rename(path, f'{path}.old'),
    'remove': os.remove,
    'remove folder': shutil.rmtree,
}


@DATASETS.register_module()
class Changes(Plain):
    """Changes a file or a folder that it makes, then ``path``."""

    def __init__(self, change, path=None, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            own = os.path.join(folder, 'own')
            if change in ('move', 'remove folder'):
                os.makedirs(os.path.join(own, 'results'))
            else:
                empty(own)
            CHANGES[change](own)
        if path is not None:
            CHANGES[change](path)
        super().__init__(**kwargs)
