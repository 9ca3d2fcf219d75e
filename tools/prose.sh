#!/bin/sh
# Fails on words in code, messages and docs for which there is a verb that says who does what: report, sanitize, ignore.
# An underscore ends a word, so the parts of names are checked, too.
words='to''ld|me''nd(s|ed|ing)?|asi''de|lo''st|of oth''ers|held aga''inst'
! git grep -niE "(^|[^[:alpha:]])($words)([^[:alpha:]]|\$)" -- mmguard docs benchmarks configs examples tools tests '*.md'
