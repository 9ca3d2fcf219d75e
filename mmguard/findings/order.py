"""Order of findings, and which findings merely follow from others."""

from __future__ import annotations

from typing import Dict, Tuple

from mmguard.findings.finding import CERTAINTIES, INFO, Finding

#: Verdicts, reported after everything else and only if nothing speaks against the labels.
VERDICTS = ('MG195', 'MG100')

#: The codes of all rules, causes before consequences. Of two equally certain findings, the one that
#: comes first here is shown first.
ORDER: Tuple[str, ...] = (
    # The files are not label maps of the kind that the loader expects: nothing that it reads is a label.
    'MG123',  # fractions, truncated to 0
    'MG122',  # bit depths other than 8
    'MG120',  # colors
    'MG103',  # 0 and 255, made for viewing
    'MG121',  # palette files whose colors are read
    'MG137',  # instance ids
    # Labels are changed on loading: the values in the files are right.
    'MG124',  # reduce_zero_label takes a class away
    # Class lists and annotations do not match: labels, heads and names follow.
    'MG203',  # the list does not reach the data set
    'MG162',  # looked up by the ids of COCO
    'MG140',  # names that the annotations lack
    'MG149',  # annotations of categories without a name
    'MG134',  # categories that the framework does not count
    'MG138',  # category ids as labels
    'MG178',  # the labels from the config's loader differ from those in the files
    'MG160',  # the background has a name
    'MG172',  # corners for x, y, width, height
    'MG168',  # data.yaml
    'MG176',  # records that readers misinterpret
    'MG157',
    # Numberings of well-known data sets before those that are only inferred from counts.
    'MG101',
    'MG136',  # compression or interpolation created values; another gray level means nothing
    'MG133',  # void that was shifted, before void that is not ignored
    'MG125',  # one gray level per class
    'MG115',  # from 1
    'MG156',  # one class under two names, before a head that counts it once
    'MG384',
    'MG108',  # the list is longer than the head
    'MG117',
    'MG119',
    'MG127',  # few files: a slip before a forgotten class
    'MG104',
    'MG106',  # gray levels that nothing above explains
    'MG116',  # gaps, where no known numbering explains them
    # Records and files that cannot be used, one by one.
    'MG179',
    'MG153',
    'MG147',  # a name with two ids makes one label too many
    'MG141',
    'MG158',
    'MG161',
    'MG150',
    'MG130',  # sizes differ, so boxes are outside of the image
    'MG164',  # pixels instead of fractions
    'MG129',
    'MG174',
    # The config contradicts itself, in the order in which a training reads it.
    'MG231',
    'MG250',
    'MG205',
    'MG201',
    'MG154',  # a name that the list lacks, before a head that counts it
    'MG202',
    'MG204',
    'MG207',
    'MG209',  # a class is ignored: no other part agrees with it
    'MG380',
    'MG208',
    'MG210',
    'MG211',
    'MG232',
    'MG214',
    'MG240',
    'MG235',
    'MG381',
    'MG382',
    'MG383',
    'MG215',
    'MG222',
    'MG251',
    'MG223',
    'MG255',
    'MG252',
    'MG253',
    'MG225',
    'MG229',
    'MG233',
    'MG234',
    'MG230',
    # Volumes.
    'MG180',  # without a dataset.json nothing is known
    'MG181',
    'MG182',
    'MG196',
    'MG132',
    'MG185',
    'MG188',
    'MG187',
    'MG193',
    # Fallbacks for labels that nothing above explains.
    'MG102',
    'MG105',
    'MG109',
    'MG128',
    'MG163',
    'MG165',
    'MG227',  # after faults for the generation that reads the config
    'MG135',
    'MG197',
    'MG146',
    'MG152',
    'MG107',
    'MG169',
    'MG159',
    # A run and its ranks: the rank that ended before those that waited for it.
    'MG304',
    'MG303',
    'MG305',
    'MG306',
    # The installation: duplicate packages before incompatible ones.
    'MG502',
    'MG508',
    'MG506',
    'MG515',
    *VERDICTS,
)

