"""Order of findings, and which findings merely follow from others."""

from __future__ import annotations

from typing import Tuple

from mmguard.findings.finding import CERTAINTIES, INFO, Finding

#: The codes of all rules but those of plugins, causes before consequences. Of two equally certain findings, the one
#: that comes first here is shown first.
ORDER: Tuple[str, ...] = (
    # The files are not label maps of the kind that the loader expects: nothing that it reads is a label.
    'MG123',  # fractions, truncated to 0
    'MG122',  # bit depths other than 8
    'MG120',  # colors
    'MG580',  # gray in several channels
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
    'MG581',  # category 0 as background
    'MG178',  # the labels from the config's loader differ from those in the files
    'MG160',  # the background has a name
    'MG172',  # corners for x, y, width, height
    'MG168',  # data.yaml
    'MG393',  # folders that are not the classes
    'MG394',
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
    'MG396',
    'MG397',
    'MG395',
    'MG179',
    'MG398',
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
    'MG390',
    'MG205',
    'MG391',
    'MG392',
    'MG590',
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
    'MG132',
    # Fallbacks for labels that nothing above explains.
    'MG102',
    'MG105',
    'MG109',
    'MG128',
    'MG163',
    'MG165',
    'MG227',  # after faults for the generation that reads the config
    'MG135',
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
    'MG100',
)

_PLACES = {code: place for place, code in enumerate(ORDER)}


def sort_key(finding: Finding) -> Tuple[bool, bool, int, float]:
    """Return the sort key of a finding: the most certain first, causes before consequences, verdicts last."""
    place = _PLACES.get(finding.before or finding.code, len(ORDER)) - 0.5 * bool(finding.before)
    return finding.is_verdict, finding.severity == INFO, CERTAINTIES.index(finding.certainty), place
