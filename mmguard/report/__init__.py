"""What was found, told: the HTML page, the table of a log, its plot."""

from mmguard.report.page import Box, Section, WorstFile, write_scan_page

__all__ = ['Box', 'Section', 'WorstFile', 'write_scan_page']
