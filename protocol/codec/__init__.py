"""From a declaration to functions that build, encode and decode it: `schema` declares, `layout` looks at one version,
`encoding`, `decoding` and `constructor` generate source, `codec` compiles and keeps it.

It knows no message. Those are declared in `messages`.
"""
