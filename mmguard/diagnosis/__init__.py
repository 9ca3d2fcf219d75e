"""From counts and facts to the likely cause, in words that say what to change."""

from mmguard.diagnosis.causes import CAUSES
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause, Finding, diagnose

__all__ = ['CAUSES', 'Cause', 'Finding', 'LabelFacts', 'diagnose']
