"""Tests of properties that every training must have, whatever its heads, data sets and transforms.

:mod:`suite` lists the properties. The tests build a config part by part (:mod:`program`) in a separate process
(:mod:`worker`). :mod:`builder` calls each part of a config once, before and after an edit, and compares the outcomes.
"""
