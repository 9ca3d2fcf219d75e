"""The registry of the framework that a config is of."""

from __future__ import annotations

from typing import Any, ContextManager

from mmguard import register


def in_scope(config: Any) -> ContextManager[None]:
    """Types without a scope are looked up in the config's ``default_scope``, while data is loaded, too."""
    from mmengine.registry import DefaultScope

    register()
    scope: ContextManager[None] = DefaultScope.overwrite_default_scope(config.get('default_scope') or 'mmengine')
    return scope
