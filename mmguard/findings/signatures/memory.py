"""Workers and processes that ended without an exception."""

from __future__ import annotations

from mmguard.findings.signatures.signature import ENDED, FOLLOWS, Cause, Signature

SIGNATURES = (
    Signature(
        'MG465',
        'A worker of the DataLoader was killed or ended without a word.',
        r'DataLoader worker \(pid.{0,20}\) (?:is killed by signal|exited unexpectedly)'
        r'|Background workers? died|One or more background workers are no longer alive',
        'A worker cannot raise an error when the system ends it: memory, shared memory or a crash in C code.',
        (
            Cause(
                'Host memory ran out.',
                clue=r'signal: Killed|background workers|oom',
                tell='`dmesg` names the process; with num_workers=0 it is the main process that dies.',
            ),
            Cause('/dev/shm is too small.', clue=r'[Bb]us error|shm', tell='`df -h /dev/shm`'),
            Cause('A file crashes the reader.', ('MG132', 'MG192'), clue=r'Segmentation fault|Abort'),
            Cause('Label values that the preprocessing cannot take.', ('MG185', 'MG181'), clue=r'nnunet|preprocess'),
        ),
        'the same command with num_workers=0; mmguard scan CONFIG',
        bare=True,
        stage=ENDED,
    ),
    Signature(
        'MG469',
        'The process crashed in C code.',
        r'Segmentation fault|core dumped|free\(\): invalid|double free or corruption|malloc\(\)|terminate called'
        r'|SIGSEGV|exitcode[\s:]{1,20}-11\b|corrupted size vs|munmap_chunk',
        'An operation without checks wrote outside its memory, a library does not fit, or the hardware is faulty.',
        (
            Cause(
                'A label out of range in a C loop.',
                ('MG185', 'MG181', 'MG107', 'MG102'),
                clue=r'[Uu]nexpected label|nnunet|[Aa]ssert|Expected labels',
                tell='The log names unexpected labels before.',
            ),
            Cause(
                'mmcv, opencv or another compiled package was built for another torch.', clue=r'mmcv|cv2|_ext|undefined'
            ),
            Cause(
                'Faulty memory.',
                clue=r'\A(?=.*Segmentation fault)(?=.*(?:free\(\)|malloc\(\)|double free|corrupted|invalid pointer))',
                tell='It dies in another way, at another place, each time; memtest finds it.',
            ),
        ),
        'mmguard env; python -X faulthandler ...',
        bare=True,
        stage=ENDED,
    ),
    Signature(
        'MG471',
        'The run was interrupted.',
        r'KeyboardInterrupt|SIGTERM|SIGINT|SIGHUP|Received \d+ death signal|DUE TO (?:TIME LIMIT|PREEMPTION)',
        'Somebody, the shell (SIGHUP of a closed terminal), the launcher or the scheduler ended it.',
        (
            Cause('The launcher ends the other ranks when one failed.', clue=r'SIGTERM|-15'),
            Cause('The terminal was closed: nohup, tmux or a scheduler.', clue=r'SIGHUP|death signal'),
            Cause('The time limit of the job.', clue=r'TIME LIMIT|PREEMPT'),
        ),
        'mmguard report WORK_DIR',
        stage=FOLLOWS,
    ),
)
