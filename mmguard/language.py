"""Language of the texts that users read: English, or Chinese from the catalogue in ``mmguard/locale``."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, Tuple

if TYPE_CHECKING:
    from gettext import NullTranslations

#: Environment variables that name a language; the first that is set decides.
_VARIABLES = ('MMGUARD_LANG', 'LC_ALL', 'LC_MESSAGES', 'LANG')


class Message(str):
    """English string that keeps its template and values, so that :func:`translate` can build it in another language.

    JSON and other machine formats contain the English text. ``plural`` is the template for every ``number`` except 1.
    Values that are messages are translated, too; in other strings, line breaks are escaped.

    Example:
        >>> Message('{label} is {name}, not a class.', label=255, name='void')
        '255 is void, not a class.'
    """

    template: str
    plural: str
    values: Dict[str, Any]

    def __new__(cls, template: str, /, plural: str = '', **values: Any) -> Message:
        chosen = plural if plural and values['number'] != 1 else template
        values = {name: value.replace('\n', '\\n') if type(value) is str else value for name, value in values.items()}
        text = super().__new__(cls, chosen.format(**values))
        text.template, text.plural, text.values = template, plural, values
        return text

    def __format__(self, spec: str) -> str:
        """Format like ``str``; the format spec ``unasked`` removes the question mark at the end."""
        return self.rstrip('?') if spec == 'unasked' else super().__format__(spec)

    def __getnewargs_ex__(self) -> Tuple[Tuple[str, str], Dict[str, Any]]:  # type: ignore[override]
        return (self.template, self.plural), self.values


def as_message(text: str) -> Message:
    """Return a text as a :class:`Message`, so that it is translated even as a value of another message."""
    escaped = text.replace('{', '{{').replace('}', '}}').replace('\n', '\\n')
    return text if isinstance(text, Message) else Message(escaped)


def join(separator: str, texts: Any) -> Message:
    """Join texts into a message: messages among them are translated, and so is ``separator`` (without braces).

    Example:
        >>> join('; ', ['a {brace}', Message('{n} files', n=3)])
        'a {brace}; 3 files'
    """
    values = {f'text{number}': text for number, text in enumerate(texts)}
    template = '{separator}'.join(f'{{{name}}}' for name in values)
    return Message(template, separator=Message(separator), **values)


def translate(text: str, /, **values: Any) -> str:
    """Return a message or a text in the language of the user, with its placeholders replaced by ``values``.

    A text that is missing from the catalogue stays English.
    """
    if values:
        text = Message(text, **values)
    language = choose_language()
    return str(text) if language == 'en' or not text else _translate(text, _read_catalogue(language))


def choose_language() -> str:
    """Return ``'zh_CN'`` if ``MMGUARD_LANG`` (or without it, the locale) begins with ``zh``, else ``'en'``."""
    named = next(filter(None, map(os.environ.get, _VARIABLES)), '')
    return 'zh_CN' if named.lower().startswith('zh') else 'en'


@lru_cache(maxsize=None)
def _read_catalogue(language: str) -> NullTranslations:
    from gettext import translation

    return translation('mmguard', os.path.join(os.path.dirname(__file__), 'locale'), [language], fallback=True)


def _translate(text: str, catalogue: NullTranslations) -> str:
    if not isinstance(text, Message):
        return catalogue.gettext(text)
    if text.plural:
        template = catalogue.ngettext(text.template, text.plural, text.values['number'])
    else:
        template = catalogue.gettext(text.template) if text.template else ''
    values = {
        name: _translate(value, catalogue) if isinstance(value, Message) else value
        for name, value in text.values.items()
    }
    return template.format(**values)
