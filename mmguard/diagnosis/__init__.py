"""From counts and facts to the likely cause, in words that say what to change."""

from mmguard.diagnosis.causes import CAUSES
from mmguard.diagnosis.finding import Cause, Finding, LabelFacts, diagnose

__all__ = ['CAUSES', 'Cause', 'Finding', 'LabelFacts', 'diagnose']
