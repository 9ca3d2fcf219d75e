"""Properties that hold for every training, whatever its heads, data sets and transforms, tested on a built config.

A config is built in a separate process (:mod:`worker`), part by part (:mod:`program`); :mod:`suite` lists the
properties. :mod:`builder` calls each part once, and compares the parts before and after an edit.
"""
