"""Training on several processes: one rank does not do what the rest does, or is gone."""

from __future__ import annotations

from mmguard.findings.signatures.signature import ENDED, FOLLOWS, Cause, Signature

_RANKS = 'mmguard report WORK_DIR  (with RankGuardHook in the config it names the rank, the loss and the files)'
_EMPTY = Cause(
    'A rank drew images without any target, or no proposals for a branch: its losses, and so its graph, are others.',
    ('MG146', 'MG221', 'MG174', 'MG128', 'MG218'),
    clue=r'dn_|denois|mask_head|loss_mask|roi|empty|no positive|parameter.{0,30}(?:mask|dn|denois)'
    r'|without a gradient on rank',
    tell='It comes at another iteration with another seed; with filter_empty_gt=True it trains, or '
    'with a head that runs on an empty batch.',
    against=r'on all ranks that raised',
)
_UNUSED = Cause(
    'A part of the model is used on no rank: a head, a stage or a query embedding that no loss reads.',
    ('MG226',),
    clue=r'(?:first|1st) iteration|find_unused_parameters|on all ranks that raised',
    tell='It fails in the second iteration, always, on all ranks: find_unused_parameters=True, or freeze that part.',
    against=r'without a gradient on rank',
)
_OTHER_COLLECTIVE = Cause(
    'A rank skipped a collective or called another: a metric, a save, an early return, a different number of batches.',
    tell='Compare the stacks of the ranks (`py-spy dump`): one stands elsewhere.',
)
#: A sum here and a gathering there: other losses on one rank are sums of another size, or a sum too few.
_TWO_KINDS = r'OpType=(\w+)\b[^\n]{0,2000}OpType=(?!\1\b)\w'
_SLOW = Cause(
    'One rank is busy for longer than the timeout: saving, evaluating on rank 0 alone, reading from a slow disk.',
    clue=r'save_checkpoint|evaluat|barrier|rank 0: ranks [\d, ]+ waited',
    tell='It dies at an epoch boundary: raise `timeout` of init_process_group.',
)
_DEAD = Cause('Another rank died first: its error is the one to read.', tell='Look at the first traceback in the log.')

