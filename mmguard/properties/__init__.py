"""Properties of a built program, which must hold for every training, whatever its heads, data sets and transforms.

A config is built in a process of its own (:mod:`worker`), part by part (:mod:`program`); :mod:`suite` lists the
properties. :mod:`builder` calls each part once, and compares the parts before and after an edit.
"""
