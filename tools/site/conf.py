"""Sphinx with MyST and furo: the pages are Markdown that forges show as well, and autodoc reads the docstrings."""

project = 'mmguard'
copyright = 'the authors of mmguard'
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon']
html_theme = 'furo'
html_title = 'mmguard'
html_show_sphinx = False
html_static_path = ['static']
html_css_files = ['site.css']
highlight_language = 'none'  # a block without a language is what a shell prints
myst_heading_anchors = 4
autodoc_member_order = 'groupwise'
autodoc_default_options = {'exclude-members': 'extra_repr'}
autodoc_typehints = 'none'  # docstrings name the types, as mmengine's do
napoleon_numpy_docstring = False
napoleon_use_rtype = False
nitpicky = False
napoleon_use_ivar = True  # or a NamedTuple's fields are described twice