#: Code -> codes of its consequences, which are not shown after it: two corrections of one fault contradict
#: each other. MG4xx are errors that a log shows. Where the facts decide, a rule reports fewer.
SUPERSEDES: Dict[str, Tuple[str, ...]] = {
    'MG123': ('MG107', 'MG122', 'MG135'),
    'MG120': ('MG101', 'MG102', 'MG103', 'MG106', 'MG107', 'MG116', 'MG121', 'MG125', 'MG135', 'MG136'),
    'MG103': ('MG104', 'MG106', 'MG107', 'MG116', 'MG125', 'MG135'),
    'MG121': ('MG106', 'MG107', 'MG116', 'MG125'),
    'MG122': ('MG103', 'MG106', 'MG107', 'MG116', 'MG121', 'MG125', 'MG137'),
    'MG137': ('MG106', 'MG107', 'MG138'),
    'MG124': ('MG128', 'MG135', 'MG211'),
    'MG203': ('MG102', 'MG107', 'MG108', 'MG140', 'MG154', 'MG201', 'MG202', 'MG204'),
    'MG162': ('MG102', 'MG107', 'MG116', 'MG140', 'MG146', 'MG154', 'MG174'),
    'MG140': ('MG135', 'MG146', 'MG154', 'MG160', 'MG174', 'MG201', 'MG202', 'MG204'),
    'MG138': ('MG102', 'MG107', 'MG115', 'MG116'),
    'MG160': ('MG102', 'MG107', 'MG108', 'MG115', 'MG201', 'MG202'),
    'MG205': ('MG201',),
    'MG172': ('MG109', 'MG130', 'MG146', 'MG152', 'MG174'),
    'MG156': ('MG102', 'MG107', 'MG108'),
    'MG149': ('MG102', 'MG107', 'MG115', 'MG116', 'MG127'),
    'MG176': ('MG102', 'MG107', 'MG108', 'MG115', 'MG116', 'MG127', 'MG161'),
    'MG101': ('MG102', 'MG106', 'MG107', 'MG116', 'MG125'),
    'MG136': ('MG102', 'MG106', 'MG107', 'MG116', 'MG125'),
    'MG106': ('MG107',),
    'MG125': ('MG106', 'MG107', 'MG116'),
    'MG115': ('MG102', 'MG107', 'MG116'),
    'MG108': ('MG102', 'MG107'),
    'MG117': ('MG102', 'MG106', 'MG107', 'MG116'),
    'MG119': ('MG102', 'MG107'),
    'MG127': ('MG102', 'MG107', 'MG116'),
    'MG133': ('MG102', 'MG104', 'MG106', 'MG107', 'MG116', 'MG125', 'MG135'),
    'MG116': ('MG107',),
    'MG141': ('MG161',),
    'MG130': ('MG152',),
    'MG164': ('MG109', 'MG152', 'MG165', 'MG174'),
    'MG174': ('MG146',),
    'MG209': ('MG208',),
    'MG250': ('MG252',),
    'MG255': ('MG252',),
    'MG240': ('MG102', 'MG107', 'MG215'),
    'MG215': ('MG102', 'MG107'),
    'MG251': ('MG223',),
    'MG233': ('MG146',),
    'MG102': ('MG107',),
    'MG104': ('MG107', 'MG116'),
    'MG105': ('MG107',),
    'MG196': ('MG135', 'MG197'),
    'MG185': ('MG135', 'MG197'),
    'MG304': ('MG303', 'MG452', 'MG453', 'MG454'),
    'MG303': ('MG454', 'MG456'),
    'MG305': ('MG450',),
    'MG306': ('MG452',),
}

_PLACES = {code: place for place, code in enumerate(ORDER)}


def sort_key(finding: Finding) -> Tuple[bool, bool, int, int]:
    """Return the sort key of a finding: the most certain first, causes before consequences, verdicts last."""
    place = _PLACES.get(finding.code, len(ORDER))
    return finding.code in VERDICTS, finding.severity == INFO, CERTAINTIES.index(finding.certainty), place