SIGNATURES = (
    Signature(
        'MG450',
        'DDP: Expected to have finished reduction in the prior iteration.',
        r'Expected to have finished reduction in the prior iteration',
        'Parameters got no gradient in the iteration before. The message lists their indices per rank.',
        (
            _EMPTY,
            _UNUSED,
            Cause('A loss that is constant where all labels are ignored.', ('MG218', 'MG128', 'MG103'), clue=r'ohem'),
        ),
        _RANKS,
    ),
    Signature(
        'MG452',
        'The losses have other names on another rank.',
        r'loss log variables are different across GPUs',
        'mmdet adds up the losses over ranks by name; one rank has fewer.',
        (_EMPTY._replace(clue=r'loss log'), _OTHER_COLLECTIVE),
        _RANKS,
    ),
    Signature(
        'MG453',
        'Ranks called different collectives, or with different sizes.',
        r'Detected mismatch between collectives|op\.preamble\.length <= op\.nbytes|Tensors must be the same size'
        r'|mismatched? (?:collective|shape).{0,60}rank|[Cc]ollectives? .{0,40}different shapes',
        'The k-th collective of one rank met another one of the next: they are out of step.',
        (
            _EMPTY._replace(clue=r'ALLREDUCE|allreduce|loss', against=_TWO_KINDS),
            _OTHER_COLLECTIVE._replace(clue=_TWO_KINDS),
        ),
        _RANKS,
        bare=True,
    ),
    Signature(
        'MG454',
        'NCCL or gloo waited for the other ranks until its timeout.',
        r'Watchdog caught collective operation timeout|ran for \d+ milliseconds before timing out'
        r'|NCCL.{0,80}timed out|collective operations? timeout|Timed out waiting \d+ms for (?:recv|send)'
        r'|wait timeout after \d+ms|Application timeout caused pair closure|failed to pass monitoredBarrier',
        'This rank waited for one that never came. The rank that is absent is the cause, not the one that says so.',
        (_EMPTY, _SLOW, _OTHER_COLLECTIVE, _DEAD),
        _RANKS,
        bare=True,
        stage=ENDED,
    ),
    Signature(
        'MG456',
        'Another process closed the connection.',
        r'Connection closed by (?:remote )?peer|Connection reset by peer|remote process exited|Broken pipe'
        r'|Connect(?:ion)? (?:was )?refused.{0,60}(?:store|gloo)|recvValue failed|failed to recv, got 0 bytes'
        r'|DistBackendError.{0,300}(?:Broken pipe|connection)|Read from remote host',
        'It follows from the end of another rank.',
        (
            _DEAD,
            Cause('A rank was killed (memory): it leaves no traceback.', clue=r'SIGKILL|-9|[Kk]illed|oom'),
        ),
        _RANKS,
        stage=FOLLOWS,
    ),
    Signature(
        'MG457',
        'NCCL failed.',
        r'NCCL error|ncclSystemError|ncclInternalError|ncclUnhandledCudaError|unhandled (?:cuda|system) error',
        'With `unhandled cuda error` a kernel failed before, on this rank or another; with `system error` the network '
        'or shared memory.',
        (
            Cause(
                'A device-side assert before it.', ('MG102', 'MG107', 'MG138', 'MG214'), clue=r'[Aa]ssert|cuda error'
            ),
            Cause('The network or /dev/shm is not usable: NCCL_DEBUG=INFO says which.', clue=r'system'),
            _DEAD,
        ),
        'NCCL_DEBUG=INFO and the same command',
        bare=True,
        stage=FOLLOWS,
    ),
    Signature(
        'MG458',
        'A process was killed from outside (SIGKILL, -9, 137).',
        r'exit ?code[\s:]{0,20}-9\b|Signal 9 \(SIGKILL\)|(?<!by )signal: Killed|exit ?code:? 137\b|exited with code 137'
        r'|SIGKILL|oom[-_ ]?kill|Out of memory: Killed process|OOM Killed|^Killed\s*$|:\s+\d+ Killed\b',
        'Nobody but the system does that: mostly its memory ran out. Training itself has no word about it.',
        (
            Cause(
                'Host memory: every worker of every rank holds a copy of the annotations; large images, caches.',
                clue=r'oom|memory|worker',
                tell='`dmesg | grep -i kill` or the scheduler names the process; fewer workers train.',
            ),
            Cause('The time or memory limit of the job.', clue=r'slurm|TIME LIMIT|DUE TO'),
            Cause('Somebody ended it.'),
        ),
        'dmesg | grep -i -E "killed process|oom"',
        bare=True,
        stage=ENDED,
    ),
    Signature(
        'MG463',
        'DDP has nothing to train, or its parameters differ over ranks.',
        r"DistributedDataParallel is not needed when a module doesn't have any parameters"
        r'|DDP expects same model across all ranks|params?\[\d+\] in this process with sizes'
        r'|Params .{0,60}inconsistent',
        'All ranks must build the same model, with parameters that train.',
        (
            Cause(
                'num_classes differs over ranks: classes were counted from the files that each rank read.',
                ('MG204', 'MG201'),
                clue=r'same model|sizes',
            ),
            Cause('Everything is frozen.', clue=r'not needed'),
        ),
        'mmguard check CONFIG',
    ),
    Signature(
        'MG464',
        'A launched process failed.',
        r'ChildFailedError|ProcessRaisedException|ProcessExitedException|exitcode[\s:]{1,20}[1-9]'
        r'|process \d+ terminated with (?:signal|exit code)|subprocess\.CalledProcessError|exitcode: -(?:6|15)\b',
        'The launcher only says that one failed; its own error stands further up, or in another file.',
        (
            _DEAD,
            Cause(
                'The error is in the file of that rank: torchrun --redirects 3 --log-dir logs, or @record.',
                clue=r'error_file: <N/A>|To enable traceback',
            ),
        ),
        'mmguard explain LOG_OF_THAT_RANK',
        stage=FOLLOWS,
    ),
)
